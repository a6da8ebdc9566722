"""How sure a prediction is: standard deviations, and jackknife+ intervals from leave-one-out residuals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ridgemark.errors import ParameterError
from ridgemark.operators import RotatedFeatures
from ridgemark.parameters import real_number
from ridgemark.passes import RowPasses, Task, Workspace
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
    solver = fit.solver
    return passes.map(
        Spread(
            solver.rotated_features(fit.factor),
            1.0 / (solver.spectrum[:, None] + fit.scaled_ridge),
            fit.scaled_ridge,
            1.0 / solver.total_weight if solver.fit_intercept else 0.0,
            noise_variance(fit),
        )
    )


@dataclass(frozen=True, eq=False)
class Spread(Task):
    """The standard deviations of `standard_deviations`, shape (rows, targets)."""

    what: ClassVar[str] = "standard deviations"
    features: RotatedFeatures
    inverse: Floats  # (rank, targets): `1/(s + n lambda)`
    scaled_ridge: Floats  # (targets,)
    share_of_constant: float  # 1/n with an intercept, otherwise 0
    variance: Floats  # (targets,): of the noise

    @property
    def width(self) -> int:
        return 2 * self.features.n_landmarks

    @property
    def kernel_entries(self) -> int:
        return self.features.n_landmarks

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        centred, unexplained = self.features.of_block(block, workspace)
        np.square(centred, out=centred)
        spread = unexplained[:, None] / self.scaled_ridge + self.share_of_constant + centred @ self.inverse
        return np.sqrt(self.variance * np.maximum(spread, np.finfo(np.float64).tiny))


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
    solver = fit.solver
    features = solver.rotated_features(fit.factor)
    return passes.map(
        Jackknife(
            features,
            1.0 / (solver.spectrum[:, None] + fit.scaled_ridge),
            solver.rotated,
            features.of_rows(calibration.rows).T,
            1.0 / solver.total_weight if solver.fit_intercept else 0.0,
            fit.target_origin + solver.target_mean,
            calibration.residuals,
            calibration.weights,
            wanted,
        )
    )


@dataclass(frozen=True, eq=False)
class Jackknife(Task):
    """The ends of `jackknife_intervals`, shape (rows, 2, targets)."""

    what: ClassVar[str] = "intervals"
    features: RotatedFeatures
    inverse: Floats  # (rank, targets): `1/(s + n lambda)`
    rotated: Floats  # (rank, targets): `V'Bc'W yc`
    known: Floats  # (rank, m): c(x) of the calibration rows
    share_of_constant: float  # 1/n with an intercept, otherwise 0
    target_mean: Floats  # (targets,)
    residuals: Floats  # (m, targets): of the calibration rows
    weights: Floats  # (m,)
    rank_wanted: int  # of the quantile

    @property
    def width(self) -> int:
        return self.features.n_landmarks + 4 * len(self.weights)

    @property
    def kernel_entries(self) -> int:
        return self.features.n_landmarks

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        centred, _ = self.features.of_block(block, workspace)
        quantile = _quantile_of(self.weights, self.rank_wanted)
        # One unit of weight was left out, or the whole row where it weighs less.
        left_out = np.minimum(self.weights, 1.0)[:, None] * self.residuals
        ends = np.empty((block.n_rows, 2, len(self.target_mean)))
        for t, mean in enumerate(self.target_mean):
            shrunk = centred * self.inverse[:, t]
            fitted = (shrunk @ self.rotated[:, t] + mean)[:, None]
            without = fitted - (shrunk @ self.known + self.share_of_constant) * left_out[:, t]
            size = np.abs(self.residuals[:, t])
            ends[:, 0, t] = -quantile(size - without)
            ends[:, 1, t] = quantile(size + without)
        return ends


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
