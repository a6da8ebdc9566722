"""The size of the noise as a function of x, by which the widths of intervals follow it."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from ridgemark.backends import Floats, Indices
from ridgemark.intervals.deviations import outside, unit_variance
from ridgemark.intervals.quantiles import quantiles
from ridgemark.losses import RidgeSolution, loss_sums
from ridgemark.passes import RowPasses, Workspace
from ridgemark.path import LeaveOneOut, Ridges, loo_path, searched_path
from ridgemark.path.left_out import left_out_at
from ridgemark.rows import ArrayRows, Block, RowGroups, group_rows
from ridgemark.solvers import LandmarkFit, RidgeTask, SpectralSolver, ridge_form
from ridgemark.solvers.groups import kept_share
from ridgemark.solvers.landmark_fit import CentredMoments, solve_one_ridge

_FEATURES_OF_GROUPS = 200  # the first ones, for the noise of rows that leave in groups
_FEATURES = 500  # the first ones: the noise is a smooth function, for which they are enough
_LOWEST = 0.05  # of the median residual: the noise is nowhere smaller
_SMALLEST = 1e-5  # ridge of the noise, over the kernel's mean diagonal
_OUTLIER = 25.0  # squared standardised residuals count at most this
_EQUAL = 1e-12  # spread of the sizes, over their mean, below which they differ by rounding
_SHARES = np.append(np.logspace(0.0, -8.0, 33), 0.0)  # of the function's variance


@dataclass(frozen=True, eq=False)
class NoiseLevel:
    """The size of the noise: `sigma(x) = max(b(x)' coefficients + intercept, floor)`, one for each target.

    Attributes
    ----------
    solution : RidgeSolution
        The coefficients of the features b, and the intercept.
    floor : array of shape (n_targets,)
        The smallest size.
    variance : array of shape (n_targets,)
        The variance of the noise of a row of unit weight, which the variance of the function is relative to.
    outside : bool
        Whether it was made without the calibration rows: a fixed function, as the guarantee needs.
    """

    solution: RidgeSolution
    floor: Annotated[Floats, "(t)", ">= 0"]
    variance: Annotated[Floats, "(t)", ">= 0"]
    outside: bool


def constant_noise(fit: LandmarkFit) -> NoiseLevel:
    """Return noise of one size everywhere. Its unit does not matter, since scores are measured in it.

    A row of mean weight has noise of this size, so that a factor on all weights changes nothing.
    """
    shape, ones = fit.solution.coefficients.shape, np.ones(len(fit.scaled_ridge))
    variance = fit.moments.total_weight / fit.moments.n_rows * (not _pairwise(fit))
    return NoiseLevel(RidgeSolution(np.zeros(shape), ones), ones, variance * ones, True)


def noise_of_rows(
    passes: RowPasses, fit: LandmarkFit, left_out: LeaveOneOut, sample: Indices
) -> tuple[NoiseLevel, Floats]:
    """Return the noise by ridge regression of |r_i| on the first features, and its values left out at sampled rows.

    r are the leave-one-out residuals of the rows of the fit, or of a sample of them. The ridge of each target is that
    of the smallest leave-one-out error on the sample. Sizes are scaled so that the mean of `min((r/sigma)^2, 25)` is 1.
    """
    weights = passes.row_counts()
    sizes, unit, origin = _in_units(np.abs(left_out.residuals), weights)
    total = weights.sum()
    uneven = np.sqrt(weights @ (sizes - origin) ** 2 / total) > _EQUAL  # noise of one size has nothing to regress
    weighted = weights[:, None] * (sizes - origin) * uneven
    more = fit.moments.total_weight / total  # sums over a sample are raised to those of all rows
    ridges, factor = _ridges(fit), fit.factor.leading(_FEATURES)
    leading = fit.moments.leading(factor.rank)
    sums = replace(
        leading,
        cross=(left_out.size_sums[: factor.rank] * (more / unit) - np.outer(leading.feature_sum, origin)) * uneven,
        target_sum=more * weighted.sum(axis=0),
        target_square=more * (weighted * (sizes - origin)).sum(axis=0),
    )
    solver = SpectralSolver(sums, fit.fit_intercept, fit.solver if factor is fit.factor else None)
    together, own, wholes = passes.left_out(), weights[sample], passes.left_out_groups().weights
    gaps = group_rows(together, weights, sizes.copy()).gaps if together.has_repeats else None
    groups = RowGroups(wholes[sample], None if gaps is None else gaps[sample])
    count = np.divide(weights, wholes, out=np.zeros_like(weights), where=weights > 0).sum()
    n_groups = round(more * count)  # among all rows of the fit
    sizes = sizes[sample]
    rows = RowPasses(ArrayRows(passes.take(sample).features, sizes, own), passes.memory_budget)
    path, sizes_left_out = loo_path(rows, factor, solver, ridges, origin, True, n_groups, groups)
    assert sizes_left_out is not None  # the rows are in memory
    passes.count_entries(rows.n_kernel_evaluations)
    # Each group counts once, so that weight 2 is a repeated row.
    solution, variance = solver.solution(ridges.scaled[path.chosen]), unit_variance(fit, n_groups)
    return _noise(fit, sizes, sizes_left_out.residuals, own, unit, origin, solution, variance)


def noise_of_groups(rows: RowPasses, fit: LandmarkFit) -> tuple[NoiseLevel, Floats]:
    """Return the same from some rows that leave in groups, whose targets are the sizes of their residuals.

    The regression is on these rows alone, so that all of a group that is in it is left out; one ridge for all targets.
    """
    weights, factor = rows.row_counts(), fit.factor.leading(_FEATURES_OF_GROUPS)
    sizes, unit, origin = _in_units(rows.targets(), weights)
    source = rows.source
    rows = RowPasses(
        ArrayRows(rows.take(np.arange(source.n_rows)).features, sizes, weights, rows.group_labels), rows.memory_budget
    )
    centred = CentredMoments(loss_sums(rows, factor, origin), fit.fit_intercept)
    ridges = _ridges(fit)
    ridges = Ridges(ridges.values, ridges.values * centred.total_weight)
    searched, scaled = searched_path(rows, factor, centred, ridges, origin, None, source.n_rows), ridges.scaled[0]
    solved = None
    if searched is not None:
        path, solved = searched
        scaled = ridges.scaled_of(path.ridges[path.chosen])[0]
    solved = solved or solve_one_ridge(centred, float(scaled))
    if solved is None:
        return constant_noise(fit), np.ones_like(sizes)
    left_out = left_out_at(rows, factor, centred, solved.inverse, np.full(sizes.shape[1], scaled), origin)
    variance = unit_variance(fit, fit.moments.n_rows)
    return _noise(fit, sizes, left_out.residuals, weights, unit, origin, solved.solution, variance)


def _in_units(sizes: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the sizes of residuals over their mean, this mean, and the mean of the result; zeros stay."""
    total = weights.sum()
    unit = weights @ sizes / total
    unit[unit == 0.0] = 1.0
    sizes = sizes / unit
    return sizes, unit, weights @ sizes / total


