"""Conformal intervals of fits by a loss, from rows predicted without them."""

import math

import numpy as np

from ridgemark.backends import Floats
from ridgemark.errors import ParameterError
from ridgemark.intervals.quantiles import check_coverage, quantile_levels
from ridgemark.losses import Loss, Quantile
from ridgemark.losses.robust import weighted_quantile

_ABOVE = 1e-12  # how far beyond a share of the weights the quantile is taken


def loss_intervals(
    loss: Loss,
    predictor: Floats,
    targets: Floats,
    weights: Floats,
    predictors: Floats,
    coverage: float,
    n_groups: int | None = None,
) -> Floats:
    """Return intervals for new observations at rows with these predictors, shape (n, 2).

    Quantiles: the two fitted levels whose difference is nearest the coverage, moved outwards by the distance that
    covers a share `ceil(c (m + 1))/m` of the rows known (conformalised quantiles). Other losses: the prediction plus
    quantiles of `(y - prediction)/spread` times the spread that the loss implies, half of what is not covered on each
    side. Of rows that left in groups, m counts the groups.
    """
    check_coverage(coverage)
    units = (
        (len(targets), "distinct calibration rows") if n_groups is None else (n_groups, "groups of calibration rows")
    )
    if isinstance(loss, Quantile):
        low, high = _levels_for(loss, coverage)
        [share] = quantile_levels([coverage], *units)
        fitted = loss.predicted(predictors)
        beyond = np.maximum(fitted[:, low] - targets, targets - fitted[:, high])
        moved = weighted_quantile(beyond, weights, share + _ABOVE)
        ends = loss.predicted(predictor)[:, [low, high]] + [-moved, moved]
        middle = ends.mean(axis=1, keepdims=True)
        return np.where(ends[:, :1] > ends[:, 1:], middle, ends)
    [share] = quantile_levels([(1.0 + coverage) / 2], *units)
    spread = np.maximum(loss.spread(predictors)[:, 0], np.finfo(np.float64).tiny)
    scores = (targets - loss.predicted(predictors)[:, 0]) / spread
    factors = np.array([-weighted_quantile(-scores, weights, share), weighted_quantile(scores, weights, share)])
    ends = loss.predicted(predictor) + factors * loss.spread(predictor)
    return np.maximum(ends, 0.0) if loss.positive else ends


def _levels_for(loss: Quantile, coverage: float) -> tuple[int, int]:
    """Return the positions of the two levels whose difference is nearest a coverage."""
    count = len(loss.levels)
    if count < 2:
        raise ParameterError(
            f"an interval of quantiles needs two fitted levels, got {list(loss.levels)}; fit with "
            f"quantiles=[{(1 - coverage) / 2:g}, {(1 + coverage) / 2:g}]"
        )
    pairs = [(low, high) for low in range(count) for high in range(low + 1, count)]
    return min(pairs, key=lambda pair: abs(math.fsum((loss.levels[pair[1]], -loss.levels[pair[0]], -coverage))))
