"""The Nystrom approximation `L = C W^+ C'` as features: landmarks, and the whitener of their kernel.

*Deferred whitening*: features are partly whitened before their products are summed, and the sum afterwards. In the
order of pivots the landmark kernel is `W = R'R` and features are `b = k T` with `T = R^-1`, in two parts:

    T = [T1  -X T2]    b = [k1 T1, h T2]  with  h = k2 - k1 X,  X = W11^-1 W12:
        [0      T2]    the residual kernel of the other landmarks, given the leading ones.

Products of `[k1 T1, h]` are summed, and `T2` is applied to the sum. That saves the product of every row with `T2`, and
multiplies the rounding error of the sum by it. The residual kernel is far better conditioned than W, even for a few
leading landmarks. With no leading landmark `h` is the kernel itself, and all whitening is deferred.
"""

import math
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np

from ridgemark import linalg
from ridgemark.backends import (
    Array,
    Floats,
    Indices,
    StaysOnHost,
    all_blas_threads,
    backend_of,
    current_backend,
    moved,
    on_host,
)
from ridgemark.errors import DataError
from ridgemark.kernels import CrossKernel, Kernel
from ridgemark.linalg import EPS, congruence, largest_eigenvalue, largest_entry, solve_triangle

_PANEL = 256  # columns whose absolute values are taken at once
# Largest rounding error, relative to the ridge: a bound where all whitening is deferred, an estimate for a part of it.
_NEGLIGIBLE = 5e-10
# Tolerated ratio of actual to predicted rounding error.
_TOLERATED_RATIO = 4.0
# A multiple of 1/16 of all landmarks is leading; if it is more than 11/16, deferring the rest saves too little.
_PARTS, _MOST_PARTS = 16, 11
# Fewest rows per landmark for which planning costs less than it saves.
_ROWS_PER_LANDMARK = 8
# Steps of the power method, which underestimates a norm by at most a third, and random vectors that estimate lengths.
_STEPS = 6
_PROBES = 8


@dataclass(frozen=True)
class NystromFactor:
    """Landmarks z_1 .. z_p and a root N of `W^+ = N N'`, so that `b(x) = N' k(x)` has `b(x).b(x') = l(x, x')`.

    Paper, section 3.5, steps 3 and 4: `B B' = C W^+ C'` with `C` the kernel of all rows with the landmarks and `W`
    that of the landmarks with each other. Landmarks that others explain up to rounding are dropped. For those kept, in
    the order of `kept`, N is the inverse of the Cholesky factor of W.
    """

    cross_kernel: CrossKernel = field(compare=False)
    landmark_kernel: Annotated[Array, Floats, "(p, p)"]  # W
    kept: Annotated[Indices, "(r)", "< p", "different"]  # positions of landmarks
    triangle: Annotated[Array, Floats, "(r, r)"]  # upper triangular
    kept_kernel: CrossKernel = field(compare=False)  # bound to the landmarks kept, in their order

    @property
    def rank(self) -> int:
        """Number of features."""
        return len(self.kept)

    @cached_property
    def whitener(self) -> Array:
        """N, (p, rank): the triangle at the rows of the landmarks kept, and zeros."""
        root = backend_of(self.triangle).zeros((self.cross_kernel.n_landmarks, self.rank))
        root[self.kept] = self.triangle
        return root

    def leading(self, most: int) -> Self:
        """Return the factor of the first features, which are those of the first landmarks kept."""
        bound, kept = self.kept_kernel, self.kept[:most]
        if most >= self.rank or bound.kernel.pairwise:
            return self
        bound = bound.kernel.bind(bound.landmarks[:most])
        among, triangle = self.landmark_kernel[kept[:, None], kept], self.triangle[:most, :most]
        return type(self)(bound, among, np.arange(most), triangle, bound)

    def on_host(self) -> Self:
        """Return the factor with its matrices in host memory."""
        matrices = on_host((self.landmark_kernel, self.triangle), backend_of(self.triangle))
        return replace(self, landmark_kernel=matrices[0], triangle=matrices[1])

    def combine(self, coefficients: Array) -> Array:
        """Return `N c`, the coefficients of the landmarks' kernel values for those of the features."""
        combined = np.zeros((self.cross_kernel.n_landmarks, *coefficients.shape[1:]))
        combined[self.kept] = linalg.product(self.triangle, coefficients)
        return combined

    @cached_property
    def feature_sizes(self) -> Array:
        """`sum_m |T_mj| |k(., z_m)|` for every feature `b_j = sum_m T_mj k(., z_m)`; its rounding is relative to it."""
        lengths, sizes = np.sqrt(np.diagonal(self.landmark_kernel))[self.kept], np.zeros(self.rank)
        for first in range(0, self.rank, _PANEL):  # small temporary arrays
            last = first + _PANEL
            sizes[first:last] = lengths[:last] @ abs(self.triangle[:last, first:last])
        return sizes

    def function_size(self, dual_coef: Array) -> Array:
        """Return `sum_j |c_j| |k(., z_j)|`, a bound on the norm of a function of the landmarks, per target."""
        return np.sqrt(np.diagonal(self.landmark_kernel)) @ abs(dual_coef)

    @property
    def symmetric_whitener(self) -> Array:
        """The symmetric root `W^-1/2`, (p, p); its features are the same up to a rotation."""
        values, vectors = linalg.symmetric_eigen(self.landmark_kernel)
        rank = linalg.numerical_rank(values)
        return (vectors[:, :rank] / np.sqrt(values[:rank])) @ vectors[:, :rank].T

    def features(self, rows: Any) -> Array:
        """Return the features `B` of the rows, shape (rows, rank), in the rows' precision."""
        backend = self.cross_kernel.backend
        block = self.cross_kernel(backend.from_host(rows))
        return backend.matmul(block, backend.from_host(self.whitener, like=block))


