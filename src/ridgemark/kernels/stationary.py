"""Kernels of the difference of two rows that are one at zero."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from ridgemark.backends import Array, Backend, Floats, Indices
from ridgemark.kernels.base import Kernel, same_for_all
from ridgemark.kernels.distances import Form, prepare_landmarks, rounding_of_values


class StationaryKernel(Kernel):
    """`k(x, z) = profile(factor distance(x, z))` with `profile(0) = 1`; `_form` holds the factor.

    A subclass defines the distance, measured in bandwidths, and the profile.
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
        return self._profile(self._distances(rows, prepared, out, backend), backend)

    def _entry_error(self, rows: Any, prepared: Any, backend: Backend) -> Floats:
        return rounding_of_values(rows, prepared, backend)

    @abstractmethod
    def _distances(self, rows: Any, prepared: Any, out: Array | None, backend: Backend) -> Array:
        """Return the distances of rows to landmarks, times the factor."""

    @abstractmethod
    def _profile(self, distances: Array, backend: Backend) -> Array:
        """Overwrite distances (times the factor) by kernel values."""
