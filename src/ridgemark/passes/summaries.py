"""Tasks on the rows themselves: targets, weights, hashes of rows, constant columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ridgemark.passes.task import Task, Workspace
from ridgemark.rows import Block, row_weights
from ridgemark.rows.distinct import row_hashes

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Targets(Task):
    """The targets of every row."""

    what: ClassVar[str] = "targets"

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        assert block.targets is not None  # fits have targets
        return block.targets


@dataclass(frozen=True, eq=False)
class Weights(Task):
    """The weight of every row."""

    what: ClassVar[str] = "weights"

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        return row_weights(block)


@dataclass(frozen=True, eq=False)
class FeatureRows(Task):
    """The features of every row, dense."""

    what: ClassVar[str] = "rows"

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        features: Floats = dense(block.features)
        return features


@dataclass(frozen=True, eq=False)
class Hashes(Task):
    """A 64-bit hash of every row."""

    what: ClassVar[str] = "distinct rows"

    def __call__(self, block: Block, workspace: Workspace) -> NDArray[np.uint64]:
        return row_hashes(block)


@dataclass(frozen=True, eq=False)
class DifferingRows(Task):
    """For some columns, the number of rows that differ from given values."""

    what: ClassVar[str] = "constant columns"
    columns: NDArray[np.intp]
    values: Floats

    @property
    def width(self) -> int:
        return len(self.columns)

    def __call__(self, block: Block, workspace: Workspace) -> NDArray[np.intp]:
        differing: NDArray[np.intp] = (dense(block.features[:, self.columns]) != self.values).sum(axis=0)
        return differing


def dense(features: Any) -> Any:
    """Return features as a dense array."""
    return features.toarray() if sparse.issparse(features) else features
