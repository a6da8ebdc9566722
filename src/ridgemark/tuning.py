"""Bandwidth and ridge from the data: the median distance, and closed-form leave-one-out over a whole path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from ridgemark.backends import NUMPY
from ridgemark.errors import NumericalError, ParameterError
from ridgemark.kernels import CrossKernel, Kernel, has_bandwidth, make_kernel
from ridgemark.kernels.distances import Form, prepare_landmarks
from ridgemark.kernels.distances import distances as squared_distances
from ridgemark.operators import NystromFactor, cross_block
from ridgemark.operators.blocks import diagonal_block
from ridgemark.passes import RowPasses, Task, Workspace
from ridgemark.rows import ArrayRows, Block, RowSource, row_weights
from ridgemark.rows.distinct import KEPT_HASHES, DistinctRows, RowGroups
from ridgemark.solvers import SpectralSolver
from ridgemark.solvers.landmark_fit import ROBUST

Floats = NDArray[np.float64]

_MEDIAN_SAMPLE = 1000  # rows whose pairwise distances give the median


def choose_kernel(
    kernel: Any, bandwidth: Any, source: RowSource, distinct: DistinctRows, rng: np.random.Generator
) -> Kernel:
    """Return the kernel with its bandwidth: the one given, or for "median" the median distance of distinct rows.

    A Kernel object has its own bandwidth, and some kernels have none; giving a bandwidth as well is an error.
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
    # A copy: changes of the user's kernel after a fit must not change the fitted model.
    return clone(make_kernel(kernel, bandwidth))


def median_bandwidth(rows: Any) -> float:
    """Return the median Euclidean distance between different rows; 1 when there are not two."""
    count = rows.shape[0]
    if count < 2:
        return 1.0
    rows = rows.astype(np.float64)
    # In units of a typical entry, so that typical squares neither overflow nor underflow.
    entries = np.abs(rows.data if sparse.issparse(rows) else rows)
    unit = float(np.median(entries[entries > 0])) if (entries > 0).any() else 1.0
    prepared = prepare_landmarks(rows, unit, Form(singular=True), NUMPY, "median")
    squared = squared_distances(rows, prepared, None, NUMPY)
    distance = unit * float(np.sqrt(np.median(squared[np.triu_indices(count, k=1)])))
    return distance if 0 < distance < np.inf else 1.0


