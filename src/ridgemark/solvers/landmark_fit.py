"""A fit from landmarks: what every later question about it starts from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ridgemark.leverage import Bracket
from ridgemark.nystrom import NystromFactor
from ridgemark.passes import Moments
from ridgemark.solvers.spectral import RidgeSolution, SpectralSolver

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LandmarkFit:
    """The function `f(x) = b(x)' coefficients + intercept + target_origin`, with the sums it was solved from."""

    factor: NystromFactor
    moments: Moments
    fit_intercept: bool
    scaled_ridge: Floats  # (targets,): n lambda, equal entries unless every target has its own
    target_origin: Floats  # (targets,): where the targets of the moments are measured from

    @cached_property
    def solver(self) -> SpectralSolver:
        """The eigendecomposition of the moments."""
        return SpectralSolver(self.moments, self.fit_intercept)

    @cached_property
    def solution(self) -> RidgeSolution:
        """The coefficients of the features, and the intercept measured from `target_origin`."""
        return self.solver.solution(self.scaled_ridge)

    @property
    def effective_dimension(self) -> Bracket:
        """d_eff of the exact kernel at the smallest ridge: that of L, and at most `tr(K - L)/(n lambda)` more."""
        scaled_ridge = float(self.scaled_ridge.min())
        lower = self.solver.effective_dimension(scaled_ridge)
        return Bracket(lower, min(float(self.moments.n_rows), lower + self.moments.trace_residual / scaled_ridge))

    @property
    def dual_coef(self) -> Floats:
        """The coefficients of the landmarks' kernel values, shape (p, targets)."""
        return self.factor.whitener @ self.solution.coefficients

    @property
    def intercept(self) -> Floats:
        """The constant in the targets' own units, shape (targets,)."""
        return self.solution.intercept + self.target_origin
