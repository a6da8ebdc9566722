"""Ridge regression on the features for one ridge, by a Cholesky factor: a tenth of an eigendecomposition's work."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from ridgemark.backends.threads import all_blas_threads
from ridgemark.linalg import check_range, inverse_triangle, solve_triangle
from ridgemark.solvers.centred import CentredMoments

Floats = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)


class CholeskySolver:
    """Solves `(B'WB + scaled_ridge I) c = B'Wy`, centred, with `U'U` the matrix on the left.

    Gives what `SpectralSolver` gives, at its one ridge.
    """

    def __init__(self, centred: CentredMoments, scaled_ridge: float, triangle: Floats) -> None:
        self.centred, self.scaled_ridge, self._triangle = centred, scaled_ridge, triangle
        self.solution = centred.with_intercept(
            solve_triangle(triangle, solve_triangle(triangle, centred.cross, transposed=True))
        )

    def effective_dimension(self) -> float:
        """Return `tr L (L + scaled_ridge)^-1 = rank - scaled_ridge |U^-1|^2`, without the intercept's one."""
        inverse = inverse_triangle(self._triangle)
        return max(0.0, len(inverse) - self.scaled_ridge * float(np.linalg.norm(inverse)) ** 2)

    def training_error(self) -> Floats:
        """Return the weighted mean square of what the fit leaves, per target."""
        coefficients = self.solution.coefficients
        explained = ((self.centred.cross + self.scaled_ridge * coefficients) * coefficients).sum(axis=0)
        return np.maximum(self.centred.target_variance - explained / self.centred.total_weight, 0.0)


def cholesky_solver(centred: CentredMoments, scaled_ridge: float) -> CholeskySolver | None:
    """Return the solver; None where the ridge is below the rounding of the Gram matrix, so that no factor is sure."""
    rank = len(centred.gram)
    check_range(centred.gram)
    if not rank or not scaled_ridge > 10 * rank * _EPS * centred.size:
        return None
    shifted = np.array(centred.gram, order="F")
    shifted[np.diag_indices(rank)] += scaled_ridge
    with all_blas_threads():
        triangle, failed = lapack.dpotrf(shifted, lower=0, clean=0, overwrite_a=1)
    return None if failed else CholeskySolver(centred, scaled_ridge, triangle)
