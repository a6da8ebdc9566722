"""Standard deviations of the fitted function."""

from typing import ClassVar

import numpy as np

from ridgemark.backends import Floats
from ridgemark.passes import RowPasses, Workspace
from ridgemark.rows import Block
from ridgemark.solvers import LandmarkFit, RidgeTask, ridge_form


def noise_variance(fit: LandmarkFit) -> Floats:
    """Return the variance of the noise of a row of mean weight, per target, if the fit has no bias: `s2 N/sum w`."""
    return unit_variance(fit, fit.moments.n_rows) * (fit.moments.n_rows / fit.moments.total_weight)


def unit_variance(fit: LandmarkFit, n_rows: int) -> Floats:
    """Return the variance s2 of the noise of a row of unit weight, per target, from N rows.

    Weights are relative precisions: the noise of row i has variance `s2/w_i`, `s2 = sum_i w_i e_i^2/(N - nu)`, for N
    rows of positive weight and `nu = 2 tr H - tr H^2`, one more with an intercept.
    """
    centred = fit.centred
    centred.check_targets()
    # With as many landmarks as rows and a tiny ridge no degrees of freedom are left; at least one is assumed.
    remaining = np.maximum(n_rows - fit.degrees_of_freedom, 1.0)
    # The error is a difference of two sums, and not known below their rounding error.
    floor = np.finfo(np.float64).eps * centred.target_variance
    return np.maximum(fit.training_error, floor) * (centred.total_weight / remaining)


def standard_deviations(passes: RowPasses, fit: LandmarkFit) -> Floats:
    """Return the standard deviation of the fitted function at every row and target.

    With s2 as in `unit_variance`, the variance is `s2 ((k(x,x) - |b(x)|^2)/(n lambda) + t(x))`, where
    `t(x) = 1/sum w + bc(x)' (Bc'WBc + n lambda)^-1 bc(x)` with an intercept, and `b(x)' (B'WB + n lambda)^-1 b(x)`
    without: the variance outside the landmarks' span, and the variance given the rows. No term is negative. It is an
    approximation for the function; an observation of weight w has the variance s2/w in addition.
    """
    variance = unit_variance(fit, fit.moments.n_rows)
    return passes.map(Spread(**ridge_form(fit), variance=variance))


def outside(task: RidgeTask, block: Block, squares: Floats) -> Floats:
    """Return `(k(x, x) - |b(x)|^2)/(n lambda)`, (rows, targets); 0 where a precomputed kernel does not hold k(x, x)."""
    pairwise = task.factor.cross_kernel.kernel.pairwise
    return (squares * 0.0 if pairwise else task.unexplained(block, squares))[:, None] / task.scaled_ridge


class Spread(RidgeTask):
    """The standard deviations of `standard_deviations`, shape (rows, targets)."""

    what: ClassVar[str] = "standard deviations"
    variance: Floats  # (targets,): s2 of the noise of a row of unit weight

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        (coordinates, _, squares), backend = self.coordinates(block, workspace), workspace.backend
        backend.xp.square(coordinates, out=coordinates)
        spread = outside(self, block, squares) + self.share_of_constant + coordinates @ self.inverse.factors
        return backend.xp.sqrt(self.variance * backend.at_least(spread, np.finfo(np.float64).tiny))
