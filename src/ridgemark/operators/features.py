"""B: the features of every row, `B B' = C W^+ C'`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ridgemark.operators.base import RowOperator
from ridgemark.operators.blocks import feature_block
from ridgemark.operators.factor import NystromFactor
from ridgemark.passes import RowPasses, Task, Workspace
from ridgemark.rows import Block

Floats = NDArray[np.float64]


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
    """B itself."""

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        return feature_block(self.factor, block, workspace).copy()  # scratch memory outlives no block


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
    """B, the features of every row, shape (n, rank)."""

    def __init__(self, passes: RowPasses, factor: NystromFactor) -> None:
        super().__init__(passes)
        self.factor = factor

    @property
    def shape(self) -> tuple[int, int]:
        return self.passes.source.n_rows, self.factor.rank

    def _evaluate(self) -> Floats:
        return self.passes.map(FeatureMatrix(self.factor))

    def _product(self, vectors: Floats) -> Floats:
        return self.passes.map(FeatureValues(self.factor, vectors))

    def _transposed_product(self, vectors: Floats) -> Floats:
        total: Floats = self.passes.reduce(FeatureSums(self.factor), along=(vectors,))
        return total
