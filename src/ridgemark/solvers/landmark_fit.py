"""A fit from landmarks: what every later question about it starts from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ridgemark.leverage import Bracket, residual_dimension
from ridgemark.moments import Moments
from ridgemark.nystrom import NystromFactor
from ridgemark.solvers.centred import CentredMoments, RidgeSolution, centre
from ridgemark.solvers.cholesky import OneRidge, solve_one_ridge
from ridgemark.solvers.spectral import SpectralSolver

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
    def centred(self) -> CentredMoments:
        """The moments, measured from their means where there is an intercept."""
        return centre(self.moments, self.fit_intercept)

    @cached_property
    def solver(self) -> SpectralSolver:
        """The eigendecomposition of the moments, for every ridge."""
        return SpectralSolver(self.moments, self.fit_intercept, self.centred)

    @cached_property
    def _one_ridge(self) -> OneRidge | None:
        """The same for one ridge; None where targets have their own, or a decomposition is at hand or is needed."""
        ridges = np.unique(self.scaled_ridge)
        if "solver" in self.__dict__ or len(ridges) > 1:
            return None
        return solve_one_ridge(self.centred, float(ridges[0]))

    @cached_property
    def solution(self) -> RidgeSolution:
        """The coefficients of the features, and the intercept measured from `target_origin`."""
        return self._one_ridge.solution if self._one_ridge else self.solver.solution(self.scaled_ridge)

    @cached_property
    def training_error(self) -> Floats:
        """The weighted mean square of what the fit leaves, per target."""
        if self._one_ridge:
            return self._one_ridge.training_error
        return np.array([self.solver.training_error(float(s))[t] for t, s in enumerate(self.scaled_ridge)])

    @cached_property
    def effective_dimension(self) -> Bracket:
        """d_eff of the exact kernel at the smallest ridge: that of L, and at most `residual_dimension` more."""
        scaled_ridge = float(self.scaled_ridge.min())
        if self._one_ridge:
            lower = self._one_ridge.effective_dimension
        else:
            lower = self.solver.effective_dimension(scaled_ridge)
        n = self.moments.n_rows
        more = residual_dimension(self.moments.trace_residual / scaled_ridge, n)
        return Bracket(lower, min(float(n), lower + more))

    @property
    def dual_coef(self) -> Floats:
        """The coefficients of the landmarks' kernel values, shape (p, targets)."""
        return self.factor.whitener @ self.solution.coefficients

    @property
    def intercept(self) -> Floats:
        """The constant in the targets' own units, shape (targets,)."""
        return self.solution.intercept + self.target_origin
