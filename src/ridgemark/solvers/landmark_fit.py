"""A fit from landmarks, with the sums that certificates, intervals and refinement start from."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ridgemark.backends import Floats
from ridgemark.leverage import Bracket, residual_dimension
from ridgemark.losses import Moments, RidgeSolution
from ridgemark.operators import NystromFactor
from ridgemark.solvers.ridge import CentredMoments, SpectralSolver, centre, solve_one_ridge


@dataclass(frozen=True, eq=False)
class LandmarkFit:
    """The function `f(x) = b(x)' coefficients + intercept + target_origin`, with the sums it was solved from."""

    factor: NystromFactor
    moments: Moments
    fit_intercept: bool
    scaled_ridge: Floats  # (targets,): n lambda for each target
    target_origin: Floats  # (targets,): subtracted from the targets in the moments
    weight_unit: float  # divisor of the weights in the moments and in `scaled_ridge`
    solution: RidgeSolution  # the coefficients of the features, and the intercept measured from `target_origin`
    training_error: Floats  # (targets,): the weighted mean squared residual
    effective_dimension: Bracket  # d_eff of the exact kernel at the smallest ridge
    spectral: SpectralSolver | None = field(default=None, compare=False, repr=False)  # where it is at hand

    @cached_property
    def centred(self) -> CentredMoments:
        """The moments, measured from their means where there is an intercept."""
        return centre(self.moments, self.fit_intercept) if self.spectral is None else self.spectral.centred

    @cached_property
    def solver(self) -> SpectralSolver:
        """The eigendecomposition of the moments, for every ridge."""
        return self.spectral or SpectralSolver(self.moments, self.fit_intercept, self.centred)

    @property
    def dual_coef(self) -> Floats:
        """The coefficients of the landmarks' kernel values, shape (p, targets)."""
        return self.factor.whitener @ self.solution.coefficients

    @property
    def intercept(self) -> Floats:
        """The constant in the targets' own units, shape (targets,)."""
        return self.solution.intercept + self.target_origin


def solve_landmarks(
    factor: NystromFactor,
    moments: Moments,
    fit_intercept: bool,
    scaled_ridge: Floats,
    target_origin: Floats,
    weight_unit: float = 1.0,
    spectral: SpectralSolver | None = None,
) -> LandmarkFit:
    """Solve at one ridge for every target.

    One Cholesky factor solves where all ridges are equal and no eigendecomposition is given; the eigendecomposition
    elsewhere, and where the ridge is below the rounding of the moments. d_eff is that of L, and at most
    `residual_dimension` more.
    """
    centred = centre(moments, fit_intercept) if spectral is None else spectral.centred
    smallest = float(scaled_ridge.min())
    one = solve_one_ridge(centred, smallest) if spectral is None and len(np.unique(scaled_ridge)) == 1 else None
    if one is not None:
        solution, error, lower = one.solution, one.training_error, one.effective_dimension
    else:
        spectral = spectral or SpectralSolver(moments, fit_intercept, centred)
        solution, lower = spectral.solution(scaled_ridge), spectral.effective_dimension(smallest)
        error = np.array([spectral.training_error(float(s))[t] for t, s in enumerate(scaled_ridge)])
    n = moments.n_rows
    upper = min(float(n), lower + residual_dimension(moments.trace_residual / smallest, n))
    dimension = Bracket(lower, upper)
    return LandmarkFit(
        *(factor, moments, fit_intercept, scaled_ridge, target_origin, weight_unit),
        *(solution, error, dimension, spectral),
    )
