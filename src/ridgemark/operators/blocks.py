"""Kernel values and features of one block of rows, in scratch memory."""

from collections.abc import Iterator

from ridgemark.backends import NUMPY, Floats
from ridgemark.kernels import CrossKernel
from ridgemark.operators.factor import NystromFactor
from ridgemark.passes import Task, Workspace
from ridgemark.rows import Block

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
