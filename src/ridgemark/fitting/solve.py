"""Last stages of a fit: the ridge by rows left out, and the coefficients; by squared error in closed form."""

import numpy as np

from ridgemark.backends import Floats
from ridgemark.fitting.losses import solve_loss
from ridgemark.fitting.recipe import Recipe
from ridgemark.fitting.stages import FitKernel, FitRows, Solved, Sums
from ridgemark.losses import Loss
from ridgemark.passes import RowPasses
from ridgemark.path import (
    KeptRows,
    keep_rows,
    leave_one_out,
    left_out_errors,
    loo_path,
    ridge_path,
    searched_path,
)
from ridgemark.solvers import LandmarkFit, SpectralSolver, solve_landmarks
from ridgemark.solvers.landmark_fit import CentredMoments, OneRidge


def solve_squares(
    passes: RowPasses,
    sums: Sums,
    recipe: Recipe,
    sample: RowPasses | None = None,
    first_ridge: float | None = None,
    n_distinct: int | None = None,
) -> Solved:
    """Choose the ridge and solve, with one more pass for leave-one-out.

    Among many features, and where rows leave in groups, the ridge is searched from `first_ridge` on, by leave-one-out
    on a sample of the rows, if there is one; otherwise the whole path is computed.

    Where `n_distinct` is given, the sums are over several batches with that many distinct rows, and `passes` reads only
    the last batch. Leave-one-out then uses the sample, of all batches; without one, generalised cross-validation
    replaces it, as it needs only the sums.
    """
    ridges, per_target = recipe.ridges(sums.moments), recipe.ridge_per_target
    if recipe.one_ridge:
        n_targets = len(sums.target_origin)
        given = np.repeat(ridges.values, n_targets), np.repeat(ridges.scaled, n_targets)
        return Solved(_solved(passes, sums, given[1]), given[0], None)
    may_search = isinstance(recipe.ridge, str) and recipe.criterion == "loo" and not per_target
    if may_search and sample is not None and (sums.many_features or sample.leaves_groups):
        solved = _search(passes, sums, recipe, sample, first_ridge, n_distinct)
        if solved is not None:
            return solved
    solver, left_out = sums.spectral, None
    if recipe.criterion == "loo" and n_distinct is None:
        path, left_out = loo_path(passes, sums.factor, solver, ridges, sums.target_origin, per_target)
    elif recipe.criterion == "loo" and sample is not None:
        path, _ = loo_path(sample, sums.factor, solver, ridges, sums.target_origin, per_target, n_distinct)
        passes.count_entries(sample.n_kernel_evaluations)
    else:
        path = ridge_path(solver, ridges, n_distinct or passes.n_left_out, per_target)
    chosen = path.ridges[path.chosen]
    return Solved(_solved(passes, sums, ridges.scaled_of(chosen), solver), chosen, path, left_out)


def _search(
    passes: RowPasses,
    sums: Sums,
    recipe: Recipe,
    sample: RowPasses,
    first_ridge: float | None,
    n_distinct: int | None,
) -> Solved | None:
    """Choose the ridge by a walk downhill from the first one, and solve; None where the sums do not determine it."""
    moments, ridges = sums.moments, recipe.ridges(sums.moments)
    n_left_out = n_distinct or passes.n_left_out
    if first_ridge is None and not sample.leaves_groups:
        rough = ridge_path(sums.leading, ridges, n_left_out)
        first_ridge = float(rough.ridges[rough.chosen[0]])
    centred = CentredMoments(moments, sums.fit_intercept)
    searched = searched_path(sample, sums.factor, centred, ridges, sums.target_origin, first_ridge, n_left_out)
    passes.count_entries(sample.n_kernel_evaluations)
    if searched is None:
        return None
    path, solved = searched
    chosen, left_out = path.ridges[path.chosen], None
    fit = _solved(passes, sums, ridges.scaled_of(chosen), solved=solved)
    if n_distinct is None and passes.beyond_memory:
        path = path.with_all_rows(left_out_errors(passes, fit))
    elif n_distinct is None:
        left_out = leave_one_out(passes, fit)
        path = path.with_all_rows(passes.row_counts() @ left_out.residuals**2 / passes.total_weight)
    return Solved(fit, chosen, path, left_out)


def _solved(
    passes: RowPasses,
    sums: Sums,
    scaled: Floats,
    solver: SpectralSolver | None = None,
    solved: OneRidge | None = None,
) -> LandmarkFit:
    given = sums.factor, sums.moments, sums.fit_intercept, scaled, sums.target_origin, passes.weight_unit
    return solve_landmarks(*given, solver, solved)


def rows_to_keep(rows: FitRows, chosen: FitKernel, recipe: Recipe, loss: Loss | None) -> KeptRows | None:
    """Return some rows for leave-one-out when the others are gone; None where no ridge is searched by squared error."""
    searched = loss is None and recipe.criterion == "loo" and not recipe.one_ridge
    alone = not (chosen.kernel.pairwise or rows.choosing.leaves_groups)
    return keep_rows(rows.choosing) if searched and alone else None


def solve(
    rows: FitRows, chosen: FitKernel, sums: Sums, recipe: Recipe, loss: Loss | None, kept: KeptRows | None
) -> Solved:
    """Choose the ridge by rows left out, and solve: in closed form, or for another loss by Newton's method."""
    if loss is not None:
        return solve_loss(rows, sums, recipe, loss, chosen.ridge)
    sample = None if kept is None else kept.passes(rows.summed.memory_budget)
    if rows.choosing.leaves_groups:  # rows of a precomputed kernel know k(x, x) by their number among all
        sample = rows.choosing if chosen.kernel.pairwise else rows.choosing.sample_of_groups()
    return solve_squares(rows.summed, sums, recipe, sample, chosen.ridge)