def _noise(
    fit: LandmarkFit,
    sizes: Floats,
    left_out: Floats,
    weights: Floats,
    unit: Floats,
    origin: Floats,
    solution: RidgeSolution,
    variance: Floats,
) -> tuple[NoiseLevel, Floats]:
    """Return the noise of a regression of sizes, and its values at the rows, from the residuals of sizes left out.

    Its features are the first ones of the fit. The function has no variance where k(x, x) of new rows is not known.
    """
    floor = np.maximum(_LOWEST * quantiles(sizes.T, weights, [0.5])[:, 0], np.finfo(float).eps)
    level = np.maximum(sizes - left_out, floor)
    scale = unit * _scale(sizes / level, weights)
    coefficients = np.zeros((fit.factor.rank, len(scale)))
    coefficients[: len(solution.coefficients)] = solution.coefficients * scale
    solution = RidgeSolution(coefficients, (solution.intercept + origin) * scale)
    return NoiseLevel(solution, floor * scale, variance * (not _pairwise(fit)), False), level * scale


def _pairwise(fit: LandmarkFit) -> bool:
    return fit.factor.cross_kernel.kernel.pairwise


def _ridges(fit: LandmarkFit) -> Ridges:
    """Return the ridges of the noise, which is as smooth as the fit or smoother: four a decade."""
    trace = min(fit.moments.trace_kernel, 1e299)  # beyond, sums of the kernel are out of range
    smallest = max(float(fit.scaled_ridge.min()), _SMALLEST * trace)
    largest = max(10.0 * trace, smallest)
    count = 1 + int(np.ceil(4.0 * np.log10(largest / smallest)))
    scaled = np.geomspace(largest, smallest, count)
    return Ridges(scaled / fit.moments.total_weight, scaled)


