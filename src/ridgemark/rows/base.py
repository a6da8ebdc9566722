"""The interface of all data sources: numbered blocks of rows that can be read repeatedly."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ridgemark.backends import backend_of
from ridgemark.errors import DataError, ParameterError
from ridgemark.parameters import positive_count

if TYPE_CHECKING:
    from ridgemark.rows.column import ColumnEncoder
    from ridgemark.rows.header import Header, Roles

Array: TypeAlias = npt.NDArray[Any]
Rows: TypeAlias = slice | npt.NDArray[np.intp]  # a slice with start and stop, or row numbers
Features: TypeAlias = Any  # a 2-D float array, or a scipy.sparse.csr_array for sparse sources

DEFAULT_MEMORY_BUDGET = 2**30


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows, as checked floats.

    Parameters
    ----------
    start : int
        Number of the first row; 0 for the rows of `take`, which need not be consecutive.
    features : array (n, d), C-contiguous, or csr_array (n, d)
        In the source's `dtype`. Arrays are those of NumPy, or of the device that computes with the block.
    targets : array (n, t) or None
        In float64.
    weights : array (n,) or None
        In float64, nonnegative.
    taken : ndarray (n,) or None
        The requested row numbers, in a block made by `take`.
    along : tuple of ndarray
        Further arrays given to a pass, with one entry per row.
    held : ndarray (n, rank) or None
        The rows' features, where the passes hold them for the task.
    groups : ndarray (n,) of uint64 or None
        A hash of the label of each row's group.
    converted_late : bool
        Whether features stay in float32, and the task converts what it needs, part by part in the processor's cache.
    """

    start: int
    features: Features
    targets: Any = None
    weights: Any = None
    taken: npt.NDArray[np.intp] | None = None
    along: tuple[Array, ...] = ()
    converted_late: bool = False
    held: Any = None
    groups: Any = None

    @property
    def n_rows(self) -> int:
        """Number of rows in the block."""
        return int(self.features.shape[0])

    @property
    def indices(self) -> npt.NDArray[np.intp]:
        """Numbers of the rows in their source, shape (n,)."""
        if self.taken is not None:
            return self.taken
        return np.arange(self.start, self.start + self.n_rows)

    def parts(self, most: int) -> Iterator[Block]:
        """Yield the block in the fewest parts of at most `most` rows, all of nearly the same size."""
        n_rows = self.n_rows
        if 0 < n_rows <= most:
            yield self
            return
        size = -(-n_rows // max(1, -(-n_rows // most)))
        for first in range(0, n_rows, size or 1):
            yield self.at(slice(first, first + size), self.start + first)

    def at(self, rows: Rows, start: int = 0) -> Block:
        """Return some rows of this block, by their positions, as a block that starts at this row."""
        targets = None if self.targets is None else self.targets[rows]
        weights = None if self.weights is None else self.weights[rows]
        along = tuple(values[rows] for values in self.along)
        held = None if self.held is None else self.held[rows]
        groups = None if self.groups is None else self.groups[rows]
        return Block(start, self.features[rows], targets, weights, None, along, self.converted_late, held, groups)


@runtime_checkable
class RowSource(Protocol):
    """Rows that can be read repeatedly in numbered blocks.

    Attributes
    ----------
    n_rows, n_features, n_targets : int
        Numbers of rows, feature columns and target columns (0 without targets).
    dtype : numpy.dtype
        float32 or float64: dtype of the features in every block.
    has_weights : bool
        Whether the blocks carry weights.
    has_groups : bool
        Whether the blocks carry labels of groups; a source of your own need not have this attribute.
    feature_names, target_names : tuple of str or None
        Names of the columns, where they have names.
    """

    n_rows: int
    n_features: int
    n_targets: int
    dtype: np.dtype[Any]
    has_weights: bool
    feature_names: tuple[str, ...] | None
    target_names: tuple[str, ...] | None

    def blocks(self, block_rows: int, start: int = 0, stop: int | None = None) -> Iterator[Block]:
        """Iterate over the rows `start` to `stop` (default: all) in order, `block_rows` at a time."""

    def take(self, indices: npt.ArrayLike) -> Block:
        """Return the requested rows in the requested order; repeats are allowed."""


class BaseRows(RowSource):
    """Base of every source in the package: implements `RowSource` from two readers, `_blocks` and `_take`.

    A subclass sets the attributes.
    """

    has_groups: bool = False  # whether rows have labels of the groups that leave together
    reads_ahead: bool = False  # whether a thread reads blocks in advance: true for files
    paths: tuple[Path, ...] = ()  # the files that the rows come from
    n_skipped: int = 0  # rows of the data that are left out, since their target is missing
    kept: npt.NDArray[np.intp] | None = None  # then the numbers in the data of the others
    header: Header | None = None  # all columns of the data, where these were chosen from it
    roles: Roles | None = None  # which of them are features, targets and weight
    schema_options: Mapping[str, Any] = MappingProxyType({})  # of `tables.learn_schema`, for a fit to these rows
    encoded_before: BaseRows | None = None  # these rows as features of a fit to them, where their schema is learned
    encoder: ColumnEncoder | None = None  # what makes the features, where the columns are not features as they are
    encoded: bool = False  # whether the features were made by the encoder of a fit
    n_counted: int | None = None  # rows of positive weight, where it is known without a pass
    whole: bool = True  # whether there are no other rows, so that some row must have a positive weight
    labels: tuple[Any, ...] | None = None  # what 0, 1, ... stand for, where the target is text or booleans
    has_exposure: bool = False  # whether the last target is the exposure of the row
    of_rates: bool = False  # whether targets are rates, and weights count exposures
    finite: bool = True  # whether all features are known to be finite numbers, which need no encoding

    @abstractmethod
    def _blocks(self, block_rows: int, start: int, stop: int) -> Iterator[Block]:
        """Iterate over the rows `start` to `stop` in order, `block_rows` at a time; the last block may be smaller."""

    @abstractmethod
    def _take(self, indices: npt.NDArray[np.intp]) -> Block:
        """Return the rows with these numbers, which are known to exist."""

    def encoded_by(self, encoder: ColumnEncoder) -> Self:
        """Return the same rows, with features that the encoder makes from the columns as they are.

        They are in single precision where the columns are and stay. A subclass lets its readers use the encoder.
        """
        encoded = copy.copy(self)
        encoded.encoder, encoded.n_features, encoded.feature_names = encoder, len(encoder.names), encoder.names
        encoded.dtype = self.dtype if encoder.keeps_columns else np.dtype(np.float64)
        return encoded

    def staying(self, memory_budget: int | None) -> Self:
        """Return the same rows; those of a file stay in memory after a pass if a quarter of the budget holds them."""
        return self

    def shown_to(self, encoder: Any, block_rows: int) -> Any:
        """Return an encoder without features that has seen the columns of all rows, in one pass."""
        for _ in self.encoded_by(encoder).blocks(block_rows):
            pass
        return encoder

    def blocks(self, block_rows: int, start: int = 0, stop: int | None = None) -> Iterator[Block]:
        """Iterate over the rows `start` to `stop` in order, `block_rows` at a time; the last block may be smaller.

        Calls are independent; several iterations may run concurrently. A source whose weights are all zero is refused
        at the end of a pass over all rows.
        """
        size, stop = positive_count(block_rows, "block_rows"), self.n_rows if stop is None else stop
        blocks = self._blocks(min(size, self.n_rows), start, stop)
        everything = self.whole and (start, stop) == (0, self.n_rows)
        return _weighed(blocks) if self.has_weights and everything else blocks

    def _regroup(self, pieces: Iterator[Block], block_rows: int, start: int, stop: int) -> Iterator[Block]:
        """Yield the rows `start` to `stop` of pieces, which cover them in order, as blocks of `block_rows`.

        So the blocks of a data set do not depend on how it is stored. The first and last piece may extend beyond.
        """
        pending, filled = self._blank(0, 0), 0
        for piece in pieces:
            at, end = max(0, start - piece.start), min(piece.n_rows, stop - piece.start)
            while at < end:
                if filled == 0:
                    first = piece.start + at
                    size = min(block_rows, stop - first)
                    if end - at >= size:  # the whole block is in this piece: no copy
                        yield piece.at(slice(at, at + size), first)
                        at += size
                        continue
                    pending = self._blank(first, size)
                rows = min(pending.n_rows - filled, end - at)
                copy_rows(piece, slice(at, at + rows), pending, slice(filled, filled + rows))
                at, filled = at + rows, filled + rows
                if filled == pending.n_rows:
                    yield pending
                    filled = 0

    def _blank(self, start: int, n_rows: int) -> Block:
        return Block(
            start,
            np.empty((n_rows, self.n_features), self.dtype),
            np.empty((n_rows, self.n_targets)) if self.n_targets else None,
            np.empty(n_rows) if self.has_weights else None,
            groups=np.empty(n_rows, np.uint64) if self.has_groups else None,
        )

    def take(self, indices: npt.ArrayLike) -> Block:
        """Return the requested rows in the requested order; repeats are allowed, negative numbers are not."""
        asked = np.asarray(indices)
        if asked.ndim != 1 or (asked.dtype.kind not in "iu" and asked.size):
            got = f"{asked.dtype} with shape {asked.shape}"
            raise ParameterError(
                f"the rows to take must be a list of row numbers; got {got}; for a mask use numpy.flatnonzero(mask)"
            )
        outside = np.flatnonzero((asked < 0) | (asked >= self.n_rows))
        if outside.size:
            raise ParameterError(
                f"there is no row {asked[outside[0]]}; the {self.n_rows} rows are numbered 0 to {self.n_rows - 1}"
            )
        return self._take(asked.astype(np.intp))


def _weighed(blocks: Iterator[Block]) -> Iterator[Block]:
    """Yield the blocks of all rows; refuse, at the end, weights that are all zero."""
    total_weight = 0.0
    for block in blocks:
        total_weight += float(block.weights.sum())
        yield block
    check_total_weight(total_weight)


def row_weights(block: Block) -> npt.NDArray[np.float64]:
    """Return the block's weights, or ones if it has none, where its features are."""
    if block.weights is not None:
        return block.weights
    return backend_of(block.features).from_host(np.ones(block.n_rows))


def unit_of_weights(weights: npt.NDArray[np.float64]) -> float:
    """Return the power of two nearest the mean of the positive weights.

    Multiplying the weights by a power of two multiplies this unit by exactly that power.
    """
    exponent = math.frexp(float(weights.max()))[1]
    scaled = np.ldexp(weights[weights > 0], -exponent)  # below one, so that their sum does not overflow
    mantissa, above = math.frexp(float(scaled.mean()))
    return math.ldexp(1.0, min(exponent + above - (mantissa < 0.75), 1023))


def check_total_weight(total: float) -> None:
    """Refuse weights whose sum is zero."""
    if total == 0.0:
        raise DataError("all weights are zero; give at least one row a positive weight")


def copy_rows(source: Block, rows: slice | Array, target: Block, into: slice | Array) -> None:
    """Copy rows of one block into rows of another with the same columns."""
    target.features[into] = source.features[rows]
    if target.targets is not None and source.targets is not None:
        target.targets[into] = source.targets[rows]
    if target.weights is not None and source.weights is not None:
        target.weights[into] = source.weights[rows]
    if target.groups is not None and source.groups is not None:
        target.groups[into] = source.groups[rows]


def dense(rows: Features) -> Any:
    """Return an array; a sparse matrix as one."""
    return rows.toarray() if sparse.issparse(rows) else rows


def stack_rows(parts: Sequence[Features]) -> Features:
    """Return the rows of several arrays or sparse matrices as one."""
    if len(parts) == 1:
        return parts[0]
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack([sparse.csr_array(part) for part in parts], format="csr")
    return np.concatenate(parts)


def block_rows_for(memory_budget: int | None, bytes_per_row: int, n_rows: int) -> int:
    """Return the number of rows of a block: as many as the budget holds, at most `n_rows`.

    Parameters
    ----------
    memory_budget : int or None
        Bytes for one block and everything computed from it; None means `DEFAULT_MEMORY_BUDGET`, a constant, so that
        results do not depend on the load of the machine.
    bytes_per_row : int
        Bytes of one row and everything computed from it.
    n_rows : int
        Number of rows in the source.
    """
    budget = DEFAULT_MEMORY_BUDGET if memory_budget is None else positive_count(memory_budget, "memory_budget")
    rows = budget // positive_count(bytes_per_row, "bytes_per_row")
    if rows == 0:
        raise ParameterError(
            f"memory_budget must hold at least one row, which takes {bytes_per_row} bytes; got {budget}; "
            "raise memory_budget or use fewer landmarks"
        )
    return min(rows, positive_count(n_rows, "n_rows"))
