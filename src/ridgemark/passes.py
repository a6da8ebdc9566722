"""The only loops over row blocks: sums over rows, maps of rows, products with C and with K.

A pass reads every row once, in blocks whose size follows from the memory budget; it holds one block of features and
what it sums. Everything here counts its passes and the kernel entries it evaluates.
"""

from __future__ import annotations

import sys
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends.scratch import Scratch
from ridgemark.backends.threads import one_blas_thread, worker_threads
from ridgemark.distinct import DistinctRows, RowGroups, find_distinct, group_rows, row_hashes
from ridgemark.kernels import CrossKernel, Kernel
from ridgemark.linalg import product_in_blocks, symmetric
from ridgemark.moments import Moments, block_moments
from ridgemark.nystrom import NystromFactor
from ridgemark.rows import Block, RowSource, block_rows_for, row_weights, unit_of_weights
from ridgemark.rows.parallel import input_clock
from ridgemark.whitening import Whitening, plan_whitening, whiten_before

Floats = NDArray[np.float64]
Progress = Callable[[str, int, int], None]
"""Called as `progress(what, rows_done, n_rows)`."""

# Blocks beyond this many rows run no faster and fall out of the processor's cache; where they are wide, beyond half.
_LARGEST_BLOCK = 2048
_WIDE = 1024
# Blocks below this many rows spend more time on their way than on arithmetic.
_SMALLEST_BLOCK = 256
# Kernel entries that stay in the processor's cache until they have been used twice.
_TILE_ENTRIES = 2**20
# The same where two sides of a tile are used, and a small budget would make blocks for larger ones too short.
_SYMMETRIC_TILE_ENTRIES = 2**18


def progress_for(wanted: bool | Progress) -> Progress | None:
    """Return who is told how far a pass has come: nobody, the error stream, or the callable given."""
    if callable(wanted) or not wanted:
        return wanted or None

    def tell(what: str, done: int, total: int) -> None:
        end = "\n" if done == total else ""
        print(f"\r{what}: {done:,} of {total:,} rows ", end=end, file=sys.stderr, flush=True)

    return tell


@dataclass(frozen=True)
class _SymmetricProducts:
    """Of a part of the columns of K: `K_ij V_j` for the rows i from the part on, and the sum of `K_ij' V_i`."""

    below: list[Floats]
    across: Floats

    def __add__(self, other: _SymmetricProducts) -> _SymmetricProducts:
        return _SymmetricProducts(self.below + other.below, self.across + other.across)


