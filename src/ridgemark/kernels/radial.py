"""Kernels of the squared distance between two rows: one bandwidth, one per feature, or a matrix."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from ridgemark.backends import Array, Backend, Floats, Indices, backend_of
from ridgemark.errors import ParameterError
from ridgemark.kernels.distances import prepare_landmarks, squared_distances
from ridgemark.kernels.projection import ProjectedLandmarks, Projection
from ridgemark.kernels.stationary import StationaryKernel


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
        return ProjectedLandmarks(projection, prepare_landmarks(points, 1.0, self._form, backend, name))

    def _distances(self, rows: Any, prepared: Any, out: Array | None, backend: Backend) -> Array:
        if isinstance(prepared, ProjectedLandmarks):
            rows, prepared = prepared.projection.apply(rows, backend), prepared.landmarks
        return squared_distances(rows, prepared, out, backend)

    def _entry_error(self, rows: Any, prepared: Any, backend: Backend) -> Floats:
        if not isinstance(prepared, ProjectedLandmarks):
            return super()._entry_error(rows, prepared, backend)
        form, moved = self._form, prepared.projection.distance_error(rows, backend)
        effect = form.steepest * moved if form.lipschitz else moved ** form.growth[1]
        return effect + super()._entry_error(prepared.projection.apply(rows, backend), prepared.landmarks, backend)

    def _short_name(self) -> str:
        return type(self).__name__ + ("" if self.metric is None else " with a metric")

    @abstractmethod
    def _log_derivative(self, rho: Array, backend: Backend) -> Array:
        """Return `phi'(rho)/phi(rho)` as a new array, or as a float if it is the same for all rho."""
