"""Why a model predicts what it does: what matters, curves, contributions, and how far a row is from the data.

All of it explains the linear predictor `f(x) = k(x) dual_coef + intercept`, of classes the log-odds, and compares with
a sample of the rows of the fit, its background.
"""

from ridgemark.explaining.background import Background, draw_background, merged_background
from ridgemark.explaining.contributions import Contributions, contributions_of
from ridgemark.explaining.curves import Curve, curve_of
from ridgemark.explaining.derivatives import derivative_shares
from ridgemark.explaining.importance import Importance, total_indices
from ridgemark.explaining.novelty import Novelty, novelty_of
from ridgemark.explaining.values import values_in_words

__all__ = [
    "Background",
    "Contributions",
    "Curve",
    "Importance",
    "Novelty",
    "contributions_of",
    "curve_of",
    "derivative_shares",
    "draw_background",
    "merged_background",
    "novelty_of",
    "total_indices",
    "values_in_words",
]