def _scale(ratios: Floats, weights: Floats) -> Floats:
    """Return c with a weighted mean of `min((ratio/c)^2, 25)` of 1, for each target; 1 if all ratios are 0."""
    squares, share = ratios**2, weights / weights.sum()
    square = share @ squares
    for _ in range(100):  # decreases to the largest solution
        square = share @ np.minimum(squares, _OUTLIER * square)
    return np.where(square > 0.0, np.sqrt(square), 1.0)


def variance_share(residuals: Floats, sigma: Floats, deviation: Floats, weights: Floats) -> Floats:
    """Return the share a of the function's variance with which the residuals are likeliest, for each target.

    It minimises the sum of `log tau^2 + r^2/tau^2`, `tau^2 = sigma^2 + a sd^2`, over a of at most 1. Where rows repeat,
    lambda is chosen for means of equal rows, which hide most of the noise, and the variance may be far too large.
    """
    sigma = np.maximum(sigma, np.finfo(np.float64).tiny)  # squares in units of sigma^2 do not underflow
    with np.errstate(over="ignore"):
        squares, variance = (residuals / sigma) ** 2, (deviation / sigma) ** 2
        costs = [weights @ (np.log1p(a * variance) + squares / (1.0 + a * variance)) for a in _SHARES[:-1]]
    return _SHARES[np.argmin([*costs, weights @ squares], axis=0)]


class Widths(RidgeTask):
    """`f(x)`, `sigma(x)`, `sd(x)` and `sqrt(t(x, x))` of `adaptive_intervals`, shape (rows, 4, targets).

    Where weights of the rows' groups are given along, sd is that of the fit without the group: t/(1 - h) for t.
    """

    what: ClassVar[str] = "intervals"
    noise: NoiseLevel
    noise_fits: Floats  # (rank, targets): coefficients of sigma
    noise_mean: Floats  # (targets,)

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        (coordinates, lengths, squares), backend = self.coordinates(block, workspace), workspace.backend
        values = backend.empty((block.n_rows, 4, len(self.scaled_ridge)))
        values[:, 0] = coordinates @ self.fits + self.target_mean
        values[:, 1] = backend.at_least(coordinates @ self.noise_fits + self.noise_mean, self.noise.floor)
        backend.xp.square(coordinates, out=coordinates)
        shared = coordinates @ self.inverse.factors + self.share_of_constant
        spread = outside(self, block, squares)
        if block.along:
            weights = block.along[0][:, None]
            spread += shared / kept_share(shared, lengths[:, None], weights, self.share_of_constant, self.scaled_ridge)
        elif not self.noise.outside:
            spread += shared
        values[:, 2] = backend.xp.sqrt(self.noise.variance * spread)
        values[:, 3] = backend.xp.sqrt(shared)
        return values


def widths(fit: LandmarkFit, noise: NoiseLevel) -> Widths:
    """Return the task; in its coordinates `sigma = c(x)'R^-1 coefficients + intercept + m'coefficients`."""
    form, solution = ridge_form(fit), noise.solution
    return Widths(
        **form,
        noise=noise,
        noise_fits=fit.inverse.coordinates(solution.coefficients),
        noise_mean=solution.intercept + form["mean"] @ solution.coefficients,
    )
