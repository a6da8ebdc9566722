"""Adding landmarks until the certificate meets the tolerance."""

import itertools
import math
from dataclasses import replace

import numpy as np

from ridgemark.backends import Floats
from ridgemark.certificates import Certificate, audit_loss, certify
from ridgemark.fitted import Tolerance
from ridgemark.fitting.recipe import Recipe
from ridgemark.fitting.solve import solve
from ridgemark.fitting.stages import Fit, LeftOutPredictors, sum_over_rows
from ridgemark.kernels.base import count_rows
from ridgemark.losses import ClassLoss, Loss
from ridgemark.path import leave_one_out
from ridgemark.selection import Landmarks, make_selection
from ridgemark.selection.count import memory_limit


def add_landmarks_until_certified(fit: Fit, recipe: Recipe, rng: np.random.Generator, loss: Loss | None) -> Fit:
    """Double the landmarks, keeping earlier ones, until the certificate meets the tolerance or none can be added.

    Round j uses `failure_probability/2^j`, so that all rounds together stay within `failure_probability`. For classes
    the error that the tolerance refers to is that of probabilities of rows left out.
    """
    sizes, reached = [], []
    for attempt in itertools.count(1):
        certificate = _certified(fit, recipe, math.ldexp(recipe.failure_probability, -attempt), rng, loss)
        sizes.append(count_rows(fit.landmarks.points))
        reached.append(float(np.max(certificate.bound)))
        met = certificate.meets(recipe.risk_tolerance, _error(fit))
        reason = "the certificate meets the tolerance" if met else _why_no_more(fit, recipe)
        if reason:
            tolerance = Tolerance(met, reason, tuple(sizes), tuple(reached))
            return replace(fit, certificate=certificate, tolerance=tolerance)
        fit = _with_more_landmarks(fit, recipe, rng, loss)
    raise AssertionError  # the rounds end at the latest when all rows are landmarks


def _certified(
    fit: Fit, recipe: Recipe, failure_probability: float, rng: np.random.Generator, loss: Loss | None
) -> Certificate:
    passes, sums = fit.rows.choosing, fit.solved.fit
    if loss is not None:
        return audit_loss(fit.rows.own, sums, fit.solved.loss, rng=rng, failure_probability=failure_probability)
    return certify(recipe.certify_with, passes, sums, fit.landmarks.indices, failure_probability, rng)


def _error(fit: Fit) -> Floats:
    """Return the root mean square error of rows left out, per target; of classes that of the probabilities.

    Certificates of other losses are shares of a gain, and relative to 1.
    """
    left_out, passes = fit.solved.left_out, fit.rows.choosing
    if isinstance(left_out, LeftOutPredictors):
        if not isinstance(fit.solved.loss, ClassLoss):
            return np.ones(1)  # the certificate is a share already
        weights = left_out.sample.row_counts()
        squares = (fit.solved.loss.slopes(left_out.sample.targets(), left_out.predictors) ** 2).sum(axis=1)
        return np.sqrt(weights @ squares / weights.sum())
    if left_out is None:
        left_out = leave_one_out(passes, fit.solved.fit)
    return np.sqrt(passes.row_counts() @ left_out.residuals**2 / fit.solved.fit.moments.total_weight)


def _why_no_more(fit: Fit, recipe: Recipe) -> str:
    """Return why no landmarks can be added; an empty string where they can."""
    have, problem = count_rows(fit.landmarks.points), fit.problem
    if recipe.n_landmarks != "auto" or make_selection(recipe.selection).own_count() is not None:
        return "the number of landmarks was given"
    if fit.landmarks.indices is None:
        return "the landmarks are not training rows, so none can be added"
    if have >= len(problem.distinct):
        return "all distinct rows are landmarks"
    if 2 * have > memory_limit(problem.passes.budget):
        return "twice the landmarks exceed the memory budget"
    return ""


def _with_more_landmarks(fit: Fit, recipe: Recipe, rng: np.random.Generator, loss: Loss | None) -> Fit:
    """Double the landmarks by the same selection, and uniformly where it finds too few; earlier ones stay."""
    problem, old, rows = fit.problem, fit.landmarks, fit.rows
    assert old.indices is not None
    wanted = min(2 * len(old.indices), len(problem.distinct))
    drawn = make_selection(recipe.selection).choose(problem, wanted, rng)
    assert drawn.indices is not None
    rest = np.setdiff1d(problem.distinct.indices, np.union1d(old.indices, drawn.indices))
    new = np.concatenate([drawn.indices[~np.isin(drawn.indices, old.indices)], rng.permutation(rest)])
    indices = np.concatenate([old.indices, new[: wanted - len(old.indices)]])
    landmarks = Landmarks(problem.passes.take(indices).features, indices, None, old.scores)
    count = replace(fit.count, n_landmarks=len(indices), rule="doubled until certified")
    sums = sum_over_rows(rows, fit.kernel, landmarks, recipe, rng)
    solved = solve(rows, fit.kernel, sums, recipe, loss, fit.kept)
    return replace(fit, landmarks=landmarks, count=count, sums=sums, solved=solved)
