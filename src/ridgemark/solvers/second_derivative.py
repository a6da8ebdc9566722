"""Products with the second derivative of an objective, and its inverse by conjugate gradients."""

from dataclasses import dataclass

import numpy as np

from ridgemark.backends import Array, Floats
from ridgemark.losses import Loss
from ridgemark.solvers.curvature import System
from ridgemark.solvers.feature_rows import FeatureRows


@dataclass(frozen=True, eq=False)
class SecondDerivative:
    """`H = weight [B 1]'D[B 1] + s`, D the second derivatives of the loss at the rows and s the scaled ridge.

    The constants are not penalised; without an intercept their entries of a product are zero.
    """

    rows: FeatureRows
    loss: Loss
    parts: Array  # the loss's `curvature_parts` at the rows
    scaled_ridge: float
    fit_intercept: bool
    weight: float = 1.0  # of every row, beside its own

    def times(self, vectors: Floats) -> Floats:
        """Return `H V`."""
        image = self.weight * self.rows.curved(self.loss, self.parts, vectors)
        image[:-1] += self.scaled_ridge * vectors[:-1]
        image[-1] *= self.fit_intercept
        return image

    def solve(self, right: Floats, system: System, goal: float, most: float) -> tuple[Floats, int]:
        """Return X with `H X = V` up to a residual R with `R'F F'R <= goal`, and the number of products.

        F F' is the inverse of the system, the preconditioner. At most `most` products are taken.
        """
        residual, x = right.copy(), np.zeros_like(right)
        direction, products = centred(system.solve(residual)), 0
        size = float((residual * direction).sum())
        while (size > goal or not products) and products < most:
            image = self.times(direction)
            along = float((direction * image).sum())
            if not along > 0.0:  # rounding
                break
            products += 1
            x += size / along * direction
            residual -= size / along * image
            # Only functions that sum to zero over the targets: along others H is the ridge alone, far below the system.
            solved, before = centred(system.solve(residual)), size
            size = float((residual * solved).sum())
            direction = solved + size / before * direction
        return x, products


def centred(vectors: Floats) -> Floats:
    """Return functions that sum to zero over the targets: they have the same probabilities, and a smaller norm."""
    return vectors - vectors.mean(axis=1, keepdims=True) if vectors.shape[1] > 1 else vectors
