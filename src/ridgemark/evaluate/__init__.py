"""How good a model is beside others: boosting by cross-validation, measures of probabilities, and thresholds."""

from ridgemark.evaluate.boosting import BoostingErrors, boosting
from ridgemark.evaluate.probabilities import Threshold, choose_threshold, ranking

__all__ = ["BoostingErrors", "Threshold", "boosting", "choose_threshold", "ranking"]
