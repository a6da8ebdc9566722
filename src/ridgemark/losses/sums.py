"""One pass over the rows: the sums from which a Newton step, and for the squared loss the solution, follows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ridgemark.backends import Floats
from ridgemark.backends.threads import one_blas_thread
from ridgemark.losses.loss import SQUARED, Loss, RidgeSolution
from ridgemark.losses.moments import Moments, block_moments
from ridgemark.operators.blocks import cross_block, diagonal_block
from ridgemark.operators.factor import NystromFactor
from ridgemark.operators.whitening import Whitening, plan_whitening, whiten_before
from ridgemark.passes import RowPasses, Task, Workspace
from ridgemark.rows import Block, row_weights


@dataclass(frozen=True, eq=False)
class LossSums(Task):
    """The moments of a block's features, with targets and weights of the loss's ridge problem."""

    what: ClassVar[str] = "moments"
    whitening: Whitening
    loss: Loss
    target_origin: Floats  # subtracted from the targets
    at: RidgeSolution | None  # where the loss is expanded; None for a quadratic loss

    @property
    def kernel_entries(self) -> int:
        return self.whitening.factor.cross_kernel.n_landmarks

    def __call__(self, block: Block, workspace: Workspace) -> Moments:
        factor = self.whitening.factor
        features = self.whitening.apply_(cross_block(factor.kept_kernel, block, workspace))
        weights = row_weights(block)
        targets = np.empty((block.n_rows, 0)) if block.targets is None else block.targets - self.target_origin
        if self.at is not None:
            predictor = features @ self.at.coefficients + self.at.intercept
            targets, weights = self.loss.ridge_problem(targets, weights, predictor)
        weighted = block.weights is not None or self.at is not None
        diagonal = diagonal_block(factor.cross_kernel, block)
        errors = factor.kept_kernel.entry_error(block.features)
        backend = factor.kept_kernel.backend
        return block_moments(features, targets, weights if weighted else None, diagonal, errors, backend)


@one_blas_thread()
def loss_sums(
    passes: RowPasses,
    factor: NystromFactor,
    target_origin: Floats | None = None,
    scaled_ridge: float | None = None,
    loss: Loss = SQUARED,
    at: RidgeSolution | None = None,
) -> Moments:
    """Return the moments of the features and of the loss's targets, in one pass.

    The reference whitens features before their products are summed. For a quadratic loss and a known ridge,
    whitening is deferred as far as the rounding error is negligible relative to the ridge.
    """
    origin = np.zeros(passes.source.n_targets) if target_origin is None else target_origin
    whitening = whiten_before(factor)
    if scaled_ridge is not None and loss.quadratic:
        whitening = plan_whitening(factor, passes.source.n_rows, scaled_ridge)
    moments = _sum(passes, LossSums(whitening, loss, origin, None if loss.quadratic else at))
    if whitening.loses_digits(moments.gram):  # the landmarks did not represent the rows
        whitening = whiten_before(factor)
        moments = _sum(passes, LossSums(whitening, loss, origin, None))
    return _finished(moments, whitening)


def _sum(passes: RowPasses, task: LossSums) -> Moments:
    passes.count_entries(task.width**2)  # the landmark kernel
    return passes.reduce(task)


def _finished(moments: Moments, whitening: Whitening) -> Moments:
    """Apply the deferred part of the whitening to the sums."""
    if not whitening.is_deferred:
        return moments
    rounding = whitening.rounding(moments.gram)
    gram = whitening.finish_gram(moments.gram)
    return replace(
        moments,
        gram=gram,
        cross=whitening.finish_rows(moments.cross),
        feature_sum=whitening.finish_rows(moments.feature_sum),
        # With the largest possible rounding error added, the residual is never too small.
        trace_residual=max(0.0, moments.trace_kernel - float(np.trace(gram))) + rounding,
    )
