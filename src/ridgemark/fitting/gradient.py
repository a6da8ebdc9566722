"""The gradient solver's part of a fit: coefficients of very many landmarks, at the ridge found with a part of them."""

import math
from dataclasses import replace

import numpy as np

from ridgemark.fitting.stages import FitKernel, FitRows, Solved, Sums
from ridgemark.rows import Block
from ridgemark.selection import Landmarks
from ridgemark.solvers.landmark_gradient import landmark_gradient

_SHARE_OF_RESIDUAL = 1e-2  # tolerance of the gradient solver, relative to the root of the training error
_MOST_PRODUCTS = 1000  # of the gradient solver, each one pass


def without_matrices(rows: FitRows, sums: Sums, solved: Solved) -> tuple[Sums, Solved]:
    """Return what the gradient solver needs of a fit from a part of the landmarks, to free memory for its own."""
    rows.summed.held = None
    sums = sums.without_matrices()
    fit = replace(solved.fit, factor=sums.factor, moments=sums.moments, spectral=None)
    return sums, replace(solved, fit=fit, left_out=None)


def solve_by_gradient(rows: FitRows, chosen: FitKernel, landmarks: Landmarks, solved: Solved) -> Solved:
    """Solve for all landmarks at the ridge found by a part of them, to a hundredth of that fit's training error."""
    fit = solved.fit
    tol = _SHARE_OF_RESIDUAL * math.sqrt(float(fit.training_error.min()))
    tol = max(tol, 1e-12 * float(np.sqrt(fit.centred.target_variance.max())))
    points = Block(0, landmarks.points, taken=landmarks.indices)
    gradient = landmark_gradient(rows.choosing, chosen.kernel, points, fit, tol, _MOST_PRODUCTS)
    return replace(solved, gradient=gradient)
