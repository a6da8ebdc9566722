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

    def differences(self, left: Floats, right: Floats, power: int, weights: Floats | None, out: Floats) -> Floats:
        with np.errstate(over="ignore", under="ignore"):
            if left.dtype.itemsize > 8 or left.shape[1] == 1:  # scipy rounds to double precision
                return _feature_by_feature(left, right, power, weights, out)
            options: dict[str, Any] = {} if weights is None else {"w": weights}
            if out.dtype == np.float64:
                options["out"] = out
            values = cdist(left, right, {1: "cityblock", 2: "sqeuclidean"}[power], **options)
            if values is not out:
                out[...] = values
        return out

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


def _feature_by_feature(left: Floats, right: Floats, power: int, weights: Floats | None, out: Floats) -> Floats:
    """Do what `differences` does, a feature at a time: in any precision, and faster for one feature."""
    apart = np.empty_like(out)
    for j in range(left.shape[1]):
        into = apart if j else out
        np.subtract(left[:, j, None], right[:, j], out=into)
        np.square(into, out=into) if power == 2 else np.abs(into, out=into)
        if weights is not None:
            into *= weights[j]
        if j:
            out += apart
    return out


NUMPY = NumpyBackend()
