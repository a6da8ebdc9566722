"""Rows with targets whose squared error tunes the kernel of another loss."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ridgemark.backends import Floats
from ridgemark.kernels import CrossKernel
from ridgemark.losses import Loss, loss_sums
from ridgemark.losses.robust import robust_scale, weighted_quantile
from ridgemark.operators import nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.path import ridge_path
from ridgemark.path.ridges import Ridges
from ridgemark.rows import ArrayRows, Block
from ridgemark.rows.dask import mapped_rows
from ridgemark.solvers import SpectralSolver
from ridgemark.tuning import choose_kernel

_SAMPLE, _LANDMARKS = 2000, 200  # distinct rows, and how many of them are landmarks, of the first fit
_FIRST = 5.0  # standard deviations from the median beyond which targets are drawn nearer for the first fit
_ROUNDS = 5  # fits, each to targets drawn nearer to the one before
_FAR = 2.0  # standard deviations of the noise from the first fit beyond which targets are drawn nearer


@dataclass(frozen=True, eq=False)
class Response:
    """The loss's response to each target, drawn to within a distance of a first fit where there is one."""

    loss: Loss
    nearby: tuple[CrossKernel, Floats, float, float] | None = None  # kernel, coefficients, constant, distance

    n_targets: ClassVar[int] = 1
    weighs: ClassVar[bool] = False

    def __call__(self, block: Block) -> Block:
        """Return the rows with the response as target."""
        targets = self.loss.response(block.targets)
        if self.nearby is not None:
            cross_kernel, coefficients, constant, far = self.nearby
            fitted = cross_kernel(block.features.astype(np.float64)) @ coefficients + constant
            targets = fitted + np.clip(targets - fitted, -far, far)
        return replace(block, targets=targets)


def response_passes(passes: RowPasses, loss: Loss) -> RowPasses:
    """Return passes over the same rows whose targets are the loss's response."""
    passes.require_memory()
    passes.distinct_rows()  # found once, for both
    nearby = _first_fit(passes, loss) if loss.trims else None
    return passes.with_source(mapped_rows(passes.source, Response(loss, nearby)))


def _first_fit(passes: RowPasses, loss: Loss) -> tuple[CrossKernel, Floats, float, float] | None:
    """Return a function of some rows that outliers hardly move, and how far from it a target is an outlier.

    Fits by squared errors alternate with drawing targets that are far from the fit to within two standard deviations:
    the fixed point is a fit by the Huber loss. None where rows are those of a precomputed kernel matrix.
    """
    rows = passes.take(passes.distinct_rows().indices[:_SAMPLE])
    if not rows.n_rows or rows.n_rows == rows.features.shape[1]:
        return None
    weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
    response = loss.response(rows.targets)
    sample = RowPasses(ArrayRows(rows.features, response, rows.weights), passes.memory_budget)
    kernel, _ = choose_kernel("gaussian", "median", sample, np.random.default_rng(0))
    factor = nystrom_factor(kernel, rows.features[:_LANDMARKS])
    scaled = weights.sum() * np.logspace(0, -8, 33)
    features = factor.features(rows.features)
    fitted = np.full(response.shape, weighted_quantile(response[:, 0], weights, 0.5))
    far = _FIRST * robust_scale((response - fitted)[:, 0], weights)
    for _ in range(_ROUNDS):
        drawn = fitted + np.clip(response - fitted, -far, far)
        moments = loss_sums(RowPasses(ArrayRows(rows.features, drawn, rows.weights), passes.memory_budget), factor)
        solver = SpectralSolver(moments, True)
        path = ridge_path(solver, Ridges(scaled, scaled), rows.n_rows)
        solution = solver.solution(float(path.ridges[path.chosen[0]]))
        fitted = features @ solution.coefficients + solution.intercept
        far = _FAR * robust_scale((response - fitted)[:, 0], weights)
    return factor.cross_kernel, factor.combine(solution.coefficients), float(solution.intercept[0]), far
