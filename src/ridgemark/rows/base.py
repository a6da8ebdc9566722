"""What every kind of data looks like to the rest of the package: numbered blocks of rows, read as often as asked."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from ridgemark.errors import DataError, ParameterError
from ridgemark.rows.parallel import in_order

Array: TypeAlias = npt.NDArray[Any]
Features: TypeAlias = Any  # a 2-D float array, or a scipy.sparse.csr_array for sparse sources

DEFAULT_MEMORY_BUDGET = 2**30


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows, as floats that have been checked.

    Parameters
    ----------
    start : int
        Number of the first row; 0 for the rows of `take`, which need not be consecutive.
    features : ndarray (n, d), C-contiguous, or csr_array (n, d)
        In the source's `dtype`.
    targets : ndarray (n, t) or None
        In float64.
    weights : ndarray (n,) or None
        In float64, none of them negative.
    taken : ndarray (n,) or None
        The numbers asked for, in a block made by `take`.
    """

    start: int
    features: Features
    targets: npt.NDArray[np.float64] | None = None
    weights: npt.NDArray[np.float64] | None = None
    taken: npt.NDArray[np.intp] | None = None

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

    def part(self, first: int, last: int) -> Block:
        """Return the rows `first` to `last` (excluded) of this block, without a copy."""
        rows = slice(first, last)
        return Block(
            self.start + first,
            self.features[rows],
            None if self.targets is None else self.targets[rows],
            None if self.weights is None else self.weights[rows],
        )


@runtime_checkable
class RowSource(Protocol):
    """Rows that can be read again and again in numbered blocks, whatever holds them."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_features(self) -> int:
        """Number of feature columns."""

    @property
    def n_targets(self) -> int:
        """Number of target columns, 0 without targets."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64: what the features of every block are."""

    @property
    def has_weights(self) -> bool:
        """Whether the blocks carry weights."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, where the source has them."""

    @property
    def target_names(self) -> tuple[str, ...] | None:
        """Names of the targets, where the source has them."""

    def blocks(self, block_rows: int) -> Iterator[Block]:
        """Iterate over all rows in order, `block_rows` at a time; each call starts anew."""

    def take(self, indices: npt.ArrayLike) -> Block:
        """Return the rows asked for, in the order asked; repeats are allowed."""

    def reduce_blocks(self, fn: Callable[[Block], Any], block_rows: int) -> Any:
        """Return the sum, in row order, of `fn` over all blocks."""

    def map_blocks(self, fn: Callable[[Block], Array], block_rows: int, out: Array | None = None) -> Array:
        """Return the results of `fn`, one row for each row, stacked in row order."""


