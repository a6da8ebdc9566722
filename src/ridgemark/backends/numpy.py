"""The backend on NumPy arrays: the operations for which NumPy or SciPy has a faster way than the generic one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ridgemark.backends.base import Backend
from ridgemark.backends.blas import inverse_triangle, subtract_product_, times_triangle_
from ridgemark.backends.threads import blas_threads_for

Floats = NDArray[Any]


class NumpyBackend(Backend):
    """Host arrays, float32 or float64."""

    times_triangle_ = staticmethod(times_triangle_)
    inverse_triangle = staticmethod(inverse_triangle)
    subtract_product_ = staticmethod(subtract_product_)

    def __init__(self) -> None:
        super().__init__("array_api_compat.numpy")

    def __reduce__(self) -> str:
        return "NUMPY"  # there is one, also after pickling

    def to_host(self, values: Floats) -> Floats:
        return values

    def precision(self, values: Floats) -> np.dtype[Any]:
        return values.dtype

    def nonzero(self, mask: Floats) -> tuple[Floats, Floats]:
        return np.divmod(np.flatnonzero(mask), mask.shape[1])  # several times faster than np.nonzero

    def count(self, mask: Floats, axis: int | None = None) -> Any:
        return np.count_nonzero(mask, axis=axis)

    def bits(self, values: Floats) -> Any:
        return values.view(np.uint64)

    def ordered(self, rows: Floats, positions: list[int]) -> Floats:
        return np.partition(rows, positions, axis=0)[positions]

    def matmul(self, left: Floats, right: Floats, out: Floats | None = None) -> Floats:
        # Callers check the result for values outside the range.
        with np.errstate(over="ignore", invalid="ignore"):
            return np.matmul(left, right, out=out)

    def copy(self, values: Floats) -> Floats:
        return values.copy()

    def squared_norms(self, rows: Floats) -> Floats:
        with np.errstate(over="ignore", under="ignore"):
            return np.einsum("ij,ij->i", rows, rows)

    def inner(self, left: Floats, right: Floats) -> float:
        return float(np.vdot(left, right))

    def differences(self, left: Floats, right: Floats, power: int, weights: Floats | None, out: Floats) -> Floats:
        with np.errstate(over="ignore", under="ignore"):
            if left.shape[1] == 1 and weights is None:  # cdist is slower for one feature
                np.subtract(left, right.T, out=out)
                return np.square(out, out=out) if power == 2 else np.abs(out, out=out)
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

    def clip_(self, values: Floats, lowest: float = -np.inf, highest: float = np.inf) -> Floats:
        # Reading costs half as much as writing, and few rows hold a value to be clipped.
        beyond = np.zeros(values.shape[:-1], dtype=bool)
        if lowest > -np.inf:
            beyond |= values.min(axis=-1, initial=lowest) < lowest
        if highest < np.inf:
            beyond |= values.max(axis=-1, initial=highest) > highest
        if beyond.any():
            values[beyond] = np.clip(values[beyond], lowest, highest)
        return values

    def diagonal(self, matrix: Floats) -> Floats:
        return np.einsum("ii->i", matrix)

    def eigh(self, matrix: Floats) -> tuple[Floats, Floats]:
        # NumPy's routine is divide and conquer, several times faster at our sizes than SciPy's default.
        with blas_threads_for(len(matrix)):
            values, vectors = np.linalg.eigh(matrix)
        return values, vectors


NUMPY = NumpyBackend()
