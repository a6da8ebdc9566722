"""The linear systems of Newton steps.

For one target there is one system. For several there is one of all targets jointly, where that is small, and otherwise
one of each target alone, which is a preconditioner for conjugate gradients.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from ridgemark import linalg
from ridgemark.backends import Array, Floats, backend_of
from ridgemark.losses import CurvatureSums, Moments, with_ones
from ridgemark.solvers.landmark_fit import CentredMoments

_TINY = float(np.finfo(np.float64).tiny)


class CurvatureSystem:
    """`H = [B 1]'D[B 1] + s diag(1, .., 1, 0)` for one target, D the curvature; last is the row of the intercept.

    Solved by the Cholesky factor of `(B - 1m')'D(B - 1m') + s`, with m the mean of B by the weights D.
    """

    def __init__(self, moments: Moments, fit_intercept: bool, scaled_ridge: float) -> None:
        self.moments, self.fit_intercept, self.scaled_ridge = moments, fit_intercept, scaled_ridge
        centred = CentredMoments(moments, fit_intercept)
        self.feature_mean = centred.feature_mean
        # The triangle of a large matrix is on the device.
        self.triangle: Any = linalg.for_solving(linalg.raised_cholesky(linalg.sent(centred.gram), scaled_ridge))
        self.share_of_constant = 1.0 / moments.total_weight if fit_intercept else 0.0

    def with_ridge(self, scaled_ridge: float) -> Self:
        """Return the system of the same sums with another ridge."""
        return self if scaled_ridge == self.scaled_ridge else type(self)(self.moments, self.fit_intercept, scaled_ridge)

    def solve(self, vectors: Floats) -> Floats:
        """Return the solution of the system, V of shape (rank + 1, t)."""
        u = linalg.solve_cholesky(self.triangle, vectors[:-1] - np.outer(self.feature_mean, vectors[-1]))
        return np.vstack([u, self.share_of_constant * vectors[-1] - self.feature_mean @ u])

    @cached_property
    def inverse(self) -> Array:
        """`U^-1`. Products with it run in several threads at a time, unlike solutions with U."""
        there = isinstance(self.triangle, linalg.InvertedTriangle)
        return self.triangle.inverse if there else linalg.inverse_triangle_(self.triangle.copy(order="F"))

    @property
    def effective_dimension(self) -> float:
        """`tr D^1/2 L D^1/2 (D^1/2 L D^1/2 + s)^-1 = rank - s |U^-1|^2`, without the intercept."""
        size = float(backend_of(self.inverse).xp.linalg.norm(self.inverse))
        return max(0.0, len(self.inverse) - self.scaled_ridge * size**2)

    @property
    def dimensions(self) -> Floats:
        """The effective dimension of the one target."""
        return np.array([self.effective_dimension])

    def leverage(self, features: Array) -> tuple[Array, Array]:
        """Return `1/sum D + bc'(Bc'DBc + s)^-1 bc` and `|bc|^2` of every row, c for centred by the weights D."""
        backend = backend_of(features)
        centred, inverse = features - backend.from_host(self.feature_mean), self.inverse
        lengths = backend.squared_norms(centred)
        rotated = backend.times_triangle_(centred, backend.from_host(inverse, like=centred))
        return self.share_of_constant + backend.squared_norms(rotated), lengths

    def reached(self, rows: Floats) -> Floats:
        """Return `[R^-1 bc, 1/sqrt(sum D)]` of rows on the host, R the factor: their squared lengths are leverages."""
        rotated = linalg.solve_triangle(self.triangle, (rows - self.feature_mean).T, transposed=True).T
        return np.column_stack([rotated, np.full(len(rows), np.sqrt(self.share_of_constant))])


class JointSystem:
    """The second derivative of the objective, for all targets jointly.

    Functions that differ by a constant in all targets have equal probabilities: along it, where the derivative is zero,
    the matrix has the mean curvature of the constants.
    """

    def __init__(self, sums: CurvatureSums, fit_intercept: bool, scaled_ridge: float) -> None:
        self.sums, self.fit_intercept, self.scaled_ridge = sums, fit_intercept, scaled_ridge
        t, m = sums.blocks.shape[:2]
        matrix = sums.blocks.copy()
        if fit_intercept:
            constants = matrix[:, -1, :, -1]  # a view
            constants += np.trace(constants) / t**2
        else:
            matrix[:, -1], matrix[:, :, :, -1] = 0.0, 0.0
            matrix[np.arange(t), -1, np.arange(t), -1] = 1.0
        flat = matrix.reshape(t * m, t * m)
        flat[np.diag_indices(t * m)] += np.tile(_penalty(m, scaled_ridge), t)
        self.factor = _scaled_triangle(flat)

    def with_ridge(self, scaled_ridge: float) -> Self:
        """Return the system of the same sums with another ridge."""
        return self if scaled_ridge == self.scaled_ridge else type(self)(self.sums, self.fit_intercept, scaled_ridge)

    def solve(self, vectors: Floats) -> Floats:
        """Return the solution of the system, V of shape (rank + 1, t)."""
        return linalg.solve_cholesky(self.factor, vectors.T.reshape(-1, 1)).reshape(vectors.T.shape).T

    @cached_property
    def _inverse(self) -> Floats:
        t, m = self.sums.blocks.shape[:2]
        return linalg.solve_cholesky(self.factor, np.eye(t * m)).reshape(t, m, t, m)

    @property
    def dimensions(self) -> Floats:
        """The effective dimension `rank - s tr H^-1_kk` of each target k, without the intercept."""
        own = np.einsum("kjkj->k", self._inverse[:, :-1, :, :-1])
        return np.maximum(self._inverse.shape[1] - 1 - self.scaled_ridge * own, 0.0)

    def leverage(self, features: Array) -> Array:
        """Return `Z_i'H^-1 Z_i` of every row, shape (n, t, t), Z_i being the features and a constant of each target."""
        backend = backend_of(features)
        t, inverse = len(self._inverse), self._inverse.copy()
        if not self.fit_intercept:
            inverse[:, -1] = 0.0
        features, inverse = with_ones(features), backend.from_host(inverse)
        (n, m), leverage = features.shape, backend.empty((len(features), t, t))
        for j in range(t):
            reached = (features @ inverse[j].reshape(m, t * m)).reshape(n, t, m)
            leverage[:, j] = backend.xp.einsum("ikj,ij->ik", reached, features)
        return leverage

    def reached(self, rows: Floats) -> Floats:
        """Return `Z_i R^-1` of rows on the host, shape (n, t, t (rank + 1)), `R'R = H`."""
        t, m = self.sums.blocks.shape[:2]
        turned = linalg.solve_triangle(self.factor, np.eye(t * m), transposed=True)
        rows = with_ones(rows, float(self.fit_intercept))
        return np.stack([rows @ turned[:, k * m : (k + 1) * m].T for k in range(t)], axis=1)


class TargetSystems:
    """The second derivative `[B 1]'D_k[B 1] + s` of the objective along each target k alone, as `(F_k F_k')^-1`.

    `blocks` are the `[B 1]'D_k[B 1]`; `weights` has D_k in its columns, of the rows that are left out. One block may
    stand for all targets.
    """

    def __init__(self, blocks: Floats, weights: Floats, fit_intercept: bool, scaled_ridge: float) -> None:
        self.blocks, self.weights, self.fit_intercept, self.scaled_ridge = blocks, weights, fit_intercept, scaled_ridge
        self.alike = len(blocks) == 1
        self.factors = [self._factor(block) for block in blocks]

    def _factor(self, block: Floats) -> _RoundedFactor:
        matrix = block.copy()
        matrix[np.diag_indices(len(block))] += _penalty(len(block), self.scaled_ridge)
        if not self.fit_intercept:
            matrix[-1], matrix[:, -1], matrix[-1, -1] = 0.0, 0.0, 1.0
        return _rounded_factor(matrix)

    def with_ridge(self, scaled_ridge: float) -> Self:
        """Return the systems of the same sums with another ridge."""
        return (
            self
            if scaled_ridge == self.scaled_ridge
            else type(self)(self.blocks, self.weights, self.fit_intercept, scaled_ridge)
        )

    def solve(self, vectors: Floats) -> Floats:
        """Return `F_k F_k'v_k` for every column; V has the shape (rank + 1, t)."""
        if self.alike:
            return self.factors[0].solve(vectors)
        columns = zip(self.factors, vectors.T, strict=True)
        return np.hstack([factor.solve(v[:, None]) for factor, v in columns])

    @property
    def dimensions(self) -> Floats:
        """The effective dimension `rank - s |F_k|^2` of each target, or of all alike, without the intercept."""
        squares = np.array([float(factor.squared_lengths[:-1].sum()) for factor in self.factors])
        return np.maximum(self.blocks.shape[1] - 1 - self.scaled_ridge * squares, 0.0)

    def times(self, vectors: Floats) -> Iterator[Floats]:
        """Yield `F_k V` of each target, or of all alike, without the constant where there is none."""
        for factor in self.factors:
            product = factor.times(vectors)
            product[-1] *= self.fit_intercept
            yield product

    def leverage(self, features: Array, seen: Array) -> Array:
        """Return `z_i'F_k F_k'z_i` of every row, shape (n, t) or (n, 1), z_i being the features and a constant.

        Only where `seen`, of that shape; elsewhere zero.
        """
        backend, rows = backend_of(features), with_ones(features, float(self.fit_intercept))
        leverage = backend.zeros(seen.shape)
        for k, factor in enumerate(self.factors):
            leverage[seen[:, k], k] = factor.leverage(rows[seen[:, k]])
        return leverage

    def reached(self, rows: Floats, number: int) -> Floats:
        """Return `F_k'z` of rows on the host, for one target k, shape (n, rank + 1)."""
        factor = self.factors[0 if self.alike else number]
        triangle = backend_of(factor.triangle).to_host(factor.triangle)
        scaled = with_ones(rows, float(self.fit_intercept)) / factor.scale
        return (scaled.astype(np.float32) @ triangle).astype(np.float64)

    def most_leverage(self, features: Array) -> Array:
        """Return `1/sum D_k + |b_i - m_k|^2/s`, which no leverage exceeds; m_k is the mean of B by the weights D_k."""
        backend = backend_of(features)
        totals = np.maximum(self.blocks[:, -1, -1], np.finfo(np.float64).tiny)
        means = self.blocks[:, :-1, -1] / totals[:, None] * self.fit_intercept
        lengths = backend.squared_norms(features)[:, None] + backend.from_host((means**2).sum(axis=1))
        distances = backend.at_least(lengths - 2.0 * features @ backend.from_host(means.T), 0.0)
        return distances / self.scaled_ridge + backend.from_host(self.fit_intercept / totals)


def systems_of_moments(moments: Moments, factors: Floats, fit_intercept: bool, scaled_ridge: float) -> TargetSystems:
    """Return systems `c_k [B 1]'W[B 1] + s` with one factor c_k for each target; no row is left out by these."""
    constant = np.append(moments.feature_sum, moments.total_weight)
    block = np.vstack([np.column_stack([moments.gram, moments.feature_sum]), constant])
    return TargetSystems(factors[:, None, None] * block, np.empty((0, len(factors))), fit_intercept, scaled_ridge)


System = CurvatureSystem | JointSystem | TargetSystems


@dataclass(frozen=True, eq=False)
class _RoundedFactor:
    """`F = S^-1 T` with `F F'` about the inverse of a matrix: S is diagonal, and T a triangle in single precision.

    Rounding of T changes `F F'` by a share of about 1e-7 times the square root of the condition number, and leaves it
    positive definite. That is enough for a preconditioner and for leverages; a solution takes about a quarter of the
    time of two triangular solves.
    """

    triangle: Array  # T
    scale: Floats  # the diagonal of S

    def solve(self, vectors: Floats) -> Floats:
        """Return `F F'V`."""
        right, backend = vectors / self.scale[:, None], backend_of(self.triangle)
        unit = max(float(np.abs(right).max(initial=0.0)), _TINY)  # for the range of single precision
        there = backend.from_host((right / unit).astype(np.float32))
        solved = backend.to_host(self.triangle @ (self.triangle.T @ there))
        return solved * (unit / self.scale)[:, None]

    @property
    def squared_lengths(self) -> Floats:
        """The squared length of every row of F, the diagonal of `F F'`."""
        backend = backend_of(self.triangle)
        return np.asarray(backend.to_host(backend.squared_norms(self.triangle)), dtype=np.float64) / self.scale**2

    def times(self, vectors: Floats) -> Floats:
        """Return `F V`."""
        backend = backend_of(self.triangle)
        return backend.to_host(self.triangle @ backend.from_host(vectors.astype(np.float32))) / self.scale[:, None]

    def leverage(self, rows: Array) -> Array:
        """Return `z'F F'z` of every row z."""
        triangle = backend_of(rows).from_host(self.triangle)
        backend = backend_of(triangle)
        scaled = backend.from_host(rows) / backend.from_host(self.scale)
        lengths = backend.double(backend.squared_norms(backend.xp.astype(scaled, triangle.dtype) @ triangle))
        return backend.to_host(lengths) if isinstance(rows, np.ndarray) else lengths


def _scaled_cholesky(matrix: Floats) -> tuple[Array, Floats]:
    """Return U and the diagonal of S with `S U'U S = A + E`, E the rounding error relative to each diagonal entry.

    A constant and features may differ by any order of magnitude, as kernel values do. The matrix is overwritten.
    """
    sizes = np.sqrt(np.diagonal(matrix))
    scale = np.exp2(np.round(np.log2(sizes, out=np.zeros_like(sizes), where=sizes > 0)))
    matrix /= scale
    matrix /= scale[:, None]
    return linalg.raised_cholesky(linalg.sent(matrix), 0.0), scale


def _scaled_triangle(matrix: Floats) -> Any:
    """Return U with `U'U = A + E`, E the rounding error relative to each diagonal entry. The matrix is overwritten."""
    triangle, scale = _scaled_cholesky(matrix)
    triangle *= backend_of(triangle).from_host(scale)
    return linalg.for_solving(triangle)


def _rounded_factor(matrix: Floats) -> _RoundedFactor:
    """Return F with `F F'` the inverse of A up to rounding. The matrix is overwritten."""
    triangle, scale = _scaled_cholesky(matrix)
    xp = backend_of(triangle).xp
    return _RoundedFactor(xp.astype(linalg.inverse_triangle_(triangle), xp.float32), scale)


def _penalty(size: int, scaled_ridge: float) -> Floats:
    """Return the ridge of the coefficients, and last zero, of the constant."""
    return np.append(np.full(size - 1, scaled_ridge), 0.0)