@dataclass(frozen=True)
class RidgePath:
    """Errors and effective dimension for every ridge of a path, for fixed landmarks.

    Attributes
    ----------
    ridges : array of shape (g,)
        The lambdas, descending.
    loo_error : array of shape (g, n_targets) or None
        Weighted mean squared leave-one-out residual; None when the path was chosen by GCV.
    gcv : array of shape (g, n_targets)
        Generalised cross-validation, as in `SpectralSolver.generalised_cross_validation`.
    training_error : array of shape (g, n_targets)
        Weighted mean squared residual.
    effective_dimension : array of shape (g,)
        `tr L (L + n lambda)^-1`.
    criterion : {"loo", "gcv"}
        The criterion that chose the ridges.
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
    """Leave-one-out residuals and potentials of distinct rows, for fixed landmarks and fixed `scaled_ridge`.

    Attributes
    ----------
    residuals : array of shape (n, n_targets)
        `y_i` minus its prediction from all rows with other features.
    potential : array of shape (n, n_targets)
        `w_i ((K_ii - L_ii)/(n lambda) + t_i/(1 - h_i))`, with t and h as in `leave_one_out`: the variance of the
        prediction for row i from all rows with other features, in units of the variance of its noise. Large where a
        row is far from all others. The same for targets of the same ridge.
    weights : array of shape (n,)
        In units of their mean; the noise variance of row i is the mean noise variance over its weight.
    """

    residuals: Floats
    potential: Floats
    weights: Floats


@dataclass(frozen=True, eq=False)
class KeptRows:
    """A uniform sample of the distinct rows of several batches, for leave-one-out without the earlier batches.

    The rows kept are those with the smallest hashes. A row kept after the last batch was kept in every batch that has
    it, so its sums are complete.

    Attributes
    ----------
    hashes : array of shape (m,)
        Ascending.
    rows : array or sparse matrix of shape (m, n_features)
        One row for each hash.
    weights : array of shape (m,)
        The weight of all rows equal to it.
    targets : array of shape (m, n_targets)
        Their weighted mean target.
    most : int
        Largest number of rows kept.
    """

    hashes: NDArray[np.uint64]
    rows: Any
    weights: Floats
    targets: Floats
    most: int

    def __add__(self, other: KeptRows) -> KeptRows:
        together = np.concatenate([self.hashes, other.hashes])
        hashes, first, which = np.unique(together, return_index=True, return_inverse=True)
        weights = np.concatenate([self.weights, other.weights])
        total = np.bincount(which, weights).astype(float)
        sums = [np.bincount(which, weights * y) for y in np.concatenate([self.targets, other.targets]).T]
        stack = sparse.vstack if sparse.issparse(self.rows) else np.concatenate
        most = min(self.most, other.most)
        rows = stack([self.rows, other.rows])[first[:most]]
        targets = np.stack(sums, axis=1) / total[:, None]
        return KeptRows(hashes[:most], rows, total[:most], targets[:most], most)

    def passes(self, memory_budget: int | None) -> RowPasses:
        """Return passes over these rows alone."""
        return RowPasses(ArrayRows(self.rows, self.targets, self.weights), memory_budget)


def keep_rows(passes: RowPasses) -> KeptRows:
    """Return those distinct rows of a batch that have the smallest hashes: 2,048, or what 1/4 of the budget holds."""
    distinct, groups = passes.distinct_rows(), passes.row_groups()
    most = max(100, min(KEPT_HASHES, passes.budget // (32 * passes.source.n_features)))
    first = distinct.indices[:most]  # in the order of hashes
    taken = passes.take(first)
    assert taken.targets is not None
    targets = taken.targets if groups.gaps is None else taken.targets + groups.gaps[first]
    return KeptRows(distinct.smallest[:most], taken.features, groups.weights[first], targets, most)


def gcv_path(
    solver: SpectralSolver, ridges: Floats, n_distinct: int, per_target: bool = False, factor: float = ROBUST
) -> RidgePath:
    """Return the path over the ridges with the best chosen by generalised cross-validation, without a pass.

    Without `per_target` the targets' errors are added up, each in units of its variance.
    """
    return _path(solver, ridges, n_distinct, None, per_target, factor)


def loo_path(
    passes: RowPasses,
    factor: NystromFactor,
    solver: SpectralSolver,
    ridges: Floats,
    target_origin: Floats,
    per_target: bool = False,
    n_distinct: int | None = None,
) -> tuple[RidgePath, LeaveOneOut]:
    """Return the path over the ridges with the best chosen by leave-one-out, and its leave-one-out results.

    One pass for any number of ridges, and a second where the residuals of all of them exceed a quarter of the memory
    budget; before it one over the targets where some rows are equal. The rows may be a sample of the solver's rows;
    `n_distinct` is then the number of all distinct rows.
    """
    scaled = _descending(ridges) * solver.total_weight
    errors, results = _loo_errors(passes, factor, solver, scaled, target_origin)
    path = _path(solver, ridges, n_distinct or len(passes.distinct_rows()), errors, per_target)
    if results is None:
        return path, leave_one_out(passes, factor, solver, scaled[path.chosen], target_origin)
    return path, LeaveOneOut(*_at_chosen(results, path.chosen), _relative_weights(passes))


def leave_one_out(
    passes: RowPasses, factor: NystromFactor, solver: SpectralSolver, scaled_ridge: Floats, target_origin: Floats
) -> LeaveOneOut:
    """Return residuals and potentials in one pass, for every target at its own `scaled_ridge`.

    A group g of rows with equal features is left out with all its weight W_g. With
    `t_g = 1/sum w + c_g' (Bc'WBc + n lambda)^-1 c_g`, c_g its centred features (without an intercept, no 1/sum w and
    no centring), `h_g = W_g t_g`, and ybar_g its weighted mean target, the rows with other features predict
    `f - h_g/(1 - h_g) (ybar_g - f)`: as a refit does.
    """
    different, chosen = np.unique(scaled_ridge, return_inverse=True)
    task = ChosenLeftOut(**_left_out_parts(factor, solver, different, target_origin), chosen=chosen)
    both = passes.map(task, _along(passes.row_groups()))
    return LeaveOneOut(both[:, : len(chosen)], both[:, len(chosen) :], _relative_weights(passes))


def default_ridges(mean_diagonal: float, total_weight: float = 1.0) -> Floats:
    """Return the path searched when none is given: ten decades down from the kernel's mean diagonal, four a decade.

    Ridges that leave the floating-point range when multiplied by the sum of weights are not searched.
    """
    ridges = (mean_diagonal if mean_diagonal > 0 else 1.0) * np.logspace(0, -10, 41)
    usable: Floats = ridges[ridges_in_range(ridges * total_weight)]
    if not len(usable):
        msg = (
            f"every ridge to search, times the sum of weights, leaves the floating-point range: the kernel's diagonal "
            f"has mean {mean_diagonal:.3g}, the weights sum to {total_weight:.3g}; multiply the kernel or the weights "
            "by a factor"
        )
        raise NumericalError(msg)
    return usable


def ridges_in_range(scaled_ridges: Floats) -> NDArray[np.bool_]:
    """Return which values of n lambda, with their inverses and products, stay within the floating-point range."""
    return (scaled_ridges > 1e-300) & (scaled_ridges < 1e300)


def _descending(ridges: Floats) -> Floats:
    return np.sort(np.asarray(ridges, dtype=np.float64))[::-1]


def _relative_weights(passes: RowPasses) -> Floats:
    weights = passes.row_counts()
    return weights * (np.count_nonzero(weights) / weights.sum())


def _path(
    solver: SpectralSolver,
    ridges: Floats,
    n_distinct: int,
    loo_error: Floats | None,
    per_target: bool,
    factor: float = ROBUST,
) -> RidgePath:
    solver.check_targets()
    descending = _descending(ridges)
    scaled = descending * solver.total_weight
    gcv = np.array([solver.generalised_cross_validation(r, n_distinct, factor) for r in scaled])
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


def _at_chosen(results: Floats, chosen: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Pick residuals and potentials at each target's ridge from those at all ridges."""
    return results[:, chosen, np.arange(len(chosen))], results[:, chosen, -1]


