"""The last stages of a fit of classes: the ridge by leave-one-out log loss, and the coefficients by Newton's method."""

from dataclasses import replace

import numpy as np

from ridgemark.fitting.recipe import Recipe
from ridgemark.fitting.rows import FitRows
from ridgemark.fitting.squares import LeftOutClasses, Solved
from ridgemark.fitting.sums import Sums
from ridgemark.losses import ClassLoss, RidgeSolution
from ridgemark.path import LossSearch, Ridges, left_out_predictor, ridge_path, rows_of_classes, walk_downhill
from ridgemark.solvers import CurvatureSystem, LandmarkFit, Newton, NewtonFit
from ridgemark.solvers.landmark_fit import CentredMoments, dimension_bracket, solve_one_ridge

_LEAST_SHARE = 1e-12  # of a class whose rows have hardly any weight
_STEEPEST = 4.0  # the slope of the log-odds at the probability 1/2
_NEAR = 1e-6  # decrease of the objective that the last step with rounded features may promise, as a share
# Positions from the suggested ridge to where the search begins: half a decade larger, as small ones are slow.
_ABOVE = 2
_DECADES = 10  # of ridges searched: leave-one-out in one step is not reliable for smaller ones


def solve_classes(rows: FitRows, sums: Sums, recipe: Recipe, loss: ClassLoss) -> Solved:
    """Choose the ridge and solve.

    Leave-one-out log loss is evaluated along the ridges, downhill from half a decade above the one that squared error
    on the indicators suggests. Of a list of ridges every one is evaluated, the largest first.
    """
    passes, total = rows.choosing, rows.total_weight
    newton = Newton(passes, sums.factor, loss, recipe.fit_intercept, sums.moments.on_host()).hold()
    ridges, path, system = recipe.ridges(sums.moments, _DECADES), None, None
    if recipe.one_ridge:
        chosen, start = ridges.values, _start(sums, float(ridges.scaled[0]))
    else:
        searched = isinstance(recipe.ridge, str)
        first = max(0, _suggested(sums, ridges, newton) - _ABOVE) if searched else 0
        search = LossSearch(newton, ridges, _start(sums, float(ridges.scaled[first])))
        if searched:
            walk_downhill(search.evaluate, first, len(ridges.values), search.least_gain)
        else:
            for position in range(len(ridges.values)):
                search.evaluate(position)
        path, start, system = search.best(total)
        del search  # its system may be large
        chosen = path.ridges[[path.chosen]]
    scaled = float(ridges.scaled_of(chosen)[0])
    if newton.rough:
        near = newton.solve(scaled, start, _NEAR, system)
        start, system = near.solution, near.system
    fit = replace(newton, rough=False).solve(scaled, start, system=system)
    # The system of the best ridge on a path is near enough to the solution.
    left_out = left_out_predictor(newton, newton.with_own_system(fit) if path is None else fit)
    ridge_of_targets = np.repeat(chosen, passes.source.n_targets)
    of_rows = LeftOutClasses(newton.drawn.sample, left_out)
    return Solved(_landmark_fit(newton, fit, total), ridge_of_targets, path, of_rows, fit.converged)


def _start(sums: Sums, scaled_ridge: float) -> RidgeSolution:
    """Return log-odds of the classes' shares, plus four times how far squared error predicts from the shares.

    Four is the slope of the log-odds at the probability 1/2.
    """
    moments, origin = sums.moments, sums.target_origin
    shares = moments.target_sum / moments.total_weight + origin
    shares = np.clip(shares, _LEAST_SHARE, 1.0 - _LEAST_SHARE)
    logs = np.log(shares)
    constant = (logs - np.log1p(-shares) if len(shares) == 1 else logs - logs.mean()) * sums.fit_intercept
    solved = solve_one_ridge(CentredMoments(moments, sums.fit_intercept), _STEEPEST * scaled_ridge)
    if solved is None:
        return RidgeSolution(np.zeros((sums.factor.rank, len(shares))), constant)
    c, own = solved.solution.coefficients, solved.solution.intercept + origin
    return RidgeSolution(_STEEPEST * c, constant + _STEEPEST * (own - shares) * sums.fit_intercept)


def _suggested(sums: Sums, ridges: Ridges, newton: Newton) -> int:
    """Return which ridge squared error on the indicators suggests, or the smallest that the classes have rows for.

    The curvature of the log loss is about the variance `p (1 - p)` that squared error leaves; a ridge of the log loss
    has the effect of the ridge divided by it. At the smallest ridge allowed, a constant prediction has as many
    effective dimensions as there are rows outside the largest class.
    """
    solver = sums.leading
    n_left_out, free = newton.passes.n_left_out, max(1, len(solver.target_variance) - 1)  # targets free to differ
    squared = ridge_path(solver, ridges, n_left_out)
    chosen = int(squared.chosen[0])
    errors = np.minimum(squared.gcv[chosen], solver.target_variance)
    wanted = np.log(ridges.values[chosen]) + np.log(max(float(errors.sum()) / free, 1e-6))
    suggested = int(np.abs(np.log(ridges.values) - wanted).argmin())
    counts, _ = rows_of_classes(newton)
    others = n_left_out - counts.max() if len(counts) > 1 else counts[0]
    spectrum = float(solver.target_variance.sum()) / free * solver.spectrum[:, None]
    dimensions = (spectrum / (spectrum + ridges.scaled)).sum(axis=0)
    return min(suggested, max(0, int(np.count_nonzero(dimensions <= others)) - 1))


def _landmark_fit(newton: Newton, fit: NewtonFit, total_weight: float) -> LandmarkFit:
    """Return the fit as the record of landmark fits; d_eff is that of `D^1/2 K D^1/2`, D the curvature."""
    system, ridge, t = fit.system, fit.system.scaled_ridge, newton.passes.source.n_targets
    if not (newton.whole and isinstance(system, CurvatureSystem)):
        system = CurvatureSystem(newton.sums(fit.solution, ridge), newton.fit_intercept, ridge)
    moments = system.moments
    return LandmarkFit(
        factor=newton.factor,
        moments=moments,
        fit_intercept=newton.fit_intercept,
        scaled_ridge=np.full(t, ridge),
        target_origin=np.zeros(t),
        weight_unit=newton.passes.weight_unit,
        solution=fit.solution,
        training_error=np.full(t, fit.loss / total_weight),
        effective_dimension=dimension_bracket(system.effective_dimension, moments, ridge),
    )
