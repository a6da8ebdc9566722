"""Distances between rows and landmarks, fast where that is accurate and by differences where it is not.

`|x - z|^2 = |x|^2 + |z|^2 - 2 x.z` is one matrix product, but its error is about `machine eps * |x|^2`. Both sides
are therefore centred at the landmarks' median (a translation changes no distance), and rows that still lie too far
out and have a landmark near, or whose distances must be accurate near zero, are done again by differences of
coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ridgemark.backends import Array, Backend
from ridgemark.kernels.base import bandwidths

# Largest rounding error accepted in a squared distance measured in bandwidths, by precision.
_TOLERANCE = {np.dtype(np.float64): 1e-13, np.dtype(np.float32): 1e-5}
# Squared distance from which on every kernel is zero, whatever its rounding error.
_FAR = 1e4
# A squared distance below this many rounding errors has lost half its digits.
_DOUBTFUL = 1e8


@dataclass(frozen=True)
class Scaled:
    """Landmarks moved to their centre and divided by the bandwidth."""

    centre: Array
    width: Array
    points: Array  # (p, d), dense or CSR
    factor: float  # of squared distances
    augmented: Array  # (p, d + 2): the landmark side of the product that gives squared distances times the factor

    @property
    def is_sparse(self) -> bool:
        return sparse.issparse(self.points)


def scale_landmarks(landmarks: Any, bandwidth: Any, backend: Backend, owner: str, factor: float = 1.0) -> Scaled:
    """Prepare landmarks for distances in units of the bandwidth, squared ones times a factor."""
    width = np.asarray(bandwidths(bandwidth, landmarks.shape[1], owner), dtype=landmarks.dtype)
    if sparse.issparse(landmarks):
        points = _divide_sparse(landmarks.tocsr(), width)
        return Scaled(np.zeros(1), width, points, factor, points)
    # The median, not the mean: one far landmark must not move the centre away from the rest.
    with np.errstate(over="ignore"):
        centre = np.median(landmarks if len(landmarks) else np.zeros((1, 1)), axis=0).astype(landmarks.dtype)
    points = backend.from_host(_moved(landmarks, centre, width))
    augmented = _augment_landmarks(points, factor, backend)
    return Scaled(backend.from_host(centre), backend.from_host(width), points, factor, augmented)


def scale_rows(rows: Any, scaled: Scaled) -> Any:
    """Move rows to the landmarks' centre and divide by the bandwidth, as dense or sparse as the landmarks."""
    if scaled.is_sparse:
        return _divide_sparse(sparse.csr_matrix(rows), scaled.width)
    return _moved(_dense(rows), scaled.centre, scaled.width)


def _moved(rows: Array, centre: Array, width: Array) -> Array:
    with np.errstate(over="ignore", under="ignore"):
        return (rows - centre) / width


def squared_distances(
    rows: Any, scaled: Scaled, out: Array | None, backend: Backend, accurate_near_zero: bool = False
) -> Array:
    """Return `factor |(x - z)/bandwidth|^2` for every pair, the square never negative.

    `accurate_near_zero` keeps small distances accurate relative to themselves, for kernels that depend on the
    distance rather than on its square; their factor is positive.
    """
    x, factor = scale_rows(rows, scaled), scaled.factor
    if x.dtype.itemsize > 8:  # extended precision is asked for where digits matter, and has no fast product
        return factor * backend.differences(x, scaled.points, 2)
    if scaled.is_sparse:
        block, norms = _sparse_product(x, scaled.points)
        block *= factor
    else:
        norms = backend.squared_norms(x)
        block = backend.matmul(_augment_rows(x, norms, backend), scaled.augmented.T, out=out)
    if factor > 0:
        backend.clip_(block, lowest=0.0)
    else:
        backend.clip_(block, highest=0.0)
    rounding = float(np.finfo(block.dtype).eps) * norms
    again = ~(rounding <= _TOLERANCE[np.dtype(block.dtype)])
    if again.any():
        again[again] = (abs(block[again]) < abs(factor) * _FAR).any(axis=1)
    if accurate_near_zero:
        again |= (block < (factor * _DOUBTFUL * rounding)[:, None]).any(axis=1)
    if again.any():
        block[again] = factor * backend.differences(_dense(x[again]), _dense(scaled.points), 2)
    return block


def absolute_distances(rows: Any, scaled: Scaled, backend: Backend) -> Array:
    """Return `sum_j |x_j - z_j| / bandwidth_j` for every pair."""
    return backend.differences(scale_rows(rows, scaled), scaled.points, 1)


def _largest_norm(dtype: Any) -> float:
    """Return the squared length up to which the product form cannot overflow."""
    return float(np.finfo(dtype).max) * 1e-10


def _augment_landmarks(points: Array, factor: float, backend: Backend) -> Array:
    """Return `factor [-2 z, 1, |z|^2]`, so that its product with `[x, |x|^2, 1]` is the squared distance times it."""
    norms = backend.squared_norms(points)
    beyond = ~(norms < _largest_norm(points.dtype))
    augmented = _augment(points, 1.0, norms, backend)
    # Seen from a row near the centre such a landmark is infinitely far, which is all the product has to say.
    augmented[beyond] = 0.0
    augmented[beyond, -1] = _largest_norm(points.dtype)
    augmented[:, :-2] *= -2.0
    augmented *= factor
    return augmented


def _augment_rows(x: Array, norms: Array, backend: Backend) -> Array:
    augmented = _augment(x, norms, 1.0, backend)
    # Rows beyond the range would fill the product with inf - inf; they are done by differences afterwards.
    augmented[~(norms < _largest_norm(x.dtype))] = 0.0
    return augmented


def _augment(rows: Array, first: Any, second: Any, backend: Backend) -> Array:
    count, n_features = rows.shape
    augmented = backend.empty((count, n_features + 2), like=rows)
    augmented[:, :n_features] = rows
    augmented[:, n_features] = first
    augmented[:, n_features + 1] = second
    return augmented


def _sparse_product(x: Any, points: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.asarray(x.multiply(x).sum(axis=1)).ravel()
        landmark_norms = np.asarray(points.multiply(points).sum(axis=1)).ravel()
        block = (x @ points.T).toarray()
        block *= -2.0
        block += norms[:, None]
        block += landmark_norms[None, :]
    block[np.isnan(block)] = 0.0  # inf - inf: done again by differences, as everything beyond the range
    return block, norms


def _divide_sparse(rows: Any, width: NDArray[Any]) -> Any:
    return (rows / width if width.ndim == 0 else rows.multiply(1.0 / width)).tocsr()


def _dense(rows: Any) -> Any:
    return rows.toarray() if sparse.issparse(rows) else rows
