"""The last stages of a fit by a smooth loss: the ridge by leave-one-out, and the coefficients by Newton's method."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ridgemark.backends import Floats
from ridgemark.fitting.classes import first_log_odds, suggested_for_classes
from ridgemark.fitting.recipe import Recipe
from ridgemark.fitting.stages import FitRows, LeftOutPredictors, Solved, Sums
from ridgemark.leverage import Bracket
from ridgemark.losses import SQUARED, ClassLoss, Loss, Moments, RidgeSolution, balanced
from ridgemark.path import (
    LossPath,
    LossSearch,
    Ridges,
    left_out_predictor,
    ridge_path,
    walk_downhill,
)
from ridgemark.solvers import CurvatureSystem, LandmarkFit, Newton, NewtonFit
from ridgemark.solvers.curvature import System
from ridgemark.solvers.landmark_fit import dimension_bracket

_NEAR = 1e-6  # largest relative decrease of the objective that the last step with rounded features may promise
_STRIDES, _MANY = ((2, 1), (2,)), 1000  # of the walk; with more features half a decade is fine enough
_TINY = float(np.finfo(np.float64).tiny)
_MOST_FACTOR = 1e200  # between the ridges of two losses
_DECADES = 10  # of ridges searched: leave-one-out in one step is not reliable for smaller ones


@dataclass(frozen=True, eq=False)
class _First:
    """What squared errors on the response tell of a fit by a loss."""

    position: int  # of the ridge that they suggest
    starts: list[RidgeSolution]  # of Newton's method, for each function
    unit: float = 1.0  # the loss that one row adds by chance


@dataclass(frozen=True, eq=False)
class _Squares:
    """The response fitted by squared errors, and what that fit predicts of the rows of the sample left out of it."""

    ridge: float  # lambda
    solution: RidgeSolution
    left_out: Floats  # (m, 1)
    noise: float  # the mean square of the residuals left out


def solve_loss(rows: FitRows, sums: Sums, recipe: Recipe, loss: Loss, tuned: float | None = None) -> Solved:
    """Choose the ridge and solve.

    The search begins at the ridge that squared errors on the response suggest (`tuned`, where there was a tuner), and
    goes downhill by the leave-one-out loss. In a list of ridges every one is evaluated, the largest first.
    """
    total = rows.choosing.total_weight
    rows.own.held = rows.summed.held  # of the same rows; features of rows of which a sample chooses are not held
    newton = Newton(rows.own, sums.factor, loss, recipe.fit_intercept, sums.moments.on_host()).hold()
    if isinstance(loss, ClassLoss):
        newtons, ridges = [newton], recipe.ridges(sums.moments, _DECADES)
        first = _first_of_classes(newton, sums, ridges, recipe)
    else:
        squares = _fit_squares(newton, rows, sums, recipe, tuned)
        loss = _settled(newton, squares)
        newtons = [newton.with_loss(part) for part in loss.parts()]
        first, ridges = _first_of_numbers(newtons, sums, squares, recipe)
    path, starts, systems = _searched(newtons, ridges, first, recipe, total)
    chosen = ridges.values[:1] if path is None else path.ridges[[path.chosen]]
    scaled, fits, left_out = float(ridges.scaled_of(chosen)[0]), [], []
    for part, start, system in zip(newtons, starts, systems, strict=True):
        solved = _solved(part, scaled, start, system)
        fits.append(solved)
        # The system of the best ridge on a path is near enough to the solution.
        if system is None:
            solved = part.with_own_system(solved)
        elif part.loss.leaving_out() is not part.loss:
            solved = replace(solved, system=system.with_ridge(scaled))
        left_out.append(left_out_predictor(part, solved))
    fit = _landmark_fit(newtons, fits, total)
    of_rows = LeftOutPredictors(newton.drawn.sample, np.hstack(left_out), *newton.drawn.single_rows)
    converged = all(fit.converged for fit in fits)
    return Solved(fit, np.repeat(chosen, len(fit.scaled_ridge)), path, of_rows, converged, loss=loss)


def _searched(
    newtons: list[Newton], ridges: Ridges, first: _First, recipe: Recipe, total: float
) -> tuple[LossPath | None, list[RidgeSolution], list[Any]]:
    """Return the path of the ridges tried, and for each function where its last fit begins, with a system near it.

    With several functions of more than 1,000 features, only the middle function is judged: best ridges hardly differ.
    """
    if recipe.one_ridge:
        return None, first.starts, [None] * len(newtons)
    middle = slice(len(newtons) // 2, len(newtons) // 2 + 1) if newtons[0].factor.rank > _MANY else slice(None)
    search = LossSearch(newtons[middle], ridges, first.starts[middle], first.unit)
    if isinstance(recipe.ridge, str):
        least, count = search.least_gain, len(ridges.values)
        strides, smooth = _STRIDES[newtons[0].factor.rank > _MANY], isinstance(newtons[0].loss, ClassLoss)
        walk_downhill(search.evaluate, first.position, count, least, smooth, strides)
    else:
        for position in range(len(ridges.values)):
            search.evaluate(position)
    path, near, systems = search.best(total)
    starts = list(first.starts)
    of_all: list[Any] = [None] * len(newtons)
    starts[middle], of_all[middle] = near, systems
    return path, starts, of_all


def _solved(newton: Newton, scaled_ridge: float, start: RidgeSolution, system: System | None) -> NewtonFit:
    """Return the solution; where features are held rounded, first that of rounded features."""
    if newton.rough:
        near = newton.solve(scaled_ridge, start, _NEAR, system)
        start, system = near.solution, near.system
    return replace(newton, rough=False).solve(scaled_ridge, start, system=system)


def _first_of_classes(newton: Newton, sums: Sums, ridges: Ridges, recipe: Recipe) -> _First:
    position = suggested_for_classes(sums, ridges, newton) if isinstance(recipe.ridge, str) else 0
    return _First(position, [first_log_odds(sums, float(ridges.scaled[position]))])


def _fit_squares(newton: Newton, rows: FitRows, sums: Sums, recipe: Recipe, tuned: float | None) -> _Squares:
    """Fit the response by squared errors, at the tuner's ridge or the best by generalised cross-validation."""
    ridges = replace(recipe, ridge="gcv").ridges(sums.moments, _DECADES)
    if tuned is None:
        path = ridge_path(sums.leading, ridges, rows.own.n_left_out)
        tuned = float(path.ridges[path.chosen[0]])
    position, moments = int(np.abs(np.log(ridges.values / tuned)).argmin()), sums.moments.on_host()
    system = CurvatureSystem(moments, sums.fit_intercept, float(ridges.scaled[position]))
    solved = system.solve(np.vstack([moments.cross, moments.target_sum * sums.fit_intercept]))
    solution = RidgeSolution(solved[:-1], solved[-1] * sums.fit_intercept + sums.target_origin)
    squared = newton.with_loss(SQUARED, rows.summed)
    predictor = left_out_predictor(squared, NewtonFit(solution, system, 0.0, 0, True))
    targets, weights, _ = squared.drawn.members
    noise = float(weights @ (targets - predictor)[:, 0] ** 2 / weights.sum())
    return _Squares(float(ridges.values[position]), solution, predictor, noise)


