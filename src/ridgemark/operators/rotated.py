"""Features in the coordinates in which ridge regression is diagonal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgemark.backends import Floats
from ridgemark.operators.blocks import diagonal_block, feature_block
from ridgemark.operators.factor import NystromFactor
from ridgemark.passes import Workspace
from ridgemark.rows import Block


@dataclass(frozen=True, eq=False)
class RotatedFeatures:
    """`c(x) = V'(b(x) - m)`, with `Bc'W Bc = V diag(s) V'` for the features centred at m; m is 0 without intercept."""

    factor: NystromFactor
    mean: Floats  # (rank,): m
    rotation: Floats  # (rank, rank): V

    @property
    def n_landmarks(self) -> int:
        """Kernel entries for each row."""
        return self.factor.cross_kernel.n_landmarks

    def of_rows(self, rows: Any) -> Floats:
        """Return c(x) for some rows, shape (rows, rank)."""
        features = self.factor.cross_kernel(rows).astype(np.float64) @ self.factor.whitener
        return (features - self.mean) @ self.rotation

    def of_block(self, block: Block, workspace: Workspace) -> tuple[Floats, Floats]:
        """Return c(x), in scratch memory, and `k(x, x) - |b(x)|^2` for the rows of a block."""
        # Features first, and then their rotation: the lengths of features then do not depend on targets or weights.
        features = feature_block(self.factor, block, workspace)
        squares = np.einsum("ij,ij->i", features, features)
        unexplained = np.maximum(diagonal_block(self.factor.cross_kernel, block) - squares, 0.0)
        features -= self.mean
        centred = workspace.array("features", (block.n_rows, self.rotation.shape[1]))
        return np.matmul(features, self.rotation, out=centred), unexplained
