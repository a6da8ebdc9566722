"""Ridge regression on the features for one ridge, by a Cholesky factor: a tenth of an eigendecomposition's work."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ridgemark.backends import Floats
from ridgemark.backends.threads import all_blas_threads
from ridgemark.linalg import check_range, cholesky_, inverse_triangle_, solve_triangle
from ridgemark.solvers.centred import CentredMoments, RidgeSolution

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class OneRidge:
    """The results of `SpectralSolver` at one ridge.

    Attributes
    ----------
    solution : RidgeSolution
        The solution of `(B'WB + scaled_ridge I) c = B'Wy`, centred.
    effective_dimension : float
        `tr L (L + scaled_ridge)^-1`, without the intercept.
    training_error : array of shape (targets,)
        The weighted mean squared residual.
    """

    solution: RidgeSolution
    effective_dimension: float
    training_error: Floats


def solve_one_ridge(centred: CentredMoments, scaled_ridge: float) -> OneRidge | None:
    """Solve by the factor `B'WB + scaled_ridge I = U'U`; None where the ridge is below the rounding error of B'WB.

    The effective dimension is `rank - scaled_ridge |U^-1|^2`.
    """
    rank, cross = len(centred.gram), centred.cross
    check_range(centred.gram)
    if not rank or not scaled_ridge > 10 * rank * _EPS * centred.size:
        return None
    shifted = np.array(centred.gram, order="F")
    shifted[np.diag_indices(rank)] += scaled_ridge
    with all_blas_threads():
        triangle = cholesky_(shifted)
    if triangle is None:
        return None
    coefficients = solve_triangle(triangle, solve_triangle(triangle, cross, transposed=True))
    explained = ((cross + scaled_ridge * coefficients) * coefficients).sum(axis=0)
    return OneRidge(
        centred.with_intercept(coefficients),
        max(0.0, rank - scaled_ridge * float(np.linalg.norm(inverse_triangle_(triangle))) ** 2),
        np.maximum(centred.target_variance - explained / centred.total_weight, 0.0),
    )
