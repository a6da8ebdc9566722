"""Kernels of the difference of two rows that are one at zero: of the squared distance, and the Laplacian."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

from ridgemark.backends import Array, Backend, Floats, Indices, backend_of
from ridgemark.errors import ParameterError
from ridgemark.kernels.base import Kernel, same_for_all
from ridgemark.kernels.distances import Form, distances, prepare_landmarks, rounding_of_values
from ridgemark.kernels.projection import Projection


class StationaryKernel(Kernel):
    """`k(x, z) = profile(factor distance(x, z))` with `profile(0) = 1`; `_form` holds the factor and the distance.

    A subclass defines the form and the profile.
    """

    bandwidth: Any
    _form = Form()

    def diagonal(self, rows: Any, indices: Indices | None = None) -> Array:
        return same_for_all(1.0, rows)

    @property
    def constant_diagonal(self) -> float:
        return 1.0

    def _prepare(self, landmarks: Any, indices: Indices | None, backend: Backend) -> Any:
        return prepare_landmarks(landmarks, self.bandwidth, self._form, backend, type(self).__name__)

    def _block(self, rows: Any, prepared: Any, out: Array | None, backend: Backend) -> Array:
        return self._profile(distances(rows, prepared, out, backend), backend)

    def _entry_error(self, rows: Any, prepared: Any, backend: Backend) -> Floats:
        return rounding_of_values(rows, prepared, backend)

    @abstractmethod
    def _profile(self, distances: Array, backend: Backend) -> Array:
        """Overwrite distances (times the factor) by kernel values."""


class RadialKernel(StationaryKernel):
    """`k(x, z) = phi(rho)`, `rho = |P'(x - z)|^2`, `phi(0) = 1`.

    `bandwidth` stands for `P = I/bandwidth`, or `P = diag(1/bandwidth)` with one bandwidth per feature; `metric` is P
    itself, of shape (n_features, r).
    """

    def __init__(self, bandwidth: Any = 1.0, metric: Any = None) -> None:
        self.bandwidth = bandwidth
        self.metric = metric

    @property
    def accepts_sparse(self) -> bool:  # type: ignore[override]
        return self.metric is None

    def value_and_derivative(self, squared_distances: Array, rounding: Any = 0.0) -> tuple[Array, Array]:
        """Return `phi(rho)` and `dphi/drho` for an array of squared distances rho.

        Parameters
        ----------
        squared_distances : array
            `rho = |P'(x - z)|^2 >= 0`: divided by the squared bandwidth, and not multiplied by any factor.
        rounding : float or array
            The rounding error of rho. Some families have an unbounded derivative near zero (Matern12, and
            PowerExponential with an exponent below 2); their derivative is returned as 0 where rho is at most this,
            since it is multiplied by (x - z)(x - z)', which vanishes there.
        """
        rho, backend = squared_distances, backend_of(squared_distances)
        with np.errstate(all="ignore"):
            value = self._profile(self._form.factor * rho, backend)
            derivative = value * self._log_derivative(rho, backend)
        if self._form.singular:
            smallest = float(np.finfo(backend.precision(rho)).tiny)
            derivative[(rho <= rounding) | (rho < smallest)] = 0.0
        derivative[value == 0.0] = 0.0  # where rho is infinite, the product is not a number
        return value, derivative

    def _prepare(self, landmarks: Any, indices: Indices | None, backend: Backend) -> Any:
        if self.metric is None:
            return super()._prepare(landmarks, indices, backend)
        name = type(self).__name__
        if not np.array_equal(self.bandwidth, 1.0):
            msg = (
                f"{name}: bandwidth and metric exclude each other, got bandwidth={self.bandwidth!r} and a metric of "
                f"shape {np.shape(self.metric)}; divide the metric by the bandwidth and leave bandwidth out"
            )
            raise ParameterError(msg)
        projection = Projection.of(landmarks, self.metric, backend, name)
        points = projection.apply(landmarks, backend)
        return replace(prepare_landmarks(points, 1.0, self._form, backend, name), projection=projection)

    def _short_name(self) -> str:
        return type(self).__name__ + ("" if self.metric is None else " with a metric")

    @abstractmethod
    def _log_derivative(self, rho: Array, backend: Backend) -> Array:
        """Return `phi'(rho)/phi(rho)` as a new array, or as a float if it is the same for all rho."""


class Laplacian(StationaryKernel):
    """Laplacian kernel `k(x, z) = exp(-sum_j |x_j - z_j| / bandwidth_j)`.

    It is not a function of the Euclidean distance, so it takes no metric. The exponential of the Euclidean distance is
    `Matern12`.
    """

    _form = Form(power=1, factor=-1.0, few=math.inf)

    def __init__(self, bandwidth: Any = 1.0) -> None:
        self.bandwidth = bandwidth

    def _profile(self, distances: Array, backend: Backend) -> Array:
        return backend.exp_(distances)
