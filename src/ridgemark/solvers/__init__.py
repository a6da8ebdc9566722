"""Solvers: direct and iterative, for the landmark problem and for exact kernel ridge regression."""

from ridgemark.solvers.centred import RidgeSolution
from ridgemark.solvers.choice import SolverCost, choose_solver, solver_cost
from ridgemark.solvers.conjugate_gradient import GradientSolution, GradientStep, conjugate_gradient
from ridgemark.solvers.landmark_fit import LandmarkFit, solve_landmarks
from ridgemark.solvers.landmark_gradient import LandmarkGradientFit, landmark_gradient
from ridgemark.solvers.refinement import Refinement, RefinementStep, refine
from ridgemark.solvers.spectral import SpectralSolver

__all__ = [
    "GradientSolution",
    "GradientStep",
    "LandmarkFit",
    "LandmarkGradientFit",
    "Refinement",
    "RefinementStep",
    "RidgeSolution",
    "SolverCost",
    "SpectralSolver",
    "choose_solver",
    "conjugate_gradient",
    "landmark_gradient",
    "refine",
    "solve_landmarks",
    "solver_cost",
]
