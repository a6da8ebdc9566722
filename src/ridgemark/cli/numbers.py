"""What commands measure of a model that predicts numbers, and say of it; `classes` has the same functions."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ridgemark.cli.options import AUDITED
from ridgemark.estimators.landmark_model import keep_certificate
from ridgemark.estimators.table_reader import encoded_rows, encoded_source
from ridgemark.fitted import RunRecord
from ridgemark.report import fit_words as words
from ridgemark.report import promises, quality
from ridgemark.rows import RowSource, row_weights, shown
from ridgemark.rows.places import as_written

INTERVALS = "intervals"

_SHARES = (0.05, 0.2, 0.5, 1.0)  # of the rows of the fit that are as far: ends of groups of rows
_SHOWN = 300  # rows in the plot of observed against predicted
_FEW_ROWS = 20  # in fewer rows, a target of two values need not be labels
_ERRORS = ("data", "n_rows", "rms", "r2", "coverage", "repeated")


def target_names(model: Any, names: Sequence[str]) -> Sequence[str]:
    """Return a name for each function of the model."""
    return names


def outputs(model: Any, names: Sequence[str] | None) -> Sequence[Any]:
    """Return the targets, by their names or their numbers."""
    return names or range(np.size(model.intercept_))


def certify(model: Any, source: RowSource, kind: str | None) -> None:
    """Calibrate and certify a fitted model; a gradient leaves no sums to do so."""
    if model.solver_ == "direct":
        if not hasattr(model, "loo_residuals_"):
            model.calibrate(source)
        kind = kind or ("audit" if source.n_rows <= AUDITED else "trace")
        keep_certificate(model, model.certify(source, kind=kind))  # type: ignore[no-untyped-call]


def sample(model: Any, source: RowSource) -> dict[str, Any] | None:
    """Return observed and leave-one-out predicted values of some training rows, with intervals, for every target."""
    if not hasattr(model, "calibration_"):
        return None
    calibration = model.calibration_
    part = _some(len(calibration.indices))
    block = encoded_source(model, source).take(calibration.indices[part])
    predicted = block.targets - calibration.residuals[part]
    if (transform := words.transform_of(model)) is not None:  # these residuals are those of the mapped target
        predicted = transform.predicted(transform.forward(block.targets) - calibration.residuals[part])
    return _listed(calibration.indices[part], block.targets, predicted, _intervals(model, encoded_rows(block.features)))


def held_out(model: Any, source: RowSource) -> dict[str, Any]:
    """Return the error on test rows, the coverage of the intervals, and a sample of the rows."""
    block = encoded_source(model, source).take(np.arange(source.n_rows))
    observed, weights, rows = block.targets, row_weights(block), encoded_rows(block.features)
    predicted = np.asarray(model.predict(rows), dtype=np.float64).reshape(observed.shape)
    ends = _intervals(model, rows)

    def mean(values: Any) -> Any:
        return np.average(values, axis=0, weights=weights)

    squares, spread = mean((observed - predicted) ** 2), mean((observed - mean(observed)) ** 2)
    part = _some(source.n_rows)
    far = _far(model, rows, (observed - predicted)[:, 0])
    return (
        far
        | {
            "rms": np.sqrt(squares).tolist(),
            "r2": [float(1 - s / v) if v > 0 else None for s, v in zip(squares, spread, strict=True)],
            "coverage": None if ends is None else mean((ends[:, 0] <= observed) & (observed <= ends[:, 1])).tolist(),
        }
        | _listed(part, observed[part], predicted[part], None if ends is None else ends[part])
    )


def _far(model: Any, rows: Any, errors: Any) -> dict[str, Any]:
    """Return how many rows are far from the data, and the errors by how far they are; nothing without sums."""
    if model._model.sums is None or model._model.background is None:
        return {}
    share = model.novelty(rows).share
    group = np.digitize(share, _SHARES, right=True)
    counts = np.bincount(group, minlength=len(_SHARES))
    squares = np.bincount(group, errors**2, minlength=len(_SHARES))
    groups = [[end, float(np.sqrt(s / n)), float(n)] for end, s, n in zip(_SHARES, squares, counts, strict=True) if n]
    return {"far": float((share <= _SHARES[0]).mean()), "far_errors": groups}


def _some(count: int) -> Any:
    """Return the positions of the rows to show, evenly spaced."""
    return np.unique(np.linspace(0, count - 1, _SHOWN).astype(np.intp))


def _listed(rows: Any, observed: Any, predicted: Any, ends: Any) -> dict[str, Any]:
    """Return rows observed and predicted as lists, one for each target."""
    values = {"rows": rows, "observed": observed.T, "predicted": predicted.T}
    if ends is not None:
        values |= {"lower": ends[:, 0].T, "upper": ends[:, 1].T}
    return {name: array.tolist() for name, array in values.items()}


def _intervals(model: Any, rows: Any) -> Any:
    """Return intervals (n, 2, targets); None without calibration rows, or with too few for their coverage."""
    if not hasattr(model, "calibration_") or promises.interval_shortage(model):
        return None
    ends = np.asarray(model.predict_interval(rows, coverage=promises.COVERAGE))
    return ends.reshape(len(ends), 2, -1)


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
