"""Kernel values of rows with landmarks under a metric P, and derivatives of functions of these values by P."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from ridgemark.backends import Array, Floats, backend_of
from ridgemark.kernels import RadialKernel
from ridgemark.kernels.stationary import StationaryKernel


def is_radial(family: Any) -> bool:
    """Return whether the kernel is a function of the Euclidean distance, so that it takes a matrix."""
    return isinstance(family, RadialKernel)


def with_metric(family: StationaryKernel, metric: Floats) -> Any:
    """Return the kernel of a family with this metric; one without a metric takes the bandwidths of a diagonal one."""
    if is_radial(family):
        return clone(family).set_params(bandwidth=1.0, metric=metric)
    return clone(family).set_params(bandwidth=1.0 / metric.diagonal())


@dataclass(frozen=True, eq=False)
class Pairs(ABC):
    """Kernel values `k(x_i, z_m)`; the first rows x are the landmarks z."""

    rows: Array  # (n, d)
    landmarks: Array  # (p, d)
    values: Array  # (n, p)

    @abstractmethod
    def outer(self, by_values: Array) -> Floats:
        """Return S with `dE/dP = 2 S P` for `G = dE/dk`, shape (n, p), which may be overwritten."""


@dataclass(frozen=True, eq=False)
class RadialPairs(Pairs):
    """`k = phi(rho)`, `rho = |P'(x - z)|^2`."""

    slopes: Array  # phi'(rho)

    def outer(self, by_values: Array) -> Floats:
        """Return `sum_im G_im phi'(rho_im) (x_i - z_m)(x_i - z_m)'`."""
        rows, landmarks = self.rows, self.landmarks
        by_values *= self.slopes
        mixed = rows.T @ (by_values @ landmarks)
        own = rows.T @ (by_values.sum(axis=1)[:, None] * rows)
        own += landmarks.T @ (by_values.sum(axis=0)[:, None] * landmarks)
        return backend_of(own).to_host(own - mixed - mixed.T)


@dataclass(frozen=True, eq=False)
class AbsolutePairs(Pairs):
    """`k = exp(-sum_j P_jj |x_j - z_j|)`, P diagonal."""

    metric: Floats

    def outer(self, by_values: Array) -> Floats:
        """Return the diagonal matrix of `-sum_im G_im k_im |x_ij - z_mj| / (2 P_jj)`."""
        by_values *= self.values
        backend, outer = backend_of(by_values), np.zeros(self.metric.shape)
        sums = backend.to_host(_absolute_sums(by_values, self.rows, self.landmarks))
        np.fill_diagonal(outer, sums / (-2.0 * self.metric.diagonal()))
        return outer


def pairs(family: StationaryKernel, metric: Floats, rows: Array, landmarks: Array) -> Pairs:
    """Return the kernel values of every pair for the metric P, with what their derivative by P needs."""
    backend = backend_of(rows)
    matrix = backend.from_host(metric)
    left, right = rows @ matrix, landmarks @ matrix
    if isinstance(family, RadialKernel):
        return RadialPairs(rows, landmarks, *_radial(family, left, right))
    distances = backend.empty((len(left), len(right)), like=left)
    backend.differences(left, right, 1, None, out=distances)
    distances *= -1.0
    return AbsolutePairs(rows, landmarks, backend.exp_(distances), metric)


def _absolute_sums(weights: Array, rows: Array, landmarks: Array) -> Array:
    """Return `sum_im A_im |x_ij - z_mj|` for every column j.

    A column of two values, as of an indicator, is `u = 0` or 1 in units of their difference, and `|u - v|` is
    `u + v - 2uv`: all such columns take one product.
    """
    xp = backend_of(rows).xp
    low, high = xp.min(rows, axis=0), xp.max(rows, axis=0)
    two = xp.all((rows == low) | (rows == high), axis=0)
    u, v = rows[:, two] - low[two], landmarks[:, two] - low[two]
    sums = xp.empty_like(low)
    width = xp.where(high > low, high - low, 1.0)[two]
    sums[two] = u.T @ weights.sum(axis=1) + v.T @ weights.sum(axis=0) - 2.0 * (u * (weights @ v)).sum(axis=0) / width
    for j in xp.nonzero(~two)[0]:
        sums[j] = (weights * abs(rows[:, j][:, None] - landmarks[:, j])).sum()
    return sums


def _radial(family: RadialKernel, left: Array, right: Array) -> tuple[Array, Array]:
    """Return phi and phi' for every pair of projected points; the first on the left are those on the right."""
    left_norms, right_norms = (left**2).sum(axis=1), (right**2).sum(axis=1)
    rho = left @ right.T
    rho *= -2.0
    rho += left_norms[:, None]
    rho += right_norms
    backend = backend_of(rho)
    backend.clip_(rho, lowest=0.0)
    backend.diagonal(rho[: len(right)])[...] = 0.0  # the first rows are the landmarks
    # The error of the product form: below it a distance is not known to differ from zero.
    largest = float(left_norms.max() + right_norms.max())
    rounding = 2.0 * (left.shape[1] + 6.0) * float(np.finfo(np.float64).eps) * largest
    return family.value_and_derivative(rho, rounding)
