"""Weighted quantiles, and the size of residuals of which some may be arbitrarily large."""

import numpy as np

from ridgemark.backends import Floats

_NORMAL = 1.4826  # standard deviation over the median absolute value, of normal noise


def weighted_quantile(values: Floats, weights: Floats, level: float) -> float:
    """Return the value below which the weights sum to `level` of their total; of two such values, their mean."""
    present = weights > 0
    values, weights = values[present], weights[present]
    order = np.argsort(values, kind="stable")
    values, reached = values[order], np.cumsum(weights[order])
    wanted, total = level * reached[-1], reached[-1]
    low = int(np.searchsorted(reached, wanted * (1 - 1e-12) - 1e-300 * total))
    high = int(np.searchsorted(reached, wanted * (1 + 1e-12), side="right"))
    low, high = (min(place, len(values) - 1) for place in (low, high))
    return float(values[low] / 2 + values[high] / 2)


def robust_scale(residuals: Floats, weights: Floats) -> float:
    """Return 1.4826 times the median absolute residual, the standard deviation of normal noise.

    Where more than half of the residuals vanish it is their mean absolute value; where all do, 1: no residual is then
    an outlier.
    """
    sizes = np.abs(residuals)
    scale = _NORMAL * weighted_quantile(sizes, weights, 0.5)
    if not scale > 1e-12 * sizes.max(initial=0.0):
        unit = sizes.max(initial=0.0)
        scale = float(weights @ (sizes / unit)) / float(weights.sum()) * unit if unit > 0 else 1.0
    return float(scale)
