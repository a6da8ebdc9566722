"""How much of the whitening is done before products are summed: all of it, or as little as loses no digit.

In the order of pivots the landmark kernel is `W = R'R` and features are `b = k T` with `T = R^-1`, in two parts:

    T = [T1  -X T2]    b = [k1 T1, h T2]  with  h = k2 - k1 X,  X = W11^-1 W12:
        [0      T2]    what the leading landmarks leave of the kernel of the others.

Products of `[k1 T1, h]`, whitened in part, are summed, and `T2` is applied to the sum. That saves the product of every
row with `T2`, and multiplies the rounding of the sum by it. A few leading landmarks take most of the condition of W
away. With none `h` is the kernel itself: everything is whitened afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends.threads import all_blas_threads
from ridgemark.linalg import congruence, largest_eigenvalue, solve_triangle
from ridgemark.moments import Moments
from ridgemark.nystrom import NystromFactor

Floats = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# What rounding may change, relative to the ridge: at most, where all is whitened afterwards; by an estimate, for parts.
_NEGLIGIBLE = 1e-9
# What was foretold from the landmarks may prove this many times too small.
_SURPRISE = 4.0
# Parts are sixteenths of the features. Above this many, nothing worth a plan is saved.
_PARTS, _MOST_PARTS = 16, 11
# Rows for every landmark from which on a plan costs less than it saves.
_ROWS_PER_LANDMARK = 8
# Steps of the power method, which leave a norm at most a third too small, and vectors that probe lengths of columns.
_STEPS = 6
_PROBES = 8


@dataclass(frozen=True)
class Whitening:
    """The leading features, whitened before products are summed, and what whitens the others afterwards."""

    factor: NystromFactor
    n_before: int
    explained: Floats  # X, (before, after)
    scaled_ridge: float

    @property
    def before(self) -> Floats:
        """T1."""
        triangle: Floats = self.factor.triangle[: self.n_before, : self.n_before]
        return triangle

    @property
    def after(self) -> Floats:
        """T2."""
        triangle: Floats = self.factor.triangle[self.n_before :, self.n_before :]
        return triangle

    @property
    def name(self) -> str:
        """When features are whitened: "before" their products are summed, "after", or "partly" before."""
        if self.n_before == self.factor.rank:
            return "before"
        return "partly" if self.n_before else "after"

    def apply_(self, kernel_values: Floats) -> Floats:
        """Overwrite kernel values with the landmarks kept by the features `[k1 T1, h]`."""
        backend = self.factor.kept_kernel.backend
        leading, others = kernel_values[:, : self.n_before], kernel_values[:, self.n_before :]
        if self.n_before:
            backend.subtract_product_(others, leading, self.explained)
            backend.times_triangle_(leading, self.before)
        return kernel_values

    def loses_digits(self, summed: Moments) -> bool:
        """Tell whether what was summed is larger than the landmarks foretold, too large to be whitened now."""
        if self.name == "before":
            return False
        if self.name == "after":
            largest = math.sqrt(largest_eigenvalue(summed.gram, _STEPS))
            return not _largest_error(largest, self.after) <= _NEGLIGIBLE * self.scaled_ridge
        lengths = np.sqrt(np.diagonal(summed.gram)[self.n_before :])
        return not _likely_error(lengths, self.after) <= _SURPRISE * _NEGLIGIBLE * self.scaled_ridge

    def finish(self, summed: Moments) -> Moments:
        """Return the moments of whitened features."""
        n, after, gram = self.n_before, self.after, summed.gram
        if not len(after):
            return summed
        lengths = np.sqrt(np.diagonal(gram)[n:])
        gram[n:, n:] = congruence(gram[n:, n:], after)
        gram[:n, n:] = gram[:n, n:] @ after
        gram[n:, :n] = gram[:n, n:].T
        # A length that is rounding must not be the root of a negative number.
        np.fill_diagonal(gram, np.maximum(np.diagonal(gram), 0.0))
        # The worst rounding of every product, so that the residual is never too small.
        rounded = 4 * _EPS * float(np.sum((lengths @ abs(after)) ** 2))
        return replace(
            summed,
            cross=np.concatenate([summed.cross[:n], after.T @ summed.cross[n:]]),
            feature_sum=np.concatenate([summed.feature_sum[:n], after.T @ summed.feature_sum[n:]]),
            trace_residual=max(0.0, summed.trace_kernel - float(np.trace(gram))) + rounded,
        )


def whiten_before(factor: NystromFactor) -> Whitening:
    """Return the reference: nothing is left for afterwards."""
    return Whitening(factor, factor.rank, np.zeros((factor.rank, 0)), math.inf)


@all_blas_threads()
def plan_whitening(factor: NystromFactor, n_rows: int, scaled_ridge: float) -> Whitening:
    """Return the whitening with the fewest leading features that changes nothing beside the ridge.

    Afterwards altogether where the bound `eps |C'C| |W^-1| / scaled_ridge` is below 1e-9; in parts where rounding is
    estimated to act as a change of the ridge, in some directions, by less than 1e-9 of it. Sums over rows are judged as
    if the landmarks were a fair sample of them.
    """
    rank, size = factor.rank, float(abs(factor.landmark_kernel).max(initial=0.0))
    if not rank or n_rows < _ROWS_PER_LANDMARK * rank or not 1e-100 < size < 1e100:
        return whiten_before(factor)
    kernel = factor.landmark_kernel[np.ix_(factor.kept, factor.kept)]
    share = n_rows / factor.cross_kernel.n_landmarks
    if _may_be_after(kernel, factor.triangle, _NEGLIGIBLE * scaled_ridge / share):
        return Whitening(factor, 0, np.zeros((0, rank)), scaled_ridge)
    few, enough = 0, _MOST_PARTS + 1
    while enough - few > 1:
        middle = (few + enough) // 2
        leading = -(-middle * rank // _PARTS)
        lengths = math.sqrt(share) * _lengths_left(kernel, factor.triangle[:leading, :leading])
        error = _likely_error(lengths, factor.triangle[leading:, leading:])
        few, enough = (few, middle) if error <= _NEGLIGIBLE * scaled_ridge else (middle, enough)
    leading = -(-enough * rank // _PARTS)
    if enough > _MOST_PARTS or leading == rank:
        return whiten_before(factor)
    to_others, others = factor.triangle[:leading, leading:], factor.triangle[leading:, leading:]
    explained = -solve_triangle(others, to_others.T, transposed=True).T
    return Whitening(factor, leading, np.ascontiguousarray(explained), scaled_ridge)


def _may_be_after(kernel: Floats, triangle: Floats, allowed: float) -> bool:
    """Tell whether `eps |W|^2 |W^-1|` is small enough, mostly by lower bounds on both norms that cost nothing."""
    at_least = (float(kernel.sum()) / len(kernel)) ** 2 * float(np.einsum("ij,ij->j", triangle, triangle).max())
    return _EPS * at_least <= allowed and _largest_error(largest_eigenvalue(kernel, _STEPS), triangle) <= allowed


def _largest_error(largest: float, after: Floats) -> float:
    """Return `eps |H'H| |T2|^2`, what late whitening makes of the rounding of a sum at most."""
    return _EPS * largest * largest_eigenvalue(after, _STEPS)


def _likely_error(lengths: Floats, after: Floats) -> float:
    """Return what late whitening makes of rounding, estimated: eps times random numbers, times columns' lengths.

    A matrix of random entries with unit variance between `A' = T2' diag(g)` and A has norm about `|A| |A|_F`.
    """
    scaled = lengths[:, None] * after
    return _EPS * math.sqrt(largest_eigenvalue(scaled, _STEPS)) * float(np.linalg.norm(scaled))


def _lengths_left(kernel: Floats, before: Floats) -> Floats:
    """Return lengths of the columns of `W22 - W21 W11^-1 W12`, by its products with a few random signs."""
    n = len(before)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (len(kernel) - n, _PROBES))
    left = kernel[n:, n:] @ signs - kernel[n:, :n] @ (before @ (before.T @ (kernel[:n, n:] @ signs)))
    lengths: Floats = np.sqrt(np.mean(left**2, axis=1))
    return lengths