def nystrom_factor(
    kernel: Kernel,
    landmarks: Any,
    indices: Indices | None = None,
    stays: bool = False,
    pivots: tuple[Indices, Array] | None = None,
) -> NystromFactor:
    """Whiten the landmark kernel; nothing is added to its diagonal.

    With `stays`, matrices that were computed on a device stay there. `pivots` are the order of landmarks in a Cholesky
    factor of their kernel, and this upper triangle, where both are known.
    """
    cross_kernel = kernel.bind(landmarks, indices)
    block = block_of_landmarks(cross_kernel, landmarks)
    landmark_kernel = _symmetric(linalg.check_range(backend_of(block).double(block)))
    if pivots is None:
        triangle, kept = linalg.pivoted_cholesky(landmark_kernel, backend_of(block).precision(block))
    else:
        kept, triangle = pivots[0], np.array(pivots[1], order="F")
    triangle = linalg.inverse_triangle_(triangle)
    kept_kernel = kernel.bind(landmarks[kept], None if indices is None else indices[kept])
    factor = NystromFactor(cross_kernel, landmark_kernel, kept, triangle, kept_kernel)
    return factor if stays else factor.on_host()


def in_order(
    factor: NystromFactor, kept: Indices, kept_kernel: CrossKernel, dual_coef: Array
) -> tuple[NystromFactor, Array]:
    """Return the factor with other landmarks kept, and the coefficients of its features for `dual_coef`.

    From the first landmark on that the earlier ones explain up to rounding, features are zero.
    """
    landmark_kernel = factor.landmark_kernel[np.ix_(kept, kept)]
    triangle, alpha = np.zeros_like(landmark_kernel, order="F"), dual_coef[kept]
    leading = linalg.leading_cholesky(landmark_kernel)
    n = len(leading)
    triangle[:n, :n] = whitener = linalg.inverse_triangle_(leading)
    coefficients = np.zeros_like(alpha)
    coefficients[:n] = linalg.solve_triangle(whitener, alpha[:n])
    coefficients[:n] += whitener.T @ (landmark_kernel[:n, n:] @ alpha[n:])
    return replace(factor, kept=kept, triangle=triangle, kept_kernel=kept_kernel), coefficients


