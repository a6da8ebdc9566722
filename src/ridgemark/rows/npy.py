"""Rows of a `.npy` file, read from the file block by block.

The file is not mapped into memory: a process that reads a map of a file cut short meanwhile is ended by a signal
(SIGBUS), and a map shows numbers written meanwhile without notice.
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

_NEAR_BYTES = 2**18  # rows to take that lie this near each other are read at once, with the rows between them


class NpyColumns(MatrixColumns):
    """Columns of a `.npy` file; every read checks before and after that the file is as it was.

    Parameters
    ----------
    state : FileState
        The file as it was before its header was read.
    shape, dtype, fortran
        Of the array, as its header says.
    offset : int
        Where its numbers begin.
    """

    def __init__(
        self, state: FileState, shape: tuple[int, ...], dtype: np.dtype[Any], fortran: bool, offset: int
    ) -> None:
        super().__init__(shape, dtype, shown(state.path), None, in_memory=False)
        self._state, self._fortran, self._offset = state, fortran, offset
        self._latest: list[tuple[slice, Array]] = []  # whole rows read last, for all copies that `only` makes

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
        """Return rows of the block that was read last, so that its features, targets and weights are read once."""
        for known, whole in tuple(self._latest):
            if known == rows:
                return whole[:, self.selection]
        return None

    def _from_file(self, rows: slice | npt.NDArray[np.intp]) -> Array:
        """Return the chosen columns of some rows, and refuse the file where it changed meanwhile."""
        try:
            with reading(self._path, FORM), self._path.open("rb", buffering=0) as file:
                values = self._between(file, rows, keep=True) if isinstance(rows, slice) else self._at(file, rows)
        except DataError:
            self._state.check()  # cut short or removed meanwhile, which says more than what the system said
            raise
        self._state.check()
        return values

    def _at(self, file: IO[bytes], rows: npt.NDArray[np.intp]) -> Array:
        """Return rows of any numbers, in the order asked; what lies near each other in the file is read at once."""
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
                raise unreadable(self._path, FORM, f"it ends {len(rest)} bytes too early")
            rest = rest[read:]
