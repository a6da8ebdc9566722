"""Deferred whitening: features are partly whitened before their products are summed, and the sum afterwards.

In the order of pivots the landmark kernel is `W = R'R` and features are `b = k T` with `T = R^-1`, in two parts:

    T = [T1  -X T2]    b = [k1 T1, h T2]  with  h = k2 - k1 X,  X = W11^-1 W12:
        [0      T2]    the residual kernel of the other landmarks, given the leading ones.

Products of `[k1 T1, h]` are summed, and `T2` is applied to the sum. That saves the product of every row with `T2`, and
multiplies the rounding error of the sum by it. The residual kernel is far better conditioned than W, even for a few
leading landmarks. With no leading landmark `h` is the kernel itself, and all whitening is deferred.
"""

import math
from dataclasses import dataclass

import numpy as np

from ridgemark.backends import Array, Floats, all_blas_threads, backend_of
from ridgemark.linalg import EPS, congruence, largest_eigenvalue, largest_entry, solve_triangle
from ridgemark.operators.factor import NystromFactor

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
        if not self.is_deferred:
            return False
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
