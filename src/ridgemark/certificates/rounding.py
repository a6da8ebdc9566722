"""Bounds on the rounding errors of a fit and its features: of sums, by their number of terms, and of kernel values.

A sum `sum_j c_j k(x, z_j)` computed from kernel values with the relative error e lies within
`(s + e) sqrt(k(x, x)) sum_j |c_j| sqrt(k(z_j, z_j))` of the sum in exact arithmetic, s being `sum_rounding` of its
number of terms: by Cauchy and Schwarz |k(x, z)| is at most sqrt(k(x, x) k(z, z)).
"""

import numpy as np

from ridgemark.backends import Floats
from ridgemark.linalg import sum_rounding
from ridgemark.operators import NystromFactor
from ridgemark.solvers import LandmarkFit
from ridgemark.solvers.rounding import (
    landmark_rounding,
    mean_entry_error,
    prediction_rounding,
    row_rounding,
    solved_rounding,
)


def factor_rounding(factor: NystromFactor) -> Floats:
    """Return the relative error by which the square of each feature may be too large, from the rounding of W's factor.

    `(s + e) |W| |T_j|^2`, e the error of the landmarks' own kernel values.
    """
    lengths = np.einsum("ij,ij->j", factor.triangle, factor.triangle)
    share = landmark_rounding(factor) + factor.cross_kernel.landmark_error
    return share * lengths * float(np.linalg.norm(factor.landmark_kernel))


def solution_rounding(fit: LandmarkFit) -> Floats:
    """Return the error of predictions, relative to the exact landmark solution, due to rounding; RMS per target."""
    constants = np.abs(fit.intercept) + np.abs(fit.target_origin)
    size = fit.factor.function_size(fit.dual_coef)
    solved = solved_rounding(fit.moments, condition(fit)) * np.sqrt(fit.centred.target_variance)
    return prediction_rounding(fit.factor, fit.moments, size, constants) + solved


def rms_residual(fit: LandmarkFit) -> Floats:
    """Return the root mean square of y - f from the fit's sums alone, with an allowance for cancellation."""
    square = fit.moments.target_square / fit.moments.total_weight
    share = sum_rounding(fit.moments.n_rows) + mean_entry_error(fit.moments)
    return np.sqrt(fit.training_error + share * condition(fit) * square)


def primal_value(fit: LandmarkFit) -> Floats:
    """Return the fit's objective `|y - f|^2 + n lambda |f|^2` per unit of weight, for each target.

    Its square root bounds the distance to exact without any product with K.
    """
    norm = (fit.solution.coefficients**2).sum(axis=0)
    return rms_residual(fit) ** 2 + fit.scaled_ridge * norm / fit.moments.total_weight


def residual_rounding(fit: LandmarkFit) -> float:
    """Return how much too small rounding may have made tr(K - L); the error of features grows with the condition of W.

    A feature that may be entirely rounding error is left out of L, which makes K - L larger, never smaller.
    """
    moments, factor = fit.moments, fit.factor
    lengths = np.diagonal(moments.gram)
    summed = 2.0 * row_rounding(factor, moments) * factor.feature_sizes * np.sqrt(lengths)
    rounded = summed + factor_rounding(factor) * lengths
    total = sum_rounding(moments.n_rows) + landmark_rounding(factor) + 2.0 * mean_entry_error(fit.moments)
    return float(np.minimum(rounded, lengths).sum() + total * moments.trace_kernel)


def condition(fit: LandmarkFit) -> Floats:
    """Return a bound on the condition number of the matrix of the landmark problem, per target.

    Of the matrix before centring, relative to which that of an intercept is rounded.
    """
    size = max(fit.size, float(np.linalg.norm(fit.moments.gram)))
    return 1.0 + size / fit.scaled_ridge
