"""Ridge regression on the features, by one eigendecomposition of their Gram matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import NUMPY, Backend
from ridgemark.linalg import symmetric_eigen
from ridgemark.passes import Moments

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RidgeSolution:
    """Coefficients of the features and the intercept, for every target."""

    coefficients: Floats  # (rank, targets)
    intercept: Floats  # (targets,)


def solve_direct(moments: Moments, scaled_ridge: float, fit_intercept: bool, backend: Backend = NUMPY) -> RidgeSolution:
    """Return `(B'WB + scaled_ridge I)^-1 B'W y`; with an unpenalised intercept, on centred features and targets."""
    gram, cross = moments.gram, moments.cross
    feature_mean = np.zeros(len(gram))
    target_mean = np.zeros(cross.shape[1])
    if fit_intercept:
        feature_mean = moments.feature_sum / moments.total_weight
        target_mean = moments.target_sum / moments.total_weight
        gram = gram - moments.total_weight * np.outer(feature_mean, feature_mean)
        cross = cross - moments.total_weight * np.outer(feature_mean, target_mean)
    eigenvalues, vectors = symmetric_eigen(gram, backend)
    coefficients = vectors @ ((vectors.T @ cross) / (eigenvalues + scaled_ridge)[:, None])
    intercept = target_mean - feature_mean @ coefficients
    return RidgeSolution(coefficients, intercept)
