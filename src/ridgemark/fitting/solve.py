"""Last stage of a fit: the ridge and the coefficients, by the loss."""

from ridgemark.fitting.kernel import FitKernel
from ridgemark.fitting.losses import solve_loss
from ridgemark.fitting.recipe import Recipe
from ridgemark.fitting.rows import FitRows
from ridgemark.fitting.squares import Solved, solve_squares
from ridgemark.fitting.sums import Sums
from ridgemark.losses import Loss
from ridgemark.path import KeptRows, keep_rows


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
