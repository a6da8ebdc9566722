"""Bandwidth and ridge from the data: the median distance, and closed-form leave-one-out over a whole path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from ridgemark.backends import NUMPY
from ridgemark.distinct import DistinctRows
from ridgemark.errors import ParameterError
from ridgemark.kernels import Kernel, has_bandwidth, make_kernel
from ridgemark.kernels.distances import Form, prepare_landmarks, squared_distances
from ridgemark.nystrom import NystromFactor
from ridgemark.passes import RowPasses
from ridgemark.rows import DEFAULT_MEMORY_BUDGET, Block, RowSource, row_weights
from ridgemark.solvers import SpectralSolver

Floats = NDArray[np.float64]

_MEDIAN_SAMPLE = 1000  # rows whose distances give the median


def choose_kernel(
    kernel: Any, bandwidth: Any, source: RowSource, distinct: DistinctRows, rng: np.random.Generator
) -> Kernel:
    """Return the kernel meant, with its bandwidth: the one given, or "median" over distinct rows.

    A Kernel object carries its own bandwidth, and some kernels have none; giving one beside them is an error.
    """
    by_median = isinstance(bandwidth, str) and bandwidth == "median"
    if isinstance(bandwidth, str) and not by_median:
        msg = f'bandwidth must be "median", a positive number or one per feature, got {bandwidth!r}'
        raise ParameterError(msg)
    if bandwidth is None:
        msg = 'bandwidth must be "median", a positive number or one per feature, got None'
        raise ParameterError(msg)
    if by_median and not has_bandwidth(kernel):
        bandwidth = None
    elif by_median:
        sample = rng.choice(distinct.indices, min(_MEDIAN_SAMPLE, len(distinct)), replace=False)
        bandwidth = median_bandwidth(source.take(sample).features)
    elif np.ndim(bandwidth):
        try:
            bandwidth = np.asarray(bandwidth, dtype=np.float64)
        except (TypeError, ValueError):
            msg = f'bandwidth must be "median", a positive number or one per feature, got {bandwidth!r}'
            raise ParameterError(msg) from None
    # A copy: what is set on the user's kernel after a fit must not reach into the fitted model.
    return clone(make_kernel(kernel, bandwidth))


def median_bandwidth(rows: Any) -> float:
    """Return the median Euclidean distance between different rows; 1 when there are not two."""
    count = rows.shape[0]
    if count < 2:
        return 1.0
    rows = rows.astype(np.float64)
    # Measured in units of a typical entry, so that typical squares neither overflow nor vanish.
    entries = np.abs(rows.data if sparse.issparse(rows) else rows)
    unit = float(np.median(entries[entries > 0])) if (entries > 0).any() else 1.0
    prepared = prepare_landmarks(rows, unit, Form(singular=True), NUMPY, "median")
    squared = squared_distances(rows, prepared, None, NUMPY)
    distance = unit * float(np.sqrt(np.median(squared[np.triu_indices(count, k=1)])))
    return distance if 0 < distance < np.inf else 1.0


@dataclass(frozen=True)
class RidgePath:
    """What every ridge of a path gives, for fixed landmarks.

    Attributes
    ----------
    ridges : array of shape (g,)
        The lambdas, descending.
    loo_error : array of shape (g, n_targets) or None
        Weighted mean squared leave-one-out residual; None when the path was chosen by GCV.
    gcv : array of shape (g, n_targets)
        Generalised cross-validation.
    training_error : array of shape (g, n_targets)
        Weighted mean squared residual.
    effective_dimension : array of shape (g,)
        `tr L (L + n lambda)^-1`.
    criterion : {"loo", "gcv"}
        What chose.
    chosen : array of shape (n_targets,)
        Position of each target's ridge in `ridges`.
    """

    ridges: Floats
    loo_error: Floats | None
    gcv: Floats
    training_error: Floats
    effective_dimension: Floats
    criterion: str
    chosen: NDArray[np.intp]

    @property
    def on_edge(self) -> bool:
        """Whether a chosen ridge is the largest or smallest of the path, so that the best may lie beyond."""
        return bool(len(self.ridges) > 1 and np.isin(self.chosen, (0, len(self.ridges) - 1)).any())


@dataclass(frozen=True)
class LeaveOneOut:
    """What leaving out each row in turn tells, for fixed landmarks and fixed `scaled_ridge`.

    Attributes
    ----------
    residuals : array of shape (n, n_targets)
        `y_i` minus its prediction from all rows but one unit of row i.
    potential : array of shape (n, n_targets)
        `(K_ii - L_ii)/(n lambda) + h_i/(1 - h_i)`, h_i being how much a unit of row i pulls its own fitted value: the
        variance, in units of the noise's, of the prediction for row i from the others. Large where a row is on its
        own. The same for targets of the same ridge.
    """

    residuals: Floats
    potential: Floats


def gcv_path(solver: SpectralSolver, ridges: Floats, per_target: bool = False) -> RidgePath:
    """Return the path over the ridges with the best chosen by generalised cross-validation, without a pass.

    Without `per_target` the targets' errors are added up, each in units of its variance.
    """
    return _path(solver, ridges, None, per_target)


def loo_path(
    passes: RowPasses,
    factor: NystromFactor,
    solver: SpectralSolver,
    ridges: Floats,
    target_origin: Floats,
    per_target: bool = False,
) -> tuple[RidgePath, LeaveOneOut]:
    """Return the path over the ridges with the best chosen by leave-one-out, and what the choice leaves.

    One pass for any number of ridges, and a second where the residuals of all of them exceed a quarter of the memory
    budget.
    """
    scaled = _descending(ridges) * solver.total_weight
    errors, left = _loo_errors(passes, factor, solver, scaled, target_origin)
    path = _path(solver, ridges, errors, per_target)
    if left is None:
        return path, leave_one_out(passes, factor, solver, scaled[path.chosen], target_origin)
    return path, _of_choice(left, path.chosen)


def leave_one_out(
    passes: RowPasses, factor: NystromFactor, solver: SpectralSolver, scaled_ridge: Floats, target_origin: Floats
) -> LeaveOneOut:
    """Return residuals and potentials in one pass, for every target at its own `scaled_ridge`."""
    different, chosen = np.unique(scaled_ridge, return_inverse=True)
    of_block = _loo_block(passes, factor, solver, different, target_origin)

    def of_choice(block: Block) -> Floats:
        left_out = _of_choice(of_block(block), chosen)
        return np.hstack([left_out.residuals, left_out.potential])

    width, columns = factor.cross_kernel.n_landmarks, len(different) * (len(chosen) + 1)
    both = passes.map("leave-one-out", of_choice, width + columns, width)
    return LeaveOneOut(both[:, : len(chosen)], both[:, len(chosen) :])


def default_ridges(mean_diagonal: float) -> Floats:
    """Return the path searched when none is given: ten decades down from the kernel's mean diagonal, four a decade."""
    return (mean_diagonal if mean_diagonal > 0 else 1.0) * np.logspace(0, -10, 41)


