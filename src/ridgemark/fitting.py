"""From rows to a fit, in order: kernel, pilot, first ridge, landmarks, moments, path of ridges, coefficients."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark import tuning
from ridgemark.certificates import KINDS, Certificate, certify
from ridgemark.errors import NumericalError, ParameterError
from ridgemark.kernels.base import count_rows
from ridgemark.linalg import check_range
from ridgemark.moments import Moments
from ridgemark.nystrom import NystromFactor, nystrom_factor
from ridgemark.parameters import real_number
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows, Block
from ridgemark.sampling import inclusion_probabilities
from ridgemark.selection import LandmarkCount, Landmarks, Problem, count_landmarks, make_selection
from ridgemark.selection.base import PILOT
from ridgemark.selection.count import memory_limit
from ridgemark.solvers import LandmarkFit, LandmarkGradientFit, SpectralSolver, choose_solver, landmark_gradient
from ridgemark.tuning import (
    KeptRows,
    LeaveOneOut,
    RidgePath,
    choose_kernel,
    gcv_path,
    leave_one_out,
    loo_path,
    ridges_in_range,
)

Floats = NDArray[np.float64]

_SEEN_FOR_ORIGIN = 1000  # distinct rows, in no order, that say where targets and columns lie
_MOVED = 10.0  # by which factor a ridge must move for its landmarks to be drawn again
_EXACT_SAMPLE = 2500  # rows on which exact leave-one-out takes seconds
_SEEN_BEFORE_GRADIENT = 2000  # landmarks that choose the ridge where a gradient solves for many more
_SHARE_OF_RESIDUAL = 1e-2  # of the training error: how far from the direct solution a gradient may stop
_MOST_PRODUCTS = 1000  # of the gradient, each one pass
SOLVERS = ("auto", "direct", "gradient")
_ALIKE = 0.1  # total variation between two ways to draw landmarks that is not worth a second draw


@dataclass(frozen=True)
class Recipe:
    """What is asked of a fit; every field as the parameter of `NystromRidge` of that name."""

    kernel: Any
    bandwidth: Any
    ridge: Any
    n_landmarks: Any
    selection: Any
    risk_tolerance: float = 0.1
    failure_probability: float = 0.05
    ridge_per_target: bool = False
    fit_intercept: bool = False
    solver: Any = "direct"
    certify_with: Any = None

    def __post_init__(self) -> None:
        check_ridge(self.ridge)
        if not (isinstance(self.solver, str) and self.solver in SOLVERS):
            msg = f"solver must be one of {', '.join(map(repr, SOLVERS))}, got {self.solver!r}"
            raise ParameterError(msg)
        for name in ("fit_intercept", "ridge_per_target"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                msg = f"{name} must be True or False, got {getattr(self, name)!r}"
                raise ParameterError(msg)
        if self.certify_with is not None and not (isinstance(self.certify_with, str) and self.certify_with in KINDS):
            msg = f"certify_with must be None or one of {', '.join(map(repr, KINDS))}, got {self.certify_with!r}"
            raise ParameterError(msg)
        for name, largest in (("risk_tolerance", math.inf), ("failure_probability", 0.5)):
            value = getattr(self, name)
            if not 0 < real_number(value) < largest:
                msg = f"{name} must be a number between 0 and {largest:g}, got {value!r}"
                raise ParameterError(msg)

        if self.certify_with is not None and self.solver == "gradient":
            msg = 'certify_with needs the sums that a direct solver keeps; leave solver="auto" or choose "direct"'
            raise ParameterError(msg)

    @property
    def one_ridge(self) -> bool:
        """Whether the ridge is given, not searched."""
        return isinstance(self.ridge, Real)

    @property
    def criterion(self) -> str:
        """What chooses among ridges: "loo" or "gcv"."""
        return "gcv" if isinstance(self.ridge, str) and self.ridge == "gcv" else "loo"

    def ridges(self, moments: Moments) -> Floats:
        """Return the ridges to search: those given, or ten decades in units of the kernel's mean diagonal."""
        if not isinstance(self.ridge, str):
            return np.atleast_1d(np.asarray(self.ridge, dtype=np.float64))
        mean_diagonal = float(check_range(np.array(moments.trace_kernel))) / moments.total_weight
        return tuning.default_ridges(mean_diagonal, moments.total_weight)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Landmarks drawn, and all rows seen through them once."""

    problem: Problem
    landmarks: Landmarks
    count: LandmarkCount
    solver: str  # "direct", or "gradient": then factor and moments are those of a part of the landmarks
    factor: NystromFactor
    moments: Moments
    target_origin: Floats
    whitened: str  # "before" the products were summed, "after", or "partly" before


@dataclass(frozen=True, eq=False)
class Tuned:
    """A fit with its ridge chosen."""

    fit: LandmarkFit
    ridges: Floats  # (targets,)
    path: RidgePath | None
    left_out: LeaveOneOut | None


def prepare(passes: RowPasses, recipe: Recipe, rng: np.random.Generator) -> Prepared:
    """Settle the kernel, draw landmarks at a first ridge and sum over all rows.

    The first ridge is the best for the pilot by generalised cross-validation, which needs no pass of its own. Where the
    landmarks then find one more than tenfold off, and scores at that one would draw other rows, they are drawn once
    more.
    """
    problem = pose(passes, recipe, rng)
    prepared = _see_through_landmarks(problem, recipe, rng)
    if recipe.one_ridge or prepared.landmarks.scores is None:
        return prepared
    found = problem.at(_best_for(prepared.moments, recipe, len(problem.distinct)))
    if _drawn_alike(problem, found, rng):
        return prepared
    return _see_through_landmarks(found, recipe, rng)


def tune(
    passes: RowPasses,
    recipe: Recipe,
    factor: NystromFactor,
    moments: Moments,
    target_origin: Floats,
    n_distinct: int | None = None,
    kept: KeptRows | None = None,
) -> Tuned:
    """Choose the ridge and solve, with one more pass for leave-one-out.

    Where `n_distinct` is given, the moments are those of batches with so many distinct rows, of which `passes` has only
    the last: leave-one-out then takes the rows kept of all batches, or gives way to generalised cross-validation, for
    which the moments suffice.
    """
    intercept, unit = recipe.fit_intercept, passes.weight_unit
    if recipe.one_ridge:
        ridges = np.full(len(target_origin), float(recipe.ridge))
        scaled = ridges * moments.total_weight
        return Tuned(LandmarkFit(factor, moments, intercept, scaled, target_origin, unit), ridges, None, None)
    solver, left_out = SpectralSolver(moments, intercept), None
    candidates, per_target = recipe.ridges(moments), recipe.ridge_per_target
    if recipe.criterion == "loo" and n_distinct is None:
        path, left_out = loo_path(passes, factor, solver, candidates, target_origin, per_target)
    elif recipe.criterion == "loo" and kept is not None:
        sample = kept.passes(passes.memory_budget)
        path, _ = loo_path(sample, factor, solver, candidates, target_origin, per_target, n_distinct)
        passes.n_kernel_evaluations += sample.n_kernel_evaluations
    else:
        path = gcv_path(solver, candidates, n_distinct or len(passes.distinct_rows()), per_target)
    ridges = path.ridges[path.chosen]
    fit = LandmarkFit(factor, moments, intercept, ridges * moments.total_weight, target_origin, unit)
    # Known already: what the properties would compute once more.
    fit.__dict__.update(solver=solver, centred=solver.centred)
    return Tuned(fit, ridges, path, left_out)


def tune_on_sample(passes: RowPasses, recipe: Recipe, rng: np.random.Generator) -> tuple[Recipe, Tuned]:
    """Settle kernel and ridge on some distinct rows, all of them landmarks: by exact leave-one-out.

    Returns the recipe with both settled. The best n lambda of exact kernel ridge regression, the noise in units of the
    signal, hardly depends on the number of rows, so that of the sample serves for all; with fewer landmarks than rows
    a larger one is best, which would be too large here.
    """
    distinct = passes.distinct_rows()
    kinds = rng.permutation(len(distinct))[:_EXACT_SAMPLE]
    rows = passes.take(np.flatnonzero(np.isin(distinct.kind, kinds)))
    sample = RowPasses(ArrayRows(rows.features, rows.targets, rows.weights), passes.memory_budget)
    everyone = replace(recipe, n_landmarks=len(kinds), selection="uniform")
    prepared = prepare(sample, everyone, rng)
    tuned = tune(sample, everyone, prepared.factor, prepared.moments, prepared.target_origin)
    settled = float(tuned.fit.scaled_ridge.min() / passes.row_counts().sum())
    return replace(recipe, kernel=prepared.problem.kernel, bandwidth="median", ridge=settled), tuned


def solve_by_gradient(prepared: Prepared, fit: LandmarkFit) -> LandmarkGradientFit:
    """Solve for all landmarks at the ridge that a part of them found, to a hundredth of what that fit leaves."""
    landmarks, moments = prepared.landmarks, prepared.moments
    tol = _SHARE_OF_RESIDUAL * math.sqrt(float(fit.training_error.min()))
    # Each landmark stands for rows: as many as equal it, over its chance to be drawn.
    stands_for = np.full(count_rows(landmarks.points), moments.total_weight / count_rows(landmarks.points))
    if landmarks.draw is not None and landmarks.draw.n_draws == len(landmarks.draw.indices):
        distinct = prepared.problem.distinct
        counts = distinct.totals(prepared.problem.passes.row_counts())[landmarks.draw.indices]
        stands_for = counts / inclusion_probabilities(landmarks.draw)
    return landmark_gradient(
        prepared.problem.passes,
        prepared.problem.kernel,
        Block(0, landmarks.points, taken=landmarks.indices),
        stands_for,
        fit.scaled_ridge,
        prepared.target_origin,
        fit.fit_intercept,
        max(tol, 1e-12 * float(np.sqrt(fit.centred.target_variance.max()))),
        _MOST_PRODUCTS,
    )


@dataclass(frozen=True, eq=False)
class Tolerance:
    """Whether a fit was certified as close to exact as `risk_tolerance` asks, and how it went.

    Attributes
    ----------
    met : bool
        Whether the certificate proves it.
    reason : str
        Why the fit ended here.
    n_landmarks : tuple of int
        Landmarks of every round.
    bounds : tuple of float
        The certificate's bound after every round, the largest over targets.
    """

    met: bool
    reason: str
    n_landmarks: tuple[int, ...]
    bounds: tuple[float, ...]


def fit_to_tolerance(
    recipe: Recipe, prepared: Prepared, tuned: Tuned, rng: np.random.Generator
) -> tuple[Prepared, Tuned, Certificate, Tolerance]:
    """Double the landmarks, keeping earlier ones, until the certificate meets the tolerance or nothing is left to add.

    Round j spends `failure_probability/2^j`, so that all rounds together keep to it.
    """
    passes, sizes, reached = prepared.problem.passes, [], []
    for attempt in itertools.count(1):
        certificate = certify(
            recipe.certify_with,
            passes,
            tuned.fit,
            landmark_indices=prepared.landmarks.indices,
            failure_probability=math.ldexp(recipe.failure_probability, -attempt),
            rng=rng,
        )
        sizes.append(count_rows(prepared.landmarks.points))
        reached.append(float(np.max(certificate.bound)))
        met = certificate.meets(recipe.risk_tolerance, _loo_rms(passes, tuned))
        reason = "the certificate meets the tolerance" if met else _why_no_more(prepared, recipe)
        if reason:
            return prepared, tuned, certificate, Tolerance(met, reason, tuple(sizes), tuple(reached))
        prepared = _with_more_landmarks(prepared, recipe, rng)
        tuned = tune(passes, recipe, prepared.factor, prepared.moments, prepared.target_origin)
    raise AssertionError  # the rounds end where the rows do


def _loo_rms(passes: RowPasses, tuned: Tuned) -> Floats:
    """Return the weighted root mean square of the leave-one-out residuals, per target."""
    fit, left_out = tuned.fit, tuned.left_out
    if left_out is None:
        left_out = leave_one_out(passes, fit.factor, fit.solver, fit.scaled_ridge, fit.target_origin)
    return np.sqrt(passes.row_counts() @ left_out.residuals**2 / fit.moments.total_weight)


def _why_no_more(prepared: Prepared, recipe: Recipe) -> str:
    """Say why no landmarks can be added; nothing where they can."""
    have, problem = count_rows(prepared.landmarks.points), prepared.problem
    if recipe.n_landmarks != "auto" or make_selection(recipe.selection).own_count() is not None:
        return "the number of landmarks was given"
    if prepared.landmarks.indices is None:
        return "the landmarks are no training rows, so none can be added"
    if have >= len(problem.distinct):
        return "all distinct rows are landmarks"
    if 2 * have > memory_limit(problem.passes.memory_budget):
        return "twice the landmarks exceed the memory budget"
    return ""


def _with_more_landmarks(prepared: Prepared, recipe: Recipe, rng: np.random.Generator) -> Prepared:
    """Double the landmarks by the same selection, and uniformly where it finds too few; those there stay."""
    problem, old = prepared.problem, prepared.landmarks
    assert old.indices is not None
    wanted = min(2 * len(old.indices), len(problem.distinct))
    drawn = make_selection(recipe.selection).choose(problem, wanted, rng)
    assert drawn.indices is not None
    rest = np.setdiff1d(problem.distinct.indices, np.union1d(old.indices, drawn.indices))
    new = np.concatenate([drawn.indices[~np.isin(drawn.indices, old.indices)], rng.permutation(rest)])
    indices = np.concatenate([old.indices, new[: wanted - len(old.indices)]])
    landmarks = Landmarks(problem.passes.take(indices).features, indices, None, old.scores)
    count = replace(prepared.count, n_landmarks=len(indices), rule="doubled until certified")
    return _see_through(problem, recipe, landmarks, count, rng)


def pose(passes: RowPasses, recipe: Recipe, rng: np.random.Generator) -> Problem:
    """Settle the kernel, and state the problem that landmarks are wanted for."""
    distinct = passes.distinct_rows()
    kernel = choose_kernel(recipe.kernel, recipe.bandwidth, passes.source, distinct, rng)
    total_weight = float(passes.row_counts().sum())
    if not isinstance(recipe.ridge, str):
        scaled = np.atleast_1d(np.asarray(recipe.ridge, dtype=np.float64)) * total_weight
        if not ridges_in_range(scaled).all():
            msg = (
                f"ridge times the sum of weights {total_weight:g} leaves the floating-point range, "
                f"got {scaled.min():g} to {scaled.max():g}; rescale the weights or choose another ridge"
            )
            raise NumericalError(msg)
    origin = np.zeros(passes.source.n_targets)
    if recipe.fit_intercept:
        # Constants near targets and columns, so that sums lose no digits to offsets that the intercept takes up.
        seen = passes.take(distinct.indices[:_SEEN_FOR_ORIGIN])
        assert seen.targets is not None
        origin = seen.targets.mean(axis=0)
        if isinstance(seen.features, np.ndarray) and not kernel.pairwise and seen.n_rows > 1:
            kernel = kernel.centred(np.quantile(seen.features, 0.5, axis=0, method="lower"))
    return Problem(
        passes,
        distinct,
        kernel,
        float(recipe.ridge) * total_weight
        if recipe.one_ridge
        else lambda moments: _best_for(moments, recipe, len(distinct)),
        recipe.risk_tolerance,
        recipe.failure_probability,
        origin,
    )


def draw_landmarks(problem: Problem, recipe: Recipe, rng: np.random.Generator) -> tuple[Landmarks, LandmarkCount]:
    """Decide how many landmarks, and which."""
    selection = make_selection(recipe.selection)
    count = count_landmarks(recipe.n_landmarks, problem, rng, selection)
    return selection.choose(problem, count.n_landmarks, rng), count


def check_ridge(ridge: Any) -> None:
    """Refuse what is no ridge, no list of ridges and no way to search one."""
    if isinstance(ridge, str) and ridge in ("loo", "gcv"):
        return
    try:
        values = np.asarray(ridge, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.array(np.nan)
    usable = values.ndim <= 1 and values.size and np.isfinite(values).all() and (values > 0).all()
    if not usable or isinstance(ridge, str | bool):
        msg = (
            f'ridge must be a positive finite number (the paper\'s lambda), a list of them to search, "loo" or "gcv", '
            f"got {ridge!r}"
        )
        raise ParameterError(msg)


def _best_for(moments: Moments, recipe: Recipe, n_distinct: int) -> float:
    """Return the n lambda that plain generalised cross-validation finds best; the smallest over targets.

    Good enough to draw landmarks, which a too small ridge does not harm; a too large one gives too few of them.
    """
    solver = SpectralSolver(moments, recipe.fit_intercept)
    path = gcv_path(solver, recipe.ridges(moments), n_distinct, recipe.ridge_per_target, factor=1.0)
    return float(path.ridges[path.chosen].min() * moments.total_weight)


def _drawn_alike(problem: Problem, other: Problem, rng: np.random.Generator) -> bool:
    """Tell whether two ridges are within tenfold, or their scores draw the same rows nine times in ten."""
    if 1 / _MOVED <= problem.scaled_ridge(rng) / other.scaled_ridge(rng) <= _MOVED:
        return True
    one, two = (at.scores(PILOT, 0, rng).upper for at in (problem, other))
    return float(np.abs(one / one.sum() - two / two.sum()).sum()) / 2 < _ALIKE


def _see_through_landmarks(problem: Problem, recipe: Recipe, rng: np.random.Generator) -> Prepared:
    """Draw the landmarks and sum over all rows."""
    return _see_through(problem, recipe, *draw_landmarks(problem, recipe, rng), rng)


def _see_through(
    problem: Problem, recipe: Recipe, landmarks: Landmarks, count: LandmarkCount, rng: np.random.Generator
) -> Prepared:
    """Sum over all rows the products of their features; where a gradient will solve, of a part of the landmarks."""
    solver = _solver_for(problem, recipe, landmarks)
    points, indices = landmarks.points, landmarks.indices
    if solver == "gradient":
        part = np.sort(rng.permutation(count_rows(points))[:_SEEN_BEFORE_GRADIENT])
        points, indices = points[part], None if indices is None else indices[part]
    factor = nystrom_factor(problem.kernel, points, indices)
    smallest = problem.scaled_ridge(rng) if recipe.one_ridge else None
    assert problem.target_origin is not None
    moments = problem.passes.moments(factor, problem.target_origin, smallest)
    whitened = problem.passes.whitened
    return Prepared(problem, landmarks, count, solver, factor, moments, problem.target_origin, whitened)


def _solver_for(problem: Problem, recipe: Recipe, landmarks: Landmarks) -> str:
    if recipe.solver != "auto":
        return str(recipe.solver)
    if recipe.certify_with is not None:
        return "direct"
    source = problem.passes.source
    return choose_solver(source.n_rows, count_rows(landmarks.points), source.n_features, source.n_targets)
