"""K: the kernel of all rows with each other; products with it evaluate n^2/2 entries and hold none."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends.threads import all_blas_threads
from ridgemark.kernels import CrossKernel, Kernel
from ridgemark.linalg import product_in_blocks
from ridgemark.operators.base import RowOperator
from ridgemark.operators.blocks import cross_block, tiles
from ridgemark.operators.cross import Cross
from ridgemark.passes import RowPasses, Task, Workspace
from ridgemark.rows import Block, row_weights

Floats = NDArray[np.float64]

# Smaller than the tiles of C: two sides of a tile are used, and larger ones would make blocks too short in a small
# budget.
_TILE_ENTRIES = 2**18
_TILE_COLUMNS = 2048


@dataclass(frozen=True, eq=False)
class _TwoSides:
    """Of some columns j of K: `K_ij V_j` for the rows i below the first of these columns, and the sum of `K_ij'V_i`."""

    below: list[Floats]
    across: Floats

    def __add__(self, other: _TwoSides) -> _TwoSides:
        return _TwoSides(self.below + other.below, self.across + other.across)


@dataclass(frozen=True, eq=False)
class SymmetricProduct(Task):
    """What a block of rows of K gives to its own rows and, by symmetry, to the rows of some columns."""

    what: ClassVar[str] = "product with K"
    cross_kernel: CrossKernel  # bound to the rows of the columns
    start: int  # the first of these rows
    vectors: Floats  # V at these rows
    tile_rows: int

    @property
    def width(self) -> int:
        return self.tile_rows

    def __call__(self, block: Block, workspace: Workspace) -> _TwoSides:
        across, below = np.zeros_like(self.vectors), []
        for tile in tiles(block, _TILE_COLUMNS, _TILE_ENTRIES):
            values = cross_block(self.cross_kernel, tile, workspace)
            below.append(product_in_blocks(values, self.vectors))
            if block.start > self.start:
                across += values.T @ tile.along[0]
        return _TwoSides(below, across)


@dataclass(frozen=True, eq=False)
class Diagonal(Task):
    """`w_i k(x_i, x_i)`."""

    what: ClassVar[str] = "kernel diagonal"
    kernel: Kernel

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        weighted: Floats = row_weights(block) * self.kernel.diagonal(block.features, block.indices).astype(np.float64)
        return weighted


def kernel_diagonal(passes: RowPasses, kernel: Kernel) -> Floats:
    """Return `w_i k(x_i, x_i)` for every row; without a pass where that is one number."""
    constant = kernel.constant_diagonal
    if constant is not None and not passes.source.has_weights:
        return np.full(passes.source.n_rows, constant)
    return passes.map(Diagonal(kernel))


class KernelMatrix(RowOperator):
    """K, the kernel of all rows with each other, shape (n, n)."""

    def __init__(self, passes: RowPasses, kernel: Kernel) -> None:
        super().__init__(passes)
        self.kernel = kernel

    @property
    def shape(self) -> tuple[int, int]:
        n = self.passes.source.n_rows
        return n, n

    def __matmul__(self, vectors: Floats) -> Floats:
        """Return `K V`, every entry a sum of blocks of terms, so that its rounding error grows slowly with n."""
        if self.held is None:
            return self._product(vectors)
        with all_blas_threads():
            return product_in_blocks(self.held, vectors)

    @property
    def columns_at_once(self) -> int:
        """Number of columns that a streamed product evaluates in one pass."""
        return self.passes.block_rows(self._tile_rows)

    @property
    def _tile_rows(self) -> int:
        """Rows of a tile in a streamed product: as many kernel entries are held for each row of a block.

        A block has as many rows as a part of K has columns, and is worked on in tiles of 128 rows. Where the budget
        holds fewer than 128 such rows, a tile is the largest square that fits.
        """
        most = _TILE_ENTRIES // _TILE_COLUMNS
        return bisect_right(range(1, most + 1), 0, key=lambda rows: rows - self.passes.block_rows(rows))

    def rows_product(self, indices: NDArray[np.intp], vectors: Floats) -> Floats:
        """Return some rows of `K V`; n kernel entries each."""
        step = self.passes.block_rows(_TILE_COLUMNS)
        parts = (indices[start : start + step] for start in range(0, len(indices), step))
        return np.concatenate([self._bound(part).T @ vectors for part in parts])

    def _bound(self, indices: NDArray[np.intp]) -> Cross:
        """Return some columns of K."""
        rows = self.passes.take(indices)
        return Cross(self.passes, self.kernel.against(rows.features, rows.indices))

    def _evaluate(self) -> Floats:
        columns = self._bound(np.arange(self.shape[0])).hold(self.n_bytes)
        assert columns.held is not None
        return columns.held

    def _product(self, vectors: Floats) -> Floats:
        """Evaluate some columns against the rows from the first of these columns on; they serve both sides of K."""
        n, step = self.shape[0], self.columns_at_once
        result = np.zeros((n, vectors.shape[1]))
        for start in range(0, n, step):
            columns = np.arange(start, min(n, start + step))
            task = SymmetricProduct(self._bound(columns).cross_kernel, start, vectors[columns], self._tile_rows)
            products: _TwoSides = self.passes.reduce(task, along=(vectors,), start=start)
            result[start:] += np.concatenate(products.below)
            result[columns] += products.across
            self.passes.count_entries((n - start) * len(columns))
        return result

    _transposed_product = _product
