"""Rows in memory or memory-mapped: arrays, sparse matrices and other data with random access to rows."""

import mmap
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ridgemark.errors import DataError, DataTypeError, ParameterError
from ridgemark.rows.base import Array, BaseRows, Block, Rows, check_total_weight, dense
from ridgemark.rows.cells import DOUBLE, as_floats, checked_weights, finite_numbers, float_dtype, kept_rows, numbers
from ridgemark.rows.choice import Header, is_key
from ridgemark.rows.column import Column, ColumnEncoder, array_column, rows_with_gaps
from ridgemark.rows.columns import Columns, EncodedColumns, KeptColumns, SparseColumns, require_dimensions
from ridgemark.rows.labels import label_numbers, labels_in
from ridgemark.rows.places import Place

_CHECK_BYTES = 2**24  # bytes converted at once when a source is checked on opening
_PART_BYTES = 2**20  # bytes of all columns read at once when targets are looked at on opening
_SCATTERED = 32  # rows taken from a memory map at once: for each the system may map two megabytes around it
_IN_USE = 8  # earlier blocks that may still be in use when another one is read


class MatrixColumns(Columns):
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
        return finite_numbers(self.values(rows), dtype, self.place(rows))

    def columns(self, rows: Rows) -> list[Column]:
        """Return the columns at some rows."""
        place = self.place(rows)
        return [array_column(values, place) for values in np.ascontiguousarray(self.values(rows).T)]


class ArrayColumns(MatrixColumns):
    """Columns of a dense array, which may be memory-mapped: only the requested rows are read and converted."""

    def __init__(self, array: Array, source: str, names: tuple[str, ...] | None = None) -> None:
        super().__init__(array.shape, array.dtype, source, names, in_memory=not _is_mapped(array))
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