class BaseRows(ABC):
    """All of `RowSource` from two readers, `_pieces` and `_take`: the base of every source in the package.

    A subclass sets the attributes below. Its pieces may have any sizes: they are regrouped here, so the blocks of
    one data set are the same whatever it is stored in.
    """

    n_rows: int
    n_features: int
    n_targets: int
    dtype: np.dtype[Any]
    has_weights: bool
    feature_names: tuple[str, ...] | None
    target_names: tuple[str, ...] | None
    reads_ahead: bool = False  # whether a thread reads while blocks are worked on: for what comes from a disk

    @abstractmethod
    def _pieces(self, block_rows: int) -> Iterator[Block]:
        """Iterate over all rows in order, in blocks of any sizes (`block_rows` is what suits best)."""

    @abstractmethod
    def _take(self, indices: npt.NDArray[np.intp]) -> Block:
        """Return the rows with these numbers, which are known to exist."""

    def blocks(self, block_rows: int) -> Iterator[Block]:
        """Iterate over all rows in order, exactly `block_rows` at a time but for the last block.

        Each call starts anew, and several iterations may run side by side. A source whose weights are all zero is
        refused at the end of the pass, when that is known.
        """
        size = positive_int(block_rows, "block_rows")
        return self._blocks(min(size, self.n_rows))

    def _blocks(self, block_rows: int) -> Iterator[Block]:
        total_weight = 0.0
        for block in self._regroup(self._pieces(block_rows), block_rows):
            if block.weights is not None:
                total_weight += float(block.weights.sum())
            yield block
        if self.has_weights:
            check_total_weight(total_weight)

    def _regroup(self, pieces: Iterator[Block], block_rows: int) -> Iterator[Block]:
        pending, filled = self._blank(0, 0), 0
        for piece in pieces:
            at = 0
            while at < piece.n_rows:
                if filled == 0:
                    start = piece.start + at
                    size = min(block_rows, self.n_rows - start)
                    if piece.n_rows - at >= size:  # the whole block lies in this piece: no copy
                        yield piece.part(at, at + size)
                        at += size
                        continue
                    pending = self._blank(start, size)
                rows = min(pending.n_rows - filled, piece.n_rows - at)
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
        )

    def take(self, indices: npt.ArrayLike) -> Block:
        """Return the rows asked for, in the order asked; repeats are allowed, negative numbers are not."""
        asked = np.asarray(indices)
        if asked.ndim != 1 or (asked.dtype.kind not in "iu" and asked.size):
            got = f"{asked.dtype} with shape {asked.shape}"
            msg = f"the rows to take must be a list of row numbers; got {got}; for a mask use numpy.flatnonzero(mask)"
            raise ParameterError(msg)
        outside = np.flatnonzero((asked < 0) | (asked >= self.n_rows))
        if outside.size:
            msg = f"there is no row {asked[outside[0]]}; the {self.n_rows} rows are numbered 0 to {self.n_rows - 1}"
            raise ParameterError(msg)
        return self._take(asked.astype(np.intp))

    def _in_order(self, fn: Callable[[Block], Any], block_rows: int) -> Iterator[tuple[Block, Any]]:
        blocks = self.blocks(block_rows)
        return in_order(fn, blocks, -(-self.n_rows // operator.index(block_rows)), self.reads_ahead)

    def reduce_blocks(self, fn: Callable[[Block], Any], block_rows: int) -> Any:
        """Return the sum, in row order, of `fn` over all blocks; its results need only have `+`."""
        parts = (part for _, part in self._in_order(fn, block_rows))
        total: Any = next(parts)  # every source has at least one row
        for number, part in enumerate(parts):
            if number == 0:
                total = total + part  # something new, which may be added into: the first part may be anyone's
            else:
                total += part
        return total

    def map_blocks(self, fn: Callable[[Block], Array], block_rows: int, out: Array | None = None) -> Array:
        """Return the results of `fn`, one row for each row, stacked in row order into one array.

        Parameters
        ----------
        fn : callable
            Takes a block of n rows, returns an array (n, ...).
        block_rows : int
            Rows in a block.
        out : ndarray, optional
            Where to write, such as a memory-mapped array; by default a new array.
        """
        for block, made in self._in_order(fn, block_rows):
            result = np.asarray(made)
            if result.shape[:1] != (block.n_rows,):
                msg = f"fn must return one row for each row; from {block.n_rows} rows it made shape {result.shape}"
                raise ParameterError(msg)
            shape = (self.n_rows, *result.shape[1:])
            if out is None:
                out = np.empty(shape, result.dtype)
            elif out.shape != shape:
                msg = f"out must have shape {shape} to hold the results; it has {out.shape}"
                raise ParameterError(msg)
            out[block.start : block.start + block.n_rows] = result
        assert out is not None  # every source has at least one row
        return out


def row_weights(block: Block) -> npt.NDArray[np.float64]:
    """Return the block's weights, ones where it has none."""
    return np.ones(block.n_rows) if block.weights is None else block.weights


def unit_of_weights(weights: npt.NDArray[np.float64]) -> float:
    """Return the power of two nearest the mean of the positive weights.

    Weights times a power of two have a unit that is exactly that many times larger.
    """
    exponent = math.frexp(float(weights.max()))[1]
    scaled = np.ldexp(weights[weights > 0], -exponent)  # below one, so that their sum does not overflow
    mantissa, above = math.frexp(float(scaled.mean()))
    return math.ldexp(1.0, min(exponent + above - (mantissa < 0.75), 1023))


def check_total_weight(total: float) -> None:
    """Refuse weights that are all zero, given their sum."""
    if total == 0.0:
        msg = "every weight is zero, so no row counts; give at least one row a positive weight"
        raise DataError(msg)


def copy_rows(source: Block, rows: slice | Array, target: Block, into: slice | Array) -> None:
    """Copy some rows of one block over some rows of another with the same columns."""
    target.features[into] = source.features[rows]
    if target.targets is not None and source.targets is not None:
        target.targets[into] = source.targets[rows]
    if target.weights is not None and source.weights is not None:
        target.weights[into] = source.weights[rows]


def positive_int(value: Any, name: str) -> int:
    """Return `value` as an int of at least 1, or refuse it by its name."""
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = 0
    if number < 1:
        msg = f"{name} must be a whole number of at least 1; got {value!r}"
        raise ParameterError(msg)
    return number


def block_rows_for(memory_budget: int | None, bytes_per_row: int, n_rows: int) -> int:
    """Return how many rows a block may have: as many as the budget holds, and no more than there are.

    Parameters
    ----------
    memory_budget : int or None
        Bytes for one block and what is computed from it; None is `DEFAULT_MEMORY_BUDGET`, a constant, so that
        results do not depend on what else the machine is doing.
    bytes_per_row : int
        Bytes that one row takes, with all that is computed from it.
    n_rows : int
        Rows there are.
    """
    budget = DEFAULT_MEMORY_BUDGET if memory_budget is None else positive_int(memory_budget, "memory_budget")
    rows = budget // positive_int(bytes_per_row, "bytes_per_row")
    if rows == 0:
        msg = (
            f"memory_budget must hold at least one row, which takes {bytes_per_row} bytes; got {budget}; "
            "raise memory_budget or use fewer landmarks"
        )
        raise ParameterError(msg)
    return min(rows, positive_int(n_rows, "n_rows"))
