"""How good a model is: beside boosting, on the future, by measures of probabilities, and at a threshold."""

from ridgemark.estimators.measuring.ranking import ranking
from ridgemark.evaluate.boosting import BoostingErrors, boosting
from ridgemark.evaluate.future import Forward, Window, forward
from ridgemark.evaluate.probabilities import Threshold, choose_threshold

__all__ = ["BoostingErrors", "Forward", "Threshold", "Window", "boosting", "choose_threshold", "forward", "ranking"]
