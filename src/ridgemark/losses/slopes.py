"""Products with the curvature of a loss in one pass, and the sums of its second derivative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ridgemark.backends import Array, Floats, backend_of
from ridgemark.losses.loss import Loss, RidgeSolution
from ridgemark.operators.blocks import tiles
from ridgemark.operators.row_matrix import MatrixTask
from ridgemark.passes import Workspace
from ridgemark.rows import Block, row_weights

Form = Literal["joint", "each", "mean"]


@dataclass(frozen=True, eq=False)
class CurvatureProducts(MatrixTask):
    """`A'(w l'' u)` and the sums of `w l'' u`, shape (columns + 1, t), for `u = A V + constant`.

    The predictor at which l'' is taken is given along the rows. Products are in the precision of A, sums over tiles in
    double precision.
    """

    what: ClassVar[str] = "curvature"
    loss: Loss
    vectors: Floats
    constant: Floats

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        backend, astype = workspace.backend, workspace.backend.xp.astype
        total = backend.zeros((self.n_columns + 1, len(self.constant)))
        for tile in tiles(block, self.n_columns, workspace):
            part = self.evaluate(tile, workspace)
            values = backend.double(part @ astype(self.vectors, part.dtype, copy=False)) + self.constant
            curved = row_weights(tile)[:, None] * self.loss.curvature_product(tile.along[0], values)
            # Transposed, as BLAS multiplies a few columns faster from the left.
            total[:-1] += (astype(curved, part.dtype, copy=False).T @ part).T
            total[-1] += curved.sum(axis=0)
        return total


def with_ones(features: Array, one: float = 1.0) -> Array:
    """Return `[B 1]`, or B with a column of another constant."""
    backend = backend_of(features)
    return backend.xp.concat([features, backend.zeros((len(features), 1)) + one], axis=1)


@dataclass(frozen=True, eq=False)
class CurvatureSums:
    """Sums of the losses, of their slopes, shape (rank + 1, t), and of their second derivatives by targets."""

    loss: float
    slopes: Floats
    blocks: Floats  # (t, rank + 1, t, rank + 1), or of each target alone, (t, rank + 1, rank + 1), or of their mean

    def __add__(self, other: CurvatureSums) -> CurvatureSums:
        return CurvatureSums(self.loss + other.loss, self.slopes + other.slopes, self.blocks + other.blocks)


@dataclass(frozen=True, eq=False)
class CurvatureBlocks(MatrixTask):
    """The `CurvatureSums` of a block of rows, of the features and a constant."""

    what: ClassVar[str] = "curvature"
    arrays: ClassVar[int] = 3
    loss: Loss
    at: RidgeSolution
    form: Form  # whether all pairs of targets have a block, or each target alone, or the mean curvature

    def __call__(self, block: Block, workspace: Workspace) -> CurvatureSums:
        assert block.targets is not None
        backend, weights = workspace.backend, row_weights(block)
        features = with_ones(self.evaluate(block, workspace))
        predictor = features @ backend.xp.concat([self.at.coefficients, self.at.intercept[None]])
        t, m = predictor.shape[1], features.shape[1]
        if self.form == "joint":
            blocks = backend.empty((t, m, t, m))
            for k, unit in enumerate(backend.from_host(np.eye(t))):
                curved = self.loss.curvature_product(predictor, backend.xp.broadcast_to(unit, predictor.shape))
                for j in range(k + 1):
                    blocks[j, :, k] = blocks[k, :, j] = (features * (weights * curved[:, j])[:, None]).T @ features
        else:
            each = self.form == "each"
            curvature = self.loss.curvature_diagonal(predictor) if each else self.loss.curvature(predictor)[:, None]
            roots = backend.xp.sqrt(weights[:, None] * curvature)
            blocks = backend.xp.stack([backend.gram(features * root[:, None]) for root in roots.T])
        loss = float(weights @ self.loss.values(block.targets, predictor))
        slopes = features.T @ (weights[:, None] * self.loss.slopes(block.targets, predictor))
        return CurvatureSums(loss, slopes, blocks)
