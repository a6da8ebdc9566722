"""Errors and summaries of a fit as plain numbers, for printing and for its page."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from ridgemark.estimators.class_labels import conformal_sets
from ridgemark.estimators.table_reader import encoded_rows, encoded_source
from ridgemark.fitted import RunRecord
from ridgemark.losses import class_loss
from ridgemark.report import fit_words as words
from ridgemark.rows import Block, RowSource, row_weights, without_features
from ridgemark.rows.distinct import count_distinct, row_hashes, share_in_common

AUDITED = 10_000  # up to this many rows an audit (one product with the kernel matrix) takes seconds
_HASHED = 65536  # rows hashed at a time
_DIFFERENT = 0.9  # share of distinct rows from which on the features of a row identify it
_EFFECTS = 2048  # rows that effects of classes are averaged over
_GROUPS = 10  # of rows in a calibration plot
_SHOWN = 300  # rows in the plot of observed against predicted
_TUNING = ("level", "kernel", "reason", "dropped", "judged_error", "n_tuning", "n_judging", "n_evaluations", "seconds")


def sample_of(model: Any, source: RowSource) -> dict[str, Any] | None:
    """Return observed and leave-one-out predicted values of some training rows, with intervals, for every target."""
    if not hasattr(model, "calibration_"):
        return None
    known = model.calibration_
    part = _some(len(known.indices))
    block = encoded_source(model, source).take(known.indices[part])
    ends = _intervals(model, encoded_rows(block.features))
    return _shown(known.indices[part], block.targets, block.targets - known.residuals[part], ends)


def repeated_rows(source: RowSource, other: RowSource) -> int:
    """Return how many rows of another source have features and targets of a row of the first, by their hashes."""
    return int(np.isin(_marks(other), _marks(source)).sum())


def repeated_share(model: Any, source: RowSource) -> float:
    """Return the share of rows whose features are those of a training row, by the smallest hashes of these.

    An estimate for more than 2,048 training rows. Zero where many training rows have equal features, so that equal
    features do not tell the same row.
    """
    known, certificate = model._model.rows.hashes, model.certificate_
    if certificate is None or count_distinct(known) < _DIFFERENT * certificate.inputs["n_rows"]:
        return 0.0
    return share_in_common(known, np.concatenate([row_hashes(block) for block in source.blocks(_HASHED)]))


def _marks(source: RowSource) -> Any:
    """Return a hash of every row's features and targets."""

    def marks(block: Block) -> Any:
        return row_hashes(replace(block, features=np.column_stack([block.features, block.targets])))

    return np.concatenate([marks(block) for block in source.blocks(_HASHED)])


def held_out(model: Any, source: RowSource, name: str) -> dict[str, Any]:
    """Return the error on test rows, the coverage of the intervals, and a sample of the rows."""
    if hasattr(model, "classes_"):
        return held_out_classes(model, source, name)
    rows = encoded_source(model, source)
    block = rows.take(np.arange(source.n_rows))
    observed, weights = block.targets, row_weights(block)
    rows = encoded_rows(block.features)
    predicted = np.asarray(model.predict(rows), dtype=np.float64).reshape(observed.shape)
    ends = _intervals(model, rows)

    def mean(values: Any) -> Any:
        return np.average(values, axis=0, weights=weights)

    squares, spread = mean((observed - predicted) ** 2), mean((observed - mean(observed)) ** 2)
    part = _some(source.n_rows)
    return {
        "data": name,
        "n_rows": source.n_rows,
        "rms": np.sqrt(squares).tolist(),
        "r2": [float(1 - s / v) if v > 0 else None for s, v in zip(squares, spread, strict=True)],
        "coverage": None if ends is None else mean((ends[:, 0] <= observed) & (observed <= ends[:, 1])).tolist(),
    } | _shown(part, observed[part], predicted[part], None if ends is None else ends[part])


def class_errors(model: Any, logs: Any, shares: Any, weights: Any) -> dict[str, Any]:
    """Return the errors of log-probabilities (n, K) on rows with shares of labels, and weights; zero leaves a row out.

    `rms` is that of the probabilities, as the certificate bounds it. `sets` has the share of rows whose label is in its
    set of labels, the mean number of labels, and the share of sets of one.

    `confusion` counts rows by label and by the most probable one. `calibration` has for ten groups of rows, by the
    probability of the second of two classes or of the most probable one, its mean and how often it was right.
    """
    logs, shares, weights = (values[weights > 0] for values in (logs, shares, weights))
    labels, counted, found = model.classes_, weights[:, None] * shares, logs.argmax(axis=1)
    total, units, squares = counted.sum(), np.eye(len(labels)), (np.exp(logs) ** 2).sum(axis=1, keepdims=True)
    sets = conformal_sets(np.exp(logs), model.calibration_, words.COVERAGE)
    held, sizes = (shares * sets).sum(axis=1), sets.sum(axis=1)
    confusion = counted.T @ units[found]
    judged = np.full(len(found), 1) if len(labels) == 2 else found
    p, right = (values[np.arange(len(found)), judged] for values in (np.exp(logs), shares))
    groups = np.array_split(np.argsort(p, kind="stable"), min(_GROUPS, len(p)))
    return {
        "n_rows": len(found),
        "accuracy": float(np.trace(confusion) / total),
        "log_loss": float(-(counted * np.where(counted > 0, logs, 0.0)).sum() / total),
        "by_class": [float(loss) for loss in _class_losses(counted, logs)],
        "rms": float(
            np.sqrt((counted * (squares - 2.0 * np.exp(logs) + 1.0)).sum() / total / (1 + (len(labels) == 2)))
        ),
        "sets": [float(np.average(values, weights=weights)) for values in (held, sizes, sizes == 1)],
        "confusion": confusion.tolist(),
        "calibration": [[float(np.average(v[g], weights=weights[g])) for v in (p, right)] + [len(g)] for g in groups],
    }


