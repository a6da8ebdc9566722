"""How sure a prediction is: standard deviations, and jackknife+ intervals from leave-one-out residuals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.errors import ParameterError
from ridgemark.parameters import real_number
from ridgemark.passes import RowPasses
from ridgemark.rows import DEFAULT_MEMORY_BUDGET, Block
from ridgemark.solvers import LandmarkFit

Floats = NDArray[np.float64]

LARGEST_SAMPLE = 4096  # calibration rows: their quantiles are good to a percent, and a row takes a product with each


@dataclass(frozen=True, eq=False)
class Calibration:
    """Training rows with their leave-one-out residuals, from which intervals are made.

    Attributes
    ----------
    rows : array or sparse matrix of shape (m, n_features)
        The calibration rows.
    indices : array of shape (m,)
        Their row numbers.
    residuals : array of shape (m, n_targets)
        Leave-one-out residuals.
    weights : array of shape (m,)
        Relative weights: for how much each residual counts.
    shifts : array of shape (m, n_targets)
        `W_g r_g`, with W_g the weight and r_g the weighted mean residual of all rows that equal the row:
        the prediction at x without these rows is `f(x) - t(x, x_g) W_g r_g`.
    n_distinct : int
        Number of distinct rows among the calibration rows.
    guaranteed : bool
        Whether the rows had no part in choosing landmarks, bandwidth and ridge. Then an interval asked to cover with
        probability 1 - alpha covers a new row with probability at least 1 - 2 alpha, whatever the distribution, if
        rows are exchangeable; where some rows are equal, the probability that a new row equals none of them and is
        missed is at most 2 alpha. Otherwise coverage is near 1 - alpha in practice, without a proof.
    reason : str
        Why it is guaranteed, or why not.
    """

    rows: Any
    indices: NDArray[np.intp]
    residuals: Floats
    weights: Floats
    shifts: Floats
    n_distinct: int
    guaranteed: bool
    reason: str


def sample_size(memory_budget: int | None, width: int) -> int:
    """Return how many calibration rows a quarter of the budget holds, as rows and features of this many numbers."""
    budget = DEFAULT_MEMORY_BUDGET if memory_budget is None else memory_budget
    return max(100, min(LARGEST_SAMPLE, budget // (32 * width)))


def noise_variance(fit: LandmarkFit) -> Floats:
    """Return the variance of the noise of a row of mean weight, per target, if the fit has no bias.

    Weights are relative precisions: the noise of row i has variance `s2/w_i`, `s2 = sum_i w_i e_i^2/(N - nu)`, for N
    rows of positive weight and `nu = 2 tr H - tr H^2`, one more with an intercept. At the mean weight that is
    `s2 N/sum w`.
    """
    solver = fit.solver
    solver.check_targets()
    n_rows = fit.moments.n_rows
    variances = []
    for target, ridge in enumerate(fit.scaled_ridge):
        shrunk = solver.spectrum / (solver.spectrum + ridge)
        spent = float((2.0 * shrunk - shrunk**2).sum()) + solver.fit_intercept
        # With as many landmarks as rows and hardly a ridge, nothing is left to estimate from; one row's worth is kept.
        freedom = max(n_rows - spent, 1.0)
        # A difference of two sums: below their rounding it is not known, and never less than zero.
        floor = np.finfo(np.float64).eps * float(solver.target_variance[target])
        error = max(float(solver.training_error(ridge)[target]), floor)
        variances.append(error * n_rows / freedom)
    return np.array(variances)


def standard_deviations(passes: RowPasses, fit: LandmarkFit) -> Floats:
    """Return the standard deviation of the fitted function at every row and target.

    With s2 as in `noise_variance`, the variance is `s2 ((k(x,x) - |b(x)|^2)/(n lambda) + t(x))`, where
    `t(x) = 1/sum w + bc(x)' (Bc'WBc + n lambda)^-1 bc(x)` with an intercept, and `b(x)' (B'WB + n lambda)^-1 b(x)`
    without: what landmarks cannot see, and what the rows leave open. No term is negative. Approximate, of the
    function: an observation of weight w scatters by s2/w more.
    """
    solver, factor = fit.solver, fit.factor
    inverse = 1.0 / (solver.spectrum[:, None] + fit.scaled_ridge)
    constant = 1.0 / solver.total_weight if solver.fit_intercept else 0.0
    variance = noise_variance(fit) * (solver.total_weight / fit.moments.n_rows)  # s2
    kernel, width = factor.cross_kernel.kernel, factor.cross_kernel.n_landmarks

    def of_block(block: Block) -> Floats:
        # Features first, and then their rotation: the lengths of features then do not depend on the targets or weights.
        features = passes.feature_block(factor, block)
        diagonal = kernel.diagonal(block.features, block.indices).astype(np.float64)
        unseen = np.maximum(diagonal - np.einsum("ij,ij->i", features, features), 0.0)
        centred = (features - solver.feature_mean) @ solver.rotation
        spread = unseen[:, None] / fit.scaled_ridge + constant + np.square(centred, out=centred) @ inverse
        return np.sqrt(variance * np.maximum(spread, np.finfo(np.float64).tiny))

    return passes.map("standard deviations", of_block, 2 * width, width)


def jackknife_intervals(passes: RowPasses, fit: LandmarkFit, calibration: Calibration, coverage: float) -> Floats:
    """Return jackknife+ intervals (Barber et al., 2021) for every row, shape (n, 2, targets).

    The prediction at x without the rows that equal calibration row i is `f(x) - t_i(x) W_g r_g`, with W_g their weight,
    r_g their mean leave-one-out residual and `t_i(x) = 1/sum w + bc(x)' (Bc'WBc + n lambda)^-1 bc_i`. The interval is
    from a low quantile of these less |r_i| to a high one of these plus |r_i|: of G distinct rows the
    `ceil(coverage (G + 1))`-th, rows counted by weight. No refit: one product with the calibration rows' features.
    """
    if not 0 < real_number(coverage) < 1:
        msg = f"coverage must be a number between 0 and 1, both excluded, got {coverage!r}"
        raise ParameterError(msg)
    n_distinct = calibration.n_distinct
    wanted = math.ceil(coverage * (n_distinct + 1) - 1e-9)
    if wanted > n_distinct:
        msg = (
            f"coverage {coverage:g} needs at least {math.ceil(coverage / (1 - coverage) - 1e-9)} distinct "
            f"calibration rows, got {n_distinct}; ask for less coverage or give more rows"
        )
        raise ParameterError(msg)
    solver, factor = fit.solver, fit.factor
    known = factor.cross_kernel(calibration.rows).astype(np.float64) @ factor.whitener
    known = ((known - solver.feature_mean) @ solver.rotation).T
    constant = 1.0 / solver.total_weight if solver.fit_intercept else 0.0
    inverse = 1.0 / (solver.spectrum[:, None] + fit.scaled_ridge)  # (rank, targets)
    mean = fit.target_origin + solver.target_mean
    width = factor.cross_kernel.n_landmarks
    quantile = _quantile_of(calibration.weights, wanted / n_distinct)

    def of_block(block: Block) -> Floats:
        features = (passes.feature_block(factor, block) - solver.feature_mean) @ solver.rotation
        ends = np.empty((block.n_rows, 2, len(mean)))
        for t in range(len(mean)):
            shrunk = features * inverse[:, t]
            fitted = (shrunk @ solver.rotated[:, t] + mean[t])[:, None]
            without = fitted - (shrunk @ known + constant) * calibration.shifts[:, t]
            size = np.abs(calibration.residuals[:, t])
            ends[:, 0, t] = -quantile(size - without)
            ends[:, 1, t] = quantile(size + without)
        return ends

    return passes.map("intervals", of_block, width + 4 * len(calibration.weights), width)


def _quantile_of(weights: Floats, level: float) -> Callable[[Floats], Floats]:
    """Return what gives each line's smallest value such that it and the values below have this share of the weight."""
    count = len(weights)
    if (weights == weights[0]).all():
        place = math.ceil(level * count - 1e-9 * count) - 1
        return lambda values: np.asarray(np.partition(values, place, axis=1)[:, place])
    enough = (level - 1e-9) * weights.sum()

    def of(values: Floats) -> Floats:
        order = np.argsort(values, axis=1)
        reached = np.cumsum(weights[order], axis=1) >= enough
        reached[:, -1] = True
        return np.asarray(np.take_along_axis(values, order, axis=1)[np.arange(len(values)), reached.argmax(axis=1)])

    return of
