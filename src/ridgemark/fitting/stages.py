"""The stages of a fit, in order: kernel, first ridge, landmarks, sums over rows, ridge, coefficients.

Each stage is a function from records to a record.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from ridgemark.backends import NUMPY, Floats, Indices
from ridgemark.fitting.recipe import Recipe, scaled_ridges
from ridgemark.kernels import Kernel
from ridgemark.kernels.base import count_rows
from ridgemark.losses import Moments, loss_sums
from ridgemark.operators import NystromFactor, hold_features, nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.path import (
    KeptRows,
    LeaveOneOut,
    RidgePath,
    leave_one_out,
    left_out_errors,
    loo_path,
    ridge_path,
    searched_path,
)
from ridgemark.rows import ArrayRows, Block, DistinctRows
from ridgemark.selection import LandmarkCount, Landmarks, Problem, count_landmarks, make_selection
from ridgemark.selection.pilot import PILOT, draw_pilot
from ridgemark.solvers import LANDMARKS_BEFORE_GRADIENT, LandmarkFit, SpectralSolver, choose_solver, solve_landmarks
from ridgemark.solvers.landmark_fit import CentredMoments
from ridgemark.solvers.landmark_gradient import LandmarkGradientFit, landmark_gradient
from ridgemark.tuning import TuningResult, choose_kernel

_ROWS_FOR_ORIGIN = 1000  # distinct rows, in random order, whose mean target and median features are the origins
_MOVED = 10.0  # factor by which the ridge must change for landmarks to be drawn again
_MORE = 1.25  # factor by which the number of landmarks must grow for this
_ALIKE = 0.1  # total variation distance of two sampling distributions that is not worth a second draw
_EXACT_SAMPLE = 2500  # rows on which exact leave-one-out takes seconds
_NEARLY_AS_GOOD = 5e-3  # share of the squared error by which ridges hardly differ on such a sample
_WHOLE_PATH = 1000  # features for which an eigendecomposition, for all ridges, takes less than a few Cholesky factors
_SHARE_OF_RESIDUAL = 1e-2  # tolerance of the gradient solver, relative to the root of the training error
_MOST_PRODUCTS = 1000  # of the gradient solver, each one pass


@dataclass(frozen=True, eq=False)
class Setting:
    """The rows with a kernel: where a fit starts."""

    passes: RowPasses  # the rows that choose kernel and landmarks
    distinct: DistinctRows
    kernel: Kernel
    total_weight: float  # the n of n lambda
    target_origin: Floats  # subtracted from the targets
    tuning: TuningResult | None = None  # how the kernel was tuned
    all_rows: RowPasses | None = None  # where those that choose are only a sample

    @property
    def summed(self) -> RowPasses:
        """The rows that sums are over."""
        return self.passes if self.all_rows is None else self.all_rows

    @property
    def share(self) -> float:
        """Weight of the rows that choose, as a share of all: factor of n lambda from all rows to those."""
        return 1.0 if self.all_rows is None else self.total_weight / self.all_rows.total_weight

    def row_numbers(self, indices: Indices | None) -> Indices | None:
        """Return the numbers, among all rows, of some rows that choose."""
        return indices if indices is None or self.all_rows is None else self.all_rows.sample()[0].numbers[indices]

    @property
    def tuned_ridge(self) -> float | None:
        """The lambda that tuning suggests; as n lambda and lambda grow differently, scaled by the root of the rows."""
        if self.tuning is None:
            return None
        return self.tuning.ridge * math.sqrt(self.tuning.n_tuning / max(len(self.distinct), self.tuning.n_tuning))


@dataclass(frozen=True, eq=False)
class Prepared:
    """Landmarks drawn, and the sums over all rows of their features."""

    setting: Setting
    problem: Problem
    landmarks: Landmarks
    count: LandmarkCount
    solver: str  # "direct", or "gradient": then factor and moments are those of a part of the landmarks
    factor: NystromFactor
    moments: Moments
    spectral: SpectralSolver | None = None  # of the moments, where it is at hand


@dataclass(frozen=True, eq=False)
class Tuned:
    """A fit with its ridge chosen."""

    fit: LandmarkFit
    ridges: Floats  # (targets,)
    path: RidgePath | None
    left_out: LeaveOneOut | None


def settle_kernel(passes: RowPasses, recipe: Recipe, rng: np.random.Generator) -> Setting:
    """Choose the kernel with its bandwidth or metric, and an origin for the targets and the columns.

    With an intercept an origin changes no fit, and sums lose no digits to large offsets. Beyond the memory budget a
    sample of the rows chooses.
    """
    if passes.beyond_memory:
        if recipe.solver == "gradient" or recipe.certify_with is not None:
            passes.require_memory()
        return replace(settle_kernel(passes.passes_over_sample(), recipe, rng), all_rows=passes)
    distinct = passes.distinct_rows()
    given = recipe.ridge, recipe.fit_intercept, recipe.n_landmarks
    kernel, tuning = choose_kernel(recipe.kernel, recipe.bandwidth, passes, rng, *given)
    total_weight = float(passes.row_counts().sum())
    if not isinstance(recipe.ridge, str):
        scaled_ridges(np.atleast_1d(recipe.ridge), total_weight)
    origin = np.zeros(passes.source.n_targets)
    if recipe.fit_intercept:
        few = passes.take(distinct.indices[:_ROWS_FOR_ORIGIN])
        origin = few.targets.mean(axis=0)
        if isinstance(few.features, np.ndarray) and not kernel.pairwise and few.n_rows > 1:
            kernel = kernel.centred(np.quantile(few.features, 0.5, axis=0, method="lower"))
    return Setting(passes, distinct, kernel, total_weight, origin, tuning)


def make_problem(setting: Setting, recipe: Recipe, rng: np.random.Generator) -> Problem:
    """Return the problem for which landmarks are to be chosen.

    The ridge is the one given, or the one that tuning suggests, or the best for a pilot by generalised
    cross-validation, which needs no pass of its own.
    """
    passes, kernel, distinct = setting.passes, setting.kernel, setting.distinct
    scaled_ridge, pilots = None, {}
    if recipe.one_ridge:
        scaled_ridge = float(scaled_ridges(np.array(recipe.ridge), setting.total_weight))
    elif setting.tuned_ridge is not None:
        scaled_ridge = float(scaled_ridges(np.array(setting.tuned_ridge), setting.total_weight))
    elif recipe.needs_first_ridge(len(distinct)):
        pilots[PILOT] = draw_pilot(passes, kernel, distinct, PILOT, rng, target_origin=setting.target_origin)
        moments = pilots[PILOT].moments
        scaled_ridge = _best_for(moments, SpectralSolver(moments, recipe.fit_intercept), recipe, len(distinct))
    return Problem(passes, distinct, kernel, scaled_ridge, recipe.risk_tolerance, recipe.failure_probability, pilots)


def draw_landmarks(
    problem: Problem, recipe: Recipe, rng: np.random.Generator, tuning: TuningResult | None
) -> tuple[Landmarks, LandmarkCount]:
    """Choose the number of landmarks, and the landmarks."""
    selection, saved = make_selection(recipe.selection), None if tuning is None else tuning.saved_by_doubling
    count = count_landmarks(recipe.n_landmarks, problem, rng, selection, saved)
    return selection.choose(problem, count.n_landmarks, rng), count


def prepare(setting: Setting, recipe: Recipe, rng: np.random.Generator) -> Prepared:
    """Draw landmarks at a first ridge and sum over all rows.

    Where a pilot chose it, landmarks are drawn once more if the best ridge of these sums differs more than tenfold
    from the first, and asks for more landmarks or its scores would draw other rows.
    """
    problem = make_problem(setting, recipe, rng)
    prepared = sum_over_rows(setting, problem, recipe, draw_landmarks(problem, recipe, rng, setting.tuning), rng)
    matters = prepared.count.may_grow or prepared.landmarks.scores is not None
    if recipe.one_ridge or setting.tuned_ridge is not None or not matters:
        return prepared
    spectral = leading_solver(prepared.moments, recipe.fit_intercept)
    if len(spectral.spectrum) == prepared.factor.rank:
        prepared = replace(prepared, spectral=spectral)
    best = _best_for(prepared.moments, spectral, recipe, setting.summed.n_left_out)
    found = problem.at(setting.share * best)
    if _drawn_alike(prepared, found, recipe, rng):
        return prepared
    setting.summed.held = None  # features of other landmarks take its place
    del prepared
    return sum_over_rows(setting, found, recipe, draw_landmarks(found, recipe, rng, None), rng)


def sum_over_rows(
    setting: Setting, problem: Problem, recipe: Recipe, drawn: tuple[Landmarks, LandmarkCount], rng: np.random.Generator
) -> Prepared:
    """Sum the products of features over all rows; for the gradient solver, features of a part of the landmarks."""
    landmarks, count = drawn
    solver = _solver_for(setting, recipe, landmarks)
    points, indices = landmarks.points, landmarks.indices
    if solver == "gradient":
        part = np.sort(rng.permutation(count_rows(points))[:LANDMARKS_BEFORE_GRADIENT])
        points, indices = points[part], None if indices is None else indices[part]
    again = recipe.criterion == "loo" and not recipe.one_ridge  # whether leave-one-out needs the features again
    here = setting.all_rows is None and setting.passes.backend is NUMPY
    pivots = landmarks.pivots if again and here and solver == "direct" else None
    known = None if pivots is None else (pivots.order, pivots.triangle)
    factor = nystrom_factor(setting.kernel, points, indices, stays=True, pivots=known)
    smallest = None  # where the ridges depend on the kernel
    if not isinstance(recipe.ridge, str):
        smallest = float(scaled_ridges(np.min(recipe.ridge), setting.summed.total_weight))
    if again:
        hold_features(setting.summed, factor, None if pivots is None else pivots.features)
    moments = loss_sums(setting.summed, factor, setting.target_origin, smallest, stays=recipe.one_ridge)
    landmarks = replace(landmarks, pivots=None)
    return Prepared(setting, problem, landmarks, count, solver, factor.on_host(), moments)


def tune(
    passes: RowPasses,
    recipe: Recipe,
    factor: NystromFactor,
    moments: Moments,
    target_origin: Floats,
    n_distinct: int | None = None,
    kept: KeptRows | None = None,
    spectral: SpectralSolver | None = None,
    first_ridge: float | None = None,
    whole_path: bool = False,
) -> Tuned:
    """Choose the ridge and solve, with one more pass for leave-one-out.

    Among many features the ridge is searched from `first_ridge` on, by leave-one-out on the rows kept, unless the whole
    path is wanted.

    Where `n_distinct` is given, the moments are sums over several batches with that many distinct rows, and `passes`
    reads only the last batch. Leave-one-out then uses the rows kept of all batches; without them, generalised
    cross-validation replaces it, as it needs only the moments.
    """
    intercept, unit = recipe.fit_intercept, passes.weight_unit
    if recipe.one_ridge:
        ridges = np.full(len(target_origin), float(recipe.ridge))
        scaled = scaled_ridges(ridges, moments.total_weight)
        return Tuned(solve_landmarks(factor, moments, intercept, scaled, target_origin, unit), ridges, None, None)
    left_out, candidates, per_target = None, recipe.ridges(moments), recipe.ridge_per_target
    searched = isinstance(recipe.ridge, str) and recipe.criterion == "loo" and not whole_path and not per_target
    if searched and kept is not None and factor.rank > _WHOLE_PATH:
        found = _search(passes, recipe, factor, moments, target_origin, n_distinct, kept, first_ridge)
        if found is not None:
            return found
    solver = spectral or SpectralSolver(moments, intercept)
    if recipe.criterion == "loo" and n_distinct is None:
        path, left_out = loo_path(passes, factor, solver, candidates, target_origin, per_target)
    elif recipe.criterion == "loo" and kept is not None:
        sample = kept.passes(passes.memory_budget)
        path, _ = loo_path(sample, factor, solver, candidates, target_origin, per_target, n_distinct)
        passes.count_entries(sample.n_kernel_evaluations)
    else:
        path = ridge_path(solver, candidates, n_distinct or passes.n_left_out, per_target)
    ridges = path.ridges[path.chosen]
    scaled = scaled_ridges(ridges, moments.total_weight)
    return Tuned(
        solve_landmarks(factor, moments, intercept, scaled, target_origin, unit, solver), ridges, path, left_out
    )


def _search(
    passes: RowPasses,
    recipe: Recipe,
    factor: NystromFactor,
    moments: Moments,
    origin: Floats,
    n_distinct: int | None,
    kept: KeptRows,
    first_ridge: float | None,
) -> Tuned | None:
    """Choose the ridge by a walk downhill from the first one, and solve; None where the sums do not determine it."""
    centred, ridges = CentredMoments(moments, recipe.fit_intercept), recipe.ridges(moments)
    n_left_out, sample = n_distinct or passes.n_left_out, kept.passes(passes.memory_budget)
    if first_ridge is None:
        leading = leading_solver(moments, recipe.fit_intercept)
        rough = ridge_path(leading, ridges, n_left_out)
        first_ridge = float(rough.ridges[rough.chosen[0]])
    path = searched_path(sample, factor, centred, ridges, origin, first_ridge, n_left_out)
    passes.count_entries(sample.n_kernel_evaluations)
    if path is None:
        return None
    chosen, left_out = path.ridges[path.chosen], None
    scaled = scaled_ridges(chosen, moments.total_weight)
    fit = solve_landmarks(factor, moments, recipe.fit_intercept, scaled, origin, passes.weight_unit)
    if n_distinct is None and passes.beyond_memory:
        path = path.with_all_rows(left_out_errors(passes, fit))
    elif n_distinct is None:
        left_out = leave_one_out(passes, fit)
        path = path.with_all_rows(passes.row_counts() @ left_out.residuals**2 / passes.total_weight)
    return Tuned(fit, chosen, path, left_out)


def leading_solver(moments: Moments, fit_intercept: bool) -> SpectralSolver:
    """Return the solver of the first features, all of them where they are not many."""
    return SpectralSolver(moments.leading(_WHOLE_PATH), fit_intercept)


def tune_on_sample(setting: Setting, recipe: Recipe, rng: np.random.Generator) -> tuple[Recipe, Tuned]:
    """Choose the ridge on some distinct rows, all of them landmarks: by exact leave-one-out.

    Returns the recipe with this ridge. The best n lambda of exact kernel ridge regression, the noise relative to
    the signal, hardly depends on the number of rows, so that of the sample is used for all. With fewer landmarks than
    rows a larger n lambda is best, too large for the exact solution. Of the ridges that are nearly as good on the
    sample the largest is taken: refinement needs several times fewer products with it.
    """
    passes, distinct = setting.passes, setting.distinct
    kinds = rng.permutation(len(distinct))[:_EXACT_SAMPLE]
    rows = passes.take(np.flatnonzero(np.isin(distinct.kind, kinds)))
    sample = RowPasses(ArrayRows(rows.features, rows.targets, rows.weights), passes.memory_budget)
    settled = replace(recipe, kernel=setting.kernel, bandwidth="median")
    all_landmarks = replace(settled, n_landmarks=len(kinds), selection="uniform")
    prepared = prepare(settle_kernel(sample, all_landmarks, rng), all_landmarks, rng)
    of_rows = prepared.factor, prepared.moments, prepared.setting.target_origin
    tuned = tune(sample, all_landmarks, *of_rows, whole_path=True)
    path = tuned.path
    if path is not None and len(kinds) < len(distinct):
        path = path.raised(_NEARLY_AS_GOOD)
        tuned = replace(tuned, path=path, ridges=path.ridges[path.chosen])
    scaled = float(scaled_ridges(tuned.ridges, prepared.moments.total_weight).min())
    return replace(recipe, ridge=scaled / float(passes.row_counts().sum())), tuned


def solve_by_gradient(prepared: Prepared, fit: LandmarkFit) -> LandmarkGradientFit:
    """Solve for all landmarks at the ridge found by a part of them, to a hundredth of that fit's training error."""
    landmarks, setting = prepared.landmarks, prepared.setting
    tol = _SHARE_OF_RESIDUAL * math.sqrt(float(fit.training_error.min()))
    tol = max(tol, 1e-12 * float(np.sqrt(fit.centred.target_variance.max())))
    points = Block(0, landmarks.points, taken=landmarks.indices)
    return landmark_gradient(setting.passes, setting.kernel, points, fit, tol, _MOST_PRODUCTS)


