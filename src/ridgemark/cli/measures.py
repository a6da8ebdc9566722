"""Errors and summaries of a fit as plain numbers, for printing and for its page."""

from __future__ import annotations

import json
import re
import sys
from contextlib import suppress
from typing import Any

import numpy as np

from ridgemark.fitted import RunRecord
from ridgemark.rows import RowSource, open_rows
from ridgemark.selection import Auto, Selection

COVERAGE = 0.9
CRITERIA = {"loo": "leave-one-out", "gcv": "generalised cross-validation"}
_SHOWN = 300  # rows in the plot of observed against predicted


def leave_one_out_error(model: Any) -> list[float] | None:
    """Return the RMS of the leave-one-out residuals of every target; None without residuals."""
    path = getattr(model, "ridge_path_", None)
    if path is not None and path.loo_error is not None:
        chosen = path.loo_error[path.chosen, np.arange(len(path.chosen))]
        return [float(error) for error in np.sqrt(chosen)]
    if not hasattr(model, "calibration_"):
        return None
    known = model.calibration_
    return [float(error) for error in np.sqrt(np.average(known.residuals**2, axis=0, weights=known.weights))]


def sample_of(model: Any, source: RowSource) -> dict[str, Any] | None:
    """Return observed and leave-one-out predicted values of some training rows, with intervals, for every target."""
    if not hasattr(model, "calibration_"):
        return None
    known = model.calibration_
    part = np.unique(np.linspace(0, len(known.indices) - 1, _SHOWN).astype(np.intp))
    block = source.take(known.indices[part])
    assert block.targets is not None
    return {
        "rows": known.indices[part].tolist(),
        "observed": block.targets.T.tolist(),
        "predicted": (block.targets - known.residuals[part]).T.tolist(),
    } | (_ends(model, _like_source(source, block.features)) if _has_intervals(model) else {})


def held_out(model: Any, source: RowSource, name: str) -> dict[str, Any]:
    """Return the error on test rows, the coverage of the intervals, and a sample of the rows."""
    block = source.take(np.arange(source.n_rows))
    assert block.targets is not None
    rows = _like_source(source, block.features)
    predicted = np.asarray(model.predict(rows), dtype=np.float64).reshape(block.targets.shape)
    weights = np.ones(source.n_rows) if block.weights is None else block.weights
    squares = np.average((block.targets - predicted) ** 2, axis=0, weights=weights)
    mean = np.average(block.targets, axis=0, weights=weights)
    spread = np.average((block.targets - mean) ** 2, axis=0, weights=weights)
    part = np.unique(np.linspace(0, source.n_rows - 1, _SHOWN).astype(np.intp))
    record = {
        "data": name,
        "n_rows": source.n_rows,
        "rms": np.sqrt(squares).tolist(),
        "r2": [float(1 - s / v) if v > 0 else None for s, v in zip(squares, spread, strict=True)],
        "coverage": None,
        "observed": block.targets[part].T.tolist(),
        "predicted": predicted[part].T.tolist(),
        "rows": part.tolist(),
    }
    if _has_intervals(model):
        ends = _ends(model, rows)
        lower, upper = np.array(ends["lower"]).T, np.array(ends["upper"]).T
        inside = (lower <= block.targets) & (block.targets <= upper)
        record["coverage"] = np.average(inside, axis=0, weights=weights).tolist()
        record |= {side: [[values[k] for k in part] for values in ends[side]] for side in ("lower", "upper")}
    return record


def selection_name(model: Any) -> str:
    """Return how landmarks were chosen: a name, or the repr of the selection; of "auto", what it took."""
    if not isinstance(model.selection, str | Selection):
        return "points given"
    if model.selection in ("auto", Auto()):
        return "leverage (auto)" if hasattr(model, "leverage_scores_") else "rpcholesky (auto)"
    return str(model.selection)


def kernel_words(model: Any) -> str:
    """Return the repr of the kernel with numbers to six digits."""
    return re.sub(r"\d+\.\d{6,}(e[-+]?\d+)?", lambda number: f"{float(number[0]):.6g}", repr(model.kernel_))


def landmark_words(model: Any) -> str:
    """Return the number of landmarks, how they were chosen, and which rule set their number."""
    rule = model.landmark_count_.rule
    why = "their number given" if rule == "given" else f"number by the rule: {rule}"
    return f"{model.n_landmarks_:,} by {selection_name(model)} ({why})"


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes; None where the system does not report it."""
    with suppress(ImportError):
        import resource  # not on Windows

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return int(peak if sys.platform == "darwin" else peak * 1024)
    return None


def summary(model: Any, run: RunRecord) -> dict[str, Any]:
    """Return what a fit is in plain numbers, for a machine."""
    certificate = model.certificate_
    bandwidth = model.bandwidth_
    shown = ("data", "n_rows", "target_names", "seconds", "peak_bytes", "waiting_share")
    record = {name: getattr(run, name) for name in shown} | {
        "n_features": model.n_features_in_,
        "kernel": repr(model.kernel_),
        "bandwidth": bandwidth if bandwidth is None or np.isscalar(bandwidth) else np.asarray(bandwidth).tolist(),
        "ridge": np.atleast_1d(model.ridge_).tolist(),
        "n_landmarks": model.n_landmarks_,
        "selection": selection_name(model),
        "solver": model.solver_,
        "effective_dimension": list(model.effective_dimension_),
        "loo_rms": leave_one_out_error(model),
        "certificate": None if certificate is None else json.loads(certificate.to_json()),
        "n_passes": model.n_passes_,
        "n_kernel_evaluations": model.n_kernel_evaluations_,
    }
    if run.held_out is not None:
        record["held_out"] = {name: run.held_out[name] for name in ("data", "n_rows", "rms", "r2", "coverage")}
    return record


def _has_intervals(model: Any) -> bool:
    """Return whether there are enough calibration rows for the coverage shown."""
    return hasattr(model, "calibration_") and len(model.calibration_.residuals) * (1 - COVERAGE) >= COVERAGE - 1e-9


def _ends(model: Any, rows: Any) -> dict[str, Any]:
    ends = np.asarray(model.predict_interval(rows, coverage=COVERAGE))
    ends = ends.reshape(len(ends), 2, -1)
    return {"lower": ends[:, 0].T.tolist(), "upper": ends[:, 1].T.tolist()}


def _like_source(source: RowSource, features: Any) -> RowSource:
    """Return rows taken from a source, with its feature names."""
    if source.feature_names is None:
        return open_rows(features)
    return open_rows(dict(zip(source.feature_names, np.asarray(features).T, strict=True)))
