"""Uncertainty of predictions: standard deviations, and jackknife+ intervals from leave-one-out residuals."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ridgemark.backends import Floats, Indices
from ridgemark.errors import ParameterError
from ridgemark.operators import FeatureTask, diagonal_block, feature_block
from ridgemark.parameters import real_number
from ridgemark.passes import RowPasses, Workspace
from ridgemark.rows import DEFAULT_MEMORY_BUDGET, Block
from ridgemark.solvers import LandmarkFit

LARGEST_SAMPLE = 4096  # most calibration rows: enough for quantiles accurate to a percent


@dataclass(frozen=True, eq=False)
class Calibration:
    """Training rows with their leave-one-out residuals, from which intervals are computed.

    Attributes
    ----------
    rows : array or sparse matrix of shape (m, n_features)
        The calibration rows.
    indices : array of shape (m,)
        Their row numbers.
    residuals : array of shape (m, n_targets)
        Leave-one-out residuals.
    weights : array of shape (m,)
        Relative weights of the residuals.
    shifts : array of shape (m, n_targets)
        `W_g r_g`, with W_g the weight and r_g the weighted mean residual of all rows that equal the row:
        the prediction at x without these rows is `f(x) - t(x, x_g) W_g r_g`.
    n_distinct : int
        Number of distinct rows among the calibration rows.
    guaranteed : bool
        Whether the rows had no part in choosing landmarks, bandwidth and ridge. Then an interval asked to cover with
        probability 1 - alpha covers a new row with probability at least 1 - 2 alpha, for every distribution, if
        rows are exchangeable; where some rows are equal, the probability that a new row equals none of them and
        lies outside its interval is at most 2 alpha. Otherwise coverage is near 1 - alpha in practice, without a proof.
    reason : str
        Why it is guaranteed, or why not.
    """

    rows: Any
    indices: Indices
    residuals: Floats
    weights: Floats
    shifts: Floats
    n_distinct: int
    guaranteed: bool
    reason: str


def sample_size(memory_budget: int | None, width: int) -> int:
    """Return how many calibration rows, of `width` numbers with their features, a quarter of the budget holds."""
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
    shrunk = solver.spectrum[:, None] / (solver.spectrum[:, None] + fit.scaled_ridge)
    degrees_of_freedom = (2.0 * shrunk - shrunk**2).sum(axis=0) + solver.fit_intercept
    # With as many landmarks as rows and a tiny ridge no degrees of freedom are left; at least one is assumed.
    remaining = np.maximum(n_rows - degrees_of_freedom, 1.0)
    # The error is a difference of two sums, and not known below their rounding error.
    floor = np.finfo(np.float64).eps * solver.target_variance
    return np.maximum(solver.training_error(fit.scaled_ridge), floor) * n_rows / remaining


def standard_deviations(passes: RowPasses, fit: LandmarkFit) -> Floats:
    """Return the standard deviation of the fitted function at every row and target.

    With s2 as in `noise_variance`, the variance is `s2 ((k(x,x) - |b(x)|^2)/(n lambda) + t(x))`, where
    `t(x) = 1/sum w + bc(x)' (Bc'WBc + n lambda)^-1 bc(x)` with an intercept, and `b(x)' (B'WB + n lambda)^-1 b(x)`
    without: the variance outside the landmarks' span, and the variance given the rows. No term is negative. It is an
    approximation for the function; an observation of weight w has the variance s2/w in addition.
    """
    variance = noise_variance(fit) * (fit.solver.total_weight / fit.moments.n_rows)
    return passes.map(Spread(**_spectral_form(fit), scaled_ridge=fit.scaled_ridge, variance=variance))


@dataclass(frozen=True, eq=False)
class SpectralTask(FeatureTask):
    """A task on `c(x) = V'(b(x) - m)`, with `Bc'W Bc = V diag(s) V'` for the features centred at m.

    In these coordinates ridge regression is diagonal. Without an intercept m is 0.
    """

    arrays: ClassVar[int] = 2
    mean: Floats  # (rank,): m
    rotation: Floats  # (rank, rank): V
    inverse: Floats  # (rank, targets): `1/(s + n lambda)`
    share_of_constant: float  # 1/n with an intercept, otherwise 0

    def features(self, block: Block, workspace: Workspace) -> tuple[Floats, Floats]:
        """Return c(x), in scratch memory, and `k(x, x) - |b(x)|^2` for the rows of a block."""
        # Features first, and then their rotation: the lengths of features then do not depend on targets or weights.
        features = feature_block(self.factor, block, workspace)
        squares = np.einsum("ij,ij->i", features, features)
        unexplained = np.maximum(diagonal_block(self.factor.cross_kernel, block) - squares, 0.0)
        features -= self.mean
        centred = workspace.array("features", (block.n_rows, self.rotation.shape[1]))
        return np.matmul(features, self.rotation, out=centred), unexplained


def _spectral_form(fit: LandmarkFit) -> dict[str, Any]:
    """Return the fields of a `SpectralTask`."""
    solver = fit.solver
    return {
        "factor": fit.factor,
        "mean": solver.feature_mean,
        "rotation": solver.rotation,
        "inverse": 1.0 / (solver.spectrum[:, None] + fit.scaled_ridge),
        "share_of_constant": 1.0 / solver.total_weight if solver.fit_intercept else 0.0,
    }


@dataclass(frozen=True, eq=False)
class Spread(SpectralTask):
    """The standard deviations of `standard_deviations`, shape (rows, targets)."""

    what: ClassVar[str] = "standard deviations"
    scaled_ridge: Floats  # (targets,)
    variance: Floats  # (targets,): s2 of the noise of a row of unit weight

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        centred, unexplained = self.features(block, workspace)
        np.square(centred, out=centred)
        spread = unexplained[:, None] / self.scaled_ridge + self.share_of_constant + centred @ self.inverse
        return np.sqrt(self.variance * np.maximum(spread, np.finfo(np.float64).tiny))


def jackknife_intervals(passes: RowPasses, fit: LandmarkFit, calibration: Calibration, coverage: float) -> Floats:
    """Return jackknife+ intervals (Barber et al., 2021) for every row, shape (n, 2, targets).

    The prediction at x without the rows that equal calibration row i is `f(x) - t_i(x) W_g r_g`, with W_g their weight,
    r_g their mean leave-one-out residual and `t_i(x) = 1/sum w + bc(x)' (Bc'WBc + n lambda)^-1 bc_i`. The interval
    runs from a low quantile of these predictions minus |r_i| to a high quantile of these plus |r_i|: the
    `ceil(coverage (G + 1))`-th of G distinct rows, counted by weight. There is no refit, only one product with the
    calibration rows' features.
    """
    if not 0 < real_number(coverage) < 1:
        raise ParameterError(f"coverage must be a number between 0 and 1, both excluded, got {coverage!r}")
    n_distinct = calibration.n_distinct
    wanted = math.ceil(coverage * (n_distinct + 1) - 1e-9)
    if wanted > n_distinct:
        raise ParameterError(
            f"coverage {coverage:g} needs at least {math.ceil(coverage / (1 - coverage) - 1e-9)} distinct "
            f"calibration rows, got {n_distinct}; ask for less coverage or give more rows"
        )
    solver = fit.solver
    known = fit.factor.features(calibration.rows).astype(np.float64) - solver.feature_mean
    return passes.map(
        Jackknife(
            **_spectral_form(fit),
            rotated=solver.rotated,
            known=solver.rotation.T @ known.T,
            target_mean=fit.target_origin + solver.target_mean,
            residuals=calibration.residuals,
            weights=calibration.weights,
            shifts=calibration.shifts,
            level=wanted / n_distinct,
        )
    )


@dataclass(frozen=True, eq=False)
class Jackknife(SpectralTask):
    """The ends of `jackknife_intervals`, shape (rows, 2, targets)."""

    what: ClassVar[str] = "intervals"
    rotated: Floats  # (rank, targets): `V'Bc'W yc`
    known: Floats  # (rank, m): c(x) of the calibration rows
    target_mean: Floats  # (targets,)
    residuals: Floats  # (m, targets): of the calibration rows
    weights: Floats  # (m,)
    shifts: Floats  # (m, targets): `W_g r_g`, weight and mean residual of the rows equal to each
    level: float  # of the quantile

    @property
    def width(self) -> int:
        return self.kernel_entries + 4 * len(self.weights)

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        centred, _ = self.features(block, workspace)
        quantile = _quantile_of(self.weights, self.level)
        ends = np.empty((block.n_rows, 2, len(self.target_mean)))
        for t, mean in enumerate(self.target_mean):
            shrunk = centred * self.inverse[:, t]
            fitted = (shrunk @ self.rotated[:, t] + mean)[:, None]
            without = fitted - (shrunk @ self.known + self.share_of_constant) * self.shifts[:, t]
            size = np.abs(self.residuals[:, t])
            ends[:, 0, t] = -quantile(size - without)
            ends[:, 1, t] = quantile(size + without)
        return ends


def _quantile_of(weights: Floats, level: float) -> Callable[[Floats], Floats]:
    """Return a function for the weighted quantile of each line.

    That is the smallest value such that it and the values below have at least the share `level` of the weight.
    """
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