def _loo_errors(
    passes: RowPasses, factor: NystromFactor, solver: SpectralSolver, scaled_ridges: Floats, origin: Floats
) -> tuple[Floats, Floats | None]:
    """Return the weighted mean squared residual of every ridge and target.

    Where that fits into memory return also each row's residuals for all ridges and targets, and last its potential:
    an array of shape (n, ridges, targets + 1).
    """
    parts, along = _left_out_parts(factor, solver, scaled_ridges, origin), _along(passes.row_groups())
    total = passes.row_counts().sum()
    if 8 * passes.source.n_rows * len(scaled_ridges) * (len(origin) + 1) <= passes.budget // 4:
        results = passes.map(LeftOut(**parts), along)
        return np.einsum("i,igt->gt", passes.row_counts(), results[:, :, :-1] ** 2) / total, results
    return passes.reduce(LeftOutErrors(**parts), along) / total, None


def _along(groups: RowGroups) -> tuple[Floats, ...]:
    return (groups.weights,) if groups.gaps is None else (groups.weights, groups.gaps)


def _left_out_parts(
    factor: NystromFactor, solver: SpectralSolver, scaled_ridges: Floats, origin: Floats
) -> dict[str, Any]:
    """Return the fields of `LeftOut`."""
    inverse = 1.0 / (solver.spectrum[:, None] + scaled_ridges)
    fits = inverse[:, :, None] * solver.rotated[:, None, :]
    return {
        "cross_kernel": factor.cross_kernel,
        "rotate": factor.whitener @ solver.rotation,
        "offset": solver.feature_mean @ solver.rotation,
        "inverse": inverse,
        "fits": fits.reshape(len(inverse), len(scaled_ridges) * len(origin)),
        "target_mean": origin + solver.target_mean,
        "scaled_ridges": scaled_ridges,
        "share_of_constant": 1.0 / solver.total_weight if solver.fit_intercept else 0.0,
    }


