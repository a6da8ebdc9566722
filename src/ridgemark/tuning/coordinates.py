"""What a descent changes: weights and lengths of the parts, their metric, and lambda, as one vector; its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ridgemark.backends import Floats
from ridgemark.kernels import Laplacian, Linear, Mixture

LEVELS = ("shared", "per_feature", "metric")
_FURTHEST = 25.0  # largest |log| of a weight, a length or a bandwidth, in units of the columns


@dataclass(frozen=True, eq=False)
class Slopes:
    """Derivatives of the criterion E by what it depends on."""

    ridge: float  # dE/dlambda
    weights: Floats  # dE/dv of every part
    lengths: Floats  # dE/dlog l of every radial part
    outer: Floats  # S, or its diagonal: dE/dP = 2 S P
    widths: Floats | None  # dE/dlog b_j of a Laplacian


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Points x of a vector space for mixtures that differ in numbers only.

    x holds log lambda; the logarithms of the weights, which are divided by their sum; those of the radial lengths but
    for the first, whose unit is that of the metric; those of a Laplacian's bandwidths b_j; and the metric. With the
    level "shared" b and P are known up to one factor each, which x holds; with "per_feature" `P = diag(1/b)`, and x
    holds log b; with "metric" it holds the entries of P over their root mean square at the start.
    """

    start: Mixture  # for rows in units of their columns
    level: str
    ridges: tuple[float, float]  # the smallest and the largest lambda allowed
    unit: float = field(init=False, default=1.0)  # of the entries of P

    def __post_init__(self) -> None:
        if self.level == "metric":
            matrix = matrix_of(self.start)
            object.__setattr__(self, "unit", float(np.sqrt((matrix**2).sum() / len(matrix))))

    @cached_property
    def laplacian(self) -> Laplacian | None:
        """The Laplacian among the other parts."""
        return next((part for part in self.start.others if isinstance(part, Laplacian)), None)

    @cached_property
    def _counts(self) -> tuple[int, int, int]:
        """How many numbers of x are weights, lengths and bandwidths of the Laplacian."""
        d = 0 if self.laplacian is None else np.size(self.laplacian.bandwidth) if self.level != "shared" else 1
        return len(self.start.weights), max(0, len(self.start.radial) - 1), d

    def _split(self, x: Floats) -> list[Floats]:
        """Return log lambda, the weights' logarithms, and those of lengths and bandwidths, and the metric's part."""
        return np.split(x, np.cumsum([1, *self._counts]))

    def vector(self, ridge: float) -> Floats:
        """Return the x of the start with this lambda."""
        weights, widths = np.asarray(self.start.weights, dtype=float), np.zeros(0)
        lengths = [float(part.bandwidth) for part in self.start.radial[1:]]
        if self.laplacian is not None:
            widths = np.log(self.laplacian.bandwidth) if self.level != "shared" else np.zeros(1)
        if not len(self.start.radial):
            metric = np.zeros(0)
        elif self.level == "metric":
            metric = matrix_of(self.start).ravel() / self.unit
        else:
            metric = np.log(self.start.bandwidth) if self.level == "per_feature" else np.zeros(1)
        return np.concatenate([[np.log(ridge)], np.log(weights / weights.sum()), np.log(lengths), widths, metric])

    def bounds(self) -> list[tuple[float | None, float | None]]:
        """Return the bounds of every number of x."""
        x = self.vector(1.0)
        free = len(self._split(x)[-1]) if self.level == "metric" else 0
        logs = [(-_FURTHEST, _FURTHEST)] * (len(x) - 1 - free)
        return [(float(np.log(self.ridges[0])), float(np.log(self.ridges[1]))), *logs, *[(None, None)] * free]

    def ridge(self, x: Floats) -> float:
        """Return lambda."""
        return float(np.exp(x[0]))

    def kernel(self, x: Floats) -> Mixture:
        """Return the mixture of x."""
        _, logits, lengths, widths, metric = self._split(x)
        weights = np.exp(logits - logits.max())
        parameters = self.start.get_params(deep=False) | {"weights": (weights / weights.sum()).tolist()}
        lengths = np.concatenate([[1.0], np.exp(lengths)])
        parameters["radial"] = [
            part if number == 0 else of_length(part, lengths[number]) for number, part in enumerate(self.start.radial)
        ]
        if self.laplacian is not None:
            wide = np.exp(widths) * (self.laplacian.bandwidth if self.level == "shared" else 1.0)
            parameters["others"] = [Laplacian(wide) if part is self.laplacian else part for part in self.start.others]
        if len(self.start.radial):
            if self.level == "metric":
                d = len(matrix_of(self.start))
                parameters |= {"bandwidth": 1.0, "metric": metric.reshape(d, d) * self.unit}
            else:
                wide = np.exp(metric) * (self.start.bandwidth if self.level == "shared" else 1.0)
                parameters["bandwidth"] = wide
        return Mixture(**parameters)

    def gradient(self, kernel: Mixture, ridge: float, slopes: Slopes) -> Floats:
        """Return dE/dx."""
        weights = np.asarray(kernel.weights)
        logits = weights * (slopes.weights - weights @ slopes.weights)
        widths = np.zeros(0) if slopes.widths is None else slopes.widths
        metric = np.zeros(0)
        if len(kernel.radial):
            if self.level == "metric":
                metric = 2.0 * (slopes.outer @ kernel.metric).ravel() * self.unit
            else:
                metric = -2.0 * slopes.outer / np.asarray(kernel.bandwidth) ** 2
        if self.level == "shared":
            widths, metric = (slope.sum(keepdims=True) if len(slope) else slope for slope in (widths, metric))
        return np.concatenate([[slopes.ridge * ridge], logits, slopes.lengths[1:], widths, metric])


