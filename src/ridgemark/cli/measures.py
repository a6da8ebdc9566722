"""What commands measure of a fit, as plain numbers, and say of it; `KINDS` has what differs with what is predicted."""

from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import numpy as np

from ridgemark.cli import classes, losses, numbers
from ridgemark.estimators import measuring
from ridgemark.estimators.measuring import measure
from ridgemark.fitted import RunRecord
from ridgemark.report import fit_words as words
from ridgemark.rows import RowSource, shown

__all__ = ["KINDS", "fit_and_measure", "held_out", "kind_of", "measure", "summary"]

KINDS = {"numbers": numbers, "classes": classes, "losses": losses}

_TUNING = ("level", "kernel", "reason", "dropped", "judged_error", "n_tuning", "n_judging", "n_evaluations", "seconds")


def kind_of(model: Any) -> ModuleType:
    """Return the functions for what a model predicts."""
    return KINDS[words.predicts(model)]


def fit_and_measure(model: Any, source: RowSource) -> RunRecord:
    """Fit, and return what a report shows beside the model."""
    model.fit(source)
    return measure(model, RunRecord(target_names=words.target_names(model, source)), source)


def held_out(model: Any, source: RowSource, path: Path) -> dict[str, Any]:
    """Return the errors on test rows; a warning says how many have the features of training rows."""
    errors = measuring.held_out(model, source)
    if repeated := errors["repeated"]:
        count = f"{repeated:,} of the {source.n_rows:,} rows of {shown(path)}"
        click.echo(f"ridgemark: {count} have the features of training rows; expect a larger error on others", err=True)
    return {"data": path.name} | errors


def summary(model: Any, run: RunRecord) -> dict[str, Any]:
    """Return what a fit is in plain numbers, for a machine."""
    certificate, tuning, bandwidth = model.certificate_, getattr(model, "tuning_", None), model.bandwidth_
    about = ("data", "n_rows", "target_names", "seconds", "peak_bytes", "waiting_share", "boosting")
    record = {name: getattr(run, name) for name in about} | {
        "n_features": words.n_columns(model),
        "n_groups": model._model.rows.n_groups,
        "kernel": words.kernel_words(model),
        "tuning": None if tuning is None else _tuning_summary(tuning),
        "important_columns": [{"column": name, "share": share} for name, share in words.important_columns(model, 3)],
        "bandwidth": bandwidth if bandwidth is None or np.isscalar(bandwidth) else np.asarray(bandwidth).tolist(),
        "ridge": np.atleast_1d(model.ridge_).tolist(),
        "n_landmarks": model.n_landmarks_,
        "selection": words.selection_name(model),
        "solver": model.solver_,
        "effective_dimension": list(model.effective_dimension_),
        "certificate": certificate and certificate.as_dict(),
        "n_passes": model.n_passes_,
        "n_kernel_evaluations": model.n_kernel_evaluations_,
    }
    return record | kind_of(model).summary(model, run)


def _tuning_summary(tuning: Any) -> dict[str, Any]:
    """Return how a kernel was tuned in plain numbers, with its parts."""
    baselines = None if tuning.baselines is None else asdict(tuning.baselines)
    parts = [asdict(part) for part in tuning.parts]
    return {name: getattr(tuning, name) for name in _TUNING} | {"parts": parts, "baselines": baselines}
