"""From moments to coefficients."""

from ridgemark.solvers.landmark_fit import LandmarkFit
from ridgemark.solvers.spectral import RidgeSolution, SpectralSolver

__all__ = ["LandmarkFit", "RidgeSolution", "SpectralSolver"]
