"""Ridge leverage scores, as brackets that contain the exact scores."""

from ridgemark.leverage.brackets import Bracket, ScoreBracket, exact_bracket
from ridgemark.leverage.scores import posterior_factor, posterior_variance, residual_dimension, score_bracket
