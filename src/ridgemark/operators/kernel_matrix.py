"""K: the kernel of all rows with each other; products with it evaluate n^2/2 entries and hold none."""

from bisect import bisect_right
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

import numpy as np

from ridgemark.backends import NUMPY, Floats, Indices
from ridgemark.errors import ParameterError
from ridgemark.kernels import CrossKernel, Kernel
from ridgemark.linalg import product_in_blocks
from ridgemark.operators.row_matrix import TILE_ENTRIES, Cross, RowMatrix, cross_block, tiles
from ridgemark.passes import BlockFunction, RowPasses, Summed, Task, Workspace, in_row_order
from ridgemark.rows import Block

_TILE_COLUMNS = 2048  # width assumed for a tile of K: its number of rows is then the same for any number of columns


@dataclass(frozen=True, eq=False)
class _TwoSides(Summed):
    """For some columns j of K: `K_ij V_j` for the rows i from the first of these columns on, and the sum of `K_ij'V_i`.

    Further columns hold the errors of these products that come from the rounding of kernel values.
    """

    below: list[tuple[int, Floats]]  # of blocks, with their first row
    across: Floats


class SymmetricProduct(Task):
    """The contribution of a block of rows of K to its own rows and, by symmetry, to the rows of some columns.

    V and the sizes of its entries are given along the rows.
    """

    what: ClassVar[str] = "product with K"
    cross_kernel: CrossKernel  # bound to the rows of the columns
    start: int  # the first of these rows
    vectors: Floats  # V at these rows
    sizes: Floats  # (targets,): the sum of the sizes over these rows
    tile_rows: int

    @property
    def width(self) -> int:
        return self.tile_rows

    def __call__(self, block: Block, workspace: Workspace) -> _TwoSides:
        backend, n_vectors = workspace.backend, self.vectors.shape[1]
        across, below = backend.zeros((len(self.vectors), n_vectors + len(self.sizes))), []
        first = self.start + len(self.vectors)  # rows before it are also columns, and have all their products already
        for tile in tiles(block, _TILE_COLUMNS, workspace):
            values = cross_block(self.cross_kernel, tile, workspace)
            below.append(product_in_blocks(values, self.vectors))
            others = slice(max(0, first - tile.start), None)
            if tile.start + tile.n_rows > first:
                across[:, :n_vectors] += product_in_blocks(values[others].T, tile.along[0][others])
        products = backend.xp.concat(below)
        if len(self.sizes):
            others = slice(max(0, first - block.start), None)
            errors = self.cross_kernel.entry_error(block.features)[:, None]
            across[:, n_vectors:] += errors[others, 0] @ block.along[1][others]
            products = backend.xp.concat([products, errors * self.sizes], axis=1)
        return _TwoSides([(block.start, products)], across)


def _entry_errors(cross_kernel: CrossKernel, block: Block) -> Floats:
    return cross_kernel.entry_error(block.features)


class KernelMatrix(RowMatrix):
    """K, the kernel of all rows with each other, shape (n, n)."""

    def __init__(self, passes: RowPasses, kernel: Kernel) -> None:
        self.passes, self.kernel, self.n_columns = passes, kernel, passes.source.n_rows
        self.held: Floats | None = None

    @property
    def T(self) -> Self:  # type: ignore[override]
        return self

    def hold(self, budget: int) -> Self:
        """Evaluate the matrix once and keep it, where it takes at most `budget` bytes."""
        if self.held is None and 8 * self.n_columns**2 <= budget:
            self.held = Cross(self.passes, self._bound(np.arange(self.n_columns))).hold(budget).held
        return self

    def __matmul__(self, vectors: Floats) -> Floats:
        """Return `K V`, every entry a sum of blocks of terms, so that its rounding error grows slowly with n."""
        if self.held is None:
            return self.product_and_error(vectors, np.zeros((len(vectors), 0)))[0]
        return super().__matmul__(vectors)

    @property
    def columns_at_once(self) -> int:
        """Number of columns that a streamed product evaluates in one pass."""
        return self.passes.block_rows(self._tile_rows)

    @property
    def _tile_rows(self) -> int:
        """Rows of a tile in a streamed product: as many kernel entries are held for each row of a block.

        A block has as many rows as a part of K has columns, and is worked on in tiles of 256 rows. Where the budget
        holds fewer than 256 such rows, a tile is the largest square that fits.
        """
        most = TILE_ENTRIES // _TILE_COLUMNS if self.passes.backend is NUMPY else self.n_columns
        return bisect_right(range(1, most + 1), 0, key=lambda rows: rows - self.passes.block_rows(rows))

    def product_and_error(self, vectors: Floats, sizes: Floats) -> tuple[Floats, Floats]:
        """Return `K V`, and a bound on the error of its entries that comes from the rounding of kernel values.

        With e_ij the error of `k(x_i, x_j)` relative to `sqrt(k(x_i, x_i) k(x_j, x_j))` and `sizes` the entries
        `|V_jt| sqrt(k(x_j, x_j))`, the second is `sum_j e_ij sizes_jt`, still to be multiplied by `sqrt(k(x_i, x_i))`.
        A part of the columns is evaluated at the rows from the first of these columns on, and used for both sides.
        """
        if self.passes.remote:
            raise ParameterError(
                'this needs products with the kernel of all rows, not possible on Dask; ask for kind="audit", or give '
                "the rows as an array or a file"
            )
        n, step = self.n_columns, self.columns_at_once
        result = np.zeros((n, vectors.shape[1] + sizes.shape[1]))
        for start in range(0, n, step):
            columns = np.arange(start, min(n, start + step))
            cross_kernel, summed = self._bound(columns), sizes[columns].sum(axis=0)
            task = SymmetricProduct(cross_kernel, start, vectors[columns], summed, self._tile_rows)
            products: _TwoSides = self.passes.reduce(task, along=(vectors, sizes), start=start)
            result[start:] += np.concatenate(in_row_order(products.below))
            result[columns] += products.across
            self.passes.count_entries((n - start) * len(columns))
        return result[:, : vectors.shape[1]], result[:, vectors.shape[1] :]

    def rows_product_and_error(self, indices: Indices, vectors: Floats, sizes: Floats) -> tuple[Floats, Floats]:
        """Return some rows of what `product_and_error` returns; n kernel entries each."""
        step = self.passes.block_rows(_TILE_COLUMNS)
        products, errors = [], []
        for start in range(0, len(indices), step):
            cross_kernel = self._bound(indices[start : start + step])
            products.append(Cross(self.passes, cross_kernel).T @ vectors)
            error = self.passes.map(BlockFunction("rounding", partial(_entry_errors, cross_kernel))) @ sizes
            errors.append(np.tile(error, (cross_kernel.n_landmarks, 1)))
        return np.concatenate(products), np.concatenate(errors)

    def _bound(self, indices: Indices) -> CrossKernel:
        """Return the kernel bound to some rows."""
        rows = self.passes.take(indices)
        return self.kernel.bind(rows.features, rows.indices)
