"""Losses: what a block of features contributes to a fit, given the current coefficients."""

from ridgemark.losses.huber import Huber
from ridgemark.losses.logistic import ClassLoss, Logistic, Softmax, class_loss
from ridgemark.losses.loss import SQUARED, Loss, LossWords, RidgeSolution, SquaredLoss, balanced
from ridgemark.losses.quantile import Quantile
from ridgemark.losses.rates import Gamma, Poisson
from ridgemark.losses.registry import LOSSES, OF_NUMBERS, make_loss
from ridgemark.losses.slopes import CurvatureBlocks, CurvatureProducts, CurvatureSums, WeightedGram, thinned, with_ones
from ridgemark.losses.sums import Moments, loss_sums, same_rows

__all__ = ["Gamma", "Huber", "Loss", "LossWords", "Poisson", "Quantile"]