def _settled(newton: Newton, squares: _Squares) -> Loss:
    """Return the loss with what the residuals of rows left out decide."""
    targets, weights, group = newton.drawn.members
    left_out = squares.left_out if group is None else squares.left_out[group]
    return newton.loss.settled(targets - newton.loss.predicted(left_out), weights)


def _first_of_numbers(newtons: list[Newton], sums: Sums, squares: _Squares, recipe: Recipe) -> tuple[_First, Ridges]:
    """Return where the fits begin, and the ridges to search.

    Squared errors on the response have the best ridge `lambda_0` and the noise v. At their solution, the loss has the
    noise u: the mean square of its slopes over its mean curvature. Relative to the noise, a fit by the loss shrinks as
    much with the ridge `lambda_0 u/v`. So the ridges searched are those of squared errors times `u/v`.
    """
    ratios, starts = [], []
    for newton in newtons:
        targets, weights, group = newton.drawn.members
        predictor = squares.left_out if group is None else squares.left_out[group]
        shift = balanced(newton.loss, targets, weights, predictor) if sums.fit_intercept else 0.0
        slopes = newton.loss.slopes(targets, predictor + shift)[:, 0]
        curvature = newton.loss.leaving_out().curvature(targets, predictor + shift)
        ratios.append(float(weights @ slopes**2) / max(float(weights @ curvature), _TINY))
        starts.append(replace(squares.solution, intercept=squares.solution.intercept + shift))
    unit = float(np.mean(ratios))
    factor = unit / squares.noise if squares.noise > 0 else 1.0
    factor = factor if 1 / _MOST_FACTOR < factor < _MOST_FACTOR else 1.0
    ridges = recipe.ridges(sums.moments, _DECADES, factor)
    position = int(np.abs(np.log(ridges.values / (squares.ridge * factor))).argmin())
    return _First(position, starts, 1.0 if newtons[0].loss.nats else unit), ridges


def _landmark_fit(newtons: list[Newton], fits: list[NewtonFit], total_weight: float) -> LandmarkFit:
    """Return the fits as the record of landmark fits; d_eff is that of `D^1/2 K D^1/2`, D the curvature."""
    newton, fit = newtons[0], fits[0]
    ridge, t = fit.system.scaled_ridge, sum(len(fit.solution.intercept) for fit in fits)
    if isinstance(newton.loss, ClassLoss):
        system = fit.system
        if not (newton.whole and isinstance(system, CurvatureSystem)):
            system = CurvatureSystem(newton.sums(fit.solution, ridge), newton.fit_intercept, ridge)
        moments = system.moments
        losses, dimension = [fit.loss], dimension_bracket(system.effective_dimension, moments, ridge)
    else:
        finished = [replace(part, rough=False).at_rows(fit.solution) for part, fit in zip(newtons, fits, strict=True)]
        losses, moments = [loss for loss, _ in finished], newton.plain.with_zeros(t)
        dimension = _dimension(newton.plain, fits, [steepest for _, steepest in finished])
    return LandmarkFit(
        factor=newton.factor,
        moments=moments,
        fit_intercept=newton.fit_intercept,
        scaled_ridge=np.full(t, ridge),
        target_origin=np.zeros(t),
        weight_unit=newton.passes.weight_unit,
        solution=RidgeSolution(
            np.hstack([fit.solution.coefficients for fit in fits]),
            np.concatenate([fit.solution.intercept for fit in fits]),
        ),
        training_error=np.repeat(np.array(losses) / total_weight, t // len(fits)),
        effective_dimension=dimension,
    )


def _dimension(plain: Moments, fits: list[NewtonFit], steepest: list[float]) -> Bracket:
    """Return bounds on the largest d_eff of the functions: curvature adds at most its largest value times tr(K - L)."""
    brackets = []
    for fit, curvature in zip(fits, steepest, strict=True):
        moments = replace(plain, trace_residual=curvature * plain.trace_residual)
        lower = min(float(fit.system.dimensions.max()), float(moments.n_rows))
        brackets.append(dimension_bracket(lower, moments, fit.system.scaled_ridge))
    return max(brackets, key=lambda bracket: bracket.upper)
