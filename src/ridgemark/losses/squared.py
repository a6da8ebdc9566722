"""The squared loss `(y - eta)^2 / 2`: its ridge problem always has the targets and weights of the data."""

from __future__ import annotations

from typing import ClassVar

from ridgemark.backends import Floats
from ridgemark.losses.base import Loss


class SquaredLoss(Loss):
    """`l' = eta - y` and `l'' = 1`, so the Newton step is the solution: closed forms for every ridge at once."""

    quadratic: ClassVar[bool] = True

    def ridge_problem(self, targets: Floats, weights: Floats, predictor: Floats) -> tuple[Floats, Floats]:
        return targets, weights


SQUARED = SquaredLoss()
