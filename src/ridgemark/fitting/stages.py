"""The stages of a fit before its ridge is chosen: rows, kernel, landmarks, sums over all rows; and what a fit found."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ridgemark.backends import NUMPY, Floats, Indices
from ridgemark.certificates import Certificate
from ridgemark.errors import ParameterError
from ridgemark.fitted import Tolerance
from ridgemark.fitting.recipe import Recipe
from ridgemark.fitting.response import response_passes
from ridgemark.kernels import Kernel
from ridgemark.kernels.base import count_rows
from ridgemark.losses import SQUARED, ClassLoss, Loss, Moments, loss_sums
from ridgemark.operators import NystromFactor, hold_features, nystrom_factor
from ridgemark.passes import Cost, RowPasses
from ridgemark.path import KeptRows, LeaveOneOut, LossPath, RidgePath, ridge_path
from ridgemark.selection import LandmarkCount, Landmarks, Problem, count_landmarks, make_selection
from ridgemark.selection.pilot import PILOT, draw_pilot
from ridgemark.solvers import LANDMARKS_BEFORE_GRADIENT, LandmarkFit, SpectralSolver, choose_solver
from ridgemark.solvers.landmark_gradient import LandmarkGradientFit
from ridgemark.tuning import TuningResult, choose_kernel


@dataclass(frozen=True, eq=False)
class FitRows:
    """All rows of a fit, and those of them that choose kernel and landmarks.

    Their targets are those of squared errors: of a smooth loss its response, or the indicators of classes.
    """

    summed: RowPasses  # all rows
    choosing: RowPasses  # the same, or beyond the memory budget a sample
    own: RowPasses  # the rows that choose, with the targets of the loss

    @property
    def cost(self) -> Cost:
        """What the passes over all rows took."""
        return self.summed.cost if self.own is self.choosing else self.summed.cost + self.own.cost

    @property
    def are_sampled(self) -> bool:
        """Whether a sample chooses."""
        return self.choosing is not self.summed

    @property
    def share(self) -> float:
        """Weight of the rows that choose, as a share of all: factor of n lambda from all rows to those."""
        return self.choosing.total_weight / self.summed.total_weight if self.are_sampled else 1.0

    def numbers_of(self, indices: Indices | None) -> Indices | None:
        """Return the numbers, among all rows, of some rows that choose."""
        return indices if indices is None or not self.are_sampled else self.summed.sample()[0].numbers[indices]


def rows_of_fit(passes: RowPasses, recipe: Recipe, loss: Loss | None = None) -> FitRows:
    """Return the rows of a fit; beyond the memory budget a sample of the rows chooses."""
    if passes.has_groups and recipe.criterion == "gcv":
        raise ParameterError(
            'generalised cross-validation leaves out single rows, not groups; choose ridge="loo", a number or a list'
        )
    if loss is not None and not isinstance(loss, ClassLoss):
        response = response_passes(passes, loss)
        return FitRows(response, response, passes)
    if not passes.beyond_memory:
        return FitRows(passes, passes, passes)
    if recipe.solver == "gradient" or recipe.certify_with is not None:
        passes.require_memory()
    sample = passes.passes_over_sample()
    return FitRows(passes, sample, sample)


_ROWS_FOR_ORIGIN = 1000  # distinct rows, in random order, whose mean target and median features are the origins


@dataclass(frozen=True, eq=False)
class FitKernel:
    """The kernel of a fit, and what was learned with it."""

    kernel: Kernel
    target_origin: Floats  # subtracted from the targets
    tuning: TuningResult | None  # how the kernel was tuned
    ridge: float | None  # the lambda that tuning suggests


def settle_kernel(rows: FitRows, recipe: Recipe, rng: np.random.Generator) -> FitKernel:
    """Choose the kernel with its bandwidth or metric, and an origin for the targets and the columns.

    With an intercept an origin changes no fit, and sums lose no digits to large offsets. A checkpoint keeps what tuning
    found.
    """
    passes, distinct = rows.choosing, rows.choosing.distinct_rows()

    def choose(passes: RowPasses) -> tuple[Kernel, TuningResult | None]:
        given = recipe.ridge, recipe.fit_intercept, recipe.n_landmarks, recipe.chosen_effort.tuner
        return choose_kernel(recipe.kernel, recipe.bandwidth, passes, rng, *given)

    kernel, tuning = passes.recall("kernel", rng, choose) if isinstance(recipe.kernel, str) else choose(passes)
    origin = np.zeros(passes.source.n_targets)
    if recipe.fit_intercept:
        sample = passes.take(distinct.indices[:_ROWS_FOR_ORIGIN])
        origin = sample.targets.mean(axis=0)
        if isinstance(sample.features, np.ndarray) and not kernel.pairwise and sample.n_rows > 1:
            kernel = kernel.centred(np.quantile(sample.features, 0.5, axis=0, method="lower"))
    return FitKernel(kernel, origin, tuning, None if tuning is None else tuning.ridge_for(len(distinct)))


_WHOLE_PATH = 1000  # features for which an eigendecomposition, for all ridges, takes less than a few Cholesky factors


@dataclass(frozen=True, eq=False)
class Sums:
    """The features' factor and the sums over rows of their products with each other and with the targets."""

    factor: NystromFactor
    moments: Moments
    fit_intercept: bool
    target_origin: Floats  # subtracted from the targets
    solver: str = "direct"  # or "gradient": then these are the sums of a part of the landmarks

    @property
    def many_features(self) -> bool:
        """Whether one ridge after the other takes less time than an eigendecomposition."""
        return self.factor.rank > _WHOLE_PATH

    @cached_property
    def leading(self) -> SpectralSolver:
        """The solver of the first features, all of them where they are not many."""
        return SpectralSolver(self.moments.leading(_WHOLE_PATH), self.fit_intercept)

    @cached_property
    def spectral(self) -> SpectralSolver:
        """The solver of all features."""
        return SpectralSolver(self.moments, self.fit_intercept) if self.many_features else self.leading

    def without_matrices(self) -> "Sums":
        """Return what the gradient solver needs of these sums, to free memory for its own."""
        factor = replace(self.factor, landmark_kernel=np.zeros((0, 0)), triangle=np.zeros((0, 0)))
        return replace(self, factor=factor, moments=self.moments.without_products())


