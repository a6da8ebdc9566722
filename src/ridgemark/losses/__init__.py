"""Losses: what a block of features contributes to a fit, given the current coefficients."""

from ridgemark.losses.loss import SQUARED, Loss, RidgeSolution, SquaredLoss
from ridgemark.losses.sums import Moments, loss_sums, same_rows

__all__ = ["SQUARED", "Loss", "Moments", "RidgeSolution", "SquaredLoss", "loss_sums", "same_rows"]
