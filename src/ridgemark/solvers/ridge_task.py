"""Rows in coordinates in which the inverse of ridge regression is diagonal."""

from typing import Any, ClassVar

from ridgemark.backends import Floats
from ridgemark.operators import FeatureTask, NystromFactor, diagonal_block, feature_block
from ridgemark.passes import Workspace
from ridgemark.rows import Block
from ridgemark.solvers.landmark_fit import CentredMoments, LandmarkFit, RidgeInverse


class RidgeTask(FeatureTask):
    """A task on `c(x) = R'(b(x) - m)`, with `(Bc'W Bc + n lambda)^-1 = R diag(d) R'` for features centred at m.

    Without an intercept m is 0.
    """

    arrays: ClassVar[int] = 2
    mean: Floats  # (rank,): m
    inverse: RidgeInverse
    fits: Floats  # coefficients of c(x): `diag(d) R'Bc'W yc` for each target, or for each ridge and target
    scaled_ridge: Floats  # (targets,), or (ridges,)
    share_of_constant: float  # 1/sum w with an intercept, otherwise 0
    target_mean: Floats  # (targets,)

    def coordinates(self, block: Block, workspace: Workspace) -> tuple[Floats, Floats, Floats]:
        """Return c(x), in scratch memory, `|b(x) - m|^2` and `|b(x)|^2` for the rows of a block."""
        # Lengths of features do not depend on targets or weights, so they are not taken from their coordinates.
        backend, features = workspace.backend, feature_block(self.factor, block, workspace)
        squares = backend.squared_norms(features)
        features -= self.mean
        lengths = backend.squared_norms(features)
        if self.inverse.is_triangular:
            return backend.times_triangle_(features, self.inverse.root), lengths, squares
        out = workspace.array("coordinates", features.shape)
        return backend.matmul(features, self.inverse.root, out=out), lengths, squares

    def unexplained(self, block: Block, squares: Floats) -> Floats:
        """Return `k(x, x) - |b(x)|^2`."""
        own = diagonal_block(self.factor.cross_kernel, block)
        return self.factor.cross_kernel.backend.at_least(own - squares, 0.0)


def ridge_form(fit: LandmarkFit) -> dict[str, Any]:
    """Return the fields of a `RidgeTask` for the targets of a fit."""
    inverse = fit.inverse
    fits = inverse.factors * (inverse.root.T @ fit.centred.cross)
    return {
        "factor": fit.factor,
        "inverse": inverse,
        "fits": fits,
        **_fields(fit.centred, fit.scaled_ridge, fit.target_origin),
    }


def ridges_form(
    factor: NystromFactor, centred: CentredMoments, inverse: RidgeInverse, scaled_ridges: Floats, origin: Floats
) -> dict[str, Any]:
    """Return the fields of a `RidgeTask` for every target at each of some ridges."""
    fits = inverse.factors[:, :, None] * (inverse.root.T @ centred.cross)[:, None, :]
    fits = fits.reshape(len(fits), len(scaled_ridges) * len(origin))
    return {"factor": factor, "inverse": inverse, "fits": fits, **_fields(centred, scaled_ridges, origin)}


def _fields(centred: CentredMoments, scaled_ridge: Floats, origin: Floats) -> dict[str, Any]:
    return {
        "mean": centred.feature_mean,
        "scaled_ridge": scaled_ridge,
        "share_of_constant": 1.0 / centred.total_weight if centred.fit_intercept else 0.0,
        "target_mean": origin + centred.target_mean,
    }