def _descending(ridges: Floats) -> Floats:
    return np.sort(np.asarray(ridges, dtype=np.float64))[::-1]


def _path(solver: SpectralSolver, ridges: Floats, loo_error: Floats | None, per_target: bool) -> RidgePath:
    solver.check_targets()
    descending = _descending(ridges)
    scaled = descending * solver.total_weight
    gcv = np.array([solver.generalised_cross_validation(r) for r in scaled])
    errors = gcv if loo_error is None else loo_error
    scale = np.where(solver.target_variance > 0, solver.target_variance, 1.0)
    totals = errors / scale if per_target else np.repeat((errors / scale).sum(axis=1)[:, None], gcv.shape[1], axis=1)
    return RidgePath(
        descending,
        loo_error,
        gcv,
        np.array([solver.training_error(r) for r in scaled]),
        np.array([solver.effective_dimension(r) for r in scaled]),
        "gcv" if loo_error is None else "loo",
        np.argmin(totals, axis=0),
    )


def _of_choice(left: Floats, chosen: NDArray[np.intp]) -> LeaveOneOut:
    """Pick each target's ridge from what `_loo_rows` gives."""
    residuals = left[:, chosen, np.arange(len(chosen))]
    return LeaveOneOut(residuals, left[:, chosen, -1])


