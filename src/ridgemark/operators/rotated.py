"""Features in the coordinates in which ridge regression is diagonal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.kernels import CrossKernel
from ridgemark.operators.blocks import cross_block, diagonal_block
from ridgemark.passes import Workspace
from ridgemark.rows import Block

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RotatedFeatures:
    """`c(x) = V'(b(x) - m)`, with `Bc'W Bc = V diag(s) V'` for the features centred at m; m is 0 without intercept."""

    cross_kernel: CrossKernel
    rotation: Floats  # (p, rank): `N V`, N the whitener
    offset: Floats  # (rank,): `V'm`

    @property
    def n_landmarks(self) -> int:
        """Kernel entries for each row."""
        return self.cross_kernel.n_landmarks

    def of_rows(self, rows: Any) -> Floats:
        """Return c(x) for some rows, shape (rows, rank)."""
        return self.cross_kernel(rows).astype(np.float64, copy=False) @ self.rotation - self.offset

    def of_block(self, block: Block, workspace: Workspace) -> tuple[Floats, Floats]:
        """Return c(x), in scratch memory, and `k(x, x) - |b(x)|^2` for the rows of a block."""
        features = workspace.array("features", (block.n_rows, self.rotation.shape[1]))
        np.matmul(cross_block(self.cross_kernel, block, workspace), self.rotation, out=features)
        squares = np.einsum("ij,ij->i", features, features)
        unexplained = np.maximum(diagonal_block(self.cross_kernel, block) - squares, 0.0)
        features -= self.offset
        return features, unexplained
