"""The path of ridges: errors and dimensions at each of them, and the choice of the best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from ridgemark.backends import Flags, Floats, Indices
from ridgemark.operators import NystromFactor, hold_features
from ridgemark.passes import RowPasses
from ridgemark.path.downhill import walk_downhill
from ridgemark.path.left_out import (
    LeaveOneOut,
    at_chosen,
    left_out_at,
    left_out_results,
    path_errors,
)
from ridgemark.rows.distinct import RowGroups
from ridgemark.solvers import SpectralSolver, ridges_form
from ridgemark.solvers.landmark_fit import ROBUST, CentredMoments, OneRidge, generalised_error, solve_one_ridge

_STRIDE = 8  # two decades, of ridges compared where nothing suggests a first one
_AS_GOOD = 1e-4  # relative difference of squared errors that does not count
_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Ridges:
    """Ridges to search, descending: lambda, and n lambda."""

    values: Floats
    scaled: Floats

    def scaled_of(self, values: Floats) -> Floats:
        """Return n lambda for some of the lambdas."""
        return self.scaled[[int(np.flatnonzero(self.values == value)[0]) for value in values]]


@dataclass(frozen=True)
class RidgePath:
    """Errors and effective dimension for every ridge of a path, for fixed landmarks.

    Attributes
    ----------
    ridges : array of shape (g,)
        The lambdas, descending.
    loo_error : array of shape (g, n_targets) or None
        Weighted mean squared leave-one-out residual, of a sample where `sample` says so; None when the path was chosen
        by GCV.
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
    sample : array of shape (g,)
        Whether the leave-one-out error of a ridge is that of a sample: at most 2,048 distinct rows, each with the mean
        target of all rows equal to it.
    smallest, largest : float
        The ends of the ridges that could have been tried.
    """

    ridges: Annotated[Floats, "(g)", "> 0"]
    loo_error: Annotated[Floats | None, "(g, t)", ">= 0", "any"]
    gcv: Annotated[Floats, "(g, t)", "any"]
    training_error: Annotated[Floats, "(g, t)", ">= 0", "any"]
    effective_dimension: Annotated[Floats, "(g)", "any"]
    criterion: Annotated[str, Literal["loo", "gcv"]]
    chosen: Annotated[Indices, "(t)", "< g"]
    sample: Annotated[Flags, "(g)"]
    smallest: Annotated[float, "> 0"]
    largest: Annotated[float, "> 0", "any"]

    def __post_init__(self) -> None:
        if not self.smallest <= self.ridges.min() <= self.ridges.max() <= self.largest:
            raise ValueError("the ridges of a path must lie between its ends")

    @property
    def on_edge(self) -> bool:
        """Whether a chosen ridge is the largest or smallest of those searched, so that the best may lie beyond."""
        ends = self.smallest, self.largest
        return bool(self.smallest < self.largest and np.isin(self.ridges[self.chosen], ends).any())

    def with_all_rows(self, loo_error: Floats) -> RidgePath:
        """Return the path of one ridge for all targets, with its leave-one-out error of all rows."""
        assert self.loo_error is not None
        errors, sample = self.loo_error.copy(), self.sample.copy()
        errors[self.chosen[0]], sample[self.chosen[0]] = loo_error, False
        return replace(self, loo_error=errors, sample=sample)

    def raised(self, share: float) -> RidgePath:
        """Return the path with the largest ridge chosen whose error exceeds that of the chosen one by at most a share.

        One ridge for all targets, which holds for the error of each.
        """
        errors = self.gcv if self.loo_error is None else self.loo_error
        best = errors[self.chosen, np.arange(errors.shape[1])]
        largest = np.argmax((errors <= (1.0 + share) * best).all(axis=1))
        return replace(self, chosen=np.full_like(self.chosen, min(largest, self.chosen.min())))


def loo_path(
    passes: RowPasses,
    factor: NystromFactor,
    solver: SpectralSolver,
    ridges: Ridges,
    target_origin: Floats,
    per_target: bool = False,
    n_left_out: int | None = None,
    groups: RowGroups | None = None,
) -> tuple[RidgePath, LeaveOneOut | None]:
    """Return the path over the ridges with the best chosen by leave-one-out, and its leave-one-out results.

    One pass for any number of ridges, and a second where the residuals of all of them exceed a quarter of the memory
    budget; before it one over the targets where some rows are equal. The rows may be a sample of the solver's rows;
    `n_left_out` then counts all groups that can be left out, and `groups` says what is left out with each row of the
    sample. Where residuals of all rows exceed the memory of rows on workers, only the path is returned.
    """
    inverse = solver.at_ridges(ridges.scaled)
    errors, left_out = path_errors(passes, ridges_form(factor, solver, inverse, ridges.scaled, target_origin), groups)
    path = ridge_path(solver, ridges, n_left_out or passes.n_left_out, per_target, loo_error=errors)
    path = replace(path, sample=np.full(len(path.ridges), n_left_out is not None))
    if passes.beyond_memory:
        return path, None
    if left_out is None or passes.leaves_groups:
        scaled = ridges.scaled[path.chosen]
        inverse = solver.at_ridges(scaled)
        return path, left_out_at(passes, factor, solver, inverse, scaled, target_origin, groups)
    results, sums = left_out
    of_targets = sums[:, path.chosen, np.arange(len(path.chosen))]
    return path, left_out_results(passes, solver, inverse, *at_chosen(results, path.chosen), of_targets)


def ridge_path(
    solver: SpectralSolver,
    ridges: Ridges,
    n_left_out: int,
    per_target: bool = False,
    factor: float = ROBUST,
    loo_error: Floats | None = None,
) -> RidgePath:
    """Return the path over the ridges, without a pass.

    The best ridge is chosen by the leave-one-out errors where they are given, and otherwise by generalised
    cross-validation. Without `per_target` the targets' errors are added up, each in units of its variance.
    """
    solver.check_targets()
    gcv = np.array([solver.generalised_cross_validation(r, n_left_out, factor) for r in ridges.scaled])
    errors = gcv if loo_error is None else loo_error
    training = np.array([solver.training_error(r) for r in ridges.scaled])
    dimensions = np.array([solver.effective_dimension(r) for r in ridges.scaled])
    criterion, of_all = "gcv" if loo_error is None else "loo", np.zeros(len(gcv), dtype=bool)
    chosen = _best(errors, ridges.scaled, solver, float(solver.spectrum.max(initial=0.0)), per_target)
    ends = float(ridges.values.min()), float(ridges.values.max())
    return RidgePath(ridges.values, loo_error, gcv, training, dimensions, criterion, chosen, of_all, *ends)


def _best(errors: Floats, scaled: Floats, centred: CentredMoments, largest: float, per_target: bool = False) -> Indices:
    """Return the best of some ridges for each target, or one for all; `largest` is the Gram matrix's eigenvalue."""
    scale = np.where(centred.target_variance > 0, centred.target_variance, 1.0)
    totals = errors / scale
    if not per_target:
        totals = np.repeat(totals.sum(axis=1)[:, None], errors.shape[1], axis=1)
    # Rounding may change the error of a small ridge by this share: residuals are divided by 1 - h, which is then tiny.
    rounding = _ROUNDING * largest / scaled
    lowest = (totals * (1.0 + rounding[:, None])).min(axis=0)
    # Of ridges that do equally well the largest is taken: for pure noise all errors are nearly equal.
    return np.argmax(totals <= (1.0 + _AS_GOOD) * lowest, axis=0)


