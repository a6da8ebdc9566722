"""The pinball loss of quantiles, smoothed by a logistic distribution."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Self

import numpy as np

from ridgemark.backends import Array, Floats, backend_of
from ridgemark.errors import ParameterError
from ridgemark.losses.loss import Loss, LossWords
from ridgemark.losses.robust import robust_scale, weighted_quantile
from ridgemark.parameters import real_number

_WIDTH = 0.03  # of the smoothing, in units of the size of residuals
_WIDER = 5.0  # factor of the width with which curvature says how far the fit moves when a row is left out


@dataclass(frozen=True)
class Quantile(Loss):
    """`h log(1 + exp((eta - y)/h)) - tau (eta - y)`, which tends to the pinball loss of the level tau as h does to 0.

    Parameters
    ----------
    levels : tuple of float, default=(0.5,)
        The levels, ascending and between 0 and 1; each has a function of its own.
    width : float, optional
        The width h in units of y; by default 0.03 of a robust estimate of the size of residuals.
    """

    levels: Annotated[tuple[float, ...], "> 0"] = (0.5,)
    width: Annotated[float | None, "> 0"] = None

    name: ClassVar[str] = "quantile"
    words: ClassVar[LossWords] = LossWords(
        "quantile regression", "the quantiles of y", "pinball loss", "share of the pinball loss explained (D^2)"
    )
    trims: ClassVar[bool] = True

    def __post_init__(self) -> None:
        try:
            levels = tuple(map(real_number, self.levels))
        except TypeError:
            levels = ()
        ascending = all(a < b for a, b in itertools.pairwise(levels))
        if not levels or not ascending or not all(0 < level < 1 for level in levels):
            raise ParameterError(
                f"quantiles must be ascending levels between 0 and 1, such as [0.1, 0.5, 0.9], got {self.levels!r}"
            )
        object.__setattr__(self, "levels", levels)
        if self.width is not None and not 0 < real_number(self.width) < np.inf:
            raise ParameterError(f"Quantile.width must be a positive number, got {self.width!r}")

    @property
    def steepest(self) -> float:  # type: ignore[override]
        return 0.25 / self._width

    def values(self, targets: Array, predictor: Array) -> Array:
        backend, above = backend_of(predictor), (predictor - targets)[:, 0]
        xp = backend.xp
        smooth = self._width * xp.log1p(xp.exp(-abs(above) / self._width))
        return smooth + backend.at_least(above, 0.0) - self.levels[0] * above

    def slopes(self, targets: Array, predictor: Array) -> Array:
        return self._below(targets, predictor)[0] - self.levels[0]

    def curvature(self, targets: Array, predictor: Array) -> Array:
        p, rest = self._below(targets, predictor)
        return (p * rest)[:, 0] / self._width

    @property
    def _width(self) -> float:
        assert self.width is not None  # settled before a fit
        return self.width

    def _below(self, targets: Array, predictor: Array) -> tuple[Array, Array]:
        """Return the smoothed indicator that the target lies below the predictor, and one minus it."""
        xp, scaled = backend_of(predictor).xp, (predictor - targets) / self._width
        odds = xp.exp(-abs(scaled))
        likely, unlikely, positive = 1.0 / (1.0 + odds), odds / (1.0 + odds), scaled > 0
        return xp.where(positive, likely, unlikely), xp.where(positive, unlikely, likely)

    def settled(self, residuals: Floats, weights: Floats) -> Self:
        if self.width is not None:
            return self
        return replace(self, width=_WIDTH * robust_scale(residuals[:, 0], weights))

    def parts(self) -> tuple[Loss, ...]:
        return tuple(replace(self, levels=(level,)) for level in self.levels)

    def leaving_out(self) -> Loss:
        return replace(self, width=_WIDER * self._width)

    def judged(self, targets: Floats, predictor: Floats) -> Floats:
        """Return the pinball loss, its mean over the levels."""
        beneath = targets - predictor
        levels = np.array(self.levels)
        return np.where(beneath > 0, levels * beneath, (levels - 1.0) * beneath).mean(axis=1)

    def constant(self, targets: Floats, weights: Floats) -> float:
        return weighted_quantile(targets[:, 0], weights, self.levels[0])

    def shift(self, targets: Floats, weights: Floats, predictor: Floats) -> Floats:
        """Return the quantiles of residuals of rows left out: then the share of each level lies below its prediction.

        A fit that follows its rows closely predicts quantiles too near the middle: more rows than the level says are
        below a low one.
        """
        residuals = zip((targets - predictor).T, self.levels, strict=True)
        return np.array([weighted_quantile(of_level, weights, level) for of_level, level in residuals])

    def in_order(self, predictor: Floats) -> Floats:
        return np.sort(predictor, axis=1)

    def conjugate(self, targets: Floats, slopes: Floats) -> Floats:
        p = np.clip(slopes + self.levels[0], 0.0, 1.0)
        entropy = sum(q * np.log(np.where(q > 0, q, 1.0)) for q in (p, 1.0 - p))
        return (slopes * targets + self._width * entropy)[:, 0]