def block_of_landmarks(cross_kernel: CrossKernel, landmarks: Any) -> Array:
    """Return the kernel of the landmarks with each other, on the device that computes now where they are many."""
    with suppress(StaysOnHost):
        rows = moved(landmarks, current_backend())
        if linalg.worth_sending(cross_kernel.n_landmarks):
            return moved(cross_kernel, current_backend())(rows)
    return cross_kernel(landmarks)


def _symmetric(block: Array) -> Array:
    """Return the symmetric part; refuse a block, as of a callable, that is not symmetric up to rounding."""
    asymmetry, size = float(abs(block - block.T).max()), float(abs(block).max())
    if asymmetry > 1e-3 * size:
        raise DataError(
            f"the kernel of the landmarks with each other must be symmetric; k(x, z) and k(z, x) differ by up to "
            f"{asymmetry:.3g} where the largest value is {size:.3g}"
        )
    return (block + block.T) / 2


@dataclass(frozen=True)
class Whitening:
    """The leading features, which are whitened before products are summed, and the whitener of the others."""

    factor: NystromFactor
    n_before: int
    explained: Floats  # X, (before, after)
    scaled_ridge: float

    @property
    def after(self) -> Floats:
        """T2."""
        return self.factor.triangle[self.n_before :, self.n_before :]

    @property
    def is_deferred(self) -> bool:
        """Whether some features are whitened after their products are summed."""
        return self.n_before < self.factor.rank

    def apply_(self, kernel_values: Floats) -> Floats:
        """Overwrite kernel values with the landmarks kept by the features `[k1 T1, h]`."""
        backend = self.factor.kept_kernel.backend
        leading, others = kernel_values[:, : self.n_before], kernel_values[:, self.n_before :]
        if self.n_before:
            backend.subtract_product_(others, leading, self.explained)
            backend.times_triangle_(leading, self.factor.triangle[: self.n_before, : self.n_before])  # T1
        return kernel_values

    def loses_digits(self, gram: Floats) -> bool:
        """Return whether the sum is larger than predicted, so that whitening it afterwards loses too many digits."""
        if self.n_before == 0:
            largest = math.sqrt(largest_eigenvalue(gram, _STEPS))
            return not _largest_error(largest, self.after) <= _NEGLIGIBLE * self.scaled_ridge
        lengths = self._lengths(gram)
        return not _likely_error(lengths, self.after) <= _TOLERATED_RATIO * _NEGLIGIBLE * self.scaled_ridge

    def rounding(self, gram: Floats) -> float:
        """Return a bound on the rounding error of the trace of the whitened sum."""
        return 4 * EPS * float(((self._lengths(gram) @ abs(self.after)) ** 2).sum())

    def _lengths(self, gram: Array) -> Array:
        return backend_of(gram).xp.sqrt(gram.diagonal()[self.n_before :])

    def finish_gram(self, gram: Floats) -> Floats:
        """Overwrite the sum of products of features by that of whitened features."""
        n, after = self.n_before, self.after
        gram[n:, n:] = congruence(gram[n:, n:], after)
        gram[:n, n:] = gram[:n, n:] @ after
        gram[n:, :n] = gram[:n, n:].T
        # A squared length must not be negative, not even by rounding.
        backend = backend_of(gram)
        backend.diagonal(gram)[...] = backend.at_least(backend.diagonal(gram), 0.0)
        return gram

    def finish_rows(self, sums: Floats) -> Floats:
        """Return sums `sum_i b(x_i) v_i` for whitened features b, given those for the features `[k1 T1, h]`."""
        n = self.n_before
        return backend_of(sums).xp.concat([sums[:n], self.after.T @ sums[n:]])

    def finish_coefficients(self, coefficients: Floats) -> Floats:
        """Return the coefficients of the features `[k1 T1, h]` for those of whitened features."""
        n, backend = self.n_before, backend_of(self.after)
        coefficients = backend.from_host(coefficients)
        return backend.xp.concat([coefficients[:n], self.after @ coefficients[n:]])


