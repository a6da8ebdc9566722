"""Jackknife+ intervals whose width follows the noise, and grows away from the rows."""

from collections.abc import Sequence

import numpy as np

from ridgemark.backends import Floats
from ridgemark.intervals.calibration import Calibration, weighted_by_ratio
from ridgemark.intervals.noise import widths
from ridgemark.intervals.quantiles import quantiles, quantiles_beyond
from ridgemark.passes import RowPasses
from ridgemark.solvers import LandmarkFit

_LINES = 256  # rows whose scores are sorted at once
_POINTS, _DECADES = 1024, (-4.0, 2.0)  # of the table of quantiles


def adaptive_intervals(
    passes: RowPasses, fit: LandmarkFit, calibration: Calibration, levels: Sequence[float], own: Floats | None = None
) -> Floats:
    """Return intervals `f(x) -+ q tau(x)` for every row, shape (n, 2, levels, targets).

    `tau(x)^2 = sigma(x)^2 + sd(x)^2`, sigma the size of the noise and sd the standard deviation of the function; q is
    a quantile of the calibration rows' scores `|r_i|/tau(x_i)`. Where coverage is guaranteed, q is a quantile of
    `score_i + u reach_i`, `u = sqrt(t(x, x))/tau(x)`: by the Cauchy-Schwarz inequality
    `|f_(-i)(x) - f(x)| <= reach_i sqrt(t(x, x))`, so that the intervals contain those of the jackknife+, which run
    between quantiles of `f_(-i)(x) -+ score_i tau(x)`. With density ratios, `own` has those of the rows, and the levels
    are coverages.
    """
    places = passes.map(widths(fit, calibration.noise))
    ends = np.empty((len(places), 2, len(levels), places.shape[2]))
    for t in range(places.shape[2]):
        fitted, sigma, deviation, reach = places[:, :, t].T
        tau = np.hypot(sigma, deviation)
        if own is not None:
            half = tau[:, None] * _beyond(calibration, t, levels, reach / tau, own)
        elif calibration.guaranteed:
            half = tau[:, None] * _contained(calibration, t, levels, reach / tau)
        else:
            half = tau[:, None] * quantiles(calibration.scores[None, :, t], calibration.weights, levels)
        ends[:, 0, :, t], ends[:, 1, :, t] = fitted[:, None] - half, fitted[:, None] + half
    return ends


def _beyond(calibration: Calibration, t: int, coverages: Sequence[float], u: Floats, own: Floats) -> Floats:
    """Return for every row the quantiles of scores weighted by density ratios, with its own ratio at infinity."""
    scores, weights, most = calibration.scores[:, t], weighted_by_ratio(calibration), []
    for part in np.array_split(np.arange(len(u)), max(1, len(u) // _LINES)):
        more = calibration.guaranteed * u[part, None] * calibration.reaches[:, t]
        most.append(quantiles_beyond(scores + more, weights, coverages, own[part]))
    return np.concatenate(most)


def _contained(calibration: Calibration, t: int, levels: Sequence[float], u: Floats) -> Floats:
    """Return the quantiles of `score_i + u reach_i` for every u, or a little more: from a table, rounded up.

    Quantiles grow with u, so that the next larger u of the table has larger ones; beyond the table they grow at most
    in proportion to u.
    """
    scores, reaches = calibration.scores[:, t], calibration.reaches[:, t]
    unit = scores.mean() / reaches.mean() if reaches.any() else 1.0
    grid = unit * np.logspace(*_DECADES, _POINTS)
    parts = np.array_split(grid, _POINTS // 64)
    table = [quantiles(scores + part[:, None] * reaches, calibration.weights, levels) for part in parts]
    above = np.minimum(np.searchsorted(grid, u), _POINTS - 1)
    return np.concatenate(table)[above] * np.maximum(u / grid[-1], 1.0)[:, None]
