"""How many numbers a metric has: one bandwidth per feature, or a matrix. What descent changes, and its gradient."""

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
class PerFeature:
    """Metrics `P = diag(1/b)` as points x of a vector space; x holds the logarithms of the bandwidths b."""

    n_features: int
    level: ClassVar[str] = "per_feature"
    bounds: ClassVar[tuple[float, float]] = (-_FURTHEST, _FURTHEST)  # of every coordinate of x

    def coordinates(self, metric: Floats) -> Floats:
        """Return the x of a metric."""
        return -np.log(metric.diagonal())

    def metric(self, x: Floats) -> Floats:
        """Return the metric P of x."""
        return np.diag(np.exp(-x))

    def gradient(self, metric: Floats, evaluation: Evaluation) -> Floats:
        """Return dE/dx: `dE/dlog b_j = -2 S_jj/b_j^2`."""
        return -2.0 * evaluation.outer.diagonal() * metric.diagonal() ** 2

    def root(self, outer_product: Floats) -> Floats:
        """Return the metric in which a function with this mean outer product of gradients varies evenly."""
        squares = outer_product.diagonal()
        return np.diag(np.sqrt(np.maximum(squares, _LEAST_EIGENVALUE * squares.max())))

    def kernel(self, family: RadialKernel, metric: Floats, units: Floats) -> RadialKernel:
        """Return the kernel for rows that are not divided by the units of the columns."""
        return with_bandwidths(family, units / metric.diagonal())


@dataclass(frozen=True)
class FullMatrix:
    """Metrics P that are any matrix; x holds its entries. Methods are those of `PerFeature`."""

    n_features: int
    level: ClassVar[str] = "metric"
    bounds: ClassVar[tuple[None, None]] = (None, None)

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


Metrics = PerFeature | FullMatrix


def with_bandwidths(family: Any, widths: Floats) -> Any:
    """Return the kernel of a family with these bandwidths."""
    return clone(family).set_params(bandwidth=widths)
