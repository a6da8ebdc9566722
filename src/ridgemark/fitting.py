"""From rows to a fit, in order: kernel, pilot, first ridge, landmarks, moments, path of ridges, coefficients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.errors import NumericalError, ParameterError
from ridgemark.linalg import check_range
from ridgemark.nystrom import NystromFactor, nystrom_factor
from ridgemark.passes import DistinctRows, Moments, RowPasses
from ridgemark.selection import LandmarkCount, Landmarks, Problem, count_landmarks, make_selection
from ridgemark.selection.base import PILOT
from ridgemark.solvers import LandmarkFit, SpectralSolver
from ridgemark.tuning import LeaveOneOut, RidgePath, choose_kernel, default_ridges, gcv_path, loo_path

Floats = NDArray[np.float64]

_SEEN_FOR_ORIGIN = 1000  # rows whose targets say where the targets lie
_MOVED = 10.0  # by which factor a ridge must move for its landmarks to be drawn again
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

    def __post_init__(self) -> None:
        check_ridge(self.ridge)
        for name, largest in (("risk_tolerance", math.inf), ("failure_probability", 0.5)):
            value = getattr(self, name)
            if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < largest:
                msg = f"{name} must be a number between 0 and {largest:g}, got {value!r}"
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
        return default_ridges(float(check_range(np.array(moments.trace_kernel))) / moments.total_weight)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Landmarks drawn, and all rows seen through them once."""

    landmarks: Landmarks
    count: LandmarkCount
    factor: NystromFactor
    moments: Moments
    target_origin: Floats
    whitened: str  # "before" the products were summed, or "after"
    distinct: DistinctRows


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
    found = problem.at(_best_for(prepared.moments, recipe))
    if _drawn_alike(problem, found, rng):
        return prepared
    return _see_through_landmarks(found, recipe, rng)


def tune(
    passes: RowPasses | None, recipe: Recipe, factor: NystromFactor, moments: Moments, target_origin: Floats
) -> Tuned:
    """Choose the ridge and solve, with one more pass for leave-one-out.

    Without the rows at hand, leave-one-out gives way to generalised cross-validation, for which the moments suffice.
    """
    solver = SpectralSolver(moments, recipe.fit_intercept)
    path = left_out = None
    if recipe.one_ridge:
        ridges = np.full(len(target_origin), float(recipe.ridge))
    else:
        candidates, per_target = recipe.ridges(moments), recipe.ridge_per_target
        if recipe.criterion == "loo" and passes is not None:
            path, left_out = loo_path(passes, factor, solver, candidates, target_origin, per_target)
        else:
            path = gcv_path(solver, candidates, per_target)
        ridges = path.ridges[path.chosen]
    fit = LandmarkFit(factor, moments, recipe.fit_intercept, ridges * moments.total_weight, target_origin)
    fit.__dict__["solver"] = solver  # known already: what the property would compute once more
    return Tuned(fit, ridges, path, left_out)


def pose(passes: RowPasses, recipe: Recipe, rng: np.random.Generator) -> Problem:
    """Settle the kernel, and state the problem that landmarks are wanted for."""
    distinct = passes.distinct_rows()
    kernel = choose_kernel(recipe.kernel, recipe.bandwidth, passes.source, distinct, rng)
    total_weight = float(passes.row_counts().sum())
    if recipe.one_ridge and not float(recipe.ridge) * total_weight > 1e-300:
        msg = f"ridge {recipe.ridge:g} times the sum of weights {total_weight:g} vanishes; rescale the weights"
        raise NumericalError(msg)
    origin = np.zeros(passes.source.n_targets)
    if recipe.fit_intercept:
        # A constant near the targets, so that their sums lose no digits to an offset the intercept holds.
        origin = passes.source.take(distinct.indices[:_SEEN_FOR_ORIGIN]).targets.mean(axis=0)  # type: ignore[union-attr]
    return Problem(
        passes,
        distinct,
        kernel,
        float(recipe.ridge) * total_weight if recipe.one_ridge else lambda moments: _best_for(moments, recipe),
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
    except (TypeError, ValueError):
        values = np.array(np.nan)
    usable = values.ndim <= 1 and values.size and np.isfinite(values).all() and (values > 0).all()
    if not usable or isinstance(ridge, str | bool):
        msg = (
            f'ridge must be a positive finite number (the paper\'s lambda), a list of them to search, "loo" or "gcv", '
            f"got {ridge!r}"
        )
        raise ParameterError(msg)


def _best_for(moments: Moments, recipe: Recipe) -> float:
    """Return the n lambda that generalised cross-validation finds best; the smallest over targets."""
    solver = SpectralSolver(moments, recipe.fit_intercept)
    path = gcv_path(solver, recipe.ridges(moments), recipe.ridge_per_target)
    return float(path.ridges[path.chosen].min() * moments.total_weight)


def _drawn_alike(problem: Problem, other: Problem, rng: np.random.Generator) -> bool:
    """Tell whether two ridges are within tenfold, or their scores draw the same rows nine times in ten."""
    if 1 / _MOVED <= problem.scaled_ridge(rng) / other.scaled_ridge(rng) <= _MOVED:
        return True
    one, two = (at.scores(PILOT, 0, rng).upper for at in (problem, other))
    return float(np.abs(one / one.sum() - two / two.sum()).sum()) / 2 < _ALIKE


def _see_through_landmarks(problem: Problem, recipe: Recipe, rng: np.random.Generator) -> Prepared:
    """Draw the landmarks and sum over all rows."""
    landmarks, count = draw_landmarks(problem, recipe, rng)
    factor = nystrom_factor(problem.kernel, landmarks.points, landmarks.indices)
    smallest = problem.scaled_ridge(rng) if recipe.one_ridge else None
    assert problem.target_origin is not None
    moments = problem.passes.moments(factor, problem.target_origin, smallest)
    return Prepared(landmarks, count, factor, moments, problem.target_origin, problem.passes.whitened, problem.distinct)