def sum_over_rows(
    rows: FitRows, chosen: FitKernel, landmarks: Landmarks, recipe: Recipe, rng: np.random.Generator
) -> Sums:
    """Sum the products of features over all rows; for the gradient solver, features of a part of the landmarks."""
    rows.summed.held = None  # features of earlier landmarks
    solver, pivots = _solver_for(rows, recipe, landmarks), landmarks.pivots
    points, indices = landmarks.points, landmarks.indices
    if solver == "gradient":
        part = np.sort(rng.permutation(count_rows(points))[:LANDMARKS_BEFORE_GRADIENT])
        points, indices = points[part], None if indices is None else indices[part]
    again = recipe.criterion == "loo" and not recipe.one_ridge  # whether leave-one-out needs the features again
    here = not rows.are_sampled and rows.choosing.backend is NUMPY
    if not (again and here and solver == "direct"):
        pivots = None
    known = None if pivots is None else (pivots.order, pivots.triangle)
    factor = nystrom_factor(chosen.kernel, points, indices, stays=True, pivots=known)
    if again:
        hold_features(rows.summed, factor, None if pivots is None else pivots.features)
    smallest = recipe.smallest_ridge(rows.summed.total_weight)
    moments = loss_sums(rows.summed, factor, chosen.target_origin, smallest, stays=recipe.one_ridge)
    return Sums(factor.on_host(), moments, recipe.fit_intercept, chosen.target_origin, solver)


def _solver_for(rows: FitRows, recipe: Recipe, landmarks: Landmarks) -> str:
    if recipe.solver != "auto":
        return str(recipe.solver)
    if recipe.certify_with is not None or rows.are_sampled:
        return "direct"
    source = rows.choosing.source
    return choose_solver(source.n_rows, count_rows(landmarks.points), source.n_features, source.n_targets)


_MOVED = 10.0  # factor by which the ridge must change for landmarks to be drawn again
_MORE = 1.25  # factor by which the number of landmarks must grow for this
_ALIKE = 0.1  # total variation distance of two sampling distributions that is not worth a second draw


def make_problem(rows: FitRows, chosen: FitKernel, recipe: Recipe, rng: np.random.Generator) -> Problem:
    """Return the problem for which landmarks are to be chosen.

    The ridge is the one given, or the one that tuning suggests, or the best for a pilot by generalised
    cross-validation, which needs no pass of its own.
    """
    passes, distinct = rows.choosing, rows.choosing.distinct_rows()
    scaled_ridge, pilots = None, {}
    if recipe.one_ridge or chosen.ridge is not None:
        scaled_ridge = recipe.first_ridge(chosen.ridge, rows.choosing.total_weight)
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
    if chosen.ridge is not None or not (count.may_grow or landmarks.scores is not None):
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


@dataclass(frozen=True, eq=False)
class LeftOutPredictors:
    """Rows of a fit by a smooth loss, and what predicts each from all rows with other features, in one Newton step."""

    sample: RowPasses  # distinct rows, with the weight and mean target of their equals
    predictors: Floats  # (m, t)
    rows: Indices  # (r,): numbers of all rows that equal one of the sample
    group: Indices  # (r,): position of each in the sample


@dataclass(frozen=True, eq=False)
class Solved:
    """The coefficients, at the ridge chosen."""

    fit: LandmarkFit  # of classes its sums are weighted by the curvature of the loss at the solution
    ridges: Floats  # (targets,)
    path: RidgePath | LossPath | None  # None where the ridge was given
    left_out: LeaveOneOut | LeftOutPredictors | None = None
    converged: bool = True
    gradient: LandmarkGradientFit | None = None  # coefficients of more landmarks than the fit has
    loss: Loss = SQUARED  # with what the targets decided of it


@dataclass(frozen=True, eq=False)
class Fit:
    """What a fit found, stage by stage."""

    rows: FitRows
    kernel: FitKernel
    problem: Problem  # for which landmarks were drawn
    landmarks: Landmarks
    count: LandmarkCount
    sums: Sums
    kept: KeptRows | None  # rows for leave-one-out, when all others are gone
    solved: Solved
    certificate: Certificate | None = None  # of `certify_with`
    tolerance: Tolerance | None = None
