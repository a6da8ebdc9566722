"""A loss of one's own, as docs/extending.md shows it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ridgemark.losses import Loss, LossWords


@dataclass(frozen=True)
class LogCosh(Loss):
    """`log cosh(y - eta)`: about half the square of small residuals, and the size of large ones."""

    name: ClassVar[str] = "log-cosh"
    words: ClassVar[LossWords] = LossWords(
        regression="log-cosh regression",
        predicts="the centre of y",
        loss="log-cosh loss",
        score="share of the log-cosh loss explained",
    )
    steepest: ClassVar[float] = 1.0

    def values(self, targets, predictor):
        size = abs(targets - predictor)[:, 0]
        return size + np.log1p(np.exp(-2 * size)) - np.log(2)

    def slopes(self, targets, predictor):
        return np.tanh(predictor - targets)

    def curvature(self, targets, predictor):
        return 1 - self.slopes(targets, predictor)[:, 0] ** 2

    def conjugate(self, targets, slopes):
        p, q = (1 + slopes) / 2, (1 - slopes) / 2
        entropy = sum(part * np.log(np.where(part > 0, 2 * part, 1)) for part in (p, q))
        return (slopes * targets + entropy)[:, 0]