class RowPasses:
    """Runs passes over one source and keeps count.

    Parameters
    ----------
    source : RowSource
        The rows.
    memory_budget : int, optional
        Bytes for the blocks of a pass; 1 GiB when not given.
    progress : callable, optional
        Called after every block as `progress(what, rows_done, n_rows)`.
    weight_unit : float, default=1
        Divides all weights; rows without weights weigh one over it. See `normalise_weights`.
    """

    def __init__(
        self,
        source: RowSource,
        memory_budget: int | None = None,
        progress: Progress | None = None,
        weight_unit: float = 1.0,
    ) -> None:
        self.source, self.memory_budget, self.progress, self.weight_unit = source, memory_budget, progress, weight_unit
        self.n_passes = 0
        self.n_kernel_evaluations = 0
        self.whitened = "before"
        self.scratch = Scratch()
        self._seconds = self._waited = 0.0
        self._weights: Floats | None = None
        self._distinct: DistinctRows | None = None
        self._groups: RowGroups | None = None
        self._lock = threading.Lock()

    @one_blas_thread()
    def moments(
        self, factor: NystromFactor, target_origin: Floats | None = None, scaled_ridge: float | None = None
    ) -> Moments:
        """Return the moments of the features, and of the targets where there are any, in one pass.

        Features are whitened before their products are summed: the reference. For a ridge that is known, whitening is
        left for afterwards as far as that loses no digit; what was done is left in `whitened`.
        """
        origin = np.zeros(self.source.n_targets) if target_origin is None else target_origin
        whitening = whiten_before(factor)
        if scaled_ridge is not None:
            whitening = plan_whitening(factor, self.source.n_rows, scaled_ridge)
        summed = self._sum_moments(whitening, origin)
        if whitening.loses_digits(summed):  # the landmarks were no fair sample
            whitening = whiten_before(factor)
            summed = self._sum_moments(whitening, origin)
        self.whitened = whitening.name
        return whitening.finish(summed)

    def cross_block(self, cross_kernel: CrossKernel, block: Block) -> Floats:
        """Return the kernel of a block with the landmarks, in memory the next block overwrites."""
        out = self.scratch.array("cross", (block.n_rows, cross_kernel.n_landmarks))
        return cross_kernel(block.features, out=out).astype(np.float64, copy=False)

    def feature_block(self, factor: NystromFactor, block: Block) -> Floats:
        """Return the features of a block, in memory the next block overwrites."""
        cross = self.cross_block(factor.kept_kernel, block)
        return factor.kept_kernel.backend.times_triangle_(cross, factor.triangle)

    def _sum_moments(self, whitening: Whitening, origin: Floats) -> Moments:
        kept_kernel, width = whitening.factor.kept_kernel, whitening.factor.cross_kernel.n_landmarks

        def of_block(block: Block) -> Moments:
            features = whitening.apply_(self.cross_block(kept_kernel, block))
            return block_moments(block, features, kept_kernel, origin)

        upper: Moments = self.reduce("moments", of_block, width, width)
        self.n_kernel_evaluations += width * width  # the landmark kernel
        return replace(upper, gram=symmetric(upper.gram))

    def features(self, cross_kernel: CrossKernel, whitener: Floats) -> Floats:
        """Return the features `k(x) N` of every row, for any root N."""
        width = cross_kernel.n_landmarks

        def of_block(block: Block) -> Floats:
            return self.cross_block(cross_kernel, block) @ whitener

        return self.map("features", of_block, width + whitener.shape[1], width)

    def feature_values(self, factor: NystromFactor, coefficients: Floats) -> Floats:
        """Return `B c` in one pass."""
        width = factor.cross_kernel.n_landmarks
        return self.map("features", lambda block: self.feature_block(factor, block) @ coefficients, width, width)

    def feature_sums(self, factor: NystromFactor, vectors: Floats) -> Floats:
        """Return `B'V` in one pass."""
        width = factor.cross_kernel.n_landmarks

        def of_block(block: Block) -> Floats:
            return self.feature_block(factor, block).T @ vectors[block.indices]

        total: Floats = self.reduce("features", of_block, width, width)
        return total

    def cross_matrix(self, cross_kernel: CrossKernel) -> Floats:
        """Return C, the kernel of every row with the landmarks, for who has room for it."""
        width = cross_kernel.n_landmarks
        return self.map("kernel values", lambda block: cross_kernel(block.features).astype(np.float64), width, width)

    def cross_values(self, cross_kernel: CrossKernel, coefficients: Floats) -> Floats:
        """Return `C c` in one pass, with any number of landmarks."""
        width = cross_kernel.n_landmarks

        def of_block(block: Block) -> Floats:
            return np.concatenate(
                [product_in_blocks(self.cross_block(cross_kernel, tile), coefficients) for tile in _tiles(block, width)]
            )

        return self.map("predictions", of_block, min(width, _LARGEST_BLOCK), width)

    def cross_sums(
        self,
        cross_kernel: CrossKernel,
        values: Callable[[Block, Floats], Floats],
        n_columns: int,
        held: Floats | None = None,
    ) -> Floats:
        """Return `C'V` in one pass, the rows of V for some rows being `values(rows, C of these rows)`.

        With V = C T this is the product `C'C T`. `held` is C, where it is held.
        """
        width = cross_kernel.n_landmarks

        def of_block(block: Block) -> Floats:
            total = np.zeros((width, n_columns))
            for tile in _tiles(block, width):
                if held is None:
                    cross = self.cross_block(cross_kernel, tile)
                else:
                    cross = held[tile.start : tile.start + tile.n_rows]
                total += product_in_blocks(cross.T, values(tile, cross))
            return total

        total: Floats = self.reduce("products", of_block, width, width if held is None else 0)
        return total

    def targets(self) -> Floats:
        """Return the targets of every row."""
        return self.map("targets", _block_targets, 1, 0)

    def take(self, indices: NDArray[np.intp]) -> Block:
        """Return some rows, in the precision passes compute in."""
        return self._prepared(self.source.take(indices))

    def parts(self, indices: NDArray[np.intp]) -> list[Block]:
        """Return some rows in parts, each of no more rows than may have a kernel with all others."""
        rows = self._block_rows(_LARGEST_BLOCK)
        return [self.take(indices[start : start + rows]) for start in range(0, len(indices), rows)]

    def diagonal(self, kernel: Kernel) -> Floats:
        """Return `w_i k(x_i, x_i)` for every row; without a pass where that is one number."""
        constant = kernel.constant_diagonal
        if constant is not None and self.weights() is None:
            return np.full(self.source.n_rows, constant)

        def of_block(block: Block) -> Floats:
            return row_weights(block) * kernel.diagonal(block.features, block.indices).astype(np.float64)

        return self.map("kernel diagonal", of_block, 1, 0)

    def weights(self) -> Floats | None:
        """Return the weight of every row; None where rows have none."""
        if self._weights is None and (self.source.has_weights or self.weight_unit != 1.0):
            self._weights = self.map("weights", row_weights, 1, 0)
        return self._weights

    def normalise_weights(self) -> None:
        """Take as unit of the weights the power of two nearest the mean positive weight.

        Weights are relative. In this unit a factor that is a power of two changes no bit of a result.
        """
        weights = self.weights()
        if weights is not None:
            unit = unit_of_weights(weights)
            self.weight_unit *= unit
            self._weights = weights / unit

    def row_counts(self) -> Floats:
        """Return for how many rows each row counts: its weight, one where there are none."""
        weights = self.weights()
        return np.ones(self.source.n_rows) if weights is None else weights

    @property
    def product_part(self) -> int:
        """Number of columns of K that `kernel_product` evaluates in one pass."""
        return self._block_rows(self._symmetric_width())

    def kernel_product(self, kernel: Kernel, vectors: Floats) -> Floats:
        """Return `K V` for the kernel matrix of all rows, which is never held: n^2/2 entries, n/2048 passes.

        K is symmetric: a part of its columns is evaluated against the rows from that part on, and serves both sides.
        """
        return self.kernel_product_and_error(kernel, vectors, np.zeros((len(vectors), 0)))[0]

    def kernel_product_and_error(self, kernel: Kernel, vectors: Floats, sizes: Floats) -> tuple[Floats, Floats]:
        """Return `K V`, and what the rounding of kernel values may have added to or taken from its entries.

        With e_ij the error of `k(x_i, x_j)` as a share of `sqrt(k(x_i, x_i) k(x_j, x_j))` and `sizes` the entries
        `|V_jt| sqrt(k(x_j, x_j))`, the second is `sum_j e_ij sizes_jt`, still to be multiplied by `sqrt(k(x_i, x_i))`.
        """
        width = self._symmetric_width()
        n, rows = self.source.n_rows, self._block_rows(width)
        result = np.zeros((n, vectors.shape[1] + sizes.shape[1]))
        for start in range(0, n, rows):
            part = self.take(np.arange(start, min(n, start + rows)))
            of_block = self._symmetric_products(kernel.against(part.features, part.indices), start, vectors, sizes)
            products: _SymmetricProducts = self.reduce("product with K", of_block, self._symmetric_width(), 0)
            result[start:] += np.concatenate(products.below)
            result[start : start + part.n_rows] += products.across
            self.n_kernel_evaluations += (n - start) * part.n_rows
        return result[:, : vectors.shape[1]], result[:, vectors.shape[1] :]

    def _symmetric_width(self) -> int:
        """Return how many kernel entries are held for each row of a block in a product with K.

        A block has as many rows as the part of K has columns, and is worked on in tiles of 128 rows, so 128 entries a
        row are held at a time. Where the budget holds fewer than 128 such rows, a tile is the largest square that fits.
        """
        most = _SYMMETRIC_TILE_ENTRIES // _LARGEST_BLOCK
        return bisect_right(range(1, most + 1), 0, key=lambda width: width - self._block_rows(width))

    def _symmetric_products(
        self, cross_kernel: CrossKernel, start: int, vectors: Floats, sizes: Floats
    ) -> Callable[[Block], _SymmetricProducts]:
        """Return what a block, not above the columns that begin at `start`, gives to its own rows and to theirs."""
        columns = slice(start, start + cross_kernel.n_landmarks)

        def of_block(block: Block) -> _SymmetricProducts:
            across = np.zeros((cross_kernel.n_landmarks, vectors.shape[1] + sizes.shape[1]))
            below: list[Floats] = []
            tiles = _tiles(block, _LARGEST_BLOCK, _SYMMETRIC_TILE_ENTRIES)
            for tile in tiles if block.start >= start else ():
                values = self.cross_block(cross_kernel, tile)
                rows = slice(tile.start, tile.start + tile.n_rows)
                errors = cross_kernel.entry_error(tile.features) if sizes.shape[1] else np.zeros(tile.n_rows)
                lost = errors[:, None] * sizes[columns].sum(axis=0)
                below.append(np.hstack([product_in_blocks(values, vectors[columns]), lost]))
                if block.start > start:
                    across[:, : vectors.shape[1]] += product_in_blocks(values.T, vectors[rows])
                    across[:, vectors.shape[1] :] += errors @ sizes[rows]
            return _SymmetricProducts(below, across)

        return of_block

    def kernel_matrix(self, kernel: Kernel) -> Floats:
        """Return K: n^2 numbers, for who has room for them."""
        n = self.source.n_rows
        everyone = self.take(np.arange(n))
        cross_kernel = kernel.against(everyone.features, everyone.indices)
        return self.map("kernel matrix", lambda block: cross_kernel(block.features).astype(np.float64), n, n)

    def cross_product(self, cross_kernel: CrossKernel, vectors: Floats) -> Floats:
        """Return `C'V` for one vector entry, or row, of each row, in one pass."""

        def values(rows: Block, _: Floats) -> Floats:
            return vectors[rows.start : rows.start + rows.n_rows]

        return self.cross_sums(cross_kernel, values, vectors.shape[1])

    def distinct_rows(self) -> DistinctRows:
        """Find equal rows by a 64-bit hash of their bits.

        Two different rows fall together with probability n^2/2^64. The result is kept: a second call takes no pass.
        """
        if self._distinct is None:
            self._distinct = find_distinct(self.map("distinct rows", row_hashes, 1, 0), self.weights())
        return self._distinct

    def row_groups(self) -> RowGroups:
        """Return the groups of equal rows, with one pass over the targets where there are such; the result is kept."""
        if self._groups is None:
            distinct = self.distinct_rows()
            self._groups = group_rows(distinct, self.row_counts(), self.targets() if distinct.has_repeats else None)
        return self._groups

    def map(self, what: str, fn: Callable[[Block], NDArray[Any]], width: int, evaluated: int) -> NDArray[Any]:
        """Map every block to one row of results per row; `width` columns are held, `evaluated` kernel entries a row."""
        with self._count(evaluated):
            return self.source.map_blocks(self._counted(what, fn), self._block_rows(width))

    def reduce(self, what: str, fn: Callable[[Block], Any], width: int, evaluated: int) -> Any:
        """Sum the function over all blocks, in row order; `width` and `evaluated` as for `map`."""
        with self._count(evaluated):
            return self.source.reduce_blocks(self._counted(what, fn), self._block_rows(width))

    @property
    def waiting_share(self) -> float:
        """The share of the passes' time in which the workers waited for rows, in [0, 1]."""
        return min(1.0, self._waited / self._seconds) if self._seconds > 0 else 0.0

    @contextmanager
    def _count(self, evaluated: int) -> Iterator[None]:
        seconds, waited = input_clock.seconds, input_clock.waited
        yield
        self._seconds += input_clock.seconds - seconds
        self._waited += input_clock.waited - waited
        self.n_passes += 1
        self.n_kernel_evaluations += evaluated * self.source.n_rows

    def _counted(self, what: str, fn: Callable[[Block], Any]) -> Callable[[Block], Any]:
        if self.progress is None:
            return lambda block: fn(self._prepared(block))
        done = 0

        def run(block: Block) -> Any:
            nonlocal done
            result = fn(self._prepared(block))
            with self._lock:  # blocks may run in several threads
                done += block.n_rows
                self.progress(what, done, self.source.n_rows)  # type: ignore[misc]
            return result

        return run

    def _prepared(self, block: Block) -> Block:
        """Return the block with features in float64, and weights in their unit.

        Single precision is how rows are stored, not how they are worked on: a kernel matrix has small eigenvalues that
        matter, and single precision loses those below 1e-7 of the largest.
        """
        if block.features.dtype != np.float64:
            block = replace(block, features=block.features.astype(np.float64))
        if self.weight_unit != 1.0:
            block = replace(block, weights=row_weights(block) / self.weight_unit)
        return block

    def _block_rows(self, width: int) -> int:
        # A block holds its rows twice (as read, and scaled) and up to four arrays of the width it is mapped to.
        bytes_per_row = 8 * (2 * self.source.n_features + 4 * width + self.source.n_targets)
        n, workers = self.source.n_rows, worker_threads()
        even = max(_SMALLEST_BLOCK, -(-n // (2 * workers)))  # so that no thread is idle where rows are few
        largest = _LARGEST_BLOCK if width <= _WIDE else _LARGEST_BLOCK // 2
        return min(even, largest, block_rows_for(self.memory_budget, (1 + workers) * bytes_per_row, n))


def _tiles(block: Block, width: int, entries: int = _TILE_ENTRIES) -> Iterator[Block]:
    """Yield the block in parts whose kernel with `width` columns stays in the processor's cache."""
    rows = max(16, entries // max(width, 1))
    for first in range(0, block.n_rows, rows):
        yield block.part(first, min(first + rows, block.n_rows))


def _block_targets(block: Block) -> Floats:
    assert block.targets is not None  # fits have targets
    return block.targets
