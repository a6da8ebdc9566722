"""The backend on numpy arrays, with scipy where numpy has no such routine."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ridgemark.backends.blas import subtract_product_, symmetric_products, times_triangle_
from ridgemark.backends.threads import all_blas_threads, one_blas_thread

Floats = NDArray[Any]

_LARGE = 800  # rows of a matrix from which several threads pay
_TILE_ENTRIES = 2**15  # pairs of rows whose differences are in the processor's cache


class NumpyBackend:
    """Host arrays, float32 or float64; kernel values also in long double."""

    name = "numpy"

    def from_host(self, values: Floats) -> Floats:
        return values

    def to_host(self, values: Floats) -> Floats:
        return values

    def empty(self, shape: tuple[int, ...], like: Floats) -> Floats:
        return np.empty(shape, dtype=like.dtype)

    def matmul(self, left: Floats, right: Floats, out: Floats | None = None) -> Floats:
        # What overflows is caught as a number beyond the range where the product is used.
        with np.errstate(over="ignore", invalid="ignore"):
            return np.matmul(left, right, out=out)

    def gram(self, rows: Floats) -> Floats:
        return symmetric_products(rows.astype(np.float64, copy=False))

    def times_triangle_(self, rows: Floats, triangle: Floats) -> Floats:
        return times_triangle_(rows, triangle)

    def subtract_product_(self, values: Floats, left: Floats, right: Floats) -> Floats:
        return subtract_product_(values, left, right)

    def squared_norms(self, rows: Floats) -> Floats:
        with np.errstate(over="ignore", under="ignore"):
            return np.einsum("ij,ij->i", rows, rows)

    def differences(self, left: Floats, right: Floats, power: int) -> Floats:
        if left.dtype.itemsize > 8:  # scipy would round to double precision
            return _extended_differences(left, right, power)
        metric = {1: "cityblock", 2: "sqeuclidean"}[power]
        with np.errstate(over="ignore", under="ignore"):
            return cdist(left, right, metric).astype(left.dtype, copy=False)

    def exp_(self, values: Floats) -> Floats:
        with np.errstate(under="ignore"):
            return np.exp(values, out=values)

    def sqrt_(self, values: Floats) -> Floats:
        return np.sqrt(values, out=values)

    def floor(self, values: Floats) -> Floats:
        return np.floor(values)

    def clip_(self, values: Floats, lowest: float = -np.inf, highest: float = np.inf) -> Floats:
        if values.ndim == 1:
            return np.clip(values, lowest, highest, out=values)
        # To look costs half of what it costs to write, and few rows have what must be moved.
        beyond = np.zeros(len(values), dtype=bool)
        if lowest > -np.inf:
            beyond |= values.min(axis=1, initial=lowest) < lowest
        if highest < np.inf:
            beyond |= values.max(axis=1, initial=highest) > highest
        if beyond.any():
            values[beyond] = np.clip(values[beyond], lowest, highest)
        return values

    def eigh(self, matrix: Floats) -> tuple[Floats, Floats]:
        # numpy's routine is divide and conquer, several times faster at our sizes than scipy's default.
        with all_blas_threads() if len(matrix) > _LARGE else one_blas_thread():
            values, vectors = np.linalg.eigh(matrix)
        return values, vectors


def _extended_differences(left: Floats, right: Floats, power: int) -> Floats:
    """Return what `differences` does in extended precision, a few rows at a time so that only the result is large."""
    total = np.zeros((len(left), len(right)), dtype=left.dtype)
    of_right = np.ascontiguousarray(right.T)
    step = max(1, _TILE_ENTRIES // max(1, len(right)))
    for first in range(0, len(left), step):
        tile = total[first : first + step]
        apart = np.empty_like(tile)
        for of_left, others in zip(left[first : first + step].T, of_right, strict=True):
            np.subtract(of_left[:, None], others, out=apart)
            tile += np.square(apart, out=apart) if power == 2 else np.abs(apart, out=apart)
    return total


NUMPY = NumpyBackend()
