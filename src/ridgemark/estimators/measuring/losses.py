"""What is measured of a model of numbers by a loss."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ridgemark.backends import Floats
from ridgemark.estimators.judged import losses_of
from ridgemark.estimators.measuring.classes import certify
from ridgemark.estimators.measuring.distance import far_errors
from ridgemark.estimators.table_reader import encoded_rows, encoded_source
from ridgemark.intervals.of_loss import loss_intervals
from ridgemark.losses import Loss
from ridgemark.report import promises, quality
from ridgemark.rows import RowSource, row_weights

__all__ = ["certify", "held_out", "kept", "sample", "target_names"]

_SHOWN = 300  # rows in the plot of observed against predicted
_GROUPS = 10  # of rows in a calibration plot
_EFFECTS = 2048  # rows that effects are averaged over


def sample(model: Any, source: RowSource) -> dict[str, Any]:
    """Return the errors on rows of the fit, each left out, the most influential rows, and average effects."""
    diagnosis = model.diagnose(source)
    some = encoded_source(model, source).take(diagnosis.rows[:_EFFECTS])
    effects = model.effects_summary(encoded_rows(some.features, some.weights)).to_record()
    named = [effect | {"target": str(effect["target"])} for effect in effects]
    return kept(model) | {"top": diagnosis.to_record()["top"], "effects": named}


def kept(model: Any) -> dict[str, Any]:
    """Return the errors on the rows that the model keeps, each left out."""
    judged = model.calibration_
    ends = None if judged.of_rates else _ends(model, judged, judged.predictors)
    errors = _errors(model.loss_, judged.targets[:, None], judged.weights, judged.predictors, ends)
    return errors | {name: getattr(judged, name).tolist() for name in ("loss", "null_loss", "below")}  # of more rows


def held_out(model: Any, source: RowSource) -> dict[str, Any]:
    """Return the errors on test rows, and the coverage of the intervals."""
    opened, _ = model._open(source, None, None, reset=False)
    block, judged = opened.take(np.arange(source.n_rows)), model.calibration_
    loss, weights = model.loss_, row_weights(block)
    loss.check(block.targets, weights)
    rows = encoded_rows(block.features)
    predictor = model._linear(rows)
    ends = None if getattr(source, "has_exposure", False) else _ends(model, judged, predictor)
    errors = _errors(loss, block.targets, weights, predictor, ends)
    lost, null = losses_of(loss, block.targets, weights, predictor)
    each = np.mean([part.values(block.targets, predictor[:, [k]]) for k, part in enumerate(loss.parts())], axis=0)
    return errors | {"loss": lost.tolist(), "null_loss": null.tolist()} | far_errors(model, rows, each)


def _ends(model: Any, judged: Any, predictor: Floats) -> Floats | None:
    """Return intervals (n, 2) of rows without exposures; None where none are made."""
    if promises.interval_shortage(model):
        return None
    return loss_intervals(model.loss_, predictor, judged.targets, judged.weights, judged.predictors, quality.COVERAGE)


def _errors(loss: Loss, targets: Floats, weights: Floats, predictor: Floats, ends: Floats | None) -> dict[str, Any]:
    """Return what predictions are worth on rows with weights; zero leaves a row out.

    `below` is the share of the targets below each prediction, and `below_error` its standard error; `coverage` the
    share inside the intervals. `calibration` has for ten groups of rows, by the (middle) prediction, its mean, what is
    observed, and the standard errors of that: the share below each quantile, or the mean target where the loss predicts
    means. Rows to draw are `observed` and `predicted`.
    """
    kept = weights > 0
    targets, weights, predictor = targets[kept], weights[kept], predictor[kept]
    predicted, total = loss.predicted(predictor), weights.sum()
    below = (targets < predicted).astype(float)
    order = np.argsort(predicted[:, predicted.shape[1] // 2], kind="stable")
    groups = np.array_split(order, min(_GROUPS, len(order)))
    observed = below if loss.levels else targets if loss.linear_in_targets else targets[:, :0]
    part = np.unique(np.linspace(0, len(targets) - 1, _SHOWN).astype(np.intp))
    inside = None if ends is None else (ends[kept, :1] <= targets) & (targets <= ends[kept, 1:])
    shares = np.array(loss.levels or [0.5] * predicted.shape[1])
    record = {
        "n_rows": len(targets),
        "below": (weights @ below / total).tolist(),
        "below_error": (np.sqrt(shares * (1 - shares) * (weights**2).sum()) / total).tolist(),
        "coverage": None if inside is None else float(weights @ inside[:, 0] / total),
        "observed": targets[part].T.tolist(),
        "predicted": predicted[part].T.tolist(),
        "calibration": [_calibration(predicted[g], observed[g], weights[g], loss.levels) for g in groups],
    }
    if ends is not None:
        record |= {"lower": [ends[kept][part, 0].tolist()], "upper": [ends[kept][part, 1].tolist()]}
    return record


def _calibration(predicted: Floats, observed: Floats, weights: Floats, levels: Sequence[float]) -> list[float]:
    """Return the mean (middle) prediction of a group of rows, the means observed, and their standard errors."""
    total = weights.sum()
    means = weights @ observed / total
    shares = np.array(levels)
    spread = shares * (1 - shares) if levels else weights @ (observed - means) ** 2 / total
    middle = weights @ predicted[:, predicted.shape[1] // 2] / total
    return [float(middle), *means.tolist(), *np.sqrt(spread * (weights**2).sum() / total**2).tolist()]


def target_names(model: Any, names: Sequence[str]) -> Sequence[str]:
    """Return a name for each function of the model: of several quantiles with the level."""
    levels = model.loss_.levels
    return [f"{names[0]} at {level:g}" for level in levels] if len(levels) > 1 else names[:1]
