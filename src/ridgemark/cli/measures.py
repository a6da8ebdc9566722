"""What commands measure of a fit, as plain numbers, and say of it; `KINDS` has what differs with what is predicted."""

import sys
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import numpy as np

from ridgemark.cli import classes, losses, numbers
from ridgemark.estimators.table_reader import encoded_source
from ridgemark.fitted import RunRecord
from ridgemark.report import fit_words as words
from ridgemark.rows import RowSource, shown
from ridgemark.rows.distinct import count_distinct, row_hashes, share_in_common

KINDS = {"numbers": numbers, "classes": classes, "losses": losses}

_HASHED = 65536  # rows hashed at a time
_DIFFERENT = 0.9  # share of distinct rows from which on the features of a row identify it
_TUNING = ("level", "kernel", "reason", "dropped", "judged_error", "n_tuning", "n_judging", "n_evaluations", "seconds")


def kind_of(model: Any) -> ModuleType:
    """Return the functions for what a model predicts."""
    return KINDS[words.predicts(model)]


def measure(model: Any, about: RunRecord, source: RowSource, kind: str | None = None) -> RunRecord:
    """Calibrate and certify a fitted model; return the record with its errors, memory and waiting."""
    kind_of(model).certify(model, source, kind)
    return replace(
        about,
        n_rows=source.n_rows,
        sample=kind_of(model).sample(model, source),
        peak_bytes=_peak_memory(),
        waiting_share=model.waiting_share_,
    )


def fit_and_measure(model: Any, source: RowSource) -> RunRecord:
    """Fit, and return what a report shows beside the model."""
    model.fit(source)
    return measure(model, RunRecord(target_names=words.target_names(model, source)), source)


def held_out(model: Any, source: RowSource, path: Path) -> dict[str, Any]:
    """Return the errors on test rows; a warning says how many have the features of training rows."""
    repeated = round(repeated_share(model, encoded_source(model, source)) * source.n_rows)
    if repeated:
        count = f"{repeated:,} of the {source.n_rows:,} rows of {shown(path)}"
        click.echo(f"ridgemark: {count} have the features of training rows; expect a larger error on others", err=True)
    about = {"data": path.name, "n_rows": source.n_rows, "repeated": repeated}
    return about | kind_of(model).held_out(model, source)


def repeated_share(model: Any, source: RowSource) -> float:
    """Return the share of rows whose features are those of a training row, by the smallest hashes of these.

    An estimate for more than 2,048 training rows. Zero where many training rows have equal features, so that equal
    features do not tell the same row.
    """
    hashes = model._model.rows.hashes
    if count_distinct(hashes) < _DIFFERENT * model._model.choice.sums.n_rows:
        return 0.0
    return share_in_common(hashes, np.concatenate([row_hashes(block) for block in source.blocks(_HASHED)]))


def _peak_memory() -> int | None:
    """Return the peak memory of this process in bytes; None where the system does not report it."""
    with suppress(ImportError):
        import resource  # not on Windows

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return int(peak if sys.platform == "darwin" else peak * 1024)
    return None


def summary(model: Any, run: RunRecord) -> dict[str, Any]:
    """Return what a fit is in plain numbers, for a machine."""
    certificate, tuning, bandwidth = model.certificate_, getattr(model, "tuning_", None), model.bandwidth_
    about = ("data", "n_rows", "target_names", "seconds", "peak_bytes", "waiting_share")
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
    return {name: getattr(tuning, name) for name in _TUNING} | {"parts": [asdict(part) for part in tuning.parts]}
