"""A fit from landmarks in 2 p^2 bytes: what standard deviations, intervals and effects are computed from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ridgemark import linalg
from ridgemark.backends import Floats, Indices, all_blas_threads
from ridgemark.kernels import Kernel
from ridgemark.leverage import Bracket
from ridgemark.losses import Moments, RidgeSolution
from ridgemark.operators import in_order, nystrom_factor
from ridgemark.solvers.landmark_fit import LandmarkFit


@dataclass(frozen=True, eq=False)
class CompactFit:
    """A `LandmarkFit` without its matrices, and a triangle U with `U'U = Bc'W Bc + s I`, s the smallest n lambda.

    The entries above the diagonal of U are kept in single precision. Features in the order of pivots become smaller
    and smaller, and with them the rows of U, so that relative errors of the entries change `(U'U)^-1` by about as
    much, however large its condition is. The whitener of the landmarks, in which nothing may be rounded, is computed
    again, and the products with the targets are those that give the coefficients.
    """

    kept: Annotated[Indices, "(r)", "< p", "different"]  # positions of landmarks
    diagonal: Annotated[Floats, "(r)"]  # of U
    sizes: Annotated[Floats, "(r)"]  # the largest entry of each row of U
    root: Annotated[NDArray[np.float32], "(_)"]  # the rows of U right of the diagonal, in turn, over these sizes
    moments: Moments  # without the Gram matrix
    fit_intercept: bool
    scaled_ridge: Annotated[Floats, "(t)", "> 0"]  # this and what follows as in `LandmarkFit`
    target_origin: Annotated[Floats, "(t)"]
    weight_unit: Annotated[float, "> 0"]
    solution: RidgeSolution
    training_error: Annotated[Floats, "(t)", ">= 0"]
    effective_dimension: Bracket

    def __post_init__(self) -> None:
        if 2 * len(self.root) != len(self.kept) * (len(self.kept) - 1):
            raise ValueError("the rows of a triangle must have as many entries as there are pairs of landmarks kept")

    @classmethod
    def of(cls, fit: LandmarkFit) -> CompactFit:
        """Return the compact form of a fit."""
        with all_blas_threads():
            if fit.inverse.is_triangular:
                triangle = np.triu(linalg.inverse_triangle_(fit.inverse.root.copy(order="F")))
            else:
                scaled = np.sqrt(fit.solver.spectrum + fit.scaled_ridge.min())[:, None] * fit.solver.rotation.T
                triangle = np.linalg.qr(scaled, mode="r")
        sizes = np.abs(triangle).max(axis=1, initial=0.0)
        rows = [row[i + 1 :] / size for i, (row, size) in enumerate(zip(triangle, sizes, strict=True))]
        root = np.concatenate([np.empty(0), *rows]).astype(np.float32)
        return cls(
            *(fit.factor.kept, np.diagonal(triangle).copy(), sizes, root, fit.moments.without_products()),
            *(fit.fit_intercept, fit.scaled_ridge, fit.target_origin, fit.weight_unit),
            *(fit.solution, fit.training_error, fit.effective_dimension),
        )

    def expanded(self, kernel: Kernel, landmarks: Any, indices: Indices | None, dual_coef: Floats) -> LandmarkFit:
        """Return the fit, for the landmarks and the coefficients of their kernel values."""
        factor, solution = nystrom_factor(kernel, landmarks, indices), self.solution
        if not np.array_equal(factor.kept, self.kept):  # rounding gave other pivots
            kept_kernel = kernel.bind(landmarks[self.kept], None if indices is None else indices[self.kept])
            factor, coefficients = in_order(factor, self.kept, kept_kernel, dual_coef)
            solution = RidgeSolution(coefficients, solution.intercept)
        moments = self._moments(solution.coefficients)
        return LandmarkFit(
            *(factor, moments, self.fit_intercept, self.scaled_ridge, self.target_origin, self.weight_unit),
            *(solution, self.training_error, self.effective_dimension),
        )

    def _moments(self, coefficients: Floats) -> Moments:
        """Return the moments with `B'WB` and `B'Wy`."""
        sums, triangle, first = self.moments, np.diag(self.diagonal), 0
        for i, size in enumerate(self.sizes):
            last = first + len(triangle) - i - 1
            triangle[i, i + 1 :] = size * self.root[first:last].astype(np.float64)
            first = last
        with all_blas_threads():
            gram = triangle.T @ triangle
        smallest, total = self.scaled_ridge.min(), sums.total_weight
        cross = linalg.product(gram, coefficients) + (self.scaled_ridge - smallest) * coefficients
        np.einsum("ii->i", gram)[...] -= smallest
        if self.fit_intercept:
            gram += np.outer(sums.feature_sum, sums.feature_sum / total)
            cross += np.outer(sums.feature_sum, sums.target_sum / total)
        return replace(sums, gram=gram, cross=cross)
