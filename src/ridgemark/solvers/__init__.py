"""From moments to coefficients."""

from ridgemark.solvers.spectral import RidgeSolution, SpectralSolver

__all__ = ["RidgeSolution", "SpectralSolver"]
