"""Ridge regression on the features for every ridge at once, from one eigendecomposition of their moments."""

from __future__ import annotations

import numpy as np

from ridgemark.backends import NUMPY, Floats
from ridgemark.errors import NumericalError
from ridgemark.linalg import symmetric_eigen
from ridgemark.losses import Moments
from ridgemark.solvers.centred import CentredMoments, RidgeSolution, centre

ROBUST = 1.6  # factor on tr H in generalised cross-validation


class SpectralSolver:
    """Solves `(B'WB + scaled_ridge I) c = B'Wy`, on centred features and targets where there is an intercept.

    With `Bc'W Bc = V diag(s) V'` and `u = V' Bc'W yc`, the coefficients are `V u/(s + scaled_ridge)`; the mean
    squared residual and the trace of the hat matrix follow from s and u alone.
    """

    def __init__(self, moments: Moments, fit_intercept: bool, centred: CentredMoments | None = None) -> None:
        self.centred = centre(moments, fit_intercept) if centred is None else centred
        self.feature_mean, self.target_mean = self.centred.feature_mean, self.centred.target_mean
        self.target_variance, self.total_weight = self.centred.target_variance, self.centred.total_weight
        self.fit_intercept = fit_intercept
        self.spectrum, self.rotation = symmetric_eigen(self.centred.gram, NUMPY)
        self.rotated = self.rotation.T @ self.centred.cross

    def solution(self, scaled_ridge: float | Floats) -> RidgeSolution:
        """Return the solution for one ridge, or for one ridge per target."""
        # Eigenvalues below their rounding error are not known, and with a tinier ridge this would divide by zero.
        rounding = np.finfo(np.float64).eps * self.spectrum.max(initial=0.0)
        shrunk = self.rotated / np.maximum(self.spectrum[:, None] + np.asarray(scaled_ridge), rounding)
        return self.centred.with_intercept(self.rotation @ shrunk)

    def effective_dimension(self, scaled_ridge: float) -> float:
        """Return the trace of `L (L + scaled_ridge)^-1`, without the intercept."""
        return float((self.spectrum / (self.spectrum + scaled_ridge)).sum())

    def training_error(self, scaled_ridge: float) -> Floats:
        """Return the weighted mean squared residual, per target."""
        inverse = 1.0 / (self.spectrum + scaled_ridge)
        # Scaled before squaring, so that the squares do not exceed those of the targets.
        explained = np.sum((np.sqrt(inverse * (1.0 + scaled_ridge * inverse))[:, None] * self.rotated) ** 2, axis=0)
        return np.maximum(self.target_variance - explained / self.total_weight, 0.0)

    def generalised_cross_validation(self, scaled_ridge: float, n_distinct: int, factor: float = ROBUST) -> Floats:
        """Return `training_error / (1 - factor tr H/G)^2` per target, for G distinct rows.

        It is infinite where `factor tr H >= G`. H includes the intercept. With factor 1, the plain criterion, the
        minimum is often at a far too small ridge when rows are few or their leverages uneven; `docs/theory.md` shows
        what the factor does.
        """
        trace = self.effective_dimension(scaled_ridge) + self.fit_intercept
        remaining = 1.0 - factor * trace / n_distinct
        if remaining <= 1e-12:
            return np.full(len(self.target_variance), np.inf)
        return self.training_error(scaled_ridge) / remaining**2

    def check_targets(self) -> None:
        """Refuse targets whose squares leave the floating-point range, as errors could not be compared."""
        beyond = ~np.isfinite(self.target_variance)
        beneath = (self.target_variance < 1e-300) & (np.abs(self.rotated) > 0).any(axis=0)
        if (beyond | beneath).any():
            what = "exceed" if beyond.any() else "fall below"
            msg = f"the squares of the targets {what} the floating-point range; rescale the targets"
            raise NumericalError(msg)
