"""The features of all rows and a constant, `Z = [B 1]`: products with them, streamed or from memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgemark.backends import NUMPY, Array, Backend, Floats, Indices
from ridgemark.losses import CurvatureBlocks, CurvatureProducts, CurvatureSums, Loss, RidgeSolution, WeightedGram
from ridgemark.operators import Cross, Features, NystromFactor
from ridgemark.operators.row_matrix import MatrixEntries, MatrixValues, RowMatrix
from ridgemark.passes import RowPasses, Workspace
from ridgemark.rows import BaseRows, Block


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """`Z = [A N, 1]` for a matrix A over rows: the kernel of the landmarks with its whitener N, or features held.

    Arrays with a row for each row of the data are on the backend, which may be a device; vectors V are on the host.
    """

    matrix: RowMatrix
    whitener: Array | None  # None for the identity
    features: RowMatrix
    backend: Backend

    def values(self, vectors: Floats) -> Array:
        """Return `Z V`, shape (n, t)."""
        matrix, backend = self.matrix, self.backend
        task = MatrixValues(matrix.evaluate, matrix.n_columns, self._inner(vectors))
        out = None if backend is NUMPY else backend.empty((matrix.passes.source.n_rows, vectors.shape[1]))
        return matrix.passes.map(task, out=out) + backend.from_host(vectors[-1])

    def sums(self, values: Array) -> Floats:
        """Return `Z'U`, shape (rank + 1, t)."""
        constant = self.backend.to_host(values.sum(axis=0))
        return self._outer(np.vstack([self.matrix.T @ values, constant]))

    def curved(self, loss: Loss, parts: Array, vectors: Floats) -> Floats:
        """Return `Z'(w l'' Z V)`, with l'' given by its `curvature_parts`, shape (rank + 1, t)."""
        matrix = self.matrix
        task = CurvatureProducts(matrix.evaluate, matrix.n_columns, loss, self._inner(vectors), vectors[-1])
        return self._outer(matrix.passes.reduce(task, along=(parts,)))

    def curvature(self, loss: Loss, at: RidgeSolution) -> CurvatureSums:
        """Return the sums of the second derivative, `Z'(w l'') Z`, of all pairs of targets."""
        features = self.features
        return features.passes.reduce(CurvatureBlocks(features.evaluate, features.n_columns, loss, at))

    def gram(self, weights: Array, rows: Indices | None = None) -> Floats:
        """Return `Z'D Z`, D the weights of all rows or of some, shape (rank + 1, rank + 1)."""
        passes, rank = self.features.passes, self.features.n_columns
        if rows is not None:
            taken = passes.take(rows)
            passes = RowPasses(_HeldRows(taken.features, weights[:, None], None), passes.memory_budget)
        task = WeightedGram(self.features.evaluate, rank)
        return passes.reduce(task, along=(weights,)) if len(weights) else np.zeros((rank + 1, rank + 1))

    def _inner(self, vectors: Floats) -> Array:
        return vectors[:-1] if self.whitener is None else self.whitener @ self.backend.from_host(vectors[:-1])

    def _outer(self, sums: Floats) -> Floats:
        if self.whitener is None:
            return sums
        inner = self.whitener.T @ self.backend.from_host(sums[:-1])
        return np.vstack([self.backend.to_host(inner), sums[-1:]])

    @property
    def room(self) -> int:
        """Bytes that features may take: the memory budget, or half of what is free on the device."""
        self.backend.release()
        return self.features.passes.budget if self.backend is NUMPY else self.backend.free_bytes() // 2

    def held(self, precision: str = "float32") -> FeatureRows:
        """Return the features rounded to a precision and held in memory.

        Products with vectors are in that precision: the features are not more accurate. Sums over blocks of rows, and
        those of `gram`, are in double precision.
        """
        passes, rank, backend, xp = self.features.passes, self.features.n_columns, self.backend, self.backend.xp
        entries = xp.empty((passes.source.n_rows, rank), dtype=getattr(xp, precision), device=backend.device)
        passes.map(MatrixEntries(self.features.evaluate, rank), out=entries)
        return _held_features(passes, entries, backend)


def _held_features(passes: RowPasses, entries: Array, backend: Backend) -> FeatureRows:
    """Return features in memory, with the targets and weights of the passes."""
    source = _HeldRows(entries, *(backend.from_host(values) for values in (passes.targets(), passes.weights())))
    rows, rank = RowPasses(source, passes.memory_budget, passes.progress), entries.shape[1]
    return FeatureRows(RowMatrix(rows, _as_held, rank), None, RowMatrix(rows, _features, rank), backend)


def features_of(passes: RowPasses, factor: NystromFactor) -> FeatureRows:
    """Return the features of the rows: those that the passes hold, or computed in every pass."""
    if passes.held is not None and passes.held[0] is factor.kept_kernel:
        return _held_features(passes, passes.held[1], NUMPY)
    # Workers of Dask return arrays of the host.
    backend, factor = (NUMPY, factor) if passes.remote else passes.placed(factor)
    return FeatureRows(Cross(passes, factor.cross_kernel), factor.whitener, Features(passes, factor), backend)


class _HeldRows(BaseRows):
    """Rows whose columns are known to be finite numbers, and are read as views."""

    def __init__(self, features: Array, targets: Array, weights: Array | None) -> None:
        self._features, self._targets, self._weights = features, targets, weights
        (self.n_rows, self.n_features), self.n_targets = features.shape, targets.shape[1]
        self.dtype = np.dtype(str(features.dtype).removeprefix("torch."))
        self.has_weights, self.feature_names, self.target_names = weights is not None, None, None

    def _blocks(self, block_rows: int, start: int, stop: int) -> Iterator[Block]:
        for first in range(start, stop, block_rows):
            yield self._take(slice(first, min(first + block_rows, stop)), first)

    def _take(self, rows: Any, start: int = 0) -> Block:
        weights = None if self._weights is None else self._weights[rows]
        return Block(start, self._features[rows], self._targets[rows], weights, converted_late=True)


def _features(block: Block, workspace: Workspace) -> Floats:
    return workspace.backend.double(block.features)


def _as_held(block: Block, workspace: Workspace) -> Array:
    return block.features
