"""C and B: kernel values and features of one block of rows, and of all rows; streamed, or held in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from ridgemark.backends import NUMPY, Backend, Floats, all_blas_threads, backend_of
from ridgemark.errors import DataError
from ridgemark.kernels import CrossKernel, Kernel
from ridgemark.linalg import LANDMARKS_AT_ONCE, check_range, product_in_blocks
from ridgemark.operators.factor import NystromFactor
from ridgemark.passes import BlockFunction, RowPasses, Task, Workspace
from ridgemark.rows import Block, row_weights

TILE_ENTRIES = 2**19
"""Kernel entries that stay in the processor's cache until they have been used twice."""


class CrossTask(Task):
    """A task that evaluates the kernel with the landmarks."""

    cross_kernel: CrossKernel

    @property
    def kernel_entries(self) -> int:
        return self.cross_kernel.n_landmarks


class FeatureTask(Task):
    """A task that evaluates features."""

    factor: NystromFactor

    @property
    def kernel_entries(self) -> int:
        return self.factor.cross_kernel.n_landmarks


def cross_block(cross_kernel: CrossKernel, block: Block, workspace: Workspace) -> Floats:
    """Return the kernel of a block with the landmarks, in memory that the next block overwrites."""
    out = workspace.array("cross", (block.n_rows, cross_kernel.n_landmarks))
    return workspace.backend.double(cross_kernel(block.features, out=out))


def feature_block(factor: NystromFactor, block: Block, workspace: Workspace) -> Floats:
    """Return the features `b(x) = T'k(x)` of a block, in memory that the next block overwrites."""
    if block.held is not None:
        out = workspace.array("cross", block.held.shape)
        out[...] = block.held
        return out
    cross = cross_block(factor.kept_kernel, block, workspace)
    return factor.kept_kernel.backend.times_triangle_(cross, factor.triangle)


def diagonal_block(cross_kernel: CrossKernel, block: Block) -> Floats:
    """Return `k(x_i, x_i)` for the rows of a block."""
    return cross_kernel.backend.double(cross_kernel.kernel.diagonal(block.features, block.indices))


