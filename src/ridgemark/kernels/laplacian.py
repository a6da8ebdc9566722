"""The Laplacian kernel, of the sum of absolute differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Array, Backend
from ridgemark.kernels.distances import Scaled, absolute_distances, scale_landmarks
from ridgemark.kernels.stationary import StationaryKernel


class Laplacian(StationaryKernel):
    """Laplacian kernel `k(x, z) = exp(-sum_j |x_j - z_j| / bandwidth_j)`.

    The exponential of the Euclidean distance is `Matern12`.
    """

    accepts_sparse = False

    def _prepare(self, landmarks: Any, indices: NDArray[np.intp] | None, backend: Backend) -> Scaled:
        return scale_landmarks(landmarks, self.bandwidth, backend, "Laplacian", factor=-1.0, few=math.inf)

    def _distances(self, rows: Any, prepared: Scaled, out: Array | None, backend: Backend) -> Array:
        return absolute_distances(rows, prepared, out, backend)

    def _profile(self, distances: Array, backend: Backend) -> Array:
        return backend.exp_(distances)
