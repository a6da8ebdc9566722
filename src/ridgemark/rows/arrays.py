"""Rows in memory or memory-mapped: arrays, sparse matrices and other data with random access to rows."""

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ridgemark.errors import DataError, ParameterError
from ridgemark.rows.array_columns import Columns, EncodedColumns, KeptColumns, as_columns
from ridgemark.rows.base import Array, BaseRows, Block, Features, Rows, check_total_weight
from ridgemark.rows.cells import DOUBLE, checked_weights, kept_rows
from ridgemark.rows.choice import is_key
from ridgemark.rows.column import ColumnEncoder

_CHECK_BYTES = 2**24  # bytes converted at once when a source is checked on opening
_IN_USE = 8  # earlier blocks that may still be in use when another one is read


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
        self.finite = self._features.in_memory
        for part in self._parts:
            for rows in _slices(step, 0, self.n_rows) if part.in_memory else ():
                if part is self._features:
                    self.finite &= part.check(rows, self.dtype)
                else:
                    part.read(rows, DOUBLE)
        if self._weights is not None and self._weights.in_memory and self.whole:
            check_total_weight(float(self._read_weights(self._weights, slice(0, self.n_rows)).sum()))

    def encoded_by(self, encoder: ColumnEncoder) -> BaseRows:
        encoded = copy.copy(self)
        encoded.encoder = encoder
        encoded._features = EncodedColumns(self._features, encoder)
        encoded._parts = [encoded._features, *(part for part in self._parts if part is not self._features)]
        encoded.n_features, encoded.feature_names = len(encoder.names), encoder.names
        encoded.dtype = encoded._features.dtype
        return encoded

    def _pieces(self, block_rows: int, start: int, stop: int) -> Iterator[Block]:
        for rows in _slices(block_rows, start, stop):
            yield self._block(rows)
            for part in self._parts:
                part.release(max(0, rows.start - _IN_USE * block_rows))

    def _take(self, indices: npt.NDArray[np.intp]) -> Block:
        return self._block(indices)

    def _block(self, rows: Rows) -> Block:
        features = self._features.read(rows, self.dtype)
        targets = None if self._targets is None else _dense(self._targets.read(rows, DOUBLE))
        weights = None if self._weights is None else self._read_weights(self._weights, rows)
        if isinstance(rows, slice):
            return Block(rows.start, features, targets, weights)
        return Block(0, features, targets, weights, taken=rows)

    def _read_weights(self, part: Columns, rows: Rows) -> npt.NDArray[np.float64]:
        return checked_weights(_dense(part.read(rows, DOUBLE)), part.place(rows))


def _slices(step: int, start: int, stop: int) -> Iterator[slice]:
    for first in range(start, stop, step):
        yield slice(first, min(first + step, stop))


def select_rows(
    source: Columns, target: Any = None, columns: Any = None, weight: Any = None, skip: bool = False
) -> ArrayRows:
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
    skipped = _missing(target_values) if skip and target_values is not None else np.empty(0, np.intp)
    kept = kept_rows(source.n_rows - skipped.size, skipped, source.header.source) if skipped.size else None
    if kept is not None:
        parts = [None if part is None else KeptColumns(part, kept) for part in parts]
    rows = ArrayRows(*parts)
    rows.n_skipped, rows.kept = skipped.size, kept
    return rows


def _missing(columns: Columns) -> npt.NDArray[np.intp]:
    """Return the rows with a missing value."""
    blocks = [columns.columns(rows) for rows in _slices(_CHECK_BYTES // 8, 0, columns.n_rows)]
    return np.flatnonzero(np.concatenate([np.any([column.gaps for column in block], axis=0) for block in blocks]))


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


def _dense(values: Features) -> Array:
    dense: Array = values.toarray() if sparse.issparse(values) else values
    return dense
