"""Landmarks that nearly repeat each other, told apart in extended precision.

What landmarks 1e-6 apart do not share is 1e-12 of their kernel and less, of which double precision knows a few digits,
and none after the other landmarks have explained their part; yet a small ridge makes use of it. Kernel values of rows
with landmarks are accurate enough in double precision. It is the landmarks' own kernel W that must be known better:

- a first part of the landmarks, of which the factor in double precision is sure, explains the others by
  `X = W_11^-1 W_12`;
- what it leaves of them, `S = W_22 - W_21 X`, is a difference of nearly equal numbers: W is taken in long double, and
  the product is made of matrix products without rounding. Its result is small, so double precision is enough for it;
- the factor of S completes that of W, until nothing is left but the rounding of long double.

A system without extended precision keeps the factor in double precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Array
from ridgemark.backends.threads import all_blas_threads
from ridgemark.kernels import Kernel
from ridgemark.linalg import inverse_triangle_, pivoted_factor_, unit_lengths
from ridgemark.rows.parallel import in_order

Floats = NDArray[np.float64]

_NEAR = 1e-7  # landmarks with a correlation within this of one nearly repeat each other
_SURE = 1e-8  # the least that others may leave of a landmark, of its own kernel, to be in the first part
_EPS = max(float(np.finfo(np.longdouble).eps), 2.0**-63)  # where long double has more digits, they are not used
_EXTENDED = np.finfo(np.float64).eps > _EPS
_BLOCK_ENTRIES = 2**17  # of W in long double, held at a time by each thread


def tell_apart(
    kernel: Kernel, landmarks: Any, landmark_kernel: Array, kept: NDArray[np.intp], triangle: Array
) -> tuple[NDArray[np.intp], Array]:
    """Return positions J and an upper triangle T with `T'W_JJ T = I`, from those found in double precision.

    They come back as they are where no landmark nearly repeats another, or W is not to be had more precisely.
    """
    if not (_EXTENDED and kernel.accepts_extended and isinstance(landmarks, np.ndarray)):
        return kept, triangle
    lengths = unit_lengths(landmark_kernel)
    n_sure = int(np.count_nonzero(np.diagonal(triangle) * lengths[kept] < _SURE**-0.5))
    sure, others = kept[:n_sure], np.setdiff1d(np.arange(len(lengths)), kept[:n_sure])
    correlations = landmark_kernel[others]
    correlations /= lengths
    correlations /= lengths[others, None]
    if not _repeats(correlations, others):
        return kept, triangle
    root = triangle[:n_sure, :n_sure] * lengths[sure, None]
    with all_blas_threads():
        explained = root @ (root.T @ correlations[:, sure].T)
    left = _left_over(kernel, landmarks, lengths, sure, others, explained)
    if not np.isfinite(left).all():
        return kept, triangle
    with all_blas_threads():
        # A step of Newton's method: what X leaves of W_12 corrects it, and S to second order.
        explained += root @ (root.T @ left[:n_sure])
        rest = left[n_sure:] - explained.T @ left[:n_sure]
        chosen, last = _whiten((rest + rest.T) / 2)
        whole = np.zeros((n_sure + len(chosen),) * 2, order="F")
        whole[:n_sure, :n_sure], whole[n_sure:, n_sure:] = root, last
        whole[:n_sure, n_sure:] = -explained[:, chosen] @ last
    kept = np.concatenate([sure, others[chosen]])
    whole /= lengths[kept, None]
    return kept, whole


def _repeats(correlations: Floats, positions: NDArray[np.intp]) -> bool:
    """Tell whether a landmark's correlation with another, at `positions` of all, is within `_NEAR` of one."""
    near = (correlations > 1.0 - _NEAR) | (correlations < _NEAR - 1.0)
    near[np.arange(len(near)), positions] = False
    return bool(near.any())


def _left_over(
    kernel: Kernel, landmarks: Floats, lengths: Floats, sure: NDArray[np.intp], others: NDArray[np.intp], X: Floats
) -> Floats:
    """Return `[W_12; W_22] - [W_11; W_21] X` to the accuracy of W in long double, W scaled to a diagonal of ones."""
    order = np.concatenate([sure, others])
    points, scale = landmarks[order].astype(np.longdouble), lengths[order].astype(np.longdouble)
    cross_kernel = kernel.against(points)
    slices = _slices(X, _exact_bits(len(sure)), axis=0)

    def of_rows(rows: slice) -> Floats:
        block = cross_kernel(points[rows]) / scale[rows, None] / scale
        left = _less_product(block[:, len(sure) :], block[:, : len(sure)], slices)
        return np.asarray(left, dtype=np.float64)

    step = max(1, _BLOCK_ENTRIES // len(order))
    starts = range(0, len(order), step)
    parts = in_order(of_rows, (slice(start, start + step) for start in starts), len(starts))
    return np.concatenate([part for _, part in parts])


def _less_product(values: Array, left: Array, right: tuple[Floats, ...]) -> Array:
    """Return `V - A B`, B in slices, with no rounding but that of V and A in long double.

    Of factors cut into slices of so few bits that their products have no rounding (Ozaki et al., 2012), the products of
    the leading slices are exact by BLAS; what they leave is so small that double precision does for the rest.
    """
    one, two, rest = right
    first, second, third = _slices(left, _exact_bits(left.shape[1]), axis=1)
    difference = values - first @ one
    difference -= first @ two
    difference -= second @ one
    difference -= first @ rest + second @ (two + rest) + third @ (one + two + rest)
    return difference


def _exact_bits(n_terms: int) -> int:
    """Return how many bits factors may have for a sum of this many products to fit in double precision."""
    return (np.finfo(np.float64).nmant + 1 - max(1, n_terms).bit_length()) // 2


def _slices(matrix: Array, bits: int, axis: int) -> tuple[Floats, ...]:
    """Return three matrices that add up to this one; the first two have `bits` bits in each line along the axis."""
    _, exponent = np.frexp(np.abs(matrix).max(axis=axis, keepdims=True, initial=0.0).astype(np.float64))
    first, rest = _cut(matrix, exponent - bits)
    second, rest = _cut(rest, exponent - 2 * bits)
    return first, second, rest.astype(np.float64)


def _cut(matrix: Array, exponent: NDArray[np.intc]) -> tuple[Floats, Array]:
    """Return the multiples of `2^exponent` nearest to the entries, and what is left."""
    unit = np.ldexp(1.0, exponent)
    multiples = np.rint((matrix / unit).astype(np.float64)) * unit
    return multiples, matrix - multiples


def _whiten(matrix: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Return positions and the inverse of the Cholesky factor there, down to `2 machine eps` of long double.

    Nothing at all where the largest is rounding, as with a kernel of fewer dimensions than landmarks.
    """
    if not np.diagonal(matrix).max() > 20 * _EPS:
        return np.empty(0, dtype=np.intp), np.empty((0, 0))
    factor, order, rank = pivoted_factor_(np.asfortranarray(matrix), 2 * _EPS)
    return order[:rank], inverse_triangle_(factor[:rank, :rank])
