"""Where a fit of classes begins: log-odds and a ridge from squared errors on the indicators."""

import numpy as np

from ridgemark.fitting.stages import Sums
from ridgemark.losses import RidgeSolution
from ridgemark.path import Ridges, ridge_path, rows_of_outcomes
from ridgemark.solvers import Newton
from ridgemark.solvers.landmark_fit import CentredMoments, solve_one_ridge

_LEAST_SHARE = 1e-12  # of a class whose rows have hardly any weight
_STEEPEST = 4.0  # the slope of the log-odds at the probability 1/2


def first_log_odds(sums: Sums, scaled_ridge: float) -> RidgeSolution:
    """Return log-odds of the classes' shares, plus four times how far squared error predicts from the shares.

    Four is the slope of the log-odds at the probability 1/2.
    """
    moments, origin = sums.moments, sums.target_origin
    shares = moments.target_sum / moments.total_weight + origin
    shares = np.clip(shares, _LEAST_SHARE, 1.0 - _LEAST_SHARE)
    logs = np.log(shares)
    constant = (logs - np.log1p(-shares) if len(shares) == 1 else logs - logs.mean()) * sums.fit_intercept
    solved = solve_one_ridge(CentredMoments(moments, sums.fit_intercept), _STEEPEST * scaled_ridge)
    if solved is None:
        return RidgeSolution(np.zeros((sums.factor.rank, len(shares))), constant)
    c, own = solved.solution.coefficients, solved.solution.intercept + origin
    return RidgeSolution(_STEEPEST * c, constant + _STEEPEST * (own - shares) * sums.fit_intercept)


def suggested_for_classes(sums: Sums, ridges: Ridges, newton: Newton) -> int:
    """Return which ridge squared error on the indicators suggests, or the smallest that the classes have rows for.

    The curvature of the log loss is about the variance `p (1 - p)` that squared error leaves; a ridge of the log loss
    has the effect of the ridge divided by it. At the smallest ridge allowed, a constant prediction has as many
    effective dimensions as there are rows outside the largest class.
    """
    solver = sums.leading
    n_left_out, free = newton.passes.n_left_out, max(1, len(solver.target_variance) - 1)  # targets free to differ
    squared = ridge_path(solver, ridges, n_left_out)
    chosen = int(squared.chosen[0])
    errors = np.minimum(squared.gcv[chosen], solver.target_variance)
    wanted = np.log(ridges.values[chosen]) + np.log(max(float(errors.sum()) / free, 1e-6))
    suggested = int(np.abs(np.log(ridges.values) - wanted).argmin())
    outcomes = rows_of_outcomes(newton)
    assert outcomes is not None
    counts, _ = outcomes
    others = n_left_out - counts.max() if len(counts) > 1 else counts[0]
    spectrum = float(solver.target_variance.sum()) / free * solver.spectrum[:, None]
    dimensions = (spectrum / (spectrum + ridges.scaled)).sum(axis=0)
    return min(suggested, max(0, int(np.count_nonzero(dimensions <= others)) - 1))
