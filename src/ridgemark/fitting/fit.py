"""A fit from landmarks, its stages under each other as in the paper."""

from dataclasses import replace

import numpy as np

from ridgemark.fitting.gradient import solve_by_gradient, without_matrices
from ridgemark.fitting.recipe import Recipe
from ridgemark.fitting.solve import rows_to_keep, solve
from ridgemark.fitting.stages import (
    Fit,
    draw_landmarks,
    make_problem,
    problem_at_best_ridge,
    rows_of_fit,
    settle_kernel,
    sum_over_rows,
)
from ridgemark.fitting.tolerance import add_landmarks_until_certified
from ridgemark.losses import Loss
from ridgemark.passes import RowPasses


def fit(passes: RowPasses, recipe: Recipe, rng: np.random.Generator, loss: Loss | None = None) -> Fit:
    """Fit rows by squared error, or by another loss.

    Kernel, landmarks, sums over rows, ridge and coefficients; and with `certify_with` more landmarks until the
    certificate meets the tolerance.
    """
    rows = rows_of_fit(passes, recipe, loss)
    kernel = settle_kernel(rows, recipe, rng)
    recipe = recipe.after(kernel.tuning)
    problem = make_problem(rows, kernel, recipe, rng)
    landmarks, count = draw_landmarks(problem, recipe, rng, kernel.tuning)
    sums = sum_over_rows(rows, kernel, landmarks, recipe, rng)
    again = None
    if not recipe.one_ridge:
        again = problem_at_best_ridge(rows, kernel, problem, (landmarks, count), sums, recipe, rng)
    if again is not None:
        del sums  # its memory
        problem, (landmarks, count) = again, draw_landmarks(again, recipe, rng)
        sums = sum_over_rows(rows, kernel, landmarks, recipe, rng)
    landmarks = replace(landmarks, pivots=None)  # the memory of the features of all rows
    kept = rows_to_keep(rows, kernel, recipe, loss)
    solved = solve(rows, kernel, sums, recipe, loss, kept)
    rows.summed.held = rows.own.held = None  # the memory of the features of all rows
    if sums.solver == "gradient":
        sums, solved = without_matrices(rows, sums, solved)
        solved = solve_by_gradient(rows, kernel, landmarks, solved)
    found = Fit(rows, kernel, problem, landmarks, count, sums, kept, solved)
    return found if recipe.certify_with is None else add_landmarks_until_certified(found, recipe, rng, loss)
