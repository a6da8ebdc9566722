"""From rows to a fit: the checked parameters, the stages in `fit.py`, and rounds until a tolerance is met."""

from ridgemark.fitting.kernel import settle_kernel
from ridgemark.fitting.recipe import Recipe
from ridgemark.fitting.record import Fit
from ridgemark.fitting.rows import rows_of_fit
from ridgemark.fitting.squares import solve_squares
from ridgemark.fitting.sums import Sums