class ArrayRows(BaseRows):
    """Rows held in memory or memory-mapped.

    Float32 and float64 are kept; float16 becomes float32; integers and booleans become float64, block by block, so
    that a memory-mapped file is never loaded as a whole. Data in memory are checked on opening, other data when
    read.

    Parameters
    ----------
    features : array-like (n, d), sparse matrix, or Columns
        Sparse matrices are converted to CSR once.
    targets : array-like (n,) or (n, t), or Columns, optional
        One row for each row of the features.
    weights : array-like (n,), or Columns, optional
        Finite, not negative, not all zero.

    Raises
    ------
    DataError
        When shapes do not match or a value is not a finite number; the message names row and column.
    """

    def __init__(self, features: Any, targets: Any = None, weights: Any = None) -> None:
        self._features = as_columns(features, "the feature array")
        self._targets = None if targets is None else as_columns(targets, "the target array")
        self._weights = None if weights is None else as_columns(weights, "the weight array")
        _require_matrix(self._features)
        self.n_rows = self._features.n_rows
        self.n_features = len(self._features.which)
        self.n_targets = 0 if self._targets is None else len(self._targets.which)
        self.dtype = self._features.dtype
        self.has_weights = self._weights is not None
        self.feature_names = self._features.names
        self.target_names = None if self._targets is None else self._targets.names
        self._parts = [part for part in (self._features, self._targets, self._weights) if part is not None]
        self.reads_ahead = not all(part.in_memory for part in self._parts)
        self._check_shapes()
        self._check_values()

    def _check_shapes(self) -> None:
        for part in (self._targets, self._weights):
            if part is not None and part.n_rows != self.n_rows:
                raise DataError(
                    f"{part.header.source} must have one row for each of the {self.n_rows} rows of the features; "
                    f"got {part.n_rows}; check that both come from the same rows"
                )
        if self._targets is not None and not self._targets.which:
            raise DataError(f"{self._targets.header.source} has no column; omit target if there is none")
        if self._weights is not None and len(self._weights.which) != 1:
            n_columns = len(self._weights.which)
            raise DataError(f"{self._weights.header.source} must have one number for each row; got {n_columns} columns")

    def _check_values(self) -> None:
        """Read data in memory once, so that a bad cell is refused before any work begins."""
        step = max(1, _CHECK_BYTES // (8 * (self.n_features + self.n_targets + 1)))
        for part in self._parts:
            checked = part.in_memory
            for rows in _slices(step, 0, self.n_rows) if part.in_memory else ():
                if part is self._features:
                    checked &= part.check(rows, self.dtype)
                else:
                    part.read(rows, DOUBLE)
            part.checked = checked
        self.finite = self._features.checked
        in_memory = self._weights is not None and self._weights.in_memory
        weights = self._weights_of(slice(0, self.n_rows)) if in_memory and self.whole else None
        if weights is not None:
            check_total_weight(float(weights.sum()))

    def encoded_by(self, encoder: ColumnEncoder) -> Self:
        encoded = super().encoded_by(encoder)
        encoded._features = EncodedColumns(self._features, encoder, self._weights_of)
        encoded._parts = [encoded._features, *(part for part in self._parts if part is not self._features)]
        return encoded

    def _pieces(self, block_rows: int, start: int, stop: int) -> Iterator[Block]:
        for rows in _slices(block_rows, start, stop):
            yield self._take(rows)
            for part in self._parts:
                part.release(max(0, rows.start - _IN_USE * block_rows))

    def _take(self, rows: Rows) -> Block:
        features = self._features.read(rows, self.dtype)
        targets = None if self._targets is None else dense(self._targets.read(rows, DOUBLE))
        weights = self._weights_of(rows)
        if isinstance(rows, slice):
            return Block(rows.start, features, targets, weights)
        return Block(0, features, targets, weights, taken=rows)

    def _weights_of(self, rows: Rows) -> npt.NDArray[np.float64] | None:
        part = self._weights
        return None if part is None else checked_weights(dense(part.read(rows, DOUBLE)), part.place(rows))


def _slices(step: int, start: int, stop: int) -> Iterator[slice]:
    for first in range(start, stop, step):
        yield slice(first, min(first + step, stop))


def as_columns(values: Any, source: str) -> Columns:
    """Return array-like values as `Columns`; a `Columns` object is returned unchanged."""
    if isinstance(values, Columns):
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


def select_rows(source: Columns, target: Any, columns: Any, weight: Any, skip: bool) -> ArrayRows:
    """Return rows from columns; target and weight are names or positions in `source`, or arrays.

    With `skip`, rows whose target is missing are left out.
    """
    _require_matrix(source)
    target, target_values = _keys_or_values(target, source.n_rows, "the target array")
    weight, weight_values = _keys_or_values(weight, source.n_rows, "the weight array")
    choice = source.header.choose(target, columns, weight)
    if choice.targets:
        target_values = source.only(choice.targets)
    if choice.weight:
        weight_values = source.only(choice.weight)
    parts = [source.only(choice.features), target_values, weight_values]
    skipped = np.empty(0, np.intp)
    if skip and target_values is not None:
        skipped = rows_with_gaps(part for _, part in _in_parts(target_values))
    kept = kept_rows(source.n_rows - skipped.size, skipped, source.header.source) if skipped.size else None
    if kept is not None:
        parts = [None if part is None else KeptColumns(part, kept) for part in parts]
    parts[1], labels = _with_numbers(parts[1])
    rows = ArrayRows(*parts)
    rows.n_skipped, rows.kept, rows.labels = skipped.size, kept, labels
    rows.header, rows.choice = source.header, choice
    return rows


def _in_parts(columns: Columns) -> Iterator[tuple[slice, list[Column]]]:
    """Iterate over the columns as they are, in parts of some rows."""
    for rows in _slices(max(1, _PART_BYTES // (8 * columns.header.n_columns)), 0, columns.n_rows):
        yield rows, columns.columns(rows)


def _with_numbers(targets: Columns | None) -> tuple[Columns | None, tuple[Any, ...] | None]:
    """Return one target of text as the numbers of its labels, and these; other targets as they are."""
    if targets is None or len(targets.which) != 1 or isinstance(targets, SparseColumns):
        return targets, None
    source = targets.header.source
    labels = labels_in((column for _, (column,) in _in_parts(targets)), targets.place(slice(0, 1)).column())
    if labels is None or not isinstance(labels[0], str):
        return targets, labels
    parts = [label_numbers(labels, column, targets.place(rows)) for rows, (column,) in _in_parts(targets)]
    return ArrayColumns(np.concatenate(parts)[:, None], source, targets.names), labels


def _keys_or_values(given: Any, n_rows: int, source: str) -> tuple[Any, Columns | None]:
    """Return (names or positions, None) or (None, values).

    A list of integers holds values if it has one entry per row, and positions otherwise.
    """
    if given is None or is_key(given):
        return given, None
    if isinstance(given, list | tuple | range) and len(given) and all(map(is_key, given)):
        names = isinstance(given[0], str)
        if names or len(given) != n_rows:
            return given, None
    if isinstance(given, dict | set | bool):
        raise ParameterError(f"{source} must be column names, positions or an array; got a {type(given).__name__}")
    return None, as_columns(given, source)


def _require_matrix(features: Columns) -> None:
    source, n_rows, n_columns = features.header.source, features.n_rows, len(features.which)
    if features.vector:
        raise DataError(
            f"{source} must be two-dimensional, one row for each observation; got one dimension of length {n_rows}; "
            "use X.reshape(-1, 1) for a single feature, X.reshape(1, -1) for a single row"
        )
    if not n_rows or not n_columns:
        raise DataError(
            f"{source} must have at least one row and one column; got {n_rows} rows and {n_columns} columns"
        )


def _is_mapped(array: Any) -> bool:
    while array is not None:
        if isinstance(array, np.memmap):
            return True
        array = getattr(array, "base", None)
    return False
