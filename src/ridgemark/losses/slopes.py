"""Products with the curvature of a loss in one pass, and the sums of its second derivative."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ridgemark.backends import Array, Floats, backend_of
from ridgemark.losses.loss import Loss, RidgeSolution
from ridgemark.operators.row_matrix import MatrixTask, padded, tiles, transposed_product
from ridgemark.passes import Summed, Workspace
from ridgemark.rows import Block, row_weights
from ridgemark.sampling import inclusion_chances

_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0  # multiples of it, modulo 1, are spread evenly


class CurvatureProducts(MatrixTask):
    """`A'(w l'' u)` and the sums of `w l'' u`, shape (columns + 1, t), for `u = A V + constant`.

    The `curvature_parts` of l'' are given along the rows. Products are in the precision of A, sums over tiles in double
    precision.
    """

    what: ClassVar[str] = "curvature"
    loss: Loss
    vectors: Floats
    constant: Floats

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        backend, t = workspace.backend, len(self.constant)
        total, vectors = backend.zeros((self.n_columns + 1, t)), None
        for tile in tiles(block, self.n_columns, workspace):
            part = self.evaluate(tile, workspace)
            vectors = padded(self.vectors, part.dtype) if vectors is None else vectors
            values = backend.double(part @ vectors)[:, :t] + self.constant
            curved = row_weights(tile)[:, None] * self.loss.curvature_times(tile.along[0], values)
            total[:-1] += transposed_product(part, curved)
            total[-1] += curved.sum(axis=0)
        return total


def with_ones(features: Array, constant: float = 1.0) -> Array:
    """Return `[B 1]`, or B with a column of another constant."""
    backend = backend_of(features)
    return backend.xp.concat([features, backend.zeros((len(features), 1)) + constant], axis=1)


@dataclass(frozen=True, eq=False)
class CurvatureSums(Summed):
    """Sums of the losses, of their slopes, shape (rank + 1, t), and of their second derivatives by targets."""

    loss: float
    slopes: Floats
    blocks: Floats  # (t, rank + 1, t, rank + 1)


class CurvatureBlocks(MatrixTask):
    """The `CurvatureSums` of a block of rows, of the features and a constant."""

    what: ClassVar[str] = "curvature"
    loss: Loss
    at: RidgeSolution

    @property
    def width(self) -> int:
        return (3 + len(self.at.intercept)) * (self.n_columns + 1)

    def __call__(self, block: Block, workspace: Workspace) -> CurvatureSums:
        backend, weights = workspace.backend, row_weights(block)
        features = with_ones(self.evaluate(block, workspace))
        predictor = features @ backend.xp.concat([self.at.coefficients, self.at.intercept[None]])
        t, m = predictor.shape[1], features.shape[1]
        blocks, parts = backend.empty((t, m, t, m)), self.loss.curvature_parts(block.targets, predictor)
        for k, unit in enumerate(backend.from_host(np.eye(t))):
            curved = self.loss.curvature_times(parts, backend.xp.broadcast_to(unit, predictor.shape))
            curved = weights[:, None] * curved[:, : k + 1]
            wide = (curved[:, :, None] * features[:, None]).reshape(len(features), -1)
            of_pairs = (wide.T @ features).reshape(k + 1, m, m)
            blocks[: k + 1, :, k], blocks[k, :, : k + 1] = of_pairs, backend.xp.moveaxis(of_pairs, 0, 1)
        loss = float(weights @ self.loss.values(block.targets, predictor))
        slopes = features.T @ (weights[:, None] * self.loss.slopes(block.targets, predictor))
        return CurvatureSums(loss, slopes, blocks)


class WeightedGram(MatrixTask):
    """`[A 1]'D[A 1]`, D being weights given along the rows."""

    what: ClassVar[str] = "curvature"
    arrays: ClassVar[int] = 3

    def __call__(self, block: Block, workspace: Workspace) -> Array:
        features, backend = with_ones(self.evaluate(block, workspace)), workspace.backend
        features *= backend.xp.sqrt(block.along[0])[:, None]
        return backend.gram(features)


def thinned(weights: Floats, importance: Floats, counts: Sequence[int]) -> Floats:
    """Keep about `counts` weights in each column, divided by their chance of being kept; set the others to zero.

    So sums keep their expected values. The chance of a row is `min(1, c importance)`. It is compared with multiples of
    the golden ratio modulo 1; rows must be in random order.
    """
    kept, golden = np.zeros_like(weights), np.arange(1, len(weights) + 1) * _GOLDEN % 1.0
    for k, count in enumerate(counts):
        size = min(count, int(np.count_nonzero(importance[:, k])))
        chances = inclusion_chances(importance[:, k], size) if size else np.ones(len(weights))
        drawn = golden < chances
        kept[drawn, k] = weights[drawn, k] / chances[drawn]
    return kept
