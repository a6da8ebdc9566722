"""Second stage of a fit: a first ridge, and the landmarks drawn at it."""

import numpy as np

from ridgemark.fitting.kernel import FitKernel
from ridgemark.fitting.recipe import Recipe
from ridgemark.fitting.rows import FitRows
from ridgemark.fitting.sums import Sums
from ridgemark.path import ridge_path
from ridgemark.selection import LandmarkCount, Landmarks, Problem, count_landmarks, make_selection
from ridgemark.selection.pilot import PILOT, draw_pilot
from ridgemark.tuning import TuningResult

_MOVED = 10.0  # factor by which the ridge must change for landmarks to be drawn again
_MORE = 1.25  # factor by which the number of landmarks must grow for this
_ALIKE = 0.1  # total variation distance of two sampling distributions that is not worth a second draw


def make_problem(rows: FitRows, chosen: FitKernel, recipe: Recipe, rng: np.random.Generator) -> Problem:
    """Return the problem for which landmarks are to be chosen.

    The ridge is the one given, or the one that tuning suggests, or the best for a pilot by generalised
    cross-validation, which needs no pass of its own.
    """
    passes, distinct = rows.choosing, rows.distinct
    scaled_ridge, pilots = None, {}
    if recipe.one_ridge or chosen.ridge is not None:
        scaled_ridge = recipe.first_ridge(chosen.ridge, rows.total_weight)
    elif recipe.needs_first_ridge(len(distinct)):
        pilot = draw_pilot(passes, chosen.kernel, distinct, PILOT, rng, target_origin=chosen.target_origin)
        pilots[PILOT] = pilot
        sums = Sums(pilot.factor, pilot.moments, recipe.fit_intercept, chosen.target_origin)
        scaled_ridge = _best_for(sums, recipe, len(distinct))
    return Problem(
        passes, distinct, chosen.kernel, scaled_ridge, recipe.risk_tolerance, recipe.failure_probability, pilots
    )


def draw_landmarks(
    problem: Problem, recipe: Recipe, rng: np.random.Generator, tuning: TuningResult | None = None
) -> tuple[Landmarks, LandmarkCount]:
    """Choose the number of landmarks, and the landmarks."""
    selection, saved = make_selection(recipe.selection), None if tuning is None else tuning.saved_by_doubling
    count = count_landmarks(recipe.n_landmarks, problem, rng, selection, saved, **recipe.chosen_effort.limits)
    return selection.choose(problem, count.n_landmarks, rng), count


def problem_at_best_ridge(
    rows: FitRows,
    chosen: FitKernel,
    problem: Problem,
    drawn: tuple[Landmarks, LandmarkCount],
    sums: Sums,
    recipe: Recipe,
    rng: np.random.Generator,
) -> Problem | None:
    """Return the problem at the best ridge of these sums, where a pilot's ridge misled the draw; otherwise None.

    It did where the ridges differ more than tenfold, and the best one asks for more landmarks or its scores would draw
    other rows.
    """
    landmarks, count = drawn
    if recipe.one_ridge or chosen.ridge is not None or not (count.may_grow or landmarks.scores is not None):
        return None
    best = problem.at(rows.share * _best_for(sums, recipe, rows.summed.n_left_out))
    return None if _drawn_alike(problem, best, drawn, recipe, rng) else best


def _best_for(sums: Sums, recipe: Recipe, n_left_out: int) -> float:
    """Return the best n lambda by plain generalised cross-validation; the smallest over targets.

    It is accurate enough to draw landmarks: a ridge that is too small does no harm, one that is too large gives too
    few.
    """
    ridges = recipe.ridges(sums.moments)
    path = ridge_path(sums.leading, ridges, n_left_out, recipe.ridge_per_target, factor=1.0)
    return float(ridges.scaled[path.chosen].min())


def _drawn_alike(
    problem: Problem,
    best: Problem,
    drawn: tuple[Landmarks, LandmarkCount],
    recipe: Recipe,
    rng: np.random.Generator,
) -> bool:
    """Return whether the ridge moved less than tenfold, or asks for about as many landmarks by nearly equal scores."""
    scores, count = drawn[0].scores, drawn[1]
    if 1 / _MOVED <= problem.sketch_ridge / best.sketch_ridge <= _MOVED:
        return True
    limits, selection = recipe.chosen_effort.limits, make_selection(recipe.selection)
    wanted = count_landmarks(recipe.n_landmarks, best, rng, selection, **limits)
    if wanted.n_landmarks > _MORE * count.n_landmarks:
        return False
    if scores is None:
        return True
    # A ridge above that of the problem was matched to the number of landmarks, and stays.
    matched = scores.scaled_ridge if scores.scaled_ridge > problem.sketch_ridge else 0.0
    ridges = scores.scaled_ridge, max(best.sketch_ridge, matched)
    first, second = (problem.scores(PILOT, 0, rng, ridge).upper for ridge in ridges)
    return float(np.abs(first / first.sum() - second / second.sum()).sum()) / 2 < _ALIKE
