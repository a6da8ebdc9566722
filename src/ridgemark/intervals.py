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
        How many rows each counts for.
    guaranteed : bool
        Whether the rows had no part in choosing landmarks, bandwidth and ridge. Then an interval asked to cover with
        probability 1 - alpha covers a new row with probability at least 1 - 2 alpha, whatever the distribution, if
        rows are exchangeable; otherwise coverage is near 1 - alpha in practice, without a proof.
    reason : str
        Why it is guaranteed, or why not.
    """

    rows: Any
    indices: NDArray[np.intp]
    residuals: Floats
    weights: Floats
    guaranteed: bool
    reason: str


def sample_size(memory_budget: int | None, width: int) -> int:
    """Return how many calibration rows a quarter of the budget holds, as rows and features of this many numbers."""
    budget = DEFAULT_MEMORY_BUDGET if memory_budget is None else memory_budget
    return max(100, min(LARGEST_SAMPLE, budget // (32 * width)))


def noise_variance(fit: LandmarkFit) -> Floats:
    """Return `|y - f|^2/(n - 2 tr H + tr H^2)` per target: the variance of the noise, if the fit has no bias."""
    solver = fit.solver
    solver.check_targets()
    variances = []
    for target, ridge in enumerate(fit.scaled_ridge):
        shrunk = solver.spectrum / (solver.spectrum + ridge)
        spent = float((2.0 * shrunk - shrunk**2).sum()) + solver.fit_intercept
        # With as many landmarks as rows and hardly a ridge, nothing is left to estimate from; one row's worth is kept.
        freedom = max(solver.total_weight - spent, 1.0)
        # A difference of two sums: below their rounding it is not known, and never less than zero.
        floor = np.finfo(np.float64).eps * float(solver.target_variance[target])
        error = max(float(solver.training_error(ridge)[target]), floor)
        variances.append(error * solver.total_weight / freedom)
    return np.array(variances)


def standard_deviations(passes: RowPasses, fit: LandmarkFit) -> Floats:
    """Return the standard deviation of the fitted function at every row and target.

    With s2 the noise variance, `s2 ((k(x,x) - |b(x)|^2)/(n lambda) + h(x))`, where
    `h(x) = 1/n + bc(x)' (Bc'Bc + n lambda)^-1 bc(x)` with an intercept, and `b(x)' (B'B + n lambda)^-1 b(x)` without:
    what landmarks cannot see, and what n rows leave open. No term is negative. Approximate, of the function: an
    observation of weight w scatters by s2/w more.
    """
    solver, factor = fit.solver, fit.factor
    towards = factor.whitener @ solver.rotation
    offset = solver.feature_mean @ solver.rotation
    inverse = 1.0 / (solver.spectrum[:, None] + fit.scaled_ridge)
    constant = 1.0 / solver.total_weight if solver.fit_intercept else 0.0
    variance = noise_variance(fit)
    kernel, width = factor.cross_kernel.kernel, factor.cross_kernel.n_landmarks

    def of_block(block: Block) -> Floats:
        features = passes.cross_block(factor.cross_kernel, block) @ towards
        diagonal = kernel.diagonal(block.features, block.indices).astype(np.float64)
        unseen = np.maximum(diagonal - np.einsum("ij,ij->i", features, features), 0.0)
        features -= offset
        np.square(features, out=features)
        spread = unseen[:, None] / fit.scaled_ridge + constant + features @ inverse
        return np.sqrt(variance * np.maximum(spread, np.finfo(np.float64).tiny))

    return passes.map("standard deviations", of_block, 2 * width, width)


def jackknife_intervals(passes: RowPasses, fit: LandmarkFit, calibration: Calibration, coverage: float) -> Floats:
    """Return jackknife+ intervals (Barber et al., 2021) for every row, shape (n, 2, targets).

    The prediction at x without a unit of calibration row i is `f(x) - g_i(x) r_i`, with r_i the leave-one-out residual
    and `g_i(x) = 1/n + bc(x)' (Bc'Bc + n lambda)^-1 bc_i`; the interval is from a low quantile of these less |r_i| to a
    high one of these plus |r_i|. No refit: one product with the calibration rows' features.
    """
    if not 0 < real_number(coverage) < 1:
        msg = f"coverage must be a number between 0 and 1, both excluded, got {coverage!r}"
        raise ParameterError(msg)
    count = len(calibration.residuals)
    wanted = math.ceil(coverage * (count + 1) - 1e-9)
    if wanted > count:
        msg = (
            f"coverage {coverage:g} needs at least {math.ceil(coverage / (1 - coverage) - 1e-9)} calibration rows, "
            f"got {count}; ask for less coverage or give more rows"
        )
        raise ParameterError(msg)
    solver, factor = fit.solver, fit.factor
    towards = factor.whitener @ solver.rotation
    offset = solver.feature_mean @ solver.rotation
    known = (factor.cross_kernel(calibration.rows).astype(np.float64) @ towards - offset).T
    constant = 1.0 / solver.total_weight if solver.fit_intercept else 0.0
    inverse = 1.0 / (solver.spectrum[:, None] + fit.scaled_ridge)  # (rank, targets)
    # One unit of weight was left out, or the whole row where it weighs less.
    left_out = np.minimum(calibration.weights, 1.0)[:, None] * calibration.residuals
    mean = fit.target_origin + solver.target_mean
    width = factor.cross_kernel.n_landmarks
    quantile = _quantile_of(calibration.weights, wanted)

    def of_block(block: Block) -> Floats:
        features = passes.cross_block(factor.cross_kernel, block) @ towards - offset
        ends = np.empty((block.n_rows, 2, len(mean)))
        for t in range(len(mean)):
            shrunk = features * inverse[:, t]
            without = (shrunk @ solver.rotated[:, t] + mean[t])[:, None] - (shrunk @ known + constant) * left_out[:, t]
            size = np.abs(calibration.residuals[:, t])
            ends[:, 0, t] = -quantile(size - without)
            ends[:, 1, t] = quantile(size + without)
        return ends

    return passes.map("intervals", of_block, width + 4 * count, width)


def _quantile_of(weights: Floats, wanted: int) -> Callable[[Floats], Floats]:
    """Return what gives each line's `wanted`-th smallest value, rows counted by their share of the weights."""
    count = len(weights)
    if (weights == weights[0]).all():
        return lambda values: np.asarray(np.partition(values, wanted - 1, axis=1)[:, wanted - 1])
    shares = weights * (count / weights.sum())

    def of(values: Floats) -> Floats:
        order = np.argsort(values, axis=1)
        reached = np.cumsum(shares[order], axis=1) >= wanted - 1e-9 * count
        reached[:, -1] = True
        return np.asarray(np.take_along_axis(values, order, axis=1)[np.arange(len(values)), reached.argmax(axis=1)])

    return of
