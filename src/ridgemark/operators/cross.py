"""C: the kernel of every row with the landmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ridgemark.backends import Floats
from ridgemark.backends.threads import all_blas_threads
from ridgemark.kernels import CrossKernel
from ridgemark.linalg import product_in_blocks
from ridgemark.operators.base import RowOperator
from ridgemark.operators.blocks import cross_block, tiles
from ridgemark.passes import RowPasses, Task, Workspace
from ridgemark.rows import Block, row_weights

_WIDEST_TILE = 2048  # largest width counted for a tile of C, so that blocks of a wide C are not too short


@dataclass(frozen=True, eq=False)
class CrossTask(Task):
    """A task that evaluates C."""

    cross_kernel: CrossKernel

    @property
    def width(self) -> int:
        return self.cross_kernel.n_landmarks

    @property
    def kernel_entries(self) -> int:
        return self.cross_kernel.n_landmarks


@dataclass(frozen=True, eq=False)
class CrossValues(CrossTask):
    """`C V`."""

    what: ClassVar[str] = "predictions"
    vectors: Floats

    @property
    def width(self) -> int:
        return min(self.cross_kernel.n_landmarks, _WIDEST_TILE)

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        parts = tiles(block, self.cross_kernel.n_landmarks)
        return np.concatenate(
            [product_in_blocks(cross_block(self.cross_kernel, tile, workspace), self.vectors) for tile in parts]
        )


@dataclass(frozen=True, eq=False)
class CrossSums(CrossTask):
    """`C'V`, V given along the rows."""

    what: ClassVar[str] = "products"

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        total = np.zeros((self.cross_kernel.n_landmarks, block.along[0].shape[1]))
        for tile in tiles(block, self.cross_kernel.n_landmarks):
            total += product_in_blocks(cross_block(self.cross_kernel, tile, workspace).T, tile.along[0])
        return total


@dataclass(frozen=True, eq=False)
class CrossNormal(CrossTask):
    """`C'W (C V - 1 offset')`."""

    what: ClassVar[str] = "products"
    vectors: Floats
    offset: Floats

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        total = np.zeros_like(self.vectors)
        for tile in tiles(block, self.cross_kernel.n_landmarks):
            cross = cross_block(self.cross_kernel, tile, workspace)
            total += cross.T @ (row_weights(tile)[:, None] * (cross @ self.vectors - self.offset))
        return total


@dataclass(frozen=True, eq=False)
class CrossMatrix(CrossTask):
    """C itself."""

    what: ClassVar[str] = "kernel values"

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        return cross_block(self.cross_kernel, block, workspace).copy()  # the next block overwrites scratch memory


class Cross(RowOperator):
    """C, the kernel of every row with the landmarks, shape (n, p)."""

    def __init__(self, passes: RowPasses, cross_kernel: CrossKernel) -> None:
        super().__init__(passes)
        self.cross_kernel = cross_kernel

    @property
    def shape(self) -> tuple[int, int]:
        return self.passes.source.n_rows, self.cross_kernel.n_landmarks

    def normal(self, vectors: Floats, offset: Floats) -> Floats:
        """Return `C'W (C V - 1 offset')` in one pass; with an offset of `m'V`, m the mean of C, the centred product."""
        if self.held is None:
            total: Floats = self.passes.reduce(CrossNormal(self.cross_kernel, vectors, offset))
            return total
        with all_blas_threads():
            values = self.held @ vectors - offset
            values *= self.passes.row_counts()[:, None]
            return self.held.T @ values

    def _evaluate(self) -> Floats:
        return self.passes.map(CrossMatrix(self.cross_kernel))

    def _product(self, vectors: Floats) -> Floats:
        return self.passes.map(CrossValues(self.cross_kernel, vectors))

    def _transposed_product(self, vectors: Floats) -> Floats:
        total: Floats = self.passes.reduce(CrossSums(self.cross_kernel), along=(vectors,))
        return total
