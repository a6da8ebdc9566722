"""Standard deviations of the fitted function, and the coordinates in which ridge regression is diagonal."""

from typing import Any, ClassVar

import numpy as np

from ridgemark.backends import Floats
from ridgemark.operators import FeatureTask, diagonal_block, feature_block
from ridgemark.passes import RowPasses, Workspace
from ridgemark.rows import Block
from ridgemark.solvers import LandmarkFit


def noise_variance(fit: LandmarkFit) -> Floats:
    """Return the variance of the noise of a row of mean weight, per target, if the fit has no bias: `s2 N/sum w`."""
    return unit_variance(fit, fit.moments.n_rows) * (fit.moments.n_rows / fit.solver.total_weight)


def unit_variance(fit: LandmarkFit, n_rows: int) -> Floats:
    """Return the variance s2 of the noise of a row of unit weight, per target, from N rows.

    Weights are relative precisions: the noise of row i has variance `s2/w_i`, `s2 = sum_i w_i e_i^2/(N - nu)`, for N
    rows of positive weight and `nu = 2 tr H - tr H^2`, one more with an intercept.
    """
    solver = fit.solver
    solver.check_targets()
    shrunk = solver.spectrum[:, None] / (solver.spectrum[:, None] + fit.scaled_ridge)
    degrees_of_freedom = (2.0 * shrunk - shrunk**2).sum(axis=0) + solver.fit_intercept
    # With as many landmarks as rows and a tiny ridge no degrees of freedom are left; at least one is assumed.
    remaining = np.maximum(n_rows - degrees_of_freedom, 1.0)
    # The error is a difference of two sums, and not known below their rounding error.
    floor = np.finfo(np.float64).eps * solver.target_variance
    return np.maximum(fit.training_error, floor) * (solver.total_weight / remaining)


def standard_deviations(passes: RowPasses, fit: LandmarkFit) -> Floats:
    """Return the standard deviation of the fitted function at every row and target.

    With s2 as in `unit_variance`, the variance is `s2 ((k(x,x) - |b(x)|^2)/(n lambda) + t(x))`, where
    `t(x) = 1/sum w + bc(x)' (Bc'WBc + n lambda)^-1 bc(x)` with an intercept, and `b(x)' (B'WB + n lambda)^-1 b(x)`
    without: the variance outside the landmarks' span, and the variance given the rows. No term is negative. It is an
    approximation for the function; an observation of weight w has the variance s2/w in addition.
    """
    variance = unit_variance(fit, fit.moments.n_rows)
    return passes.map(Spread(**spectral_form(fit), variance=variance))


class SpectralTask(FeatureTask):
    """A task on `c(x) = V'(b(x) - m)`, with `Bc'W Bc = V diag(s) V'` for the features centred at m.

    In these coordinates ridge regression is diagonal. Without an intercept m is 0.
    """

    arrays: ClassVar[int] = 2
    mean: Floats  # (rank,): m
    rotation: Floats  # (rank, rank): V
    inverse: Floats  # (rank, targets): `1/(s + n lambda)`
    share_of_constant: float  # 1/n with an intercept, otherwise 0
    scaled_ridge: Floats  # (targets,)
    target_mean: Floats  # (targets,)

    def features(self, block: Block, workspace: Workspace) -> tuple[Floats, Floats]:
        """Return c(x), in scratch memory, and `k(x, x) - |b(x)|^2` for the rows of a block."""
        # Features first, and then their rotation: the lengths of features then do not depend on targets or weights.
        backend, features = workspace.backend, feature_block(self.factor, block, workspace)
        squares = backend.squared_norms(features)
        kernel = self.factor.cross_kernel
        # Rows of a precomputed kernel do not hold k(x, x).
        own = squares if kernel.kernel.pairwise else diagonal_block(kernel, block)
        unexplained = backend.at_least(own - squares, 0.0)
        features -= self.mean
        centred = workspace.array("features", (block.n_rows, self.rotation.shape[1]))
        return backend.matmul(features, self.rotation, out=centred), unexplained


def spectral_form(fit: LandmarkFit) -> dict[str, Any]:
    """Return the fields of a `SpectralTask`."""
    solver = fit.solver
    return {
        "factor": fit.factor,
        "mean": solver.feature_mean,
        "rotation": solver.rotation,
        "inverse": solver.inverse(fit.scaled_ridge),
        "share_of_constant": 1.0 / solver.total_weight if solver.fit_intercept else 0.0,
        "scaled_ridge": fit.scaled_ridge,
        "target_mean": fit.target_origin + solver.target_mean,
    }


class Spread(SpectralTask):
    """The standard deviations of `standard_deviations`, shape (rows, targets)."""

    what: ClassVar[str] = "standard deviations"
    variance: Floats  # (targets,): s2 of the noise of a row of unit weight

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        (centred, unexplained), backend = self.features(block, workspace), workspace.backend
        backend.xp.square(centred, out=centred)
        spread = unexplained[:, None] / self.scaled_ridge + self.share_of_constant + centred @ self.inverse
        return backend.xp.sqrt(self.variance * backend.at_least(spread, np.finfo(np.float64).tiny))
