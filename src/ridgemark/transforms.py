"""A transformed target: a monotone map g of the targets, and the way back to predictions in their units.

The model is fitted to g(y). With z = g^-1(f) of rows left out, `alpha + beta z` is the regression of y on z, so that
predictions are means of y and not its medians.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from scipy.special import boxcox1p
from scipy.stats import yeojohnson_normmax

from ridgemark.backends import Floats
from ridgemark.errors import DataError
from ridgemark.rows import BaseRows, Block, RowSource
from ridgemark.rows.mapped import MappedRows

Kind = Literal["none", "log", "sqrt", "yeo-johnson"]
KINDS: tuple[Kind, ...] = ("none", "log", "sqrt", "yeo-johnson")
_BEYOND = 0.5  # how far ends of intervals may leave the range of the transformed targets, as a share of it
_LEAST = 0.25  # of the smallest of positive targets, that a prediction must be


@dataclass(frozen=True, eq=False)
class TargetTransform:
    """The map g of the targets that a model is fitted to, and how its predictions come back to their units.

    Attributes
    ----------
    kind : {"none", "log", "sqrt", "yeo-johnson"}
        The map g: y itself, its logarithm, its root, or the map of Yeo and Johnson.
    exponent : float
        That of Yeo and Johnson, between 0 and 2.
    unit : float
        Targets are divided by it first.
    low, high : float
        The range of g(y) in the fit. Predictions do not leave it, since the way back may grow without bound: ends of
        intervals leave it by at most half of its length.
    least : float
        The least prediction, above zero where all targets are; minus infinity otherwise.
    alpha, beta : float
        The prediction is `alpha + beta g^-1(f)`, by least squares on rows left out, beta >= 0.
    left_out_error, spread : float
        RMS of the leave-one-out residuals, and standard deviation of the targets, in units of the target.
    compared : tuple of (str, float)
        With "auto", the leave-one-out error of every map that was tried, on some of the rows.
    """

    kind: Annotated[str, Kind]
    exponent: Annotated[float, ">= 0"] = 1.0
    unit: Annotated[float, "> 0"] = 1.0
    low: float = 0.0
    high: float = 0.0
    least: Annotated[float, "any"] = -np.inf
    alpha: float = 0.0
    beta: Annotated[float, ">= 0"] = 1.0
    left_out_error: Annotated[float, ">= 0"] = 0.0
    spread: Annotated[float, ">= 0"] = 0.0
    compared: Annotated[tuple[tuple[str, float], ...], "any"] = ()

    def forward(self, y: Floats) -> Floats:
        """Return g(y)."""
        scaled = y / self.unit
        if self.kind == "log":
            return np.log(scaled)
        if self.kind == "sqrt":
            return np.sqrt(scaled)
        if self.kind == "yeo-johnson":
            above, below = boxcox1p(np.maximum(scaled, 0.0), self.exponent), -np.minimum(scaled, 0.0)
            return np.where(scaled >= 0, above, -boxcox1p(below, 2.0 - self.exponent))
        return y

    def inverse(self, f: Floats) -> Floats:
        """Return `g^-1(f)`, increasing in f; beyond the range of the fit, and half of its length, it is constant."""
        if self.kind == "none":
            return f
        return np.maximum(self._inverse(self._bounded(f)), self.least)

    def _bounded(self, f: Floats) -> Floats:
        beyond = _BEYOND * (self.high - self.low)
        return np.clip(f, self.low - beyond, self.high + beyond)

    def _inverse(self, f: Floats) -> Floats:
        if self.kind == "log":
            return self.unit * np.exp(f)
        if self.kind == "sqrt":
            return self.unit * np.maximum(f, 0.0) ** 2
        above, below = _inverse_power(np.maximum(f, 0.0), self.exponent), -np.minimum(f, 0.0)
        return self.unit * np.where(f >= 0, above, -_inverse_power(below, 2.0 - self.exponent))

    def _within(self, f: Floats) -> Floats:
        """Return g^-1(f) within the range of the targets, of which predictions are means."""
        return np.maximum(self._inverse(np.clip(f, self.low, self.high)), self.least)

    def slope(self, f: Floats) -> Floats:
        """Return the derivative of the prediction, `beta dg^-1/df`; zero where it is constant."""
        if self.kind == "none":
            return np.ones_like(f)
        inside, at = (self.low <= f) & (f <= self.high), np.clip(f, self.low, self.high)
        if self.kind == "log":
            derivative = self.unit * np.exp(at)
        elif self.kind == "sqrt":
            derivative = 2.0 * self.unit * np.maximum(at, 0.0)
        else:
            power = np.where(at >= 0, self.exponent, 2.0 - self.exponent)
            size = np.abs(at)
            flat = np.where(power > 0, np.maximum(power * size, 0.0), 0.0)
            exponent = np.divide(1.0 - power, power, out=np.zeros_like(power), where=power > 0)
            derivative = self.unit * np.where(power > 0, (1.0 + flat) ** exponent, np.exp(size))
        return self.beta * inside * derivative

    def predicted(self, f: Floats) -> Floats:
        """Return the prediction in units of the target, `alpha + beta g^-1(f)`, f within the range of the fit."""
        return f if self.kind == "none" else self.alpha + self.beta * self._within(f)

    def recalibrated(self, y: Floats, left_out: Floats, weights: Floats) -> "TargetTransform":
        """Return the map with alpha and beta from targets and predictions f of rows left out, both (n,).

        Where all targets are positive, so are all predictions: alpha is zero where it would be negative.
        """
        spread = _root_mean(y - np.average(y, weights=weights), weights)
        made = self
        if self.kind != "none":
            z = self._within(left_out)
            centre, middle = np.average(z, weights=weights), np.average(y, weights=weights)
            variance = float(weights @ (z - centre) ** 2)
            beta = max(float(weights @ ((z - centre) * (y - middle))) / variance, 0.0) if variance > 0 else 0.0
            alpha = float(middle - beta * centre)
            if self.least > 0 and alpha < 0:
                alpha, beta = 0.0, max(float(weights @ (z * y) / (weights @ z**2)), 0.0)
            made = replace(self, alpha=alpha, beta=beta)
        return replace(made, spread=spread, left_out_error=_root_mean(y - made.predicted(left_out), weights))


def _root_mean(residuals: Floats, weights: Floats) -> float:
    return float(np.sqrt(np.average(residuals**2, weights=weights)))


def _inverse_power(f: Floats, exponent: float) -> Floats:
    """Return the inverse of `((1 + y)^p - 1)/p`, or of `log(1 + y)` for p = 0, at f >= 0."""
    return np.expm1(f) if exponent == 0 else (1.0 + exponent * f) ** (1.0 / exponent) - 1.0


def make_transform(kind: str, y: Floats) -> TargetTransform:
    """Return the map of one kind for these targets, before it is recalibrated; refuse targets outside its domain."""
    if kind == "log" and y.min() <= 0:
        raise DataError(f'target_transform="log" needs targets above zero, got {y.min():.6g}; take "yeo-johnson"')
    if kind == "sqrt" and y.min() < 0:
        raise DataError(f'target_transform="sqrt" needs targets of zero or more, got {y.min():.6g}; take "yeo-johnson"')
    unit, exponent = float(np.median(np.abs(y))) or float(np.abs(y).max()) or 1.0, 1.0
    if kind == "yeo-johnson" and np.ptp(y) > 0:
        exponent = float(np.clip(yeojohnson_normmax(y / unit), 0.0, 2.0))
    least = _LEAST * float(y.min()) if y.min() > 0 and kind != "none" else -np.inf
    made = TargetTransform(kind, exponent, unit, least=least)
    values = made.forward(y)
    return replace(made, low=float(values.min()), high=float(values.max()))


def compared_kinds(y: Floats) -> list[str]:
    """Return the kinds that "auto" compares: those whose domain has all of these targets, without the logarithm.

    The logarithm weighs relative errors of the smallest targets as those of the largest. Where rows left out look good,
    it may still predict new large targets far worse; the map of Yeo and Johnson nears it where that is safe.
    """
    return ["none", "sqrt", "yeo-johnson"] if y.min() >= 0 else ["none", "yeo-johnson"]


@dataclass(frozen=True, eq=False)
class MappedTarget:
    """The one target of rows, mapped by g."""

    transform: TargetTransform
    n_targets: ClassVar[int] = 1
    weighs: ClassVar[bool] = False

    def __call__(self, block: Block) -> Block:
        """Return the rows with the mapped target; refuse targets outside the domain."""
        with np.errstate(divide="ignore", invalid="ignore"):
            targets: Any = self.transform.forward(block.targets)
        if not np.isfinite(targets).all():
            row = int(np.argwhere(~np.isfinite(targets))[0][0])
            raise DataError(
                f"the target of row {block.indices[row]} lies outside the domain of the transform "
                f'{self.transform.kind!r}; fit with target_transform="yeo-johnson"'
            )
        return replace(block, targets=targets)


def transformed_rows(source: RowSource, transform: TargetTransform) -> BaseRows:
    """Return the rows of a source with one target, mapped by g."""
    rows = MappedRows(source, MappedTarget(transform))
    rows.target_names = source.target_names
    return rows
