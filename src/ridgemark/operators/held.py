"""A matrix over rows held on a device, in blocks of rows; in single precision if its memory has no room for double."""

from typing import ClassVar

import numpy as np

from ridgemark.backends import Array, Backend, Floats
from ridgemark.linalg import product_in_blocks
from ridgemark.operators.row_matrix import MatrixTask, RowMatrix
from ridgemark.passes import Workspace, in_row_order
from ridgemark.rows import Block

_FREE = 6 * 2**30  # bytes that stay free for what is computed beside the matrix
_ONE_BY_ONE = 2  # up to so many vectors are multiplied one by one: libraries are slow for two at once
_TOGETHER = 8  # blocks of a pass that are held as one
_SHARE = 2  # a matrix in double precision takes at most 1/2 of the free memory


class MatrixBlocks(MatrixTask):
    """A block of A, which stays on the device, as a list of one pair (first row, values): lists add up to that of A."""

    what: ClassVar[str] = "kernel values"
    single: bool

    def __call__(self, block: Block, workspace: Workspace) -> list[tuple[int, Array]]:
        values, xp = self.evaluate(block, workspace), workspace.backend.xp
        return [(block.start, xp.astype(values, xp.float32) if self.single else values)]


class HeldMatrix:
    """Products of a matrix held on a device with vectors on the host; those of single precision are approximate."""

    def __init__(self, matrix: RowMatrix, backend: Backend, single: bool) -> None:
        task = MatrixBlocks(matrix.evaluate, matrix.n_columns, single)
        self.backend, self.single = backend, single
        self.parts: list[Array]
        parts, self.parts = in_row_order(matrix.passes.reduce(task, stays=True)), []
        while parts:  # few large blocks: the more there are, the longer their products take to start
            self.parts.append(backend.xp.concat(parts[:_TOGETHER]))
            del parts[:_TOGETHER]
        self._weights: list[Array] | None = None
        self._row_counts = matrix.passes.row_counts

    def times(self, vectors: Floats) -> Floats:
        """Return `A V`."""
        right = self.backend.from_host(vectors)
        return self.backend.to_host(self.backend.xp.concat([self._product(part, right) for part in self.parts]))

    def transposed_times(self, vectors: Floats) -> Floats:
        """Return `A'V`."""
        return self.backend.to_host(self._sum(self._along(vectors)))

    def normal(self, vectors: Floats, offset: Floats) -> Floats:
        """Return `A'W (A V - 1 offset')`."""
        if self._weights is None:
            self._weights = self._along(self._row_counts()[:, None])
        right, shift = self.backend.from_host(vectors), self.backend.from_host(offset)
        pairs = zip(self.parts, self._weights, strict=True)
        return self.backend.to_host(self._sum([w * (self._product(part, right) - shift) for part, w in pairs]))

    def _along(self, values: Floats) -> list[Array]:
        """Return the rows of an array that belong to each block."""
        ends = np.cumsum([len(part) for part in self.parts])[:-1]
        return [self.backend.from_host(np.ascontiguousarray(part)) for part in np.split(values, ends)]

    def _sum(self, values: list[Array]) -> Array:
        total = self._product(self.parts[0].T, values[0])
        for part, value in zip(self.parts[1:], values[1:], strict=True):
            total += self._product(part.T, value)
        return total

    def _product(self, left: Array, right: Array) -> Array:
        if not self.single:
            return product_in_blocks(left, right)
        right = self.backend.xp.astype(right, left.dtype)
        if right.shape[1] > _ONE_BY_ONE:
            return self.backend.double(left @ right)
        return self.backend.double(self.backend.xp.stack([left @ column for column in right.T], axis=1))


def hold_on_device(matrix: RowMatrix, single: bool) -> None:
    """Evaluate a matrix once and keep it on the device of its passes, where its memory has room for it.

    `single` says whether single precision is enough if there is no room for double precision.
    """
    backend, _ = matrix.passes.placed(matrix.evaluate)
    if backend is not matrix.passes.backend:
        return
    backend.release()
    free, entries = backend.free_bytes(), matrix.passes.source.n_rows * matrix.n_columns
    if 8 * entries <= free // _SHARE:
        matrix.held = HeldMatrix(matrix, backend, single=False)
    elif single and 4 * entries <= free - _FREE:
        matrix.held = HeldMatrix(matrix, backend, single=True)
