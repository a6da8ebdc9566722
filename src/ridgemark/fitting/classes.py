"""The last stages of a fit of classes: the ridge by leave-one-out log loss, and the coefficients by Newton's method."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ridgemark.fitting.recipe import Recipe, scaled_ridges
from ridgemark.fitting.stages import Prepared
from ridgemark.leverage import Bracket, residual_dimension
from ridgemark.losses import ClassLoss, RidgeSolution
from ridgemark.passes import RowPasses
from ridgemark.path import (
    LossPath,
    LossSearch,
    Ridges,
    distinct_sample,
    gcv_path,
    left_out_predictor,
    walk_downhill,
)
from ridgemark.rows import ArrayRows
from ridgemark.solvers import LandmarkFit, Newton, NewtonFit, SpectralSolver

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FittedClasses:
    """A fit of classes with its ridge chosen."""

    fit: LandmarkFit  # its sums are weighted by the curvature of the loss at the solution
    ridge: float
    path: LossPath | None
    sample: RowPasses  # distinct rows of the fit
    left_out: Floats  # (m, t): their predictor from all rows with other features, in one Newton step
    converged: bool


def fit_classes(prepared: Prepared, recipe: Recipe, loss: ClassLoss) -> FittedClasses:
    """Choose the ridge and solve.

    Leave-one-out log loss is evaluated along the ridges, downhill from the one that squared error on the indicators
    suggests. Of a list of ridges every one is evaluated.
    """
    passes, factor = prepared.setting.passes, prepared.factor
    newton, sample = Newton(passes, factor, loss, recipe.fit_intercept), distinct_sample(passes)
    path, near, total = None, None, prepared.setting.total_weight
    start = _start(newton, sample, prepared)
    if recipe.one_ridge:
        ridge = float(recipe.ridge)
        start = _rough(newton, sample, prepared, float(scaled_ridges(np.array(ridge), total)), start)
    else:
        ridges = recipe.ridges(prepared.moments)
        first = _first_position(prepared, recipe, ridges)
        start = _rough(newton, sample, prepared, float(ridges.scaled[first]), start)
        search = LossSearch(newton, loss, sample, ridges, start)
        if isinstance(recipe.ridge, str):
            walk_downhill(search.evaluate, first, len(ridges.values))
        else:
            for position in sorted(range(len(ridges.values)), key=lambda k: abs(k - first)):
                search.evaluate(position)
        path, best = search.path(total), search.best()
        start, near = best.solution, best.system.moments
        ridge = float(path.ridges[path.chosen])
    fit = newton.solve(float(scaled_ridges(np.array(ridge), total)), start, near=near)
    left_out = left_out_predictor(sample, newton, fit, loss)
    return FittedClasses(_landmark_fit(newton, fit, total), ridge, path, sample, left_out, fit.converged)


def _start(newton: Newton, sample: RowPasses, prepared: Prepared) -> RidgeSolution:
    """Return the best constant: log-odds of the classes' shares."""
    t = sample.source.n_targets
    shares = prepared.moments.target_sum / prepared.moments.total_weight + prepared.target_origin
    logs = np.log(shares)
    constant = logs - np.log1p(-shares) if t == 1 else logs - logs.mean()
    return RidgeSolution(np.zeros((newton.factor.rank, t)), constant * newton.fit_intercept)


def _rough(
    newton: Newton, sample: RowPasses, prepared: Prepared, scaled_ridge: float, start: RidgeSolution
) -> RidgeSolution:
    """Return the solution on a sample of the rows where that is much smaller, and has a row of every class."""
    weights, targets = sample.row_counts(), sample.targets()
    missing = not ((weights @ targets > 0) & ((weights @ (1.0 - targets)) > 0)).all()
    if missing or 2 * sample.source.n_rows > newton.passes.source.n_rows:
        return start
    scaled = weights * (prepared.setting.total_weight / weights.sum())
    rows = sample.take(np.arange(sample.source.n_rows))
    few = RowPasses(ArrayRows(rows.features, targets, scaled), sample.memory_budget)
    return Newton(few, newton.factor, newton.loss, newton.fit_intercept).solve(scaled_ridge, start, 0.1).solution


def _first_position(prepared: Prepared, recipe: Recipe, ridges: Ridges) -> int:
    """Return which ridge squared error on the indicators suggests.

    The curvature of the log loss is about the variance `p (1 - p)` that squared error leaves; a ridge of the log loss
    has the effect of the ridge divided by it.
    """
    solver = SpectralSolver(prepared.moments, recipe.fit_intercept)
    squared = gcv_path(solver, ridges, len(prepared.setting.distinct))
    chosen = int(squared.chosen[0])
    errors = np.minimum(squared.gcv[chosen], solver.target_variance)
    curvature = float(errors.sum()) / max(1, len(errors) - 1)
    wanted = np.log(ridges.values[chosen]) + np.log(max(curvature, 1e-6))
    return int(np.abs(np.log(ridges.values) - wanted).argmin())


def _landmark_fit(newton: Newton, fit: NewtonFit, total_weight: float) -> LandmarkFit:
    """Return the fit as the record of landmark fits; d_eff is that of `D^1/2 K D^1/2`, D the curvature."""
    system, t = fit.system, newton.passes.source.n_targets
    moments, ridge = system.moments, system.scaled_ridge
    lower = system.effective_dimension
    upper = min(float(moments.n_rows), lower + residual_dimension(moments.trace_residual / ridge, moments.n_rows))
    return LandmarkFit(
        factor=newton.factor,
        moments=moments,
        fit_intercept=newton.fit_intercept,
        scaled_ridge=np.full(t, ridge),
        target_origin=np.zeros(t),
        weight_unit=newton.passes.weight_unit,
        solution=fit.solution,
        training_error=np.full(t, fit.loss / total_weight),
        effective_dimension=Bracket(lower, upper),
    )