@dataclass(frozen=True)
class _Tried:
    """What is known of one ridge."""

    loo_error: Floats
    training_error: Floats
    effective_dimension: float


def searched_path(
    sample: RowPasses,
    factor: NystromFactor,
    centred: CentredMoments,
    ridges: Ridges,
    target_origin: Floats,
    first: float | None,
    n_left_out: int,
) -> tuple[RidgePath, OneRidge | None] | None:
    """Return the path over some of the ridges, downhill from the first, one for all targets, and the best solution.

    The solution is None if the chosen ridge is not that of the smallest error. Without a first ridge, the walk
    begins at the best of every eighth. Each ridge tried takes one Cholesky factor, and is judged by leave-one-out on a
    sample of the rows. None where all ridges are below the rounding of the sums.
    """
    centred.check_targets()
    hold_features(sample, factor)
    count = int(np.count_nonzero(ridges.scaled > centred.rounding))
    tried: dict[int, _Tried] = {}
    best: tuple[float, int, OneRidge | None] = np.inf, -1, None
    scale = np.where(centred.target_variance > 0, centred.target_variance, 1.0)

    def evaluate(position: int) -> float:
        nonlocal best
        scaled = ridges.scaled[position : position + 1]
        solved = solve_one_ridge(centred, float(scaled[0]))
        if solved is None:  # below the rounding of the sums
            return np.inf
        form = ridges_form(factor, centred, solved.inverse, scaled, target_origin)
        errors, _ = path_errors(sample, form, None)
        tried[position] = _Tried(errors[0], solved.training_error, solved.effective_dimension)
        error = float((errors[0] / scale).sum())
        best = min(best, (error, position, solved), key=lambda result: result[0])
        return error

    if not count:
        return None
    if first is None:
        start = min(range(0, count, _STRIDE), key=evaluate)
    else:
        start = int(np.abs(np.log(ridges.values[:count] / first)).argmin())
    walk_downhill(evaluate, start, count)
    if not tried:
        return None
    positions = np.array(sorted(tried))
    results = [tried[k] for k in positions]
    training = np.array([result.training_error for result in results])
    dimensions = np.array([result.effective_dimension for result in results])
    errors = np.array([result.loo_error for result in results])
    gcv = [
        generalised_error(t, d + centred.fit_intercept, n_left_out) for t, d in zip(training, dimensions, strict=True)
    ]
    chosen = _best(errors, ridges.scaled[positions], centred, centred.size)
    ends = float(ridges.values[count - 1]), float(ridges.values[0])
    judged = np.ones(len(results), dtype=bool)
    path = RidgePath(
        ridges.values[positions], errors, np.array(gcv), training, dimensions, "loo", chosen, judged, *ends
    )
    return path, best[2] if positions[chosen[0]] == best[1] else None