def _class_losses(counted: Any, logs: Any) -> Any:
    """Return the mean log loss of the rows of each class; zero for a class without rows."""
    totals = counted.sum(axis=0)
    losses = -(counted * np.where(counted > 0, logs, 0.0)).sum(axis=0)
    return np.divide(losses, totals, out=np.zeros_like(losses), where=totals > 0)


def held_out_classes(model: Any, source: RowSource, name: str) -> dict[str, Any]:
    """Return the errors on test rows, whose labels must be those of the fit, and the coverage of sets of labels."""
    labelled, _ = model._open(source, None, None, reset=False)
    everything = np.arange(source.n_rows)
    block = labelled.take(everything)
    shares = class_loss(len(model.classes_)).indicators(block.targets)
    weights = row_weights(without_features(source).take(everything))
    found = class_errors(model, model.predict_log_proba(encoded_rows(block.features)), shares, weights)
    return {"data": name} | found


def _some(count: int) -> Any:
    """Return the positions of the rows to show, evenly spaced."""
    return np.unique(np.linspace(0, count - 1, _SHOWN).astype(np.intp))


def _shown(rows: Any, observed: Any, predicted: Any, ends: Any) -> dict[str, Any]:
    """Return rows observed and predicted as lists, one for each target."""
    values = {"rows": rows, "observed": observed.T, "predicted": predicted.T}
    if ends is not None:
        values |= {"lower": ends[:, 0].T, "upper": ends[:, 1].T}
    return {name: array.tolist() for name, array in values.items()}


def sample_of_classes(model: Any, source: RowSource) -> dict[str, Any]:
    """Return the errors on rows of the fit, each left out, and the most influential rows."""
    diagnosis = model.diagnose(source)
    errors = class_errors(model, diagnosis.log_probabilities, diagnosis.shares, diagnosis.weights)
    some = encoded_source(model, source).take(diagnosis.rows[:_EFFECTS])
    rows = encoded_rows(some.features, diagnosis.weights[:_EFFECTS])
    return errors | {"top": diagnosis.to_record()["top"], "effects": model.effects_summary(rows).to_record()}


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes; None where the system does not report it."""
    with suppress(ImportError):
        import resource  # not on Windows

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return int(peak if sys.platform == "darwin" else peak * 1024)
    return None


def summary(model: Any, run: RunRecord) -> dict[str, Any]:
    """Return what a fit is in plain numbers, for a machine."""
    if hasattr(model, "classes_"):
        return _class_summary(model, run)
    certificate = model.certificate_
    bandwidth, tuning = model.bandwidth_, getattr(model, "tuning_", None)
    shown = ("data", "n_rows", "target_names", "seconds", "peak_bytes", "waiting_share")
    record = {name: getattr(run, name) for name in shown} | {
        "n_features": words.n_columns(model),
        "kernel": words.kernel_words(model),
        "tuning": None if tuning is None else _tuning_summary(tuning),
        "important_columns": [{"column": name, "share": share} for name, share in words.important_columns(model, 3)],
        "bandwidth": bandwidth if bandwidth is None or np.isscalar(bandwidth) else np.asarray(bandwidth).tolist(),
        "ridge": np.atleast_1d(model.ridge_).tolist(),
        "n_landmarks": model.n_landmarks_,
        "selection": words.selection_name(model),
        "solver": model.solver_,
        "effective_dimension": list(model.effective_dimension_),
        "explained": words.explained(model),
        "loo_rms": words.leave_one_out_error(model),
        "certificate": None if certificate is None else certificate.as_dict(),
        "n_passes": model.n_passes_,
        "n_kernel_evaluations": model.n_kernel_evaluations_,
    }
    if run.held_out is not None:
        told = ("data", "n_rows", "rms", "r2", "coverage", "repeated")
        record["held_out"] = {name: run.held_out.get(name) for name in told}
    return record


def _tuning_summary(tuning: Any) -> dict[str, Any]:
    """Return how a kernel was tuned in plain numbers, with its parts."""
    return {name: getattr(tuning, name) for name in _TUNING} | {"parts": [asdict(part) for part in tuning.parts]}


def _class_summary(model: Any, run: RunRecord) -> dict[str, Any]:
    """Return what a fit of classes is in plain numbers, for a machine."""
    path, certificate = getattr(model, "ridge_path_", None), model.certificate_
    return {
        "n_rows": run.n_rows,
        "classes": model.classes_.tolist(),
        "n_landmarks": model.n_landmarks_,
        "ridge": model.ridge_,
        "loo_log_loss": None if path is None else float(path.loo_loss[path.chosen]),
        "left_out": _told(run.sample),
        "held_out": _told(run.held_out),
        "certificate": None if certificate is None else certificate.as_dict(),
        "seconds": run.seconds,
    }


def _told(errors: Mapping[str, Any] | None) -> dict[str, Any] | None:
    told = ("n_rows", "accuracy", "log_loss", "confusion", "repeated")
    return None if errors is None else {name: errors[name] for name in told if name in errors}


def _intervals(model: Any, rows: Any) -> Any:
    """Return intervals (n, 2, targets); None without calibration rows, or with too few for their coverage."""
    if not hasattr(model, "calibration_") or words.interval_shortage(model):
        return None
    ends = np.asarray(model.predict_interval(rows, coverage=words.COVERAGE))
    return ends.reshape(len(ends), 2, -1)
