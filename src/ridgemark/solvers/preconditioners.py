"""Approximate inverses of the system of exact kernel ridge regression: from landmarks, and from K itself."""

from __future__ import annotations

import numpy as np

from ridgemark.backends import Floats
from ridgemark.backends.threads import all_blas_threads
from ridgemark.linalg import check_range, cholesky_, solve_cholesky, symmetric_eigen
from ridgemark.operators import Features, ShiftedInverse
from ridgemark.solvers.conjugate_gradient import Columns
from ridgemark.solvers.kernel_system import KernelSystem
from ridgemark.solvers.landmark_fit import LandmarkFit

# A ridge below this share of the largest eigenvalue is smaller than the rounding error of a product.
_ROUNDING_RIDGE = 100 * float(np.finfo(np.float64).eps)


def landmark_preconditioner(system: KernelSystem, fit: LandmarkFit, reserved: int) -> ShiftedInverse:
    """Return `(L + s)^-1`, its features held where they take at most `reserved` bytes.

    The ridge s is raised to the rounding error of a product with L, below which the result would not be positive
    definite. Features with large coefficients have larger rounding errors: those with an error above the ridge are left
    out.
    """
    factor, largest = fit.factor, float(np.trace(fit.centred.gram))
    ridges = np.maximum(fit.scaled_ridge, _ROUNDING_RIDGE * largest)
    reliable = np.flatnonzero(_ROUNDING_RIDGE * largest * factor.feature_sizes <= 10 * ridges.min())
    spectrum, rotation = fit.solver.spectrum, fit.solver.rotation
    if len(reliable) < factor.rank:
        spectrum, of_reliable = symmetric_eigen(fit.centred.gram[np.ix_(reliable, reliable)])
        rotation = np.zeros((factor.rank, len(reliable)))
        rotation[reliable] = of_reliable
    features = Features(system.passes, factor).hold(reserved)
    return ShiftedInverse(features, system.weighting, spectrum, rotation, ridges)


class DirectPreconditioner:
    """`(A + s)^-1 v` from the Cholesky factor of `A + s`, for the ridge s of each column; K is held.

    Where rounding makes `A + s` indefinite, s is raised: that changes the speed of convergence, not the solution.
    """

    def __init__(self, system: KernelSystem) -> None:
        assert system.matrix is not None
        weighted = system.weighting(system.weighting(system.matrix).T)
        self._matrix = check_range((weighted + weighted.T) / 2)
        self._factors = {ridge: self._factor(float(ridge)) for ridge in np.unique(system.scaled_ridge)}
        self._system, self._ridges = system, system.scaled_ridge
        del self._matrix

    def __call__(self, vectors: Floats, columns: Columns) -> Floats:
        """Return `(A + s)^-1 v`."""
        solution = np.empty_like(vectors)
        for ridge in np.unique(self._ridges[columns]):
            chosen = np.flatnonzero(self._ridges[columns] == ridge)
            solution[:, chosen] = solve_cholesky(self._factors[ridge], vectors[:, chosen])
        return self._system.weighting.project(solution)  # P commutes with A + s, but not its rounding error

    def _factor(self, ridge: float) -> Floats:
        raised = max(ridge, float(np.finfo(np.float64).eps) * float(np.trace(self._matrix)))
        while True:
            shifted = self._matrix.copy(order="F")
            np.einsum("ii->i", shifted)[:] += raised
            with all_blas_threads():
                factor = cholesky_(shifted)
            if factor is not None:
                return factor
            raised *= 10.0
