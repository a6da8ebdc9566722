"""Columns with random access to rows: the common interface of arrays, data frames and Arrow tables."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ridgemark.rows.base import Array, Features
from ridgemark.rows.cells import float_dtype, stacked
from ridgemark.rows.choice import Header
from ridgemark.rows.places import Place, row_of


class Columns(ABC):
    """Some columns of one object, read as checked floats.

    Parameters
    ----------
    header : Header
        All columns of the object.
    n_rows : int
        Number of rows.
    in_memory : bool
        Whether the object is checked as a whole on opening, which is cheap for data in memory.
    """

    def __init__(self, header: Header, n_rows: int, in_memory: bool = True) -> None:
        self.header = header
        self.n_rows = n_rows
        self.in_memory = in_memory
        self.which = tuple(range(header.n_columns))
        self.vector = False  # True for a one-dimensional array, whose single column has no name or position

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64, as these columns need."""

    @abstractmethod
    def read(self, rows: slice | npt.NDArray[np.intp], dtype: np.dtype[Any]) -> Features:
        """Return the checked floats (n, k) of some rows: a slice with start and stop, or row numbers."""

    def release(self, row: int) -> None:  # noqa: B027 - most columns have no pages to release
        """Release memory of the rows before this one, which a pass has finished reading."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of these columns, or None."""
        return self.header.names_of(self.which)

    def only(self, which: Sequence[int]) -> Self:
        """Return some of the columns, by their positions in the whole object."""
        narrower = copy.copy(self)
        narrower.which = tuple(which)
        return narrower

    def place(self, rows: slice | npt.NDArray[np.intp]) -> Place:
        """Return the `Place` of the cells of some rows."""
        return Place(self.header.source, None if self.vector else self.names or self.which, row_of(rows))


class FrameColumns(Columns):
    """Columns of different types, converted one by one; a subclass reads one column."""

    @abstractmethod
    def _column_dtype(self, position: int) -> np.dtype[Any]:
        """Return the nearest numpy type of one column."""

    @abstractmethod
    def _column(self, position: int, rows: slice | npt.NDArray[np.intp], place: Place) -> Array:
        """Return one column at some rows as numpy values of any type, and refuse nulls and categories."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 when every column is float32 or smaller, and float64 otherwise."""
        return float_dtype(self._column_dtype(j) for j in self.which)

    def read(self, rows: slice | npt.NDArray[np.intp], dtype: np.dtype[Any]) -> Array:
        """Return the checked floats (n, k) of some rows."""
        place = self.place(rows)
        columns = [self._column(j, rows, place.some(k, k + 1)) for k, j in enumerate(self.which)]
        return stacked(columns, dtype, place)
