"""How many numbers a metric has: one bandwidth per feature, or a matrix. What descent changes, and its gradient."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from ridgemark.backends import Floats
from ridgemark.kernels import RadialKernel
from ridgemark.tuning.criterion import Evaluation
from ridgemark.tuning.pairs import with_metric

_FURTHEST = 25.0  # largest |log bandwidth|, in units of the columns
_LEAST_EIGENVALUE = 1e-6  # of a mean outer product, relative to the largest: descent never raises the rank of P


@dataclass(frozen=True)
class Metrics(ABC):
    """The metrics P of one level, as points x of a vector space."""

    level: ClassVar[str]
    n_features: int

    @property
    @abstractmethod
    def bounds(self) -> list[tuple[float | None, float | None]]:
        """The range of every coordinate of x."""

    @abstractmethod
    def coordinates(self, metric: Floats) -> Floats:
        """Return the x of a metric."""

    @abstractmethod
    def metric(self, x: Floats) -> Floats:
        """Return the metric P of x."""

    @abstractmethod
    def gradient(self, metric: Floats, evaluation: Evaluation) -> Floats:
        """Return dE/dx."""

    @abstractmethod
    def root(self, outer_product: Floats) -> Floats:
        """Return the metric in which a function with this mean outer product of gradients varies evenly."""

    @abstractmethod
    def kernel(self, family: RadialKernel, metric: Floats, units: Floats) -> RadialKernel:
        """Return the kernel for rows that are not divided by the units of the columns."""


class PerFeature(Metrics):
    """`P = diag(1/b)`; x holds the logarithms of the bandwidths b."""

    level = "per_feature"

    @property
    def bounds(self) -> list[tuple[float | None, float | None]]:
        return [(-_FURTHEST, _FURTHEST)] * self.n_features

    def coordinates(self, metric: Floats) -> Floats:
        return -np.log(metric.diagonal())

    def metric(self, x: Floats) -> Floats:
        return np.diag(np.exp(-x))

    def gradient(self, metric: Floats, evaluation: Evaluation) -> Floats:
        """Return `dE/dlog b_j = -2 S_jj/b_j^2`."""
        return -2.0 * evaluation.outer.diagonal() * metric.diagonal() ** 2

    def root(self, outer_product: Floats) -> Floats:
        squares = outer_product.diagonal()
        return np.diag(np.sqrt(np.maximum(squares, _LEAST_EIGENVALUE * squares.max())))

    def kernel(self, family: RadialKernel, metric: Floats, units: Floats) -> RadialKernel:
        return with_bandwidths(family, units / metric.diagonal())


class FullMatrix(Metrics):
    """P is any matrix; x holds its entries."""

    level = "metric"

    @property
    def bounds(self) -> list[tuple[float | None, float | None]]:
        return [(None, None)] * self.n_features**2

    def coordinates(self, metric: Floats) -> Floats:
        return metric.ravel().copy()

    def metric(self, x: Floats) -> Floats:
        return x.reshape(self.n_features, self.n_features)

    def gradient(self, metric: Floats, evaluation: Evaluation) -> Floats:
        """Return `dE/dP = 2 S P`."""
        return 2.0 * (evaluation.outer @ metric).ravel()

    def root(self, outer_product: Floats) -> Floats:
        values, vectors = np.linalg.eigh(outer_product)
        raised = np.sqrt(np.maximum(values, _LEAST_EIGENVALUE * values.max()))
        return (vectors * raised) @ vectors.T

    def kernel(self, family: RadialKernel, metric: Floats, units: Floats) -> RadialKernel:
        return with_metric(family, metric / units[:, None])


def with_bandwidths(family: Any, widths: Floats) -> Any:
    """Return the kernel of a family with these bandwidths."""
    return clone(family).set_params(bandwidth=widths)
