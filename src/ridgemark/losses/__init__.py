"""Losses: what a block of features contributes to a fit, given the current coefficients."""

from ridgemark.losses.logistic import ClassLoss, Logistic, Softmax, class_loss
from ridgemark.losses.loss import SQUARED, Loss, RidgeSolution, SquaredLoss
from ridgemark.losses.slopes import CurvatureBlocks, CurvatureProducts, CurvatureSums, WeightedGram, thinned, with_ones
from ridgemark.losses.sums import Moments, loss_sums, same_rows
