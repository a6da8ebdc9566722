"""Pages from Python: what a model knows, and its errors on rows that are given."""

import copy
import os
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ridgemark.errors import ParameterError
from ridgemark.estimators.measuring import are_those_of_fit, held_out, kind_of, measure
from ridgemark.fitted import FittedModel, RunRecord
from ridgemark.persistence.files import replacing
from ridgemark.report.fit_page import fit_page
from ridgemark.report.plots import require_matplotlib
from ridgemark.rows import RowSource, open_rows
from ridgemark.rows.places import shown


def write_report(model: Any, path: Any, X: Any, y: Any, overwrite: bool) -> Path:
    """Write the page of a fitted model, with its errors on rows that are given, whole or not at all."""
    require_matplotlib()
    target = _place(path, overwrite)
    if X is None and y is not None:
        raise ParameterError("y needs its rows: give both, as in report(path, X, y), or neither")
    reported, run = (model, _kept(model)) if X is None else _measured(model, X, y)
    text = fit_page(reported, run, import_module("ridgemark").__version__)  # its rooms do not import it
    try:
        with replacing(target, overwrite) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except FileExistsError:
        raise _exists(target) from None
    except OSError as error:
        msg = f"the page was not written to {shown(target)}: {error.strerror or error}; choose another place"
        raise ParameterError(msg) from error
    return Path(path)


def _place(path: Any, overwrite: bool) -> Path:
    """Return the file to write; refuse a path where no page can be written, before anything is measured."""
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise ParameterError(f"path must be the name of an HTML file, as text or a Path, got {path!r}")
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise ParameterError(f"{shown(target)} is a directory; give the name of a file")
    if not target.parent.is_dir():
        raise ParameterError(f"there is no folder {shown(target.parent)} to write {shown(target.name)} in; create it")
    if target.exists() and not overwrite:
        raise _exists(target)
    return target


def _exists(target: Path) -> ParameterError:
    return ParameterError(f"{shown(target)} exists already; give another name, or overwrite=True to replace it")


def _kept(model: Any, names: Any = None) -> RunRecord:
    """Return what a model knows of its errors without any rows."""
    fitted = model._model
    n_rows = fitted.choice.sums.n_rows if isinstance(fitted, FittedModel) else None
    return RunRecord(n_rows=n_rows, target_names=names, sample=kind_of(model).kept(model))


def _measured(model: Any, X: Any, y: Any) -> tuple[Any, RunRecord]:
    """Return the model and its errors on rows: those of the fit, each left out, or others."""
    if not isinstance(X, RowSource) and y is None:
        raise ParameterError("the errors of the page need a target: give it, as in report(path, X, y)")
    source, names = X if isinstance(X, RowSource) else open_rows(X, y), _names(model, X, y)
    if not are_those_of_fit(model, source):
        return model, replace(_kept(model, names), held_out=held_out(model, source))
    calibrated = copy.copy(model)  # the user's model stays as it is
    run = measure(calibrated, RunRecord(target_names=names), source)
    return calibrated, replace(run, peak_bytes=None, waiting_share=None)


def _names(model: Any, X: Any, y: Any) -> list[str] | None:
    """Return a name for each function of the model, from the names of the target; None where it has none."""
    names = getattr(X, "target_names", None) if y is None else getattr(y, "columns", [getattr(y, "name", None)])
    if names is None or any(name is None for name in names):
        return None
    return [str(name) for name in kind_of(model).target_names(model, [str(name) for name in names])][
        : np.size(model.intercept_)
    ]
