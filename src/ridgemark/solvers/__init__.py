"""From moments to coefficients."""

from ridgemark.solvers.direct import RidgeSolution, solve_direct

__all__ = ["RidgeSolution", "solve_direct"]
