"""The Huber loss: squares of small residuals, absolute values of large ones."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Self

import numpy as np

from ridgemark.backends import Array, Floats, backend_of
from ridgemark.errors import ParameterError
from ridgemark.losses.loss import Loss, LossWords
from ridgemark.losses.robust import robust_scale
from ridgemark.parameters import real_number


@dataclass(frozen=True)
class Huber(Loss):
    """`(y - eta)^2/2` where `|y - eta| <= delta`, and `delta |y - eta| - delta^2/2` beyond.

    Parameters
    ----------
    epsilon : float, default=1.35
        Residuals beyond this many standard deviations of the noise count less. With 1.35 normal noise costs 5% of
        efficiency.
    delta : float, optional
        The same in units of y; by default epsilon times a robust estimate of the standard deviation.
    """

    epsilon: Annotated[float, "> 0"] = 1.35
    delta: Annotated[float | None, "> 0"] = None

    name: ClassVar[str] = "huber"
    words: ClassVar[LossWords] = LossWords(
        "robust regression",
        "the centre of y, which outliers hardly move",
        "Huber loss",
        "share of the Huber loss explained",
    )
    steepest: ClassVar[float] = 1.0
    trims: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for parameter in ("epsilon", "delta"):
            value = getattr(self, parameter)
            if value is not None and not 0 < real_number(value) < np.inf:
                raise ParameterError(f"Huber.{parameter} must be a positive number, got {value!r}")

    def values(self, targets: Array, predictor: Array) -> Array:
        size, xp, delta = abs(targets - predictor)[:, 0], backend_of(predictor).xp, self._delta
        small = xp.where(size <= delta, size, xp.zeros_like(size))  # squares of the others may exceed the range
        return xp.where(size <= delta, small**2 / 2, delta * (size - delta / 2))

    def slopes(self, targets: Array, predictor: Array) -> Array:
        return backend_of(predictor).xp.clip(predictor - targets, -self._delta, self._delta)

    def curvature(self, targets: Array, predictor: Array) -> Array:
        size, xp = abs(targets - predictor)[:, 0], backend_of(predictor).xp
        return xp.where(size <= self._delta, xp.ones_like(size), xp.zeros_like(size))

    @property
    def _delta(self) -> float:
        assert self.delta is not None  # settled before a fit
        return self.delta

    def settled(self, residuals: Floats, weights: Floats) -> Self:
        if self.delta is not None:
            return self
        return replace(self, delta=self.epsilon * robust_scale(residuals[:, 0], weights))

    def conjugate(self, targets: Floats, slopes: Floats) -> Floats:
        return (slopes * targets + slopes**2 / 2)[:, 0]

    def distances(self, gap: float, total_weight: float) -> dict[str, float]:
        return {"slopes": float(np.sqrt(gap / (2 * total_weight)))}