def tiles(block: Block, width: int, workspace: Workspace) -> Iterator[Block]:
    """Return the block in parts whose kernel with `width` columns stays in the processor's cache; whole on a device."""
    return block.parts(max(16, TILE_ENTRIES // max(width, 1)) if workspace.backend is NUMPY else max(block.n_rows, 1))


def kernel_diagonal(passes: RowPasses, kernel: Kernel) -> Floats:
    """Return `w_i k(x_i, x_i)` for every row; without a pass where that is a constant."""
    constant = kernel.constant_diagonal
    if constant is not None and passes.weights() is None:
        return np.full(passes.source.n_rows, constant)
    return passes.map(BlockFunction("kernel diagonal", partial(_weighted_diagonal, kernel)))


def _weighted_diagonal(kernel: Kernel, block: Block) -> Floats:
    return row_weights(block) * kernel.diagonal(block.features, block.indices).astype(np.float64)


def check_diagonal(weights: Floats) -> Floats:
    """Return the kernel's diagonal; raise an error where it is negative, or zero for all rows."""
    check_range(weights)
    if weights.min(initial=0.0) < 0:
        raise DataError(
            "the kernel is negative for a row with itself, so it is not positive semidefinite; check the kernel"
        )
    if not weights.max(initial=0.0) > 0:
        raise DataError(
            "the kernel is zero for every row with itself, so no row can be a landmark; "
            "check the kernel and that the rows are not all zero"
        )
    return weights


_STRIP, _FEW_COLUMNS = 16, 12  # rows of a strip of `transposed_product`, and columns up to which strips are faster
_WIDEST_TILE = 2048  # largest width counted for a tile, so that blocks of a wide matrix are not too short


class MatrixTask(Task):
    """A task that evaluates the rows of a matrix A for a block, in memory that the next block overwrites."""

    what: ClassVar[str] = "products"
    evaluate: Callable[[Block, Workspace], Floats]
    n_columns: int

    @property
    def kernel_entries(self) -> int:
        return self.n_columns


class MatrixValues(MatrixTask):
    """`A V`, with products in the precision of A."""

    what: ClassVar[str] = "predictions"
    vectors: Floats

    @property
    def width(self) -> int:
        return min(self.n_columns, _WIDEST_TILE)

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        parts = (self.evaluate(tile, workspace) for tile in tiles(block, self.n_columns, workspace))
        return workspace.backend.xp.concat([self._product(part, workspace.backend) for part in parts])

    def _product(self, part: Floats, backend: Backend) -> Floats:
        if backend.precision(part) == np.float64:
            return backend.product_in_blocks(part, self.vectors, LANDMARKS_AT_ONCE)
        return backend.double(part @ padded(self.vectors, part.dtype))[:, : self.vectors.shape[1]]


class MatrixSums(MatrixTask):
    """`A'V`, V given along the rows, with products in the precision of A and sums over tiles in double precision."""

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        parts = tiles(block, self.n_columns, workspace)
        sums = [self._product(self.evaluate(tile, workspace), tile.along[0], workspace.backend) for tile in parts]
        return np.sum(sums, axis=0) if workspace.backend is NUMPY else sums[0]

    def _product(self, part: Floats, values: Floats, backend: Backend) -> Floats:
        if backend.precision(part) == np.float64:
            return product_in_blocks(part.T, values)
        return backend.double(transposed_product(part, values))


class MatrixNormal(MatrixTask):
    """`A'W (A V - 1 offset')`."""

    vectors: Floats
    offset: Floats

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        total = workspace.backend.zeros(self.vectors.shape)
        for tile in tiles(block, self.n_columns, workspace):
            part = self.evaluate(tile, workspace)
            total += part.T @ (row_weights(tile)[:, None] * (part @ self.vectors - self.offset))
        return total


class MatrixEntries(MatrixTask):
    """A itself."""

    what: ClassVar[str] = "kernel values"

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        values = self.evaluate(block, workspace)
        return values.copy() if isinstance(values, np.ndarray) else values


def padded(columns: Floats, precision: Any) -> Floats:
    """Return columns in a precision, several with zeros up to a multiple of four: BLAS multiplies these faster."""
    backend, (n, t) = backend_of(columns), columns.shape
    missing = -t % 4 if t > 1 else 0
    columns = backend.xp.concat([columns, backend.zeros((n, missing))], axis=1) if missing else columns
    return backend.xp.astype(columns, precision, copy=False)


def transposed_product(part: Floats, columns: Floats) -> Floats:
    """Return `A'V` in the precision of A, computed as `(V'A)'`: BLAS multiplies a few columns faster from the left.

    On the host it is the sum over strips of 16 rows: BLAS copies larger ones first, which takes as long as the product.
    """
    right, t = padded(columns, part.dtype), columns.shape[1]
    if not (isinstance(part, np.ndarray) and 1 < right.shape[1] <= _FEW_COLUMNS):
        return (right.T @ part)[:t].T
    whole = len(part) - len(part) % _STRIP
    left, strips = (values[:whole].reshape(-1, _STRIP, values.shape[1]) for values in (right, part))
    total = np.matmul(left.transpose(0, 2, 1), strips).sum(axis=0)
    total += right[whole:].T @ part[whole:]
    return total[:t].T


@dataclass(eq=False)
class RowMatrix:
    """An (n, m) matrix A with one row for each row of the data; a product takes one pass, or none where it is held."""

    __array_ufunc__ = None  # an array on the left of `@` is an error, not an array of operators

    passes: RowPasses
    evaluate: Callable[[Block, Workspace], Floats]
    n_columns: int
    held: Any = field(default=None, init=False)  # an array, or a `HeldMatrix` on a device

    def hold(self, budget: int) -> Self:
        """Evaluate the matrix once and keep it, where it takes at most `budget` bytes."""
        fits = 8 * self.passes.source.n_rows * self.n_columns <= budget and self.passes.holds(self.n_columns)
        if self.held is None and fits:
            self.held = self.passes.map(MatrixEntries(self.evaluate, self.n_columns))
        return self

    def __matmul__(self, vectors: Floats) -> Floats:
        """Return `A V`."""
        if self.held is None:
            return self.passes.map(MatrixValues(self.evaluate, self.n_columns, vectors))
        if not isinstance(self.held, np.ndarray):
            return self.held.times(vectors)
        with all_blas_threads():
            return product_in_blocks(self.held, vectors)

    @property
    def T(self) -> Transposed:
        """The transpose, for `A.T @ V`."""
        return Transposed(self)

    def normal(self, vectors: Floats, offset: Floats) -> Floats:
        """Return `A'W (A V - 1 offset')` in one pass; with an offset of `m'V`, m the mean of A, the centred product."""
        if self.held is None:
            return self.passes.reduce(MatrixNormal(self.evaluate, self.n_columns, vectors, offset))
        if not isinstance(self.held, np.ndarray):
            return self.held.normal(vectors, offset)
        with all_blas_threads():
            values = self.held @ vectors - offset
            values *= self.passes.row_counts()[:, None]
            return self.held.T @ values


@dataclass(frozen=True, eq=False)
class Transposed:
    """The transpose of a matrix over rows."""

    __array_ufunc__ = None
    matrix: RowMatrix

    def __matmul__(self, vectors: Floats) -> Floats:
        matrix = self.matrix
        if matrix.held is None:
            return matrix.passes.reduce(MatrixSums(matrix.evaluate, matrix.n_columns), along=(vectors,))
        if not isinstance(matrix.held, np.ndarray):
            return matrix.held.transposed_times(vectors)
        with all_blas_threads():
            return matrix.held.T @ vectors


class Cross(RowMatrix):
    """C, the kernel of every row with the landmarks, shape (n, p)."""

    def __init__(self, passes: RowPasses, cross_kernel: CrossKernel) -> None:
        super().__init__(passes, partial(cross_block, cross_kernel), cross_kernel.n_landmarks)


class Features(RowMatrix):
    """B, the features of every row, `B B' = C W^+ C'`, shape (n, rank)."""

    def __init__(self, passes: RowPasses, factor: NystromFactor) -> None:
        super().__init__(passes, partial(feature_block, factor), factor.rank)


def hold_features(passes: RowPasses, factor: NystromFactor, features: Floats | None = None) -> None:
    """Evaluate the features of all rows once, where memory has room, for all tasks with this factor that follow."""
    if features is not None:
        passes.held = factor.kept_kernel, features
    elif passes.backend is NUMPY and passes.holds(factor.rank):
        values = np.empty((passes.source.n_rows, factor.rank))
        passes.map(MatrixEntries(partial(feature_block, factor), factor.rank), out=values)
        passes.held = factor.kept_kernel, values
