"""Kernel values computed by the caller."""

from __future__ import annotations

from typing import Any

import numpy as np

from ridgemark.backends import Array, Backend, Floats, Indices
from ridgemark.errors import DataError
from ridgemark.kernels.base import Kernel


class Precomputed(Kernel):
    """Rows of the kernel matrix itself: column j of a row holds its kernel value with training row j.

    This is scikit-learn's pairwise convention: fit with the square matrix of the training rows, predict with the
    matrix of new rows and all training rows. Landmarks are column numbers.
    """

    def __call__(self, rows: Any, landmarks: Any = None) -> Array:
        """Return the given block, or its columns with the numbers `landmarks`."""
        block = self._checked(rows)
        if landmarks is not None:
            return block[:, np.asarray(landmarks)]
        _check_square(block)
        return block

    @property
    def pairwise(self) -> bool:
        return True

    def diagonal(self, rows: Any, indices: Indices | None = None) -> Array:
        if indices is None:
            _check_square(rows)
            return np.diagonal(rows).copy()
        if len(indices) and indices.max() >= rows.shape[1]:
            msg = (
                f"rows of a precomputed kernel contain k(x, x) only for the {rows.shape[1]} training rows, "
                f"got row {indices.max()}"
            )
            raise DataError(msg)
        return rows[np.arange(len(indices)), indices]

    def _prepare(self, landmarks: Any, indices: Indices | None, backend: Backend) -> Indices:
        if indices is None:
            msg = "a precomputed kernel needs the landmarks as row numbers, not as points"
            raise DataError(msg)
        return indices

    def _block(self, rows: Any, prepared: Indices, out: Array | None, backend: Backend) -> Array:
        if prepared.size and prepared.max() >= rows.shape[1]:
            msg = (
                f"a precomputed block needs one column for each training row, at least {prepared.max() + 1}, "
                f"got {rows.shape[1]}"
            )
            raise DataError(msg)
        return backend.from_host(rows[:, prepared])

    def _entry_error(self, rows: Any, prepared: Any, backend: Backend) -> Floats:
        return np.zeros(rows.shape[0])  # the given values define the kernel


def _check_square(rows: Any) -> None:
    if rows.shape[0] != rows.shape[1]:
        msg = f"a precomputed kernel of the training rows must be square, got shape {rows.shape}"
        raise DataError(msg)
