"""Third stage of a fit: the factor of the landmark kernel, and sums over all rows of the features."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ridgemark.backends import NUMPY, Floats
from ridgemark.fitting.kernel import FitKernel
from ridgemark.fitting.recipe import Recipe
from ridgemark.fitting.rows import FitRows
from ridgemark.kernels.base import count_rows
from ridgemark.losses import Moments, loss_sums
from ridgemark.operators import NystromFactor, hold_features, nystrom_factor
from ridgemark.selection import Landmarks
from ridgemark.solvers import LANDMARKS_BEFORE_GRADIENT, SpectralSolver, choose_solver

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
