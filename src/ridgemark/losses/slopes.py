"""Slopes of a loss and products with its curvature, in one pass; and its whole second derivative for few features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ridgemark.backends import Floats
from ridgemark.linalg import LANDMARKS_AT_ONCE, product_in_blocks
from ridgemark.losses.loss import Loss, RidgeSolution
from ridgemark.operators import CrossTask, FeatureTask, cross_block, feature_block
from ridgemark.operators.blocks import tiles
from ridgemark.passes import Workspace
from ridgemark.rows import Block, row_weights

Form = Literal["joint", "each", "mean"]


@dataclass(frozen=True, eq=False)
class SlopeSums(CrossTask):
    """`C'(w l')`, then the sum of w l', then the sum of the losses in the first column: shape (p + 2, t)."""

    what: ClassVar[str] = "slopes"
    on_device: ClassVar[bool] = False
    loss: Loss
    dual_coef: Floats
    intercept: Floats

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        total = np.zeros((self.kernel_entries + 2, len(self.intercept)))
        for tile in tiles(block, self.kernel_entries, workspace):
            cross, weights, targets = cross_block(self.cross_kernel, tile, workspace), row_weights(tile), tile.targets
            assert targets is not None
            predictor = product_in_blocks(cross, self.dual_coef, LANDMARKS_AT_ONCE) + self.intercept
            slopes = weights[:, None] * self.loss.slopes(targets, predictor)
            total[:-2] += cross.T @ slopes
            total[-2] += slopes.sum(axis=0)
            total[-1, 0] += weights @ self.loss.values(targets, predictor)
        return total


@dataclass(frozen=True, eq=False)
class CurvatureProducts(CrossTask):
    """`C'(w l'' u)` and the sums of `w l'' u`, shape (p + 1, columns), for the values u of some functions.

    The first t columns of the coefficients are those of the predictor at which l'' is taken.
    """

    what: ClassVar[str] = "curvature"
    on_device: ClassVar[bool] = False
    loss: Loss
    dual_coef: Floats
    intercept: Floats

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        assert block.targets is not None
        t = block.targets.shape[1]
        total = np.zeros((self.kernel_entries + 1, len(self.intercept) - t))
        for tile in tiles(block, self.kernel_entries, workspace):
            cross, weights = cross_block(self.cross_kernel, tile, workspace), row_weights(tile)[:, None]
            values = product_in_blocks(cross, self.dual_coef, LANDMARKS_AT_ONCE) + self.intercept
            predictor, *functions = np.hsplit(values, range(t, values.shape[1], t))
            curved = weights * np.hstack([self.loss.curvature_product(predictor, u) for u in functions])
            total[:-1] += cross.T @ curved
            total[-1] += curved.sum(axis=0)
        return total


@dataclass(frozen=True, eq=False)
class CurvatureSums:
    """Sums of the losses, of their slopes, shape (rank + 1, t), and of their second derivatives by targets."""

    loss: float
    slopes: Floats
    blocks: Floats  # (t, rank + 1, t, rank + 1), or of each target alone, (t, rank + 1, rank + 1), or of their mean

    def __add__(self, other: CurvatureSums) -> CurvatureSums:
        return CurvatureSums(self.loss + other.loss, self.slopes + other.slopes, self.blocks + other.blocks)


@dataclass(frozen=True, eq=False)
class CurvatureBlocks(FeatureTask):
    """The `CurvatureSums` of a block of rows, of the features and a constant."""

    what: ClassVar[str] = "curvature"
    on_device: ClassVar[bool] = False
    arrays: ClassVar[int] = 3
    loss: Loss
    at: RidgeSolution
    form: Form  # whether all pairs of targets have a block, or each target alone, or the mean curvature

    def __call__(self, block: Block, workspace: Workspace) -> CurvatureSums:
        assert block.targets is not None
        features, weights = feature_block(self.factor, block, workspace), row_weights(block)
        features = np.hstack([features, np.ones((block.n_rows, 1))])
        predictor = features @ np.vstack([self.at.coefficients, self.at.intercept])
        t, m = predictor.shape[1], features.shape[1]
        if self.form == "joint":
            blocks = np.empty((t, m, t, m))
            for k, unit in enumerate(np.eye(t)):
                curved = self.loss.curvature_product(predictor, np.broadcast_to(unit, predictor.shape))
                for j in range(k + 1):
                    blocks[j, :, k] = blocks[k, :, j] = (features * (weights * curved[:, j])[:, None]).T @ features
        else:
            each = self.form == "each"
            curvature = self.loss.curvature_diagonal(predictor) if each else self.loss.curvature(predictor)[:, None]
            roots = np.sqrt(weights[:, None] * curvature)
            blocks = np.stack([self.factor.kept_kernel.backend.gram(features * root[:, None]) for root in roots.T])
        loss = float(weights @ self.loss.values(block.targets, predictor))
        slopes = features.T @ (weights[:, None] * self.loss.slopes(block.targets, predictor))
        return CurvatureSums(loss, slopes, blocks)