@dataclass(frozen=True, eq=False)
class LeftOut(Task):
    """A block's residuals for all ridges and targets, and last its potentials, by the formulas of `leave_one_out`.

    The result has shape (rows, ridges, targets + 1). Given along are the weights of the rows' groups and, where rows
    are equal, the gaps of their targets from the groups' means.
    """

    what: ClassVar[str] = "leave-one-out"
    cross_kernel: CrossKernel
    rotate: Floats  # (p, rank): from kernel values to features in the solver's coordinates, in one product
    offset: Floats  # (rank,): their mean
    inverse: Floats  # (rank, ridges): `1/(s + n lambda)`
    fits: Floats  # (rank, ridges * targets): coefficients
    target_mean: Floats  # (targets,)
    scaled_ridges: Floats  # (ridges,)
    share_of_constant: float  # 1/sum w with an intercept, otherwise 0

    @property
    def width(self) -> int:
        return self.cross_kernel.n_landmarks + self.fits.shape[1] + len(self.scaled_ridges)

    @property
    def kernel_entries(self) -> int:
        return self.cross_kernel.n_landmarks

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        n_rows, n_ridges, n_targets = block.n_rows, len(self.scaled_ridges), len(self.target_mean)
        centred = workspace.array("features", (n_rows, self.rotate.shape[1]))
        np.matmul(cross_block(self.cross_kernel, block, workspace), self.rotate, out=centred)
        diagonal = diagonal_block(self.cross_kernel, block)
        unexplained = np.maximum(diagonal - np.einsum("ij,ij->i", centred, centred), 0.0)[:, None]
        centred -= self.offset
        assert block.targets is not None
        results = np.empty((n_rows, n_ridges, n_targets + 1))
        results[:, :, :-1] = (block.targets - self.target_mean)[:, None, :]
        results[:, :, :-1] -= (centred @ self.fits).reshape(n_rows, n_ridges, n_targets)
        np.square(centred, out=centred)
        own, weights = row_weights(block)[:, None], block.along[0][:, None]
        kept = _kept_share(centred, self.inverse, weights, self.share_of_constant, self.scaled_ridges)
        pull = 1.0 / kept - 1.0  # h/(1 - h)
        results[:, :, :-1] /= kept[:, :, None]
        if len(block.along) > 1:
            results[:, :, :-1] += pull[:, :, None] * block.along[1][:, None, :]
        share = np.divide(own, weights, out=np.zeros_like(own), where=weights > 0)
        results[:, :, -1] = own * unexplained / self.scaled_ridges + share * pull
        return results


@dataclass(frozen=True, eq=False)
class LeftOutErrors(LeftOut):
    """The weighted sum of squared residuals for every ridge and target."""

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        squares = super().__call__(block, workspace)[:, :, :-1] ** 2
        return np.einsum("i,igt->gt", row_weights(block), squares)


@dataclass(frozen=True, eq=False)
class ChosenLeftOut(LeftOut):
    """Residuals and potentials at each target's own ridge, shape (rows, 2 targets)."""

    chosen: NDArray[np.intp]

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        return np.hstack(_at_chosen(super().__call__(block, workspace), self.chosen))


def _kept_share(squares: Floats, inverse: Floats, weights: Floats, constant: float, scaled_ridges: Floats) -> Floats:
    """Return `1 - h_g = 1 - W_g (1/sum w + c_g^2' inverse)` for every row and ridge; 1 where there is no other row.

    It is raised to its lower bound `rest n lambda/(n lambda + W_g |c_g|^2/rest)`, `rest = 1 - W_g/sum w`; only
    rounding can make it smaller.
    """
    rest = 1.0 - weights * constant
    others = rest > 1e-12
    length = weights * squares.sum(axis=1)[:, None] / np.where(others, rest, 1.0)
    floor = np.maximum(rest * scaled_ridges / (scaled_ridges + length), np.finfo(np.float64).tiny)
    return np.where(others, np.maximum(1.0 - weights * (squares @ inverse + constant), floor), 1.0)
