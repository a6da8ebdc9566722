"""Rows and landmarks multiplied by the matrix P of a metric `|P'(x - z)|`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ridgemark.backends import Array, Backend, Floats
from ridgemark.errors import NumericalError, ParameterError
from ridgemark.kernels.base import unit_roundoff


@dataclass(frozen=True)
class Projection:
    """The map `x -> P'(x - centre)`; the centre is the landmarks' median, so that a large offset loses no digits."""

    matrix: Array  # (d, r): P
    centre: Array  # (d,)
    reach: float  # largest length of `|P|'|z - centre|` over the landmarks z

    @classmethod
    def of(cls, landmarks: Array, metric: Any, backend: Backend, owner: str) -> Projection:
        """Return the projection for these landmarks; `owner` names the kernel in error messages."""
        matrix = backend.from_host(_checked_metric(metric, landmarks.shape[1], owner), like=landmarks)
        centred = cls(matrix, backend.median(landmarks), 0.0)
        return replace(centred, reach=float(backend.to_host(centred._lengths(landmarks, backend)).max(initial=0.0)))

    def apply(self, rows: Array, backend: Backend) -> Array:
        """Return `P'(x - centre)` for every row x, shape (rows, r)."""
        with np.errstate(over="ignore", under="ignore"):
            points = backend.matmul(rows - self.centre, self.matrix)
        if backend.count(~(abs(points) < np.inf)):
            raise NumericalError(
                "rows times the kernel's metric exceed the floating-point range; rescale the columns and the metric"
            )
        return points

    def distance_error(self, rows: Array, backend: Backend) -> Array:
        """Return for every row a bound on the error of its distance to any landmark that projecting both causes.

        With d features, `P'(x - centre)` has an error of at most `(d + 4) u |P|'|x - centre|` in each component: one
        unit roundoff u for the difference, one for P in the rows' precision, d for the sum, and 2 for terms of order
        u^2. A distance changes by no more than the two points do.
        """
        u = unit_roundoff(backend.precision(self.matrix))
        return (self.matrix.shape[0] + 4.0) * u * (self._lengths(rows, backend) + self.reach)

    def _lengths(self, rows: Array, backend: Backend) -> Array:
        """Return the length of `|P|'|x - centre|` for every row x."""
        with np.errstate(over="ignore", under="ignore"):
            sizes = backend.matmul(abs(rows - self.centre), abs(self.matrix))
        return backend.xp.sqrt(backend.double(backend.squared_norms(sizes)))


def _checked_metric(metric: Any, n_features: int, owner: str) -> Floats:
    """Return a metric as a finite matrix with one row per feature."""
    try:
        matrix = np.asarray(metric, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{owner}: metric must be a matrix of numbers, got {metric!r}") from error
    if matrix.ndim != 2 or matrix.shape[0] != n_features or matrix.shape[1] == 0:
        raise ParameterError(
            f"{owner}: metric must be a matrix P of shape ({n_features}, r), one row for each of the {n_features} "
            f"features, got shape {matrix.shape}"
        )
    if not np.isfinite(matrix).all():
        raise ParameterError(f"{owner}: every entry of metric must be finite, got {matrix[~np.isfinite(matrix)][0]}")
    return matrix
