"""The ridge of an exact fit: by exact leave-one-out on some of the rows."""

from dataclasses import replace

import numpy as np

from ridgemark.backends import Indices
from ridgemark.fitting.recipe import Recipe
from ridgemark.fitting.solve import solve_squares
from ridgemark.fitting.stages import (
    FitRows,
    Solved,
    draw_landmarks,
    make_problem,
    rows_of_fit,
    settle_kernel,
    sum_over_rows,
)
from ridgemark.passes import RowPasses
from ridgemark.path import RidgePath
from ridgemark.rows import DistinctRows
from ridgemark.rows.groups import evenly

_FEWEST_GROUPS = 10
_SAMPLE = 2500  # rows on which exact leave-one-out takes seconds
_NEARLY_AS_GOOD = 5e-3  # share of the squared error by which ridges hardly differ on such a sample


def search_on_sample(rows: FitRows, recipe: Recipe, rng: np.random.Generator) -> tuple[Recipe, Solved]:
    """Choose the ridge on some distinct rows, all of them landmarks: by exact leave-one-out.

    Returns the recipe with this ridge. The best n lambda of exact kernel ridge regression, the noise relative to
    the signal, hardly depends on the number of rows, so that of the sample is used for all. With fewer landmarks than
    rows a larger n lambda is best, too large for the exact solution. Of the ridges that are nearly as good on the
    sample the largest is taken: refinement needs several times fewer products with it.
    """
    passes, distinct = rows.choosing, rows.choosing.distinct_rows()
    sample = passes.passes_over_rows(_rows_of_groups(passes, rng) if passes.leaves_groups else _rows(distinct, rng))
    n_landmarks = len(sample.distinct_rows())
    recipe_of_sample = replace(recipe, n_landmarks=n_landmarks, selection="uniform")
    of_sample = rows_of_fit(sample, recipe)
    chosen = settle_kernel(of_sample, recipe_of_sample, rng)
    landmarks, _ = draw_landmarks(make_problem(of_sample, chosen, recipe_of_sample, rng), recipe_of_sample, rng)
    sums = sum_over_rows(of_sample, chosen, landmarks, recipe_of_sample, rng)
    solved = solve_squares(sample, sums, recipe, sample if sample.leaves_groups else None, chosen.ridge)
    if isinstance(solved.path, RidgePath) and n_landmarks < len(distinct):
        path = solved.path.raised(_NEARLY_AS_GOOD)
        solved = replace(solved, path=path, ridges=path.ridges[path.chosen])
    scaled = float(recipe.ridges(sums.moments).scaled_of(solved.ridges).min())
    return replace(recipe, ridge=scaled / rows.choosing.total_weight), solved


def _rows(distinct: DistinctRows, rng: np.random.Generator) -> Indices:
    """Return all rows that equal some distinct ones."""
    return np.flatnonzero(np.isin(distinct.kind, rng.permutation(len(distinct))[:_SAMPLE]))


def _rows_of_groups(passes: RowPasses, rng: np.random.Generator) -> Indices:
    """Return the rows of some groups: whole ones, or of ten groups if those are large some rows of each."""
    kind = passes.left_out().kind
    order = rng.permutation(len(passes.left_out()))
    ends = np.cumsum(np.bincount(kind[kind >= 0])[order])
    rows = np.flatnonzero(np.isin(kind, order[: max(np.searchsorted(ends, _SAMPLE, side="right"), _FEWEST_GROUPS)]))
    return np.sort(evenly(rng.permutation(rows), kind)[:_SAMPLE])
