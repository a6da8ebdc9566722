"""What is measured of a model that predicts numbers; `classes` has the same functions."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ridgemark.estimators.landmark_model import keep_certificate
from ridgemark.estimators.measuring.distance import far_errors
from ridgemark.estimators.table_reader import encoded_rows, encoded_source
from ridgemark.measured import AUDITED
from ridgemark.report import fit_words as words
from ridgemark.report import promises, quality
from ridgemark.rows import RowSource, row_weights

_SHOWN = 300  # rows in the plot of observed against predicted


def certify(model: Any, source: RowSource, kind: str | None) -> None:
    """Calibrate and certify a fitted model; a gradient leaves no sums to do so."""
    if model.solver_ == "direct":
        if not hasattr(model, "loo_residuals_"):
            model.calibrate(source)
        kind = kind or ("audit" if source.n_rows <= AUDITED else "trace")
        keep_certificate(model, model.certify(source, kind=kind))


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


def kept(model: Any) -> dict[str, Any] | None:
    """Return what `sample` does from the rows that the model keeps; None without them, and where groups left out.

    By `Calibration.shifts` and `reaches` the prediction without row i is `f(x_i) - s_i (r_i/s_i)^2`, s the shift and r
    the reach.
    """
    calibration = getattr(model, "calibration_", None)
    if calibration is None or calibration.groups is not None:
        return None
    part = _some(len(calibration.indices))
    rows, shifts, residuals = (values[part] for values in (calibration.rows, calibration.shifts, calibration.residuals))
    size = np.where(shifts != 0.0, shifts, 1.0)
    left_out = model._model.function.at(rows) - size * (calibration.reaches[part] / size) ** 2 * (shifts != 0.0)
    observed, predicted = left_out + residuals, left_out
    if (transform := words.transform_of(model)) is not None:
        observed, predicted = transform.inverse(observed), transform.predicted(left_out)
    return _listed(calibration.indices[part], observed, predicted, _intervals(model, encoded_rows(rows)))


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
    return (
        far_errors(model, rows, ((observed - predicted)[:, 0]) ** 2, root=True)
        | {
            "rms": np.sqrt(squares).tolist(),
            "r2": [float(1 - s / v) if v > 0 else None for s, v in zip(squares, spread, strict=True)],
            "coverage": None if ends is None else mean((ends[:, 0] <= observed) & (observed <= ends[:, 1])).tolist(),
        }
        | _listed(part, observed[part], predicted[part], None if ends is None else ends[part])
    )


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
    ends = np.asarray(model.predict_interval(rows, coverage=quality.COVERAGE))
    return ends.reshape(len(ends), 2, -1)


def target_names(model: Any, names: Sequence[str]) -> Sequence[str]:
    """Return a name for each function of the model."""
    return names
