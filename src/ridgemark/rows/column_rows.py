"""Rows of columns of any type: of tables, files of arrays, memory maps and sparse matrices, and of arrays with gaps."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ridgemark.errors import DataError, ParameterError
from ridgemark.rows.base import BaseRows, Block, Rows, check_total_weight, dense
from ridgemark.rows.cells import DOUBLE, checked_weights, kept_rows
from ridgemark.rows.column import Cells, rows_with_gaps
from ridgemark.rows.columns import ArrayColumns, SourceColumns, SparseColumns, as_columns
from ridgemark.rows.groups import check_labels, hashes_of, label_hashes
from ridgemark.rows.header import is_key
from ridgemark.rows.labels import label_numbers, labels_in

_CHECK_BYTES = 2**24  # bytes converted at once when a source is checked on opening
_PART_BYTES = 2**20  # bytes of all columns read at once when targets are looked at on opening
_IN_USE = 8  # earlier blocks that may still be in use when another one is read


class ColumnRows(BaseRows):
    """Rows of columns in memory, memory-mapped or in a `.npy` file.

    Float32 and float64 are kept; float16 becomes float32; integers and booleans become float64, block by block, so
    that a memory-mapped file is never loaded as a whole. Data in memory are checked on opening, other data when
    read.

    Parameters
    ----------
    features : SourceColumns
        One column or more.
    targets : SourceColumns, optional
        One row for each row of the features.
    weights : SourceColumns, optional
        One column, finite, not negative, not all zero.
    kept : ndarray of int, optional
        The rows to read, where others are left out.
    groups : ndarray of uint64, optional
        Hashes of the labels of the rows' groups, one for each row of the features.

    Raises
    ------
    DataError
        When shapes do not match or a value is not a finite number; the message names row and column.
    """

    def __init__(
        self,
        features: SourceColumns,
        targets: SourceColumns | None = None,
        weights: SourceColumns | None = None,
        kept: npt.NDArray[np.intp] | None = None,
        groups: npt.NDArray[np.uint64] | None = None,
    ) -> None:
        self._features, self._targets, self._weights, self.kept = features, targets, weights, kept
        self._groups, self.has_groups = groups, groups is not None
        self.n_rows = features.n_rows if kept is None else len(kept)
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
        n_rows = self._features.n_rows
        for part in (self._targets, self._weights):
            if part is not None and part.n_rows != n_rows:
                raise DataError(
                    f"{part.header.source} must have one row for each of the {n_rows} rows of the features; "
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
            for rows in _slices(step, self.n_rows, self.kept) if part.in_memory else ():
                if part is self._features:
                    checked &= part.check(rows, self.dtype)
                else:
                    part.read(rows, DOUBLE)
            part.checked = checked
        self.finite = self._features.checked
        in_memory = self._weights is not None and self._weights.in_memory
        everything = slice(0, self.n_rows) if self.kept is None else self.kept
        weights = self._weights_of(everything) if in_memory and self.whole else None
        if weights is not None:
            check_total_weight(float(weights.sum()))

    def _blocks(self, block_rows: int, start: int, stop: int) -> Iterator[Block]:
        for first in range(start, stop, block_rows):
            yield self._take(slice(first, min(first + block_rows, stop)))
            for part in self._parts:
                part.release(max(0, first - _IN_USE * block_rows))

    def _take(self, rows: Rows) -> Block:
        start, there = (rows.start if isinstance(rows, slice) else -1), (rows if self.kept is None else self.kept[rows])
        weights = self._weights_of(there)
        if self.encoder is None:
            features = self._features.read(there, self.dtype)
        else:
            columns, place = self._features.columns(there), self._features.place(there)
            features = self.encoder(start, columns, place, weights).astype(self.dtype, copy=False)
        targets = None if self._targets is None else dense(self._targets.read(there, DOUBLE))
        groups = None if self._groups is None else self._groups[there]
        if isinstance(rows, slice):
            return Block(start, features, targets, weights, groups=groups)
        return Block(0, features, targets, weights, taken=rows, groups=groups)

    @property
    def labels_of_groups(self) -> npt.NDArray[np.uint64]:
        """The different hashes of labels of groups, ascending."""
        return np.unique(np.empty(0, np.uint64) if self._groups is None else self._groups)

    def _weights_of(self, rows: Rows) -> npt.NDArray[np.float64] | None:
        part = self._weights
        return None if part is None else checked_weights(dense(part.read(rows, DOUBLE)), part.place(rows))


def _slices(step: int, n_rows: int, kept: npt.NDArray[np.intp] | None = None) -> Iterator[Rows]:
    """Iterate over all rows, or those kept, `step` at a time; there may be fewer in the last part."""
    for first in range(0, n_rows, step):
        rows = slice(first, min(first + step, n_rows))
        yield rows if kept is None else kept[rows]


def select_rows(
    source: SourceColumns, target: Any, columns: Any, weight: Any, skip: bool, group: Any = None
) -> ColumnRows:
    """Return rows from columns; target, weight and group are names or positions in `source`, or arrays.

    With `skip`, rows whose target is missing are left out.
    """
    _require_matrix(source)
    target, target_values = _keys_or_values(target, source.n_rows, "the target array")
    weight, weight_values = _keys_or_values(weight, source.n_rows, "the weight array")
    roles = source.header.choose(target, columns, weight, group if is_key(group) else None)
    features = source.only(roles.features)
    targets = source.only(roles.targets) if roles.targets else target_values
    weights = source.only(roles.weight) if roles.weight else weight_values
    skipped, kept = np.empty(0, np.intp), None
    if skip and targets is not None:
        skipped = rows_with_gaps(part for _, part in _in_parts(targets))
    if skipped.size:
        kept = kept_rows(source.n_rows - skipped.size, skipped, source.header.source)
    targets, labels = _with_numbers(targets, kept)
    groups = group_hashes(source.only(roles.group) if roles.group else group, source.n_rows, kept)
    rows = ColumnRows(features, targets, weights, kept, groups)
    rows.n_skipped, rows.labels = skipped.size, labels
    rows.header, rows.roles = source.header, roles
    return rows


def group_hashes(labels: Any, n_rows: int, kept: npt.NDArray[np.intp] | None) -> npt.NDArray[np.uint64] | None:
    """Return the hashes of the labels of groups, given as a column or as an array; None for None.

    Missing labels of the rows that are kept are refused.
    """
    if not isinstance(labels, SourceColumns):
        return None if labels is None else hashes_of(labels, n_rows)
    check_labels(len(labels.which), labels.n_rows, n_rows, labels.header.source)
    hashes = np.zeros(n_rows, np.uint64)
    for rows, (cells,) in _in_parts(labels, kept):
        hashes[rows] = label_hashes(cells, labels.place(rows))
    return hashes


def _in_parts(columns: SourceColumns, kept: npt.NDArray[np.intp] | None = None) -> Iterator[tuple[Rows, list[Cells]]]:
    """Iterate over the columns as they are, in parts of some rows."""
    n_rows = columns.n_rows if kept is None else len(kept)
    for rows in _slices(max(1, _PART_BYTES // (8 * columns.header.n_columns)), n_rows, kept):
        yield rows, columns.columns(rows)


def _with_numbers(
    targets: SourceColumns | None, kept: npt.NDArray[np.intp] | None
) -> tuple[SourceColumns | None, tuple[Any, ...] | None]:
    """Return one target of text as the numbers of its labels, and these; other targets as they are."""
    if targets is None or len(targets.which) != 1 or isinstance(targets, SparseColumns):
        return targets, None
    source = targets.header.source
    labels = labels_in((column for _, (column,) in _in_parts(targets, kept)), targets.place(slice(0, 1)).column())
    if labels is None or not isinstance(labels[0], str):
        return targets, labels
    numbers = np.zeros((targets.n_rows, 1))
    for rows, (column,) in _in_parts(targets, kept):
        numbers[rows, 0] = label_numbers(labels, column, targets.place(rows))
    return ArrayColumns(numbers, source, targets.names), labels


def _keys_or_values(given: Any, n_rows: int, source: str) -> tuple[Any, SourceColumns | None]:
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


def _require_matrix(features: SourceColumns) -> None:
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
