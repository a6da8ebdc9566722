"""Adding landmarks until the certificate meets the tolerance."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from ridgemark.backends import Floats
from ridgemark.certificates import Certificate, audit_classes, certify
from ridgemark.fitted import Tolerance
from ridgemark.fitting.classes import FittedClasses, fit_classes
from ridgemark.fitting.recipe import Recipe
from ridgemark.fitting.stages import Prepared, Tuned, sum_over_rows, tune
from ridgemark.kernels.base import count_rows
from ridgemark.losses import ClassLoss
from ridgemark.passes import RowPasses
from ridgemark.path import KeptRows, leave_one_out
from ridgemark.selection import Landmarks, make_selection
from ridgemark.selection.count import memory_limit

Fitted = TypeVar("Fitted", Tuned, FittedClasses)


def fit_to_tolerance(
    recipe: Recipe, prepared: Prepared, tuned: Tuned, rng: np.random.Generator, kept: KeptRows | None
) -> tuple[Prepared, Tuned, Certificate, Tolerance]:
    """Double the landmarks until the certificate meets the tolerance or none can be added.

    Among many features the ridge is searched by leave-one-out on the rows kept, as in `tune`.
    """
    passes, first = prepared.setting.passes, prepared.setting.tuned_ridge

    def certified(prepared: Prepared, tuned: Tuned, failure_probability: float) -> Certificate:
        indices = prepared.landmarks.indices
        return certify(recipe.certify_with, passes, tuned.fit, indices, failure_probability, rng)

    def refitted(prepared: Prepared) -> Tuned:
        of_rows = prepared.factor, prepared.moments, prepared.setting.target_origin
        return tune(passes, recipe, *of_rows, kept=kept, first_ridge=first)

    return _rounds(recipe, prepared, tuned, rng, certified, lambda tuned: _loo_rms(passes, tuned), refitted)


def classes_to_tolerance(
    recipe: Recipe, prepared: Prepared, fitted: FittedClasses, loss: ClassLoss, rng: np.random.Generator
) -> tuple[Prepared, FittedClasses, Certificate, Tolerance]:
    """Double the landmarks of a fit of classes likewise; the error is that of probabilities of rows left out."""
    passes = prepared.setting.passes

    def certified(_: Prepared, fitted: FittedClasses, failure_probability: float) -> Certificate:
        return audit_classes(passes, fitted.fit, loss, rng=rng, failure_probability=failure_probability)

    def error(fitted: FittedClasses) -> Floats:
        weights = fitted.sample.row_counts()
        squares = (loss.slopes(fitted.sample.targets(), fitted.left_out) ** 2).sum(axis=1)
        return np.sqrt(weights @ squares / weights.sum())

    return _rounds(
        recipe, prepared, fitted, rng, certified, error, lambda prepared: fit_classes(prepared, recipe, loss)
    )


def _rounds(
    recipe: Recipe,
    prepared: Prepared,
    fitted: Fitted,
    rng: np.random.Generator,
    certified: Callable[[Prepared, Fitted, float], Certificate],
    error: Callable[[Fitted], Floats],
    refitted: Callable[[Prepared], Fitted],
) -> tuple[Prepared, Fitted, Certificate, Tolerance]:
    """Double the landmarks, keeping earlier ones, until the certificate meets the tolerance or none can be added.

    Round j uses `failure_probability/2^j`, so that all rounds together stay within `failure_probability`.
    """
    sizes, reached = [], []
    for attempt in itertools.count(1):
        certificate = certified(prepared, fitted, math.ldexp(recipe.failure_probability, -attempt))
        sizes.append(count_rows(prepared.landmarks.points))
        reached.append(float(np.max(certificate.bound)))
        met = certificate.meets(recipe.risk_tolerance, error(fitted))
        reason = "the certificate meets the tolerance" if met else _why_no_more(prepared, recipe)
        if reason:
            return prepared, fitted, certificate, Tolerance(met, reason, tuple(sizes), tuple(reached))
        prepared = _with_more_landmarks(prepared, recipe, rng)
        fitted = refitted(prepared)
    raise AssertionError  # the rounds end at the latest when all rows are landmarks


def _loo_rms(passes: RowPasses, tuned: Tuned) -> Floats:
    """Return the weighted root mean square of the leave-one-out residuals, per target."""
    fit, left_out = tuned.fit, tuned.left_out
    if left_out is None:
        left_out = leave_one_out(passes, fit)
    return np.sqrt(passes.row_counts() @ left_out.residuals**2 / fit.moments.total_weight)


def _why_no_more(prepared: Prepared, recipe: Recipe) -> str:
    """Return why no landmarks can be added; an empty string where they can."""
    have, problem = count_rows(prepared.landmarks.points), prepared.problem
    if recipe.n_landmarks != "auto" or make_selection(recipe.selection).own_count() is not None:
        return "the number of landmarks was given"
    if prepared.landmarks.indices is None:
        return "the landmarks are not training rows, so none can be added"
    if have >= len(problem.distinct):
        return "all distinct rows are landmarks"
    if 2 * have > memory_limit(problem.passes.budget):
        return "twice the landmarks exceed the memory budget"
    return ""


def _with_more_landmarks(prepared: Prepared, recipe: Recipe, rng: np.random.Generator) -> Prepared:
    """Double the landmarks by the same selection, and uniformly where it finds too few; earlier ones stay."""
    problem, old = prepared.problem, prepared.landmarks
    assert old.indices is not None
    prepared.setting.summed.held = None  # features of more landmarks take its place
    wanted = min(2 * len(old.indices), len(problem.distinct))
    drawn = make_selection(recipe.selection).choose(problem, wanted, rng)
    assert drawn.indices is not None
    rest = np.setdiff1d(problem.distinct.indices, np.union1d(old.indices, drawn.indices))
    new = np.concatenate([drawn.indices[~np.isin(drawn.indices, old.indices)], rng.permutation(rest)])
    indices = np.concatenate([old.indices, new[: wanted - len(old.indices)]])
    landmarks = Landmarks(problem.passes.take(indices).features, indices, None, old.scores)
    count = replace(prepared.count, n_landmarks=len(indices), rule="doubled until certified")
    return sum_over_rows(prepared.setting, problem, recipe, (landmarks, count), rng)
