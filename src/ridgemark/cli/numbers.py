"""What commands measure of a model that predicts numbers, and say of it; `classes` has the same functions."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ridgemark.fitted import RunRecord
from ridgemark.report import fit_words as words
from ridgemark.report import promises, quality
from ridgemark.rows import shown
from ridgemark.rows.places import as_written

INTERVALS = "intervals"

_FEW_ROWS = 20  # in fewer rows, a target of two values need not be labels
_ERRORS = ("data", "n_rows", "rms", "r2", "coverage", "repeated")


def outputs(model: Any, names: Sequence[str] | None) -> Sequence[Any]:
    """Return the targets, by their names or their numbers."""
    return names or range(np.size(model.intercept_))


def has_intervals(model: Any) -> bool:
    """Return whether the model can make intervals."""
    return hasattr(model, "calibration_") and model._model.sums is not None


def summary(model: Any, run: RunRecord) -> dict[str, Any]:
    """Return the errors of a fit in plain numbers, for a machine."""
    record: dict[str, Any] = {"explained": quality.explained(model), "loo_rms": quality.leave_one_out_error(model)}
    if (transform := getattr(model, "target_transform_", None)) is not None:
        record["target_transform"] = asdict(transform)
    if run.held_out is not None:
        record["held_out"] = {name: run.held_out.get(name) for name in _ERRORS}
    return record


def lines(model: Any, run: RunRecord) -> list[tuple[str, str | None]]:
    """Return a fit in a few lines of labels and values: how good it is, what was tuned, distance to exact, cost."""
    return [
        *quality.quality_lines(model, words.target_names(model, run)),
        ("held out", None if run.held_out is None else _error_words(run.held_out)),
        *quality.baseline_lines(model, run),
        *words.tuning_lines(model),
        (INTERVALS, promises.interval_shortage(model)),
        ("target", _two_values(run) or words.transform_words(model)),
        ("hint", _hint(model, run)),
        ("exact", promises.distance_words(model)),
        ("cost", words.cost_words(model, run)),
    ]


def _hint(model: Any, run: RunRecord) -> str | None:
    """Return the hint at a transform of a skewed target, from the rows that are shown; None where it does not apply."""
    if run.sample is None or len(run.sample["observed"]) != 1:
        return None
    said = quality.skewed_words(model, run.sample["observed"][0], run.sample["predicted"][0])
    return said and said.replace('target_transform="auto"', "--target-transform auto")


def _two_values(run: RunRecord) -> str | None:
    """Return what to do where the only target has two values, as labels of classes have; None for others."""
    observed = np.asarray((run.sample or {}).get("observed", ()))
    values = np.unique(observed)
    if len(values) != 2 or observed.size < _FEW_ROWS or len(run.target_names or ()) > 1 or (values % 1).any():
        return None
    low, high = (f"{value:.15g}" for value in values)
    return f"{low} or {high} in all rows looked at, fitted as a number; --classify fits probabilities of classes"


def _error_words(errors: Mapping[str, Any]) -> str:
    sizes = ", ".join(map(as_written, errors["rms"]))
    shares = ", ".join(f"{share:.1%}" for share in errors["r2"] if share is not None)
    said = f"RMS {sizes} on {errors['n_rows']:,} rows of {shown(errors['data'])}" + (shares and f", {shares} explained")
    return said + quality.repeated_words(errors)