def _loo_errors(
    passes: RowPasses, factor: NystromFactor, solver: SpectralSolver, scaled_ridges: Floats, origin: Floats
) -> tuple[Floats, Floats | None]:
    """Return the weighted mean squared residual of every ridge and target, and `_loo_rows` where that fits."""
    source = passes.source
    size = 8 * source.n_rows * len(scaled_ridges) * (source.n_targets + 1)
    if size <= (DEFAULT_MEMORY_BUDGET if passes.memory_budget is None else passes.memory_budget) // 4:
        left = _loo_rows(passes, factor, solver, scaled_ridges, origin)
        weights = passes.weights()
        w = np.ones(source.n_rows) if weights is None else weights
        return np.einsum("i,igt->gt", w, left[:, :, :-1] ** 2) / solver.total_weight, left
    of_block = _loo_block(passes, factor, solver, scaled_ridges, origin)

    def sums(block: Block) -> Floats:
        return np.einsum("i,igt->gt", row_weights(block), of_block(block)[:, :, :-1] ** 2)

    width, columns = factor.cross_kernel.n_landmarks, len(scaled_ridges) * (source.n_targets + 1)
    return passes.reduce("leave-one-out", sums, width + columns, width) / solver.total_weight, None


def _loo_rows(
    passes: RowPasses, factor: NystromFactor, solver: SpectralSolver, scaled_ridges: Floats, origin: Floats
) -> Floats:
    """Return each row's residuals for all ridges and targets, and last its potential: (n, ridges, targets + 1)."""
    width, columns = factor.cross_kernel.n_landmarks, len(scaled_ridges) * (passes.source.n_targets + 1)
    of_block = _loo_block(passes, factor, solver, scaled_ridges, origin)
    return passes.map("leave-one-out", of_block, width + columns, width)


def _loo_block(
    passes: RowPasses, factor: NystromFactor, solver: SpectralSolver, scaled_ridges: Floats, origin: Floats
) -> Callable[[Block], Floats]:
    """Return the function that gives a block's residuals `(y - f)/(1 - h)` and potentials.

    `h_i = 1/n + c_i' (s + n lambda)^-1 c_i` with the intercept's 1/n, c_i the centred feature in the solver's
    coordinates. One unit of weight is left out, or the whole row where it weighs less. `1 - h` is held above its bound
    `(1 - 1/n) n lambda/(n lambda + |c_i|^2/(1 - 1/n))`, which rounding alone can cross.
    """
    towards = factor.whitener @ solver.rotation
    offset = solver.feature_mean @ solver.rotation
    inverse = 1.0 / (solver.spectrum[:, None] + scaled_ridges)
    fits = (inverse[:, :, None] * solver.rotated[:, None, :]).reshape(len(inverse), len(scaled_ridges) * len(origin))
    rest = 1.0 - 1.0 / solver.total_weight if solver.fit_intercept else 1.0
    mean = origin + solver.target_mean
    kernel = factor.cross_kernel.kernel

    def of_block(block: Block) -> Floats:
        centred = np.matmul(
            passes.cross_block(factor.cross_kernel, block),
            towards,
            out=passes.scratch.array("features", (block.n_rows, towards.shape[1])),
        )
        diagonal = kernel.diagonal(block.features, block.indices).astype(np.float64)
        unseen = np.maximum(diagonal - np.einsum("ij,ij->i", centred, centred), 0.0)[:, None]
        centred -= offset
        assert block.targets is not None
        left = np.empty((block.n_rows, len(scaled_ridges), len(mean) + 1))
        left[:, :, :-1] = (block.targets - mean)[:, None, :]
        left[:, :, :-1] -= (centred @ fits).reshape(block.n_rows, len(scaled_ridges), len(mean))
        np.square(centred, out=centred)
        share = np.minimum(row_weights(block), 1.0)[:, None]
        length = centred.sum(axis=1)[:, None] / max(rest, 1e-12)
        floor = np.maximum(rest * scaled_ridges / (scaled_ridges + length), np.finfo(np.float64).tiny)
        spared = np.maximum(1.0 - share * (centred @ inverse + (1.0 - rest)), floor)
        left[:, :, :-1] /= spared[:, :, None]
        left[:, :, -1] = unseen / scaled_ridges + (1.0 / spared - 1.0)
        return left

    return of_block
