"""Solvers: direct and iterative, for the landmark problem and for exact kernel ridge regression."""

from ridgemark.losses import RidgeSolution
from ridgemark.solvers.choice import LANDMARKS_BEFORE_GRADIENT, choose_solver, solver_cost
from ridgemark.solvers.compact_fit import CompactFit
from ridgemark.solvers.conjugate_gradient import conjugate_gradient
from ridgemark.solvers.curvature import CurvatureSystem, JointSystem, TargetSystems, systems_of_moments
from ridgemark.solvers.landmark_fit import LandmarkFit, RidgeInverse, SpectralSolver, solve_landmarks
from ridgemark.solvers.landmark_gradient import LandmarkGradientFit, landmark_gradient
from ridgemark.solvers.newton import Newton, NewtonFit
from ridgemark.solvers.refinement import RefinementStep, refine
from ridgemark.solvers.ridge_task import RidgeTask, ridge_form, ridges_form
