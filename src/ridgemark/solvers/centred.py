"""Moments of centred features and targets, as the solvers use them; without an intercept nothing is centred."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ridgemark.backends import Floats
from ridgemark.losses import Moments


@dataclass(frozen=True)
class RidgeSolution:
    """Coefficients of the features and the intercept, for every target."""

    coefficients: Floats  # (rank, targets)
    intercept: Floats  # (targets,)


@dataclass(frozen=True, eq=False)
class CentredMoments:
    """`Bc'W Bc` and `Bc'W yc`, with c for centred features and targets; without an intercept, not centred."""

    gram: Floats  # (rank, rank)
    cross: Floats  # (rank, targets)
    feature_mean: Floats  # (rank,): zero without an intercept, as is `target_mean`
    target_mean: Floats  # (targets,)
    target_variance: Floats  # (targets,)
    total_weight: float

    @cached_property
    def size(self) -> float:
        """The Frobenius norm of the Gram matrix, a bound on its largest eigenvalue."""
        return float(np.linalg.norm(self.gram))

    def with_intercept(self, coefficients: Floats) -> RidgeSolution:
        """Return the solution with these coefficients and the intercept for which the mean residual is zero."""
        return RidgeSolution(coefficients, self.target_mean - self.feature_mean @ coefficients)


def centre(moments: Moments, fit_intercept: bool) -> CentredMoments:
    """Return the moments of centred features and targets; without an intercept, the same moments."""
    gram, cross, square, n = moments.gram, moments.cross, moments.target_square, moments.total_weight
    feature_mean, target_mean = np.zeros(len(gram)), np.zeros(cross.shape[1])
    if fit_intercept:
        feature_mean, target_mean = moments.feature_sum / n, moments.target_sum / n
        gram = gram - n * np.outer(feature_mean, feature_mean)
        cross = cross - n * np.outer(feature_mean, target_mean)
        square = square - n * target_mean**2
    return CentredMoments(gram, cross, feature_mean, target_mean, np.maximum(square, 0.0) / n, n)
