"""From rows to a fit: the checked parameters, the stages in `fit.py`, and rounds until a tolerance is met."""

from ridgemark.fitting.recipe import Recipe
from ridgemark.fitting.solve import solve_squares
from ridgemark.fitting.stages import Fit, Sums, rows_of_fit, settle_kernel