def without_matrices(prepared: Prepared, tuned: Tuned) -> tuple[Prepared, Tuned]:
    """Return what the gradient solver needs of a fit from a part of the landmarks, to free memory for its own."""
    prepared.setting.summed.held = None
    none, moments = np.zeros((0, 0)), prepared.moments.without_products()
    factor = replace(prepared.factor, landmark_kernel=none, triangle=none)
    fit = replace(tuned.fit, factor=factor, moments=moments, spectral=None)
    return replace(prepared, factor=factor, moments=moments, spectral=None), replace(tuned, fit=fit)


def _best_for(moments: Moments, solver: SpectralSolver, recipe: Recipe, n_left_out: int) -> float:
    """Return the best n lambda by plain generalised cross-validation; the smallest over targets.

    It is accurate enough to draw landmarks: a ridge that is too small does no harm, one that is too large gives too
    few.
    """
    path = ridge_path(solver, recipe.ridges(moments), n_left_out, recipe.ridge_per_target, factor=1.0)
    return float(scaled_ridges(path.ridges[path.chosen], moments.total_weight).min())


def _drawn_alike(prepared: Prepared, found: Problem, recipe: Recipe, rng: np.random.Generator) -> bool:
    """Return whether the ridge moved less than tenfold, or asks for about as many landmarks by nearly equal scores."""
    problem, scores = prepared.problem, prepared.landmarks.scores
    if 1 / _MOVED <= problem.sketch_ridge / found.sketch_ridge <= _MOVED:
        return True
    count = count_landmarks(recipe.n_landmarks, found, rng, make_selection(recipe.selection))
    if count.n_landmarks > _MORE * prepared.count.n_landmarks:
        return False
    if scores is None:
        return True
    # A ridge above that of the problem was matched to the number of landmarks, and stays.
    matched = scores.scaled_ridge if scores.scaled_ridge > problem.sketch_ridge else 0.0
    ridges = scores.scaled_ridge, max(found.sketch_ridge, matched)
    one, two = (problem.scores(PILOT, 0, rng, ridge).upper for ridge in ridges)
    return float(np.abs(one / one.sum() - two / two.sum()).sum()) / 2 < _ALIKE


def _solver_for(setting: Setting, recipe: Recipe, landmarks: Landmarks) -> str:
    if recipe.solver != "auto":
        return str(recipe.solver)
    if recipe.certify_with is not None or setting.all_rows is not None:
        return "direct"
    source = setting.passes.source
    return choose_solver(source.n_rows, count_rows(landmarks.points), source.n_features, source.n_targets)
