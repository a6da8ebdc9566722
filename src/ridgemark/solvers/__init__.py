"""From moments to coefficients."""

from ridgemark.solvers.conjugate_gradient import GradientSolution, GradientStep, conjugate_gradient
from ridgemark.solvers.landmark_fit import LandmarkFit
from ridgemark.solvers.refinement import Refinement, RefinementStep, refine
from ridgemark.solvers.spectral import RidgeSolution, SpectralSolver

__all__ = [
    "GradientSolution",
    "GradientStep",
    "LandmarkFit",
    "Refinement",
    "RefinementStep",
    "RidgeSolution",
    "SpectralSolver",
    "conjugate_gradient",
    "refine",
]
