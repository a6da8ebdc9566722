"""Losses: what a block of features contributes to a fit, given the current coefficients."""

from ridgemark.losses.base import Loss
from ridgemark.losses.moments import Moments, same_rows
from ridgemark.losses.squared import SQUARED, SquaredLoss
from ridgemark.losses.sums import loss_sums

__all__ = ["SQUARED", "Loss", "Moments", "SquaredLoss", "loss_sums", "same_rows"]
