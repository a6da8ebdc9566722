"""The Laplacian kernel, of the sum of absolute differences."""

from __future__ import annotations

import math
from typing import Any

from ridgemark.backends import Array, Backend
from ridgemark.kernels.distances import Form, absolute_distances
from ridgemark.kernels.stationary import StationaryKernel


class Laplacian(StationaryKernel):
    """Laplacian kernel `k(x, z) = exp(-sum_j |x_j - z_j| / bandwidth_j)`.

    It is not a function of the Euclidean distance, so it takes no metric. The exponential of the Euclidean distance is
    `Matern12`.
    """

    _form = Form(factor=-1.0, few=math.inf)

    def __init__(self, bandwidth: Any = 1.0) -> None:
        self.bandwidth = bandwidth

    def _distances(self, rows: Any, prepared: Any, out: Array | None, backend: Backend) -> Array:
        return absolute_distances(rows, prepared, out, backend)

    def _profile(self, distances: Array, backend: Backend) -> Array:
        return backend.exp_(distances)
