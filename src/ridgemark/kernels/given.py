"""Kernels given by the user: a function of two sets of rows, or the values themselves."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from ridgemark.backends import Array, Backend, Floats, Indices
from ridgemark.errors import DataError, ParameterError
from ridgemark.kernels.base import Kernel, count_rows
from ridgemark.kernels.gradient import Gradient

_DIAGONAL_ROWS = 32  # rows of each block whose diagonal is taken


class Custom(Kernel):
    """Kernel given by `function(X, Z) -> block` of shape (rows of X, rows of Z), or by `function(x, z) -> number`.

    The second form, of two single rows, is that of scikit-learn's `Nystroem` and `KernelRidge`. It is recognised by
    what the function returns for blocks, and is called for every pair, which takes many times longer. In the first form
    `kernel(X, Z)` takes rows of any type; estimators and scores pass rows of numbers.

    Parameters
    ----------
    function : callable
        Must be symmetric and positive semidefinite; its shape and finiteness are checked at every call.
    diagonal_function : callable, optional
        `diagonal_function(X) -> k(x_i, x_i)`; without it the diagonal is taken from small blocks.
    """

    accepts_sparse = True
    stays_on_host = True

    def __init__(self, function: Callable[..., Any], diagonal_function: Callable[..., Any] | None = None) -> None:
        self.function = function
        self.diagonal_function = diagonal_function

    def diagonal(self, rows: Any, indices: Indices | None = None) -> Array:
        self._check()
        count = count_rows(rows)
        if self.diagonal_function is not None:
            return self._numbers(self.diagonal_function(rows), (count,))
        if self._takes_pairs(rows):
            return self._numbers([self.function(row, row) for row in _single_rows(rows)], (count,))
        parts = [rows[start : start + _DIAGONAL_ROWS] for start in range(0, count, _DIAGONAL_ROWS)]
        return np.concatenate([np.diagonal(self._evaluate(self.function, part, part)) for part in parts])

    def _prepare(self, landmarks: Any, indices: Indices | None, backend: Backend) -> Any:
        self._check()
        return partial(_each_pair, self.function) if self._takes_pairs(landmarks) else self.function, landmarks

    def _check(self) -> None:
        if not callable(self.function):
            raise ParameterError(f"Custom: function must be callable as function(X, Z), got {self.function!r}")
        if self.diagonal_function is not None and not callable(self.diagonal_function):
            raise ParameterError(
                f"Custom: diagonal_function must be callable as diagonal_function(X), got {self.diagonal_function!r}"
            )

    def _block(self, rows: Any, prepared: Any, out: Array | None, backend: Backend) -> Array:
        function, landmarks = prepared
        return backend.from_host(self._evaluate(function, rows, landmarks))

    def _takes_pairs(self, rows: Any) -> bool:
        """Return whether the function takes two single rows, and not two blocks.

        It is called with two blocks whose numbers of rows differ from each other and from the number of features. A
        function of blocks returns an array of that shape. If it does not, it is called with two single rows, for which
        a function of single rows returns a number. A function that fails both ways is taken as one of blocks.
        """
        if getattr(rows, "ndim", 0) != 2 or not count_rows(rows):
            return False
        shape = tuple(size for size in (2, 3, 4) if size != rows.shape[1])[:2]
        with suppress(Exception):  # the user's function may raise anything where it is given what it does not take
            if np.shape(self.function(*(rows[np.zeros(size, dtype=np.intp)] for size in shape))) == shape:
                return False
        with suppress(Exception):
            row = next(_single_rows(rows))
            return np.ndim(self.function(row, row)) == 0
        return False

    def _evaluate(self, function: Callable[..., Any], rows: Any, landmarks: Any) -> Array:
        return self._numbers(function(rows, landmarks), (count_rows(rows), count_rows(landmarks)))

    def _numbers(self, values: Any, shape: tuple[int, ...]) -> Array:
        """Return the values that the function returned as floats; check their shape and that they are finite."""
        name = getattr(self.function, "__name__", repr(self.function))
        block = np.asarray(values)
        if block.shape != shape:
            raise DataError(f"the kernel function {name} must return a block of shape {shape}, got {block.shape}")
        if block.dtype.kind not in "fiub":
            raise DataError(f"the kernel function {name} must return real numbers, got an array of {block.dtype}")
        if not np.isfinite(block).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(block))[0])
            raise DataError(
                f"the kernel function {name} returned {block[where]} at {where}; it must return finite numbers"
            )
        return block.astype(np.float64) if block.dtype.kind != "f" else block.copy()

    def _checked(self, rows: Any) -> Any:
        return rows


def _each_pair(function: Callable[..., Any], rows: Any, landmarks: Any) -> list[list[Any]]:
    """Return `function(x, z)` of every row x with every landmark z."""
    columns = list(_single_rows(landmarks))
    return [[function(row, column) for column in columns] for row in _single_rows(rows)]


def _single_rows(rows: Any) -> Iterator[Any]:
    """Yield each row as scikit-learn gives it to a function of pairs: one-dimensional, or one sparse row."""
    for position in range(count_rows(rows)):
        yield rows[[position]] if sparse.issparse(rows) else rows[position]


class Precomputed(Kernel):
    """Rows of the kernel matrix itself: column j of a row holds its kernel value with training row j.

    This is scikit-learn's pairwise convention: fit with the square matrix of the training rows, predict with the
    matrix of new rows and all training rows. Landmarks are column numbers.
    """

    stays_on_host = True
    pairwise = True

    def __call__(self, rows: Any, landmarks: Any = None) -> Array:
        """Return the given block, or its columns with the numbers `landmarks`."""
        block = self._checked(rows)
        if landmarks is not None:
            return block[:, np.asarray(landmarks)]
        check_square(block.shape)
        return block

    def diagonal(self, rows: Any, indices: Indices | None = None) -> Array:
        if indices is None:
            check_square(rows.shape)
            return np.diagonal(rows).copy()
        if len(indices) and indices.max() >= rows.shape[1]:
            raise DataError(
                f"rows of a precomputed kernel contain k(x, x) only for the {rows.shape[1]} training rows, "
                f"got row {indices.max()}"
            )
        return rows[np.arange(len(indices)), indices]

    def gradient(self, rows: Floats, landmarks: Floats) -> Gradient:
        raise ParameterError(
            "a precomputed kernel has no derivatives by columns: its rows hold kernel values, not the columns they "
            "were computed from; fit the columns with a kernel by name, such as gaussian"
        )

    def _prepare(self, landmarks: Any, indices: Indices | None, backend: Backend) -> Indices:
        if indices is None:
            raise DataError("a precomputed kernel needs the landmarks as row numbers, not as points")
        return indices

    def _block(self, rows: Any, prepared: Indices, out: Array | None, backend: Backend) -> Array:
        if prepared.size and prepared.max() >= rows.shape[1]:
            raise DataError(
                f"a precomputed block needs one column for each training row, at least {prepared.max() + 1}, "
                f"got {rows.shape[1]}"
            )
        return backend.from_host(rows[:, prepared])

    def _entry_error(self, rows: Any, prepared: Any, backend: Backend) -> Floats:
        return np.zeros(rows.shape[0])  # the given values define the kernel


def check_square(shape: tuple[int, ...]) -> None:
    """Refuse a precomputed kernel of all rows that is not square."""
    if shape[0] != shape[1]:
        raise DataError(f"a precomputed kernel of the training rows must be square, got shape {shape}")
