"""Rounding errors of predictions by landmarks, and an allowance for that of their solution."""

import numpy as np

from ridgemark.backends import Floats
from ridgemark.linalg import EPS, sum_rounding
from ridgemark.losses import Moments
from ridgemark.operators import NystromFactor


def landmark_rounding(factor: NystromFactor) -> float:
    """Return the relative rounding error of a sum over the landmarks."""
    return sum_rounding(factor.cross_kernel.n_landmarks)


def row_rounding(factor: NystromFactor, moments: Moments) -> float:
    """Return `sqrt(sum_i w_i k(x_i, x_i) (s + e_i)^2)`, the rounding error of sums over the landmarks at all rows."""
    return landmark_rounding(factor) * float(np.sqrt(moments.trace_kernel)) + float(np.sqrt(moments.entry_error))


def mean_entry_error(moments: Moments) -> float:
    """Return the root mean square, weighted by `k(x, x)`, of the relative errors of the rows' kernel values."""
    return float(np.sqrt(moments.entry_error / moments.trace_kernel)) if moments.trace_kernel > 0 else 0.0


def prediction_rounding(factor: NystromFactor, moments: Moments, function_size: Floats, constants: Floats) -> Floats:
    """Return the RMS rounding error of predictions, per target; `constants` are the sizes of those that are added."""
    return row_rounding(factor, moments) / np.sqrt(moments.total_weight) * function_size + 4 * EPS * constants


def solved_rounding(moments: Moments, condition: Floats) -> Floats:
    """Estimate generously the error of a solution's fitted values, relative to the deviation of the targets."""
    return 8 * (EPS + mean_entry_error(moments)) * condition
