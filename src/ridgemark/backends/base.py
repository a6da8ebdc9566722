"""The array operations that kernels and solvers use, for any library that follows the array API standard."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from math import inf
from typing import Any, ClassVar, TypeAlias

import array_api_compat
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array: TypeAlias = Any
"""An array of the backend in use: a NumPy array, a tensor, ..."""
Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]
Flags: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = sparse.csr_matrix | sparse.csr_array | NDArray[np.float32] | Floats


@dataclass(frozen=True)
class Backend:
    """Array operations beyond operators and indexing, written with the functions of the array API standard.

    A method whose name ends in `_` overwrites its first argument and returns it. A subclass overrides an operation
    where its library has a faster way.

    Parameters
    ----------
    namespace : str
        Module with the functions of the standard, such as `array_api_compat.torch`. The name is stored instead of the
        module so that a backend can be pickled.
    device : optional
        Device of new arrays; None is the library's default.
    """

    namespace: str
    device: Any = None
    out_of_memory: ClassVar[type[BaseException]] = MemoryError

    @cached_property
    def xp(self) -> Any:
        """The module with the functions of the standard."""
        return import_module(self.namespace)

    @cached_property
    def library(self) -> str:
        """The name of the library of arrays: "numpy", "torch", "cupy", ..."""
        return self.namespace.rpartition(".")[2]

    def __reduce__(self) -> str | tuple[Any, ...]:
        return type(self), (self.namespace, self.device)  # a module cannot be pickled

    def from_host(self, values: Any, like: Array | None = None) -> Array:
        """Return a NumPy array as an array of the backend, in the precision of `like` where given.

        An array of the backend's library is moved to its device, or returned unchanged if it is there already.
        """
        if not isinstance(values, np.ndarray):
            there = self.device is None or not self.holds(values)
            return values if there else array_api_compat.to_device(values, self.device)
        return self.xp.asarray(values, dtype=None if like is None else like.dtype, device=self.device)

    def to_host(self, values: Array) -> NDArray[Any]:
        """Return an array of the backend as a NumPy array."""
        return values.get() if hasattr(values, "get") else np.from_dlpack(values, device="cpu")  # CuPy has `get`

    def holds(self, values: Any) -> bool:
        """Return whether a value is an array of this backend's library."""
        return hasattr(values, "device") and not isinstance(values, np.ndarray | np.generic)

    def others(self) -> tuple[Backend, ...]:
        """Return the backends of further devices, with which this one shares the blocks of a pass."""
        return ()

    def free_bytes(self) -> int:
        """Return the bytes of device memory that are free for new arrays."""
        raise NotImplementedError

    def release(self) -> None:
        """Give back memory that the library keeps for later."""

    def double(self, values: Array) -> Array:
        """Return an array in float64; an array in float64 is returned unchanged."""
        return self.xp.astype(values, self.xp.float64, copy=False)

    def zeros(self, shape: tuple[int, ...]) -> Array:
        """Return zeros in float64."""
        return self.xp.zeros(shape, dtype=self.xp.float64, device=self.device)

    def precision(self, values: Array) -> np.dtype[Any]:
        """Return float32 or float64, the precision of the array, as a NumPy dtype."""
        return np.dtype(f"f{self.xp.finfo(values.dtype).bits // 8}")

    def empty(self, shape: tuple[int, ...], like: Array | None = None) -> Array:
        """Return an uninitialised array in the precision of `like`, in float64 without it."""
        return self.xp.empty(shape, dtype=self.xp.float64 if like is None else like.dtype, device=self.device)

    def bits(self, values: Array) -> Array:
        """Return the 64 bits of every float64 as an integer, signed if the library has no unsigned ones."""
        raise NotImplementedError

    def nonzero(self, mask: Array) -> tuple[Array, Array]:
        """Return row and column numbers of the true entries of a matrix, in row order."""
        row, column = self.xp.nonzero(mask)
        return row, column

    def count(self, mask: Array, axis: int | None = None) -> Any:
        """Return the number of true entries, in total or along an axis."""
        return self.xp.sum(self.xp.astype(mask, self.xp.int64), axis=axis)

    def median(self, rows: Array) -> Array:
        """Return the median of each column; zeros where there is no row."""
        count = rows.shape[0]
        if count == 0:
            return self.xp.zeros((rows.shape[1],), dtype=rows.dtype, device=self.device)
        middle = self.ordered(rows, [(count - 1) // 2, count // 2])
        # Each half is divided before the sum, which would overflow for values near the end of the range.
        return middle[0, :] / 2.0 + middle[1, :] / 2.0

    def ordered(self, rows: Array, positions: list[int]) -> Array:
        """Return the values at these positions of each column in ascending order, shape (positions, columns)."""
        ordered = self.xp.sort(rows, axis=0)
        return self.xp.stack([ordered[k, :] for k in positions])

    def matmul(self, left: Array, right: Array, out: Array | None = None) -> Array:
        """Return the matrix product, in `out` where given; overflow gives inf or nan without a warning."""
        product = self.xp.matmul(left, right)
        if out is None:
            return product
        out[...] = product
        return out

    def product_in_blocks(self, left: Array, right: Array, at_once: int) -> Array:
        """Return the matrix product, every entry a sum of blocks of at most `at_once` terms."""
        total = left[:, :at_once] @ right[:at_once]
        for start in range(at_once, left.shape[1], at_once):
            block = slice(start, start + at_once)
            total += left[:, block] @ right[block]
        return total

    def gram(self, rows: Array) -> Array:
        """Return `rows' rows` in float64; NumPy computes half of it, so that it is exactly symmetric."""
        rows = self.xp.astype(rows, self.xp.float64, copy=False)
        return self.xp.matmul(rows.T, rows)

    def copy(self, values: Array) -> Array:
        """Return a copy."""
        return self.xp.asarray(values, copy=True)

    def times_triangle_(self, rows: Array, triangle: Array, transposed: bool = False) -> Array:
        """Overwrite rows by their product with an upper triangular matrix, or with its transpose."""
        rows[...] = self.xp.matmul(rows, triangle.T if transposed else triangle)
        return rows

    def subtract_product_(self, values: Array, left: Array, right: Array) -> Array:
        """Overwrite values by `values - left right`."""
        values -= self.xp.matmul(left, right)
        return values

    def squared_norms(self, rows: Array) -> Array:
        """Return the squared Euclidean length of each row; inf on overflow, without a warning."""
        return self.xp.sum(rows * rows, axis=1)

    def inner(self, left: Array, right: Array) -> float:
        """Return the sum of the products of the entries of two arrays."""
        return float(self.xp.sum(left * right))

    def differences(self, left: Array, right: Array, power: int, weights: Array | None, out: Array) -> Array:
        """Write `sum_j weight_j |x_j - z_j|^power` (power 1 or 2) for all pairs into `out`, without a product."""
        for j in range(left.shape[1]):
            difference = left[:, j, None] - right[None, :, j]
            if power == 2:
                difference *= difference
            else:
                difference = abs(difference)
            if weights is not None:
                difference *= weights[j]
            if j:
                out += difference
            else:
                out[...] = difference
        return out

    def exp_(self, values: Array) -> Array:
        """Overwrite values by their exponential."""
        values[...] = self.xp.exp(values)
        return values

    def sqrt_(self, values: Array) -> Array:
        """Overwrite values by their square root."""
        values[...] = self.xp.sqrt(values)
        return values

    def clip_(self, values: Array, lowest: float = -inf, highest: float = inf) -> Array:
        """Overwrite values below `lowest` or above `highest` by that bound."""
        values[...] = self.xp.clip(values, lowest, highest)
        return values

    def at_least(self, values: Array, lowest: Any) -> Array:
        """Return the larger of each value and `lowest`, a number or an array."""
        return self.xp.maximum(values, lowest)

    def within(self, values: Array, lowest: float, highest: float) -> Array:
        """Return each value, or the bound that it exceeds."""
        return self.xp.clip(values, lowest, highest)

    def ratio(self, above: Array, below: Array) -> Array:
        """Return the quotient, zero where the divisor is not positive."""
        return self.xp.where(below > 0, above / self.xp.where(below > 0, below, 1.0), 0.0)

    def diagonal(self, matrix: Array) -> Array:
        """Return the diagonal as a view into which can be written."""
        return self.xp.linalg.diagonal(matrix)

    def cholesky(self, matrix: Array) -> Array | None:
        """Return U, upper triangular, with `U'U` the matrix; None if it is not definite."""
        return self.xp.linalg.cholesky(matrix, upper=True)

    def solve_triangle(self, triangle: Array, right: Array, transposed: bool = False) -> Array:
        """Return `R^-1 V`, or `R'^-1 V`, for an upper triangle R."""
        return self.xp.linalg.solve(triangle.T if transposed else triangle, right)

    def inverse_triangle(self, triangle: Array) -> Array:
        """Return the inverse of an upper triangle."""
        return self.xp.linalg.inv(triangle)

    def eigh(self, matrix: Array) -> tuple[Array, Array]:
        """Return eigenvalues in ascending order, and eigenvectors as columns, of a symmetric matrix."""
        values, vectors = self.xp.linalg.eigh(matrix)
        return values, vectors
