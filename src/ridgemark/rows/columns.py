"""Columns of one object, read as checked floats: what all kinds share, and those of arrays and sparse matrices."""

import copy
import mmap
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse

from ridgemark.errors import DataError, DataTypeError
from ridgemark.rows.base import Array, Features, Rows
from ridgemark.rows.cells import as_floats, float_dtype, has_gaps, is_mapped, numbers
from ridgemark.rows.column import Cells, array_column
from ridgemark.rows.header import Header
from ridgemark.rows.places import Place, row_of

_SCATTERED = 32  # rows taken from a memory map at once: for each the system may map two megabytes around it


class SourceColumns(ABC):
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

    def columns(self, rows: Rows) -> list[Cells]:
        """Return the columns at some rows as they are, to be encoded."""
        raise DataError(
            f"{self.header.source} is sparse, and columns of sparse rows are numbers; give a table, or leave out "
            "categorical_features in the fit"
        )

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


class MatrixColumns(SourceColumns):
    """Columns of one array (n, k) with one dtype, in memory or in a file; an array (n,) is one column."""

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], source: str, names: tuple[str, ...] | None, in_memory: bool
    ) -> None:
        require_dimensions(shape, source, 1, 2)
        n_rows, n_columns = shape if len(shape) == 2 else (*shape, 1)
        super().__init__(Header(source, n_columns, names), n_rows, in_memory)
        self.vector = len(shape) == 1
        self.stored_dtype, self.dtype = dtype, float_dtype([dtype])
        if dtype.kind not in "fbiu" and not (self.vector and dtype.kind in "OUT"):  # text may be labels
            raise Place(source, None, str).wrong_kind(dtype.kind, dtype)

    @property
    def selection(self) -> slice | list[int]:
        """Index of the chosen columns: a slice if they are adjacent, which gives a view instead of a copy."""
        first, last = self.which[0], self.which[-1] + 1
        return slice(first, last) if self.which == tuple(range(first, last)) else list(self.which)

    @abstractmethod
    def values(self, rows: Rows) -> Array:
        """Return the stored values (n, k) of some rows, not checked."""

    def read(self, rows: Rows, dtype: np.dtype[Any]) -> Array:
        """Return the checked floats (n, k) of some rows."""
        values = self.values(rows)
        return as_floats(values, dtype) if self.checked else numbers(values, dtype, self.place(rows))

    def check(self, rows: Rows, dtype: np.dtype[Any]) -> bool:
        """Refuse infinities, and return whether no value is missing."""
        return not has_gaps(numbers(self.values(rows), dtype, self.place(rows), gaps=True))

    def columns(self, rows: Rows) -> list[Cells]:
        """Return the columns at some rows."""
        place = self.place(rows)
        return [array_column(values, place) for values in np.ascontiguousarray(self.values(rows).T)]


class ArrayColumns(MatrixColumns):
    """Columns of a dense array, which may be memory-mapped: only the requested rows are read and converted."""

    def __init__(self, array: Array, source: str, names: tuple[str, ...] | None = None) -> None:
        super().__init__(array.shape, array.dtype, source, names, in_memory=not is_mapped(array))
        self._array = array.reshape(-1, 1) if array.ndim == 1 else array

    def release(self, row: int) -> None:
        """Release the pages of a memory map before this row: they stay in the system's cache, not in this process.

        A row still in use is read again from the cache. A copy-on-write map would lose changes, so it is skipped.
        """
        mapped = self._array
        pages: Any = getattr(mapped, "_mmap", None)  # None for an unpickled map, which is a copy in memory
        if isinstance(mapped, np.memmap) and pages is not None and mapped.mode != "c" and mapped.flags.c_contiguous:
            first = mapped.offset % mmap.ALLOCATIONGRANULARITY  # offset of the array in its map
            length = (first + row * mapped.strides[0]) // mmap.PAGESIZE * mmap.PAGESIZE
            if length and hasattr(pages, "madvise"):
                pages.madvise(mmap.MADV_DONTNEED, 0, length)

    def values(self, rows: Rows) -> Array:
        """Return the stored values (n, k) of some rows."""
        columns = self.selection  # a view of a memory map reads nothing yet
        if self.in_memory or isinstance(rows, slice):
            return self._array[rows][:, columns]
        values = np.empty((len(rows), len(self.which)), self._array.dtype)
        for k in range(0, len(rows), _SCATTERED):
            values[k : k + _SCATTERED] = self._array[rows[k : k + _SCATTERED]][:, columns]
            self.release(self.n_rows)
        return values


class SparseColumns(SourceColumns):
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


def as_columns(values: Any, source: str) -> SourceColumns:
    """Return array-like values as `SourceColumns`; a `SourceColumns` object is returned unchanged."""
    if isinstance(values, SourceColumns):
        return values
    if sparse.issparse(values):
        return SparseColumns(values, source)
    return ArrayColumns(as_array(values, source), source)


def as_array(values: Any, source: str) -> Array:
    """Return array-like values as an array; refuse masked values and values that numpy cannot convert."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        row = np.argwhere(np.ma.getmaskarray(values))[0][0]
        raise DataError(
            f"{source} is a masked array, and row {row} has a masked value; fill it in or drop the row first"
        )
    try:
        return values if isinstance(values, np.memmap) else np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataTypeError(
            f"{source} cannot be made into an array of numbers ({error}); give rows of equal length"
        ) from error
