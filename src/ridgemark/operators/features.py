"""B: the features of every row, `B B' = C W^+ C'`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ridgemark.backends import Floats, Indices
from ridgemark.operators.base import RowOperator
from ridgemark.operators.blocks import feature_block
from ridgemark.operators.factor import NystromFactor
from ridgemark.passes import RowPasses, Task, Workspace
from ridgemark.rows import Block


@dataclass(frozen=True, eq=False)
class _FeatureTask(Task):
    """A task that evaluates B."""

    what: ClassVar[str] = "features"
    factor: NystromFactor

    @property
    def width(self) -> int:
        return self.factor.cross_kernel.n_landmarks

    @property
    def kernel_entries(self) -> int:
        return self.factor.cross_kernel.n_landmarks


@dataclass(frozen=True, eq=False)
class FeatureMatrix(_FeatureTask):
    """Some columns of B itself."""

    columns: Indices

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        return feature_block(self.factor, block, workspace)[:, self.columns]  # a copy of scratch memory


@dataclass(frozen=True, eq=False)
class FeatureValues(_FeatureTask):
    """`B V`."""

    vectors: Floats

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        return feature_block(self.factor, block, workspace) @ self.vectors


@dataclass(frozen=True, eq=False)
class FeatureSums(_FeatureTask):
    """`B'V`, V given along the rows."""

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        return feature_block(self.factor, block, workspace).T @ block.along[0]


class Features(RowOperator):
    """B, the features of every row, shape (n, rank); or only the given columns."""

    def __init__(self, passes: RowPasses, factor: NystromFactor, columns: Indices | None = None) -> None:
        super().__init__(passes)
        self.factor = factor
        self.columns = np.arange(factor.rank) if columns is None else columns

    @property
    def shape(self) -> tuple[int, int]:
        return self.passes.source.n_rows, len(self.columns)

    def _evaluate(self) -> Floats:
        return self.passes.map(FeatureMatrix(self.factor, self.columns))

    def _product(self, vectors: Floats) -> Floats:
        padded = np.zeros((self.factor.rank, vectors.shape[1]))
        padded[self.columns] = vectors
        return self.passes.map(FeatureValues(self.factor, padded))

    def _transposed_product(self, vectors: Floats) -> Floats:
        total: Floats = self.passes.reduce(FeatureSums(self.factor), along=(vectors,))
        return total[self.columns]