def of_length(part: Any, length: float) -> Any:
    """Return a radial part with another length."""
    return type(part)(**(part.get_params(deep=False) | {"bandwidth": float(length)}))


def matrix_of(kernel: Mixture) -> Floats:
    """Return the shared metric P as a matrix."""
    return np.diag(1.0 / np.asarray(kernel.bandwidth)) if kernel.metric is None else np.asarray(kernel.metric)


def in_raw_units(kernel: Mixture, units: Floats, origin: Floats) -> Mixture:
    """Return a mixture for rows in units of their columns, measured from an origin, as one for the rows themselves."""
    parameters = kernel.get_params(deep=False)
    if kernel.metric is None:
        parameters["bandwidth"] = np.asarray(kernel.bandwidth) * units
    else:
        parameters["metric"] = np.asarray(kernel.metric) / units[:, None]
    others: list[Any] = []
    for part in kernel.others:
        if isinstance(part, Laplacian):
            others.append(Laplacian(np.asarray(part.bandwidth) * units))
        else:
            assert isinstance(part, Linear)
            others.append(Linear(origin, np.asarray(part.widths) * units))
    return Mixture(**(parameters | {"others": others}))


def simplified(kernel: Mixture) -> Any:
    """Return a mixture of one part as that part alone, with the shared metric; others as they are."""
    if len(kernel.weights) > 1 or kernel.columns is not None:
        return kernel
    ((_, alone),) = kernel.separate()
    return alone


def names_of(parts: Sequence[Any]) -> str:
    """Return the names of parts, as in "Gaussian + Laplacian"."""
    return " + ".join(part_name(part) for part in parts)


def part_name(part: Any) -> str:
    """Return a part's name with its parameters other than lengths and origins."""
    hidden = ("bandwidth", "metric", "origin", "widths")
    shown = [f"{name}={value!r}" for name, value in part.get_params().items() if name not in hidden]
    return f"{type(part).__name__}({', '.join(shown)})" if shown else type(part).__name__
