"""Columns of one object, read as checked floats: what all kinds share, and those that are encoded, kept or sparse."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ridgemark.errors import DataError
from ridgemark.rows.base import Array, Features, Rows
from ridgemark.rows.cells import DOUBLE, float_dtype, numbers
from ridgemark.rows.choice import Header
from ridgemark.rows.column import Column, ColumnEncoder
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

    dtype: np.dtype[Any]  # float32 or float64, as these columns need

    def __init__(self, header: Header, n_rows: int, in_memory: bool = True) -> None:
        self.header = header
        self.n_rows = n_rows
        self.in_memory = in_memory
        self.which = tuple(range(header.n_columns))
        self.checked = False  # whether all values are known to be finite numbers
        self.vector = False  # True for a one-dimensional array, whose single column has no name or position

    @abstractmethod
    def read(self, rows: Rows, dtype: np.dtype[Any]) -> Features:
        """Return the checked floats (n, k) of some rows."""

    def check(self, rows: Rows, dtype: np.dtype[Any]) -> bool:
        """Check values that need no encoding, and return whether all are finite numbers; others are allowed here."""
        self.read(rows, dtype)
        return True

    def columns(self, rows: Rows) -> list[Column]:
        """Return the columns at some rows as they are, to be encoded."""
        raise DataError(
            f"{self.header.source} is sparse, and columns of sparse rows are numbers; give a table, or leave out "
            "categorical_features in the fit"
        )

    def whole(self) -> list[Column] | None:
        """Return the columns at all rows where reading converts them, which is then done once; otherwise None."""
        return None

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

    def place(self, rows: Rows) -> Place:
        """Return the `Place` of the cells of some rows."""
        return Place(self.header.source, None if self.vector else self.names or self.which, row_of(rows))


class EncodedColumns(Columns):
    """The columns of a table, encoded as features block by block; `weights` returns those of some rows."""

    def __init__(self, table: Columns, encoder: ColumnEncoder, weights: Callable[[Rows], Array | None]) -> None:
        super().__init__(Header(table.header.source, len(encoder.names), encoder.names), table.n_rows, table.in_memory)
        self._table, self._encoder, self._weights = table, encoder, weights
        self.dtype = table.dtype if encoder.keeps_columns else DOUBLE
        self._whole = table.whole()
        self.release = table.release  # type: ignore[method-assign]

    def read(self, rows: Rows, dtype: np.dtype[Any]) -> Array:
        """Return the features (n, k) of some rows."""
        columns = self._table.columns(rows) if self._whole is None else [column[rows] for column in self._whole]
        start = rows.start if isinstance(rows, slice) else -1
        features = self._encoder(start, columns, self._table.place(rows), self._weights(rows))
        return features.astype(dtype, copy=False)


class KeptColumns(Columns):
    """Columns at some of their rows, given by number."""

    def __init__(self, columns: Columns, rows: npt.NDArray[np.intp]) -> None:
        super().__init__(columns.header, len(rows), columns.in_memory)
        self.which, self.vector, self.dtype = columns.which, columns.vector, columns.dtype
        self._columns, self._rows = columns, rows

    def read(self, rows: Rows, dtype: np.dtype[Any]) -> Features:
        """Return the checked floats (n, k) of some rows."""
        return self._columns.read(self._rows[rows], dtype)

    def check(self, rows: Rows, dtype: np.dtype[Any]) -> bool:
        """Return whether all values are finite numbers."""
        return self._columns.check(self._rows[rows], dtype)

    def columns(self, rows: Rows) -> list[Column]:
        """Return the columns at some rows."""
        return self._columns.columns(self._rows[rows])

    def whole(self) -> list[Column] | None:
        """Return the columns at all rows, where these are converted once."""
        whole = self._columns.whole()
        return None if whole is None else [column[self._rows] for column in whole]

    def place(self, rows: Rows) -> Place:
        """Return the place of the cells of some rows."""
        return self._columns.place(self._rows[rows])


class SparseColumns(Columns):
    """Columns of a sparse matrix, converted once to CSR floats and read as CSR."""

    def __init__(self, matrix: Any, source: str) -> None:
        require_dimensions(matrix.shape, source, 2)
        super().__init__(Header(source, matrix.shape[1]), matrix.shape[0])
        csr = sparse.csr_array(matrix)
        if not csr.has_canonical_format:
            csr = csr.copy()  # the caller's matrix is not changed
            csr.sum_duplicates()
        self.dtype = float_dtype([csr.dtype])
        data = numbers(csr.data, self.dtype, self._stored_place(csr))
        self._csr = sparse.csr_array((data, csr.indices, csr.indptr), shape=csr.shape)

    def _stored_place(self, csr: Any) -> Place:
        def cell(position: int) -> str:
            row = int(np.searchsorted(csr.indptr, position, side="right")) - 1
            return f"row {row}, column {csr.indices[position]}"

        return Place(self.header.source, None, cell)

    def read(self, rows: Rows, dtype: np.dtype[Any]) -> Features:
        """Return some rows (n, k) as CSR."""
        values = self._csr[rows]
        if len(self.which) < self.header.n_columns or self.which != tuple(range(self.header.n_columns)):
            values = values[:, list(self.which)]
        return values.astype(dtype, copy=False)


def require_dimensions(shape: tuple[int, ...], source: str, *allowed: int) -> None:
    """Refuse an array of another number of dimensions."""
    if len(shape) not in allowed:
        raise DataError(f"{source} must be two-dimensional, one row for each observation; got shape {shape}")
