"""Any function of two sets of rows as a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Array, Backend
from ridgemark.errors import DataError, ParameterError
from ridgemark.kernels.base import Kernel, count_rows

_DIAGONAL_ROWS = 32  # rows of each block whose diagonal is taken


class Custom(Kernel):
    """Kernel given by `function(X, Z) -> block` of shape (rows of X, rows of Z).

    `kernel(X, Z)` accepts rows of any type; estimators and scores call the function with rows of numbers.

    Parameters
    ----------
    function : callable
        Must be symmetric and positive semidefinite; its shape and finiteness are checked at every call.
    diagonal_function : callable, optional
        `diagonal_function(X) -> k(x_i, x_i)`; without it the diagonal is taken from small blocks.
    """

    accepts_sparse = True

    def __init__(self, function: Callable[..., Any], diagonal_function: Callable[..., Any] | None = None) -> None:
        self.function = function
        self.diagonal_function = diagonal_function

    def diagonal(self, rows: Any, indices: NDArray[np.intp] | None = None) -> NDArray[Any]:
        count = count_rows(rows)
        if self.diagonal_function is not None:
            return self._numbers(self.diagonal_function(rows), (count,))
        parts = [rows[start : start + _DIAGONAL_ROWS] for start in range(0, count, _DIAGONAL_ROWS)]
        return np.concatenate([np.diagonal(self._evaluate(part, part)) for part in parts])

    def _prepare(self, landmarks: Any, indices: NDArray[np.intp] | None, backend: Backend) -> Any:
        if not callable(self.function):
            msg = f"Custom: function must be callable as function(X, Z), got {self.function!r}"
            raise ParameterError(msg)
        return landmarks

    def _block(self, rows: Any, prepared: Any, out: Array | None, backend: Backend) -> Array:
        return backend.from_host(self._evaluate(rows, prepared))

    def _evaluate(self, rows: Any, landmarks: Any) -> NDArray[Any]:
        return self._numbers(self.function(rows, landmarks), (count_rows(rows), count_rows(landmarks)))

    def _numbers(self, values: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return the values that the function returned as floats; check their shape and that they are finite."""
        name = getattr(self.function, "__name__", repr(self.function))
        block = np.asarray(values)
        if block.shape != shape:
            msg = f"the kernel function {name} must return a block of shape {shape}, got {block.shape}"
            raise DataError(msg)
        if block.dtype.kind not in "fiub":
            msg = f"the kernel function {name} must return real numbers, got an array of {block.dtype}"
            raise DataError(msg)
        if not np.isfinite(block).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(block))[0])
            msg = f"the kernel function {name} returned {block[where]} at {where}; it must return finite numbers"
            raise DataError(msg)
        return block.astype(np.float64) if block.dtype.kind != "f" else block.copy()

    def _checked(self, rows: Any) -> Any:
        return rows
