"""The backend on numpy arrays, with scipy where numpy has no such routine."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

Floats = NDArray[Any]


class NumpyBackend:
    """Host arrays, float32 or float64."""

    name = "numpy"

    def from_host(self, values: Floats) -> Floats:
        return values

    def to_host(self, values: Floats) -> Floats:
        return values

    def empty(self, shape: tuple[int, ...], like: Floats) -> Floats:
        return np.empty(shape, dtype=like.dtype)

    def matmul(self, left: Floats, right: Floats, out: Floats | None = None) -> Floats:
        return np.matmul(left, right, out=out)

    def gram(self, rows: Floats) -> Floats:
        # numpy recognises a' a and runs a symmetric update: half the work of a product.
        wide = rows.astype(np.float64, copy=False)
        return wide.T @ wide

    def squared_norms(self, rows: Floats) -> Floats:
        with np.errstate(over="ignore", under="ignore"):
            return np.einsum("ij,ij->i", rows, rows)

    def differences(self, left: Floats, right: Floats, power: int) -> Floats:
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

    def clip_(self, values: Floats, lowest: float) -> Floats:
        return np.maximum(values, lowest, out=values)

    def eigh(self, matrix: Floats) -> tuple[Floats, Floats]:
        # Divide and conquer needs more memory than the default driver and is several times faster at our sizes.
        values, vectors = scipy.linalg.eigh(matrix, driver="evd", check_finite=False)
        return values, vectors


NUMPY = NumpyBackend()
