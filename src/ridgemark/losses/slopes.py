"""One pass over the rows without products of features: slopes of a loss, and products with its curvature."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ridgemark.backends import Floats
from ridgemark.linalg import LANDMARKS_AT_ONCE, product_in_blocks
from ridgemark.losses.loss import Loss
from ridgemark.operators import CrossTask, cross_block
from ridgemark.operators.blocks import tiles
from ridgemark.passes import Workspace
from ridgemark.rows import Block, row_weights


@dataclass(frozen=True, eq=False)
class SlopeSums(CrossTask):
    """`C'(w l')`, then the sum of w l', then the sum of the losses in the first column: shape (p + 2, t)."""

    what: ClassVar[str] = "slopes"
    loss: Loss
    dual_coef: Floats
    intercept: Floats

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        total = np.zeros((self.kernel_entries + 2, len(self.intercept)))
        for tile in tiles(block, self.kernel_entries):
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
    loss: Loss
    dual_coef: Floats
    intercept: Floats

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        assert block.targets is not None
        t = block.targets.shape[1]
        total = np.zeros((self.kernel_entries + 1, len(self.intercept) - t))
        for tile in tiles(block, self.kernel_entries):
            cross, weights = cross_block(self.cross_kernel, tile, workspace), row_weights(tile)[:, None]
            values = product_in_blocks(cross, self.dual_coef, LANDMARKS_AT_ONCE) + self.intercept
            predictor, *functions = np.hsplit(values, range(t, values.shape[1], t))
            curved = weights * np.hstack([self.loss.curvature_product(predictor, u) for u in functions])
            total[:-1] += cross.T @ curved
            total[-1] += curved.sum(axis=0)
        return total
