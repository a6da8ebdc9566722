"""One pass over the rows: sums from which a Newton step, and for the squared loss every ridge's solution, follow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from ridgemark.backends import NUMPY, Floats, backend_of, moved, on_host, one_blas_thread
from ridgemark.losses.loss import SQUARED, Loss, RidgeSolution
from ridgemark.operators.factor import NystromFactor, Whitening, plan_whitening, whiten_before
from ridgemark.operators.row_matrix import cross_block, diagonal_block, feature_block
from ridgemark.passes import RowPasses, Summed, Task, Workspace
from ridgemark.rows import Block, row_weights

# Largest relative difference of sums over the same rows: rounding, also of rows stored in single precision.
_SAME = 1e-6


@dataclass(frozen=True)
class Moments(Summed):
    """Weighted sums over rows, from which every ridge's solution follows; moments of disjoint rows add.

    Targets are measured from `target_origin`, a constant near their mean, so that large offsets lose no digits.
    """

    n_rows: Annotated[int, "> 0"]  # of positive weight
    total_weight: Annotated[float, "> 0"]
    gram: Annotated[Floats, "(_, _)"]  # B' W B
    cross: Annotated[Floats, "(r, t)"]  # B' W y
    feature_sum: Annotated[Floats, "(r)"]  # B' w
    target_sum: Annotated[Floats, "(t)"]  # y' w
    target_square: Annotated[Floats, "(t)", ">= 0"]  # y' W y
    trace_kernel: Annotated[float, ">= 0"]  # tr W K
    trace_residual: Annotated[float, ">= 0"]  # tr W (K - L)
    entry_error: Annotated[float, ">= 0"] = 0.0  # sum_i w_i k(x_i, x_i) e_i^2, e_i the error of the row's kernel values
    loss: float = 0.0  # sum_i w_i l(y_i, eta_i), where the loss is expanded at some eta; w is the weight of the data

    def __sizeof__(self) -> int:
        """Return the bytes of the sums, by which Dask plans."""
        return object.__sizeof__(self) + self.gram.nbytes

    def without_products(self) -> Moments:
        """Return the sums without the Gram matrix, the only large one."""
        return replace(self, gram=np.zeros((0, 0)))

    def with_zeros(self, n_targets: int) -> Moments:
        """Return the sums for targets of zeros."""
        none, cross = np.zeros(n_targets), np.zeros((len(self.feature_sum), n_targets))
        return replace(self, cross=cross, target_sum=none, target_square=none)

    def times(self, factor: float) -> Moments:
        """Return the sums of features for rows of weights multiplied by a factor, as those of a curvature."""
        names = "gram", "feature_sum", "total_weight"
        return replace(self, **{name: factor * getattr(self, name) for name in names})

    def leading(self, most: int) -> Moments:
        """Return the sums of the first features."""
        gram, cross, feature_sum = self.gram[:most, :most], self.cross[:most], self.feature_sum[:most]
        return replace(self, gram=gram, cross=cross, feature_sum=feature_sum)

    def on_host(self) -> Moments:
        """Return the sums with the Gram matrix in host memory."""
        return on_host(self, backend_of(self.gram))

    def __iadd__(self, other: Moments) -> Moments:
        """Add in place, into this Gram matrix."""
        gram = self.gram
        gram += other.gram
        return replace(self.without_products() + other.without_products(), gram=gram)


def same_rows(moments: Moments, other: Moments) -> bool:
    """Return whether two sums are over the same rows and targets, up to rounding.

    Differences are compared with the largest value that each sum can have.
    """
    if moments.n_rows != other.n_rows or not np.isclose(moments.total_weight, other.total_weight, rtol=1e-9):
        return False
    size, trace = other.total_weight, other.trace_kernel
    reach = np.sqrt(other.target_square)
    pairs = (
        (moments.feature_sum, other.feature_sum, np.sqrt(size * trace)),
        (moments.cross, other.cross, np.sqrt(trace) * reach),
        (moments.target_sum, other.target_sum, np.sqrt(size) * reach),
    )
    return all(bool((np.abs(a - b) <= _SAME * most).all()) for a, b, most in pairs)


class LossSums(Task):
    """The moments of a block's features, with targets and weights of the loss's ridge problem."""

    what: ClassVar[str] = "moments"
    whitening: Whitening
    loss: Loss
    target_origin: Floats  # subtracted from the targets
    at: RidgeSolution | None  # where the loss is expanded, for features as whitened here; None for a quadratic loss

    @property
    def factor(self) -> NystromFactor:
        """The landmarks with their whitener."""
        return self.whitening.factor

    @property
    def kernel_entries(self) -> int:
        return self.whitening.factor.cross_kernel.n_landmarks

    def __call__(self, block: Block, workspace: Workspace) -> Moments:
        factor, backend = self.whitening.factor, workspace.backend
        entry_error = factor.kept_kernel.entry_error(block.features)
        if block.held is None:
            features = self.whitening.apply_(cross_block(factor.kept_kernel, block, workspace))
        else:
            features = feature_block(factor, block, workspace)
        weights, weighted, loss = row_weights(block), block.weights is not None, 0.0
        targets = backend.zeros((block.n_rows, 0)) if block.targets is None else block.targets - self.target_origin
        if self.at is not None:
            predictor = features @ self.at.coefficients + self.at.intercept
            loss = float(weights @ self.loss.values(targets, predictor))
            targets, weights = self.loss.ridge_problem(targets, weights, predictor)
            weighted = True
        diagonal = diagonal_block(factor.cross_kernel, block)
        residual = backend.at_least(diagonal - backend.squared_norms(features), 0.0)
        feature_sum, weighted_targets = features.T @ weights, targets
        if weighted:
            scale = backend.xp.sqrt(weights)[:, None]
            features *= scale  # in place: scratch memory of this block
            weighted_targets = targets * scale
        return Moments(
            n_rows=int(backend.count(weights != 0)),
            total_weight=float(weights.sum()),
            cross=features.T @ weighted_targets,
            feature_sum=feature_sum,
            target_sum=targets.T @ weights,
            target_square=(targets**2).T @ weights,
            trace_kernel=float(weights @ diagonal),
            trace_residual=float(weights @ residual),
            entry_error=float(weights @ (diagonal * entry_error**2)),
            loss=loss,
            # Last: the floats above wait for the device, which then computes this while the next block is prepared.
            gram=factor.kept_kernel.backend.gram(features),
        )


@one_blas_thread()
def loss_sums(
    passes: RowPasses,
    factor: NystromFactor,
    target_origin: Floats | None = None,
    scaled_ridge: float | None = None,
    loss: Loss = SQUARED,
    at: RidgeSolution | None = None,
    stays: bool = False,
) -> Moments:
    """Return the moments of the features and of the loss's targets, in one pass.

    With `stays`, a Gram matrix that was summed on a device stays there.

    The reference whitens features before their products are summed. For a known ridge, whitening is deferred as far as
    the rounding error is negligible relative to the ridge.
    """
    origin = np.zeros(passes.source.n_targets) if target_origin is None else target_origin
    backend, factor = passes.placed(factor)
    factor = factor.on_host() if backend is NUMPY else factor
    whitening = whiten_before(factor)
    if scaled_ridge is not None and passes.held is None:
        whitening = plan_whitening(factor, passes.source.n_rows, scaled_ridge)
    moments = _sum(passes, LossSums(whitening, loss, origin, at))
    if whitening.is_deferred and whitening.loses_digits(moments.gram):  # the landmarks did not represent the rows
        moments = _sum(passes, LossSums(whiten_before(factor), loss, origin, at))
    elif whitening.is_deferred:
        moments = _finished(moments, whitening)
    gram = moments.gram if stays else on_host(moments.gram, backend)
    return replace(on_host(moments.without_products(), backend), gram=gram)


def _sum(passes: RowPasses, task: LossSums) -> Moments:
    if task.at is not None:
        at = replace(task.at, coefficients=task.whitening.finish_coefficients(task.at.coefficients))
        task = replace(task, at=at)
    passes.count_entries(task.width**2)  # the landmark kernel
    return moved(passes.reduce(task, stays=True), task.whitening.factor.kept_kernel.backend)


def _finished(moments: Moments, whitening: Whitening) -> Moments:
    """Apply the deferred part of the whitening to the sums."""
    rounding = whitening.rounding(moments.gram)
    gram = whitening.finish_gram(moments.gram)
    return replace(
        moments,
        gram=gram,
        cross=whitening.finish_rows(moments.cross),
        feature_sum=whitening.finish_rows(moments.feature_sum),
        # With the largest possible rounding error added, the residual is never too small.
        trace_residual=max(0.0, moments.trace_kernel - float(gram.trace())) + rounding,
    )
