"""Rows of a `.npy` file, read from the file block by block.

The file is not memory-mapped: if a mapped file is truncated meanwhile, SIGBUS ends the process, and a change of its
numbers goes unnoticed.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ridgemark.errors import DataError
from ridgemark.rows.arrays import MatrixColumns
from ridgemark.rows.base import Array
from ridgemark.rows.cells import numbers
from ridgemark.rows.files import FileState, reading, unreadable
from ridgemark.rows.places import shown

FORM = "a NumPy array file (.npy)"

_NEAR_BYTES = 2**18  # requested rows this close in the file are read together with the rows between them


class NpyColumns(MatrixColumns):
    """Columns of a `.npy` file; every read checks before and after that the file has not changed.

    Parameters
    ----------
    state : FileState
        State of the file before its header was read.
    shape, dtype, fortran
        Of the array, from the header.
    offset : int
        Position of the first number in the file.
    """

    def __init__(
        self, state: FileState, shape: tuple[int, ...], dtype: np.dtype[Any], fortran: bool, offset: int
    ) -> None:
        super().__init__(shape, dtype, shown(state.path), None, in_memory=False)
        self._state, self._fortran, self._offset = state, fortran, offset
        self._latest: list[tuple[slice, Array]] = []  # rows read last, shared by all copies made by `only`

    @property
    def _path(self) -> Path:
        return self._state.path

    def read(self, rows: slice | npt.NDArray[np.intp], dtype: np.dtype[Any]) -> Array:
        """Return the checked floats (n, k) of some rows."""
        self._state.check()
        values = self._known(rows) if isinstance(rows, slice) else None
        if values is None:
            values = self._from_file(rows)
        return numbers(values, dtype, self.place(rows))

    def _known(self, rows: slice) -> Array | None:
        """Return rows from the block read last, so that features, targets and weights are read only once."""
        for known, whole in tuple(self._latest):
            if known == rows:
                return whole[:, self.selection]
        return None

    def _from_file(self, rows: slice | npt.NDArray[np.intp]) -> Array:
        """Return the chosen columns of some rows; refuse a file that changed meanwhile."""
        try:
            with reading(self._path, FORM), self._path.open("rb", buffering=0) as file:
                values = self._between(file, rows, keep=True) if isinstance(rows, slice) else self._at(file, rows)
        except DataError:
            self._state.check()  # truncated or removed: this message is clearer than the system's
            raise
        self._state.check()
        return values

    def _at(self, file: IO[bytes], rows: npt.NDArray[np.intp]) -> Array:
        """Return rows by number, in the requested order; rows close in the file are read together."""
        values = np.empty((len(rows), len(self.which)), self.stored_dtype)
        step = max(1, _NEAR_BYTES // (self.header.n_columns * self.stored_dtype.itemsize))
        order = np.argsort(rows, kind="stable")
        ends = np.flatnonzero(np.diff(rows[order] // step)) + 1
        for group in np.split(order, ends) if len(rows) else []:
            first, last = int(rows[group[0]]), int(rows[group[-1]])
            values[group] = self._between(file, slice(first, last + 1))[rows[group] - first]
        return values

    def _between(self, file: IO[bytes], rows: slice, keep: bool = False) -> Array:
        """Return the chosen columns of consecutive rows."""
        n_rows = rows.stop - rows.start
        if self._fortran:
            columns = np.empty((len(self.which), n_rows), self.stored_dtype)
            for column, j in zip(columns, self.which, strict=True):
                self._fill(file, column, j * self.n_rows + rows.start)
            return columns.T
        whole = np.empty((n_rows, self.header.n_columns), self.stored_dtype)
        self._fill(file, whole, rows.start * self.header.n_columns)
        if keep:
            self._latest[:] = [(rows, whole)]
        return whole[:, self.selection]

    def _fill(self, file: IO[bytes], values: Array, position: int) -> None:
        """Fill a contiguous array with the numbers from a position in the file's array."""
        file.seek(self._offset + position * self.stored_dtype.itemsize)
        rest: Any = values.reshape(-1).view(np.uint8).data
        while rest:
            read: int = file.readinto(rest)  # type: ignore[attr-defined]
            if not read:
                raise unreadable(self._path, FORM, f"it is {len(rest)} bytes too short")
            rest = rest[read:]
