"""The Laplacian kernel, of the sum of absolute differences."""

from __future__ import annotations

from typing import Any

from ridgemark.backends import Array, Backend
from ridgemark.kernels.distances import Scaled, absolute_distances
from ridgemark.kernels.stationary import StationaryKernel


class Laplacian(StationaryKernel):
    """Laplacian kernel `k(x, z) = exp(-sum_j |x_j - z_j| / bandwidth_j)`.

    The exponential of the Euclidean distance is `Matern12`.
    """

    accepts_sparse = False

    def _distances(self, rows: Any, prepared: Scaled, out: Array | None, backend: Backend) -> Array:
        return absolute_distances(rows, prepared, backend)

    def _profile(self, distances: Array, backend: Backend) -> Array:
        distances *= -1.0
        return backend.exp_(distances)
