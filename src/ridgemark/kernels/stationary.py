"""Kernels of the distance between two rows, measured in bandwidths."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Array, Backend
from ridgemark.kernels.base import Kernel, count_rows
from ridgemark.kernels.distances import (
    FEW_FEATURES,
    FEW_WITH_KINK,
    Scaled,
    rounding_of_values,
    scale_landmarks,
    squared_distances,
)


class StationaryKernel(Kernel):
    """`k(x, z) = profile(factor |(x - z)/bandwidth|^2)` with `profile(0) = 1`."""

    accepts_sparse = True
    accepts_extended = True
    _accurate_near_zero = False
    _factor = 1.0
    _slope = 1.0  # the largest |d k / d r^2|

    def __init__(self, bandwidth: Any = 1.0) -> None:
        self.bandwidth = bandwidth

    def diagonal(self, rows: Any, indices: NDArray[np.intp] | None = None) -> NDArray[Any]:
        return np.ones(count_rows(rows), dtype=getattr(rows, "dtype", np.float64))

    @property
    def constant_diagonal(self) -> float:
        return 1.0

    def _prepare(self, landmarks: Any, indices: NDArray[np.intp] | None, backend: Backend) -> Scaled:
        few = FEW_WITH_KINK if self._accurate_near_zero else FEW_FEATURES
        return scale_landmarks(landmarks, self.bandwidth, backend, type(self).__name__, self._factor, few)

    def _block(self, rows: Any, prepared: Scaled, out: Array | None, backend: Backend) -> Array:
        return self._profile(self._distances(rows, prepared, out, backend), backend)

    def _distances(self, rows: Any, prepared: Scaled, out: Array | None, backend: Backend) -> Array:
        """Return the distances that the profile is a function of: squared Euclidean ones, times the factor."""
        return squared_distances(rows, prepared, out, backend, self._accurate_near_zero)

    def _entry_error(self, rows: Any, prepared: Scaled, backend: Backend) -> NDArray[np.float64]:
        return rounding_of_values(rows, prepared, self._slope, self._accurate_near_zero, backend)

    @abstractmethod
    def _profile(self, distances: Array, backend: Backend) -> Array:
        """Overwrite distances by kernel values."""
