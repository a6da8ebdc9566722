"""The features of all rows and a constant, `Z = [B 1]`: products with them, streamed or from memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Floats
from ridgemark.losses import Loss, RidgeSolution
from ridgemark.losses.slopes import CurvatureBlocks, CurvatureProducts, CurvatureSums, Form
from ridgemark.operators import Cross, Features, NystromFactor, feature_block
from ridgemark.operators.row_matrix import MatrixEntries, RowMatrix
from ridgemark.passes import RowPasses, Workspace
from ridgemark.rows import BaseRows, Block


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """`Z = [A N, 1]` for a matrix A over rows: the kernel of the landmarks with its whitener N, or features held."""

    matrix: RowMatrix
    whitener: Floats | None  # None for the identity
    features: RowMatrix

    def values(self, vectors: Floats) -> Floats:
        """Return `Z V`, shape (n, t)."""
        return self.matrix @ self._inner(vectors) + vectors[-1]

    def sums(self, values: Floats) -> Floats:
        """Return `Z'U`, shape (rank + 1, t)."""
        return self._outer(np.vstack([self.matrix.T @ values, values.sum(axis=0)]))

    def curved(self, loss: Loss, predictor: Floats, vectors: Floats) -> Floats:
        """Return `Z'(w l'' Z V)`, with l'' at the predictor, shape (rank + 1, t)."""
        matrix = self.matrix
        task = CurvatureProducts(matrix.evaluate, matrix.n_columns, loss, self._inner(vectors), vectors[-1])
        return self._outer(matrix.passes.reduce(task, along=(predictor,)))

    def curvature(self, loss: Loss, at: RidgeSolution, form: Form) -> CurvatureSums:
        """Return the sums of the second derivative, `Z'(w l'') Z`."""
        features = self.features
        return features.passes.reduce(CurvatureBlocks(features.evaluate, features.n_columns, loss, at, form))

    def _inner(self, vectors: Floats) -> Floats:
        return vectors[:-1] if self.whitener is None else self.whitener @ vectors[:-1]

    def _outer(self, sums: Floats) -> Floats:
        return sums if self.whitener is None else np.vstack([self.whitener.T @ sums[:-1], sums[-1:]])


def streamed_features(passes: RowPasses, factor: NystromFactor) -> FeatureRows:
    """Return the features of the rows, computed in every pass."""
    return FeatureRows(Cross(passes, factor.cross_kernel), factor.whitener, Features(passes, factor))


def held_features(passes: RowPasses, factor: NystromFactor) -> FeatureRows:
    """Return the features of the rows, rounded to single precision and held in memory; sums are in double precision."""
    entries = np.empty((passes.source.n_rows, factor.rank), dtype=np.float32)
    passes.map(MatrixEntries(partial(feature_block, factor), factor.rank), out=entries)
    source = _HeldRows(entries, passes.targets(), passes.weights())
    matrix = RowMatrix(RowPasses(source, passes.memory_budget, passes.progress), _features, factor.rank)
    return FeatureRows(matrix, None, matrix)


class _HeldRows(BaseRows):
    """Rows whose columns are known to be finite numbers in single precision, and are read as views."""

    def __init__(self, features: NDArray[np.float32], targets: Floats, weights: Floats | None) -> None:
        self._features, self._targets, self._weights = features, targets, weights
        (self.n_rows, self.n_features), self.n_targets, self.dtype = features.shape, targets.shape[1], features.dtype
        self.has_weights, self.feature_names, self.target_names = weights is not None, None, None

    def _pieces(self, block_rows: int, start: int, stop: int) -> Iterator[Block]:
        for first in range(start, stop, block_rows):
            yield self._take(slice(first, min(first + block_rows, stop)), first)

    def _take(self, rows: Any, start: int = 0) -> Block:
        weights = None if self._weights is None else self._weights[rows]
        return Block(start, self._features[rows], self._targets[rows], weights)


def _features(block: Block, workspace: Workspace) -> Floats:
    features: Floats = block.features  # a pass gives them in double precision
    return features