def whiten_before(factor: NystromFactor) -> Whitening:
    """Return the reference: no whitening is deferred."""
    return Whitening(factor, factor.rank, factor.kept_kernel.backend.zeros((factor.rank, 0)), math.inf)


@all_blas_threads()
def plan_whitening(factor: NystromFactor, n_rows: int, scaled_ridge: float) -> Whitening:
    """Return the whitening with the fewest leading features whose rounding error is negligible relative to the ridge.

    All whitening is deferred where the bound `eps |C'C| |W^-1| / scaled_ridge` is below 5e-10; a part of it where the
    rounding error is estimated to change the ridge, in some directions, by less than 5e-10 of it. Sums over rows are
    predicted as if the landmarks were a random sample of the rows.
    """
    rank, size = factor.rank, largest_entry(factor.landmark_kernel)
    if not rank or n_rows < _ROWS_PER_LANDMARK * rank or not 1e-100 < size < 1e100:
        return whiten_before(factor)
    kernel = factor.landmark_kernel[factor.kept[:, None], factor.kept]
    share = n_rows / factor.cross_kernel.n_landmarks
    if _may_defer_all(kernel, factor.triangle, _NEGLIGIBLE * scaled_ridge / share):
        return Whitening(factor, 0, factor.kept_kernel.backend.zeros((0, rank)), scaled_ridge)
    too_few, enough = 0, _MOST_PARTS + 1
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        leading = -(-middle * rank // _PARTS)
        lengths = math.sqrt(share) * _residual_lengths(kernel, factor.triangle[:leading, :leading])
        error = _likely_error(lengths, factor.triangle[leading:, leading:])
        too_few, enough = (too_few, middle) if error <= _NEGLIGIBLE * scaled_ridge else (middle, enough)
    leading = -(-enough * rank // _PARTS)
    if enough > _MOST_PARTS or leading == rank:
        return whiten_before(factor)
    to_others, others = factor.triangle[:leading, leading:], factor.triangle[leading:, leading:]
    explained = -solve_triangle(others, to_others.T, transposed=True).T
    explained = np.ascontiguousarray(explained) if isinstance(explained, np.ndarray) else explained.contiguous()
    return Whitening(factor, leading, explained, scaled_ridge)


def _may_defer_all(kernel: Floats, triangle: Floats, allowed: float) -> bool:
    """Return whether `eps |W|^2 |W^-1|` is small enough; cheap lower bounds on both norms usually decide."""
    at_least = (float(kernel.sum()) / len(kernel)) ** 2 * float(
        backend_of(triangle).xp.einsum("ij,ij->j", triangle, triangle).max()
    )
    return EPS * at_least <= allowed and _largest_error(largest_eigenvalue(kernel, _STEPS), triangle) <= allowed


def _largest_error(largest: float, after: Floats) -> float:
    """Return `eps |H'H| |T2|^2`, a bound on the rounding error of the sum after deferred whitening."""
    return EPS * largest * largest_eigenvalue(after, _STEPS)


def _likely_error(lengths: Floats, after: Floats) -> float:
    """Return an estimate of the rounding error after deferred whitening: eps times random numbers times lengths.

    A matrix of random entries with unit variance between `A' = T2' diag(g)` and A has norm about `|A| |A|_F`.
    """
    scaled = lengths[:, None] * after
    norm = float(backend_of(scaled).xp.linalg.norm(scaled))
    return EPS * math.sqrt(largest_eigenvalue(scaled, _STEPS)) * norm


def _residual_lengths(kernel: Floats, before: Floats) -> Floats:
    """Return lengths of the columns of `W22 - W21 W11^-1 W12`, by its products with a few random signs."""
    n, backend = len(before), backend_of(kernel)
    signs = backend.from_host(np.random.default_rng(0).choice([-1.0, 1.0], (len(kernel) - n, _PROBES)))
    residual = kernel[n:, n:] @ signs - kernel[n:, :n] @ (before @ (before.T @ (kernel[:n, n:] @ signs)))
    return backend.xp.sqrt(backend.xp.mean(residual**2, axis=1))
