"""From rows to a fit: the checked parameters, the stages, and rounds until a tolerance is met."""

from ridgemark.fitting.classes import fit_classes
from ridgemark.fitting.recipe import Recipe
from ridgemark.fitting.stages import prepare, settle_kernel, solve_by_gradient, tune, tune_on_sample, without_matrices
from ridgemark.fitting.tolerance import classes_to_tolerance, fit_to_tolerance
