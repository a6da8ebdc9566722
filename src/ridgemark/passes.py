"""The only loops over row blocks: sums over rows, maps of rows, products with C and with K.

A pass reads every row once, in blocks whose size follows from the memory budget; it holds one block of features and
what it sums. Everything here counts its passes and the kernel entries it evaluates.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ridgemark.backends.scratch import Scratch
from ridgemark.backends.threads import one_blas_thread, worker_threads
from ridgemark.kernels import CrossKernel, Kernel
from ridgemark.linalg import congruence, largest_eigenvalue, symmetric
from ridgemark.nystrom import NystromFactor
from ridgemark.rows import Block, RowSource, block_rows_for
from ridgemark.rows.parallel import input_clock

Floats = NDArray[np.float64]
Progress = Callable[[str, int, int], None]
"""Called as `progress(what, rows_done, n_rows)`."""

# Blocks beyond this many rows run no faster and fall out of the processor's cache.
_LARGEST_BLOCK = 2048
# Blocks below this many rows spend more time on their way than on arithmetic.
_SMALLEST_BLOCK = 256
# Relative difference of sums over the same rows: rounding, and what single precision does to stored rows.
_SAME = 1e-6
# Kernel entries that stay in the processor's cache until they have been used twice.
_TILE_ENTRIES = 2**18
# Relative error of late whitening that no result shows.
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True)
class Moments:
    """Weighted sums over rows, from which every ridge's solution follows; moments of disjoint rows add.

    Targets are measured from `target_origin`, a constant near their mean, so that large offsets cost no digits.
    """

    n_rows: int  # of positive weight
    total_weight: float
    gram: Floats  # B' W B
    cross: Floats  # B' W y
    feature_sum: Floats  # B' w
    target_sum: Floats  # y' w
    target_square: Floats  # y' W y
    trace_kernel: float  # tr W K
    trace_residual: float  # tr W (K - L)

    def without_products(self) -> Moments:
        """Return the sums without the Gram matrix, the one that takes memory."""
        return replace(self, gram=np.zeros((0, 0)))

    def __add__(self, other: Moments) -> Moments:
        return Moments(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})

    def __iadd__(self, other: Moments) -> Moments:
        """Add into the Gram matrix that is there."""
        np.add(self.gram, other.gram, out=self.gram)
        return replace(self.without_products() + other.without_products(), gram=self.gram)


@dataclass(frozen=True)
class DistinctRows:
    """Which rows are equal to which: the candidates for landmarks.

    Candidates are in an order that depends on the rows' values and not on their order, so that a draw by position
    does not either.
    """

    indices: NDArray[np.intp]  # (m,): the first row of each kind
    kind: NDArray[np.intp]  # (n,): position of a row's kind among the candidates; -1 for a row of weight zero

    def __len__(self) -> int:
        return len(self.indices)

    def totals(self, values: Floats) -> Floats:
        """Sum one value per row over each kind: what m equal rows have together is what one of weight m has."""
        present = slice(None) if self.kind.min() >= 0 else self.kind >= 0
        # astype: counts of no rows at all would be integers.
        return np.bincount(self.kind[present], weights=values[present], minlength=len(self)).astype(float, copy=False)


def same_rows(one: Moments, other: Moments) -> bool:
    """Tell rows and targets by their sums: whether they are the same up to rounding.

    Every sum is compared in units of what it can reach at most.
    """
    if one.n_rows != other.n_rows or not np.isclose(one.total_weight, other.total_weight, rtol=1e-9):
        return False
    size, trace = other.total_weight, other.trace_kernel
    reach = np.sqrt(other.target_square)
    pairs = (
        (one.feature_sum, other.feature_sum, np.sqrt(size * trace)),
        (one.cross, other.cross, np.sqrt(trace) * reach),
        (one.target_sum, other.target_sum, np.sqrt(size) * reach),
    )
    return all(bool((np.abs(a - b) <= _SAME * most).all()) for a, b, most in pairs)


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
    """

    def __init__(self, source: RowSource, memory_budget: int | None = None, progress: Progress | None = None) -> None:
        self.source = source
        self.memory_budget = memory_budget
        self.progress = progress
        self.n_passes = 0
        self.n_kernel_evaluations = 0
        self.whitened = "before"
        self.scratch = Scratch()
        self._seconds = self._waited = 0.0
        self._weights: Floats | None = None
        self._lock = threading.Lock()

    @one_blas_thread()
    def moments(
        self, factor: NystromFactor, target_origin: Floats | None = None, scaled_ridge: float | None = None
    ) -> Moments:
        """Return the moments of the features, and of the targets where there are any, in one pass.

        Features are whitened before their products are summed: the reference. Summing the products of kernel values
        and whitening the sum takes a third of the work, and loses digits to the condition of W; it is done where its
        error relative to the smallest ridge in use, `eps |C'C| |W^-1| / scaled_ridge`, is negligible. What was done is
        left in `whitened`.
        """
        origin = np.zeros(self.source.n_targets) if target_origin is None else target_origin
        if scaled_ridge is not None:
            # Judged before the pass as if the landmarks were a fair sample, and again by what was summed.
            share = self.source.n_rows / factor.cross_kernel.n_landmarks
            expected = share * float(np.linalg.norm(factor.landmark_kernel)) ** 2
            allowed = _largest_gram(factor, scaled_ridge, expected)
            if expected <= allowed:
                plain = self._sum_moments(factor, False, origin)
                if float(np.linalg.norm(plain.gram)) <= allowed:
                    self.whitened = "after"
                    return _whiten(plain, factor)
        self.whitened = "before"
        return self._sum_moments(factor, True, origin)

    def cross_block(self, cross_kernel: CrossKernel, block: Block) -> Floats:
        """Return the kernel of a block with the landmarks, in memory the next block overwrites."""
        out = self.scratch.array("cross", (block.n_rows, cross_kernel.n_landmarks))
        return cross_kernel(block.features, out=out).astype(np.float64, copy=False)

    def feature_block(self, factor: NystromFactor, block: Block) -> Floats:
        """Return the features of a block, in memory the next block overwrites."""
        cross = self.cross_block(factor.kept_kernel, block)
        return factor.kept_kernel.backend.times_triangle_(cross, factor.triangle)

    def _sum_moments(self, factor: NystromFactor, whitened: bool, origin: Floats) -> Moments:
        width = factor.cross_kernel.n_landmarks

        def of_block(block: Block) -> Moments:
            features = self.feature_block(factor, block) if whitened else self.cross_block(factor.cross_kernel, block)
            return _block_moments(block, features, factor.cross_kernel, origin)

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
                [self.cross_block(cross_kernel, tile) @ coefficients for tile in _tiles(block, width)]
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
                total += cross.T @ values(tile, cross)
            return total

        total: Floats = self.reduce("products", of_block, width, width if held is None else 0)
        return total

    def targets(self) -> Floats:
        """Return the targets of every row."""
        return self.map("targets", _block_targets, 1, 0)

    def take(self, indices: NDArray[np.intp]) -> Block:
        """Return some rows, in the precision passes compute in."""
        return widened(self.source.take(indices))

    def diagonal(self, kernel: Kernel) -> Floats:
        """Return `w_i k(x_i, x_i)` for every row; without a pass where that is one number."""
        constant = kernel.constant_diagonal
        if constant is not None and not self.source.has_weights:
            return np.full(self.source.n_rows, constant)

        def of_block(block: Block) -> Floats:
            return row_weights(block) * kernel.diagonal(block.features, block.indices).astype(np.float64)

        return self.map("kernel diagonal", of_block, 1, 0)

    def weights(self) -> Floats | None:
        """Return the weight of every row; None where rows have none."""
        if self._weights is None and self.source.has_weights:
            self._weights = self.map("weights", row_weights, 1, 0)
        return self._weights

    def row_counts(self) -> Floats:
        """Return for how many rows each row counts: its weight, one where there are none."""
        weights = self.weights()
        return np.ones(self.source.n_rows) if weights is None else weights

    def kernel_product(self, kernel: Kernel, vectors: Floats) -> Floats:
        """Return `K V` for the kernel matrix of all rows, which is never held: n^2/2 entries, n/2048 passes.

        K is symmetric: a part of its columns is evaluated against the rows from that part on, and serves both sides.
        """
        width = _TILE_ENTRIES // _LARGEST_BLOCK  # a block holds a tile, as wide as there are rows in a block
        n, rows = self.source.n_rows, self._block_rows(width)
        result = np.zeros((n, vectors.shape[1]))
        for start in range(0, n, rows):
            part = self.take(np.arange(start, min(n, start + rows)))
            of_block = self._symmetric_products(kernel.against(part.features, part.indices), start, vectors)
            products: _SymmetricProducts = self.reduce("product with K", of_block, width, 0)
            result[start:] += np.concatenate(products.below)
            result[start : start + part.n_rows] += products.across
            self.n_kernel_evaluations += (n - start) * part.n_rows
        return result

    def _symmetric_products(
        self, cross_kernel: CrossKernel, start: int, vectors: Floats
    ) -> Callable[[Block], _SymmetricProducts]:
        """Return what a block, not above the columns that begin at `start`, gives to its own rows and to theirs."""
        columns = slice(start, start + cross_kernel.n_landmarks)

        def of_block(block: Block) -> _SymmetricProducts:
            across = np.zeros((cross_kernel.n_landmarks, vectors.shape[1]))
            below: list[Floats] = []
            for tile in _tiles(block, _LARGEST_BLOCK) if block.start >= start else ():
                values = self.cross_block(cross_kernel, tile)
                below.append(values @ vectors[columns])
                if block.start > start:
                    across += values.T @ vectors[tile.start : tile.start + tile.n_rows]
            return _SymmetricProducts(below, across)

        return of_block

    def kernel_matrix(self, kernel: Kernel) -> Floats:
        """Return K: n^2 numbers, for who has room for them."""
        n = self.source.n_rows
        everyone = self.take(np.arange(n))
        cross_kernel = kernel.against(everyone.features, everyone.indices)
        return self.map("kernel matrix", lambda block: cross_kernel(block.features).astype(np.float64), n, n)

    def kernel_rows_product(self, kernel: Kernel, indices: NDArray[np.intp], vectors: Floats) -> Floats:
        """Return the rows of `K V` asked for; n kernel entries each."""
        rows = self._block_rows(_LARGEST_BLOCK)
        parts = [self.take(indices[start : start + rows]) for start in range(0, len(indices), rows)]
        return np.concatenate(
            [self.cross_product(kernel.against(part.features, part.indices), vectors) for part in parts]
        )

    def cross_product(self, cross_kernel: CrossKernel, vectors: Floats) -> Floats:
        """Return `C'V` for one vector entry, or row, of each row, in one pass."""

        def values(rows: Block, _: Floats) -> Floats:
            return vectors[rows.start : rows.start + rows.n_rows]

        return self.cross_sums(cross_kernel, values, vectors.shape[1])

    def distinct_rows(self) -> DistinctRows:
        """Find equal rows by a 64-bit hash of their bits.

        Two different rows fall together with probability n^2/2^64; one of them then merely cannot be a landmark.
        """
        hashes = self.map("distinct rows", _row_hashes, 1, 0)
        weights = self.weights()
        present = slice(None) if weights is None else np.flatnonzero(weights)
        first, group = _groups(hashes[present])
        if weights is None:
            return DistinctRows(first, group)
        kind = np.full(self.source.n_rows, -1, dtype=np.intp)
        kind[present] = group
        return DistinctRows(np.flatnonzero(weights)[first], kind)

    def constant_columns(self, like: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the columns with one value in all rows; a pass only where these few rows do not rule it out."""
        few = np.asarray(_dense(self.source.take(like).features))
        candidates = np.flatnonzero((few == few[:1]).all(axis=0))
        if not len(candidates) or len(few) == self.source.n_rows:
            return candidates

        def of_block(block: Block) -> NDArray[np.intp]:
            return (_dense(block.features[:, candidates]) != few[0, candidates]).sum(axis=0)

        return candidates[self.reduce("constant columns", of_block, len(candidates), 0) == 0]

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
            return lambda block: fn(widened(block))
        done = 0

        def run(block: Block) -> Any:
            nonlocal done
            result = fn(widened(block))
            with self._lock:  # blocks may run in several threads
                done += block.n_rows
                self.progress(what, done, self.source.n_rows)  # type: ignore[misc]
            return result

        return run

    def _block_rows(self, width: int) -> int:
        # A block holds its rows twice (as read, and scaled) and up to four arrays of the width it is mapped to.
        bytes_per_row = 8 * (2 * self.source.n_features + 4 * width + self.source.n_targets)
        n, workers = self.source.n_rows, worker_threads()
        even = max(_SMALLEST_BLOCK, -(-n // (2 * workers)))  # so that no thread is idle where rows are few
        return min(even, _LARGEST_BLOCK, block_rows_for(self.memory_budget, (1 + workers) * bytes_per_row, n))


def _tiles(block: Block, width: int) -> Iterator[Block]:
    """Yield the block in parts whose kernel with `width` columns stays in the processor's cache."""
    rows = max(16, _TILE_ENTRIES // width)
    for first in range(0, block.n_rows, rows):
        yield block.part(first, min(first + rows, block.n_rows))


def widened(block: Block) -> Block:
    """Return the block with features in float64: single precision is how rows are stored, not how they are worked on.

    A kernel matrix has small eigenvalues that matter, and single precision loses those below 1e-7 of the largest.
    """
    if block.features.dtype == np.float64:
        return block
    return replace(block, features=block.features.astype(np.float64))


def _dense(features: Any) -> Any:
    return features.toarray() if sparse.issparse(features) else features


def row_weights(block: Block) -> Floats:
    """Return the block's weights, ones where it has none."""
    return np.ones(block.n_rows) if block.weights is None else block.weights


def _block_targets(block: Block) -> Floats:
    assert block.targets is not None  # fits have targets
    return block.targets


def _largest_gram(factor: NystromFactor, scaled_ridge: float, expected: float) -> float:
    """Return the largest |C'C| for which `eps |C'C| |W^-1| / scaled_ridge` is negligible; -1 where no such size is.

    The longest row of the triangle is a lower bound on |W^-1| that costs nothing and mostly suffices to see that the
    size expected is too large.
    """
    if factor.n_dropped or not 1e-100 < float(abs(factor.landmark_kernel).max()) < 1e100:
        return -1.0
    largest = _NEGLIGIBLE * scaled_ridge / float(np.finfo(np.float64).eps)
    at_least = float(np.einsum("ij,ij->i", factor.triangle, factor.triangle).max())
    if expected * at_least > largest:
        return -1.0
    return largest / largest_eigenvalue(factor.triangle)


def _whiten(plain: Moments, factor: NystromFactor) -> Moments:
    """Return the moments of whitened features from those of the kernel values."""
    gram = congruence(plain.gram[np.ix_(factor.kept, factor.kept)], factor.triangle)
    return replace(
        plain,
        gram=gram,
        cross=factor.triangle.T @ plain.cross[factor.kept],
        feature_sum=factor.triangle.T @ plain.feature_sum[factor.kept],
        trace_residual=max(0.0, plain.trace_kernel - float(np.trace(gram))),
    )


def _block_moments(block: Block, features: Floats, cross_kernel: CrossKernel, origin: Floats) -> Moments:
    weights = row_weights(block)
    diagonal = cross_kernel.kernel.diagonal(block.features, block.indices).astype(np.float64)
    residual = np.maximum(diagonal - np.einsum("ij,ij->i", features, features), 0.0)
    targets = np.empty((block.n_rows, 0)) if block.targets is None else block.targets - origin
    feature_sum = features.T @ weights
    if block.weights is not None:
        scale = np.sqrt(weights)[:, None]
        features *= scale  # scratch memory: nobody else's
        weighted_targets = targets * scale
    else:
        weighted_targets = targets
    return Moments(
        n_rows=int(np.count_nonzero(weights)),
        total_weight=float(weights.sum()),
        gram=cross_kernel.backend.gram(features),
        cross=features.T @ weighted_targets,
        feature_sum=feature_sum,
        target_sum=targets.T @ weights,
        target_square=(targets**2).T @ weights,
        trace_kernel=float(weights @ diagonal),
        trace_residual=float(weights @ residual),
    )


def _groups(hashes: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first row of each hash, in the hashes' order, and every row's position among them.

    What `np.unique` does, in half its memory: for a long file these are the largest arrays there are.
    """
    order = np.argsort(hashes, kind="stable")
    fresh = np.ones(len(order), dtype=bool)
    ranked = hashes[order]
    np.not_equal(ranked[1:], ranked[:-1], out=fresh[1:])
    del ranked
    group = np.empty(len(order), dtype=np.intp)
    group[order] = np.cumsum(fresh)
    group -= 1
    return order[fresh], group


def _row_hashes(block: Block) -> NDArray[np.uint64]:
    """Hash each row: multiply and xor-shift every value, summed with odd multipliers; a zero adds nothing."""
    features = block.features
    multipliers = np.random.default_rng(0).integers(0, 2**63, features.shape[1], dtype=np.uint64) * 2 + 1
    if sparse.issparse(features):
        running = np.zeros(len(features.data) + 1, dtype=np.uint64)
        np.cumsum(_mixed(features.data, multipliers[features.indices]), out=running[1:])
        return running[features.indptr[1:]] - running[features.indptr[:-1]]
    total = np.zeros(block.n_rows, dtype=np.uint64)
    for column, multiplier in zip(features.T, multipliers, strict=True):
        total += _mixed(column, multiplier)
    return total


def _mixed(values: Floats, multiplier: Any) -> NDArray[np.uint64]:
    # Adding zero turns -0.0 into 0.0, so that equal numbers have equal bits.
    bits = (values + 0.0).view(np.uint64)
    mixed = (bits ^ (bits >> np.uint64(32))) * multiplier
    hashed: NDArray[np.uint64] = (mixed ^ (mixed >> np.uint64(29))) * multiplier
    return hashed
