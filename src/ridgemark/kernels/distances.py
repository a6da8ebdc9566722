"""Distances between rows and landmarks, fast where that is accurate and by differences where it is not.

*Raw differences* subtract the columns as they are and divide by the bandwidth afterwards: a squared distance errs by
some machine epsilons of itself, however far from the origin or from each other the rows lie. Two forms are faster, with
both sides centred at the landmarks' median and divided by the bandwidth first. The *product* form
`|x|^2 + |z|^2 - 2 x.z`, from three features on, errs by some machine epsilons of `(|x| + |z|)^2`; *scaled differences*,
for few features with a bandwidth each, by some of `|x - z| (|x| + |z|)`. Rows that still lie too far out and have a
landmark near are done again by raw differences, and so are near pairs for a kernel with a kink.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ridgemark.backends import Array, Backend
from ridgemark.kernels.base import bandwidths, most_terms, unit_roundoff

# Up to this many features differences cost no more than the product; than the product with near pairs done again.
FEW_FEATURES, FEW_WITH_KINK = 2, 4
_TILE_ENTRIES = 2**16  # distances that stay in the processor's cache until they are multiplied
# Largest `machine eps |x|^2` of a row, in bandwidths, for which the faster forms are used, by precision.
_TOLERANCE = {np.dtype(np.float64): 1e-13, np.dtype(np.float32): 1e-5}
# Squared distance from which on every kernel is zero, whatever its rounding error.
_FAR = 1e4
# A pair is near when its squared distance is below this share of the row's squared length.
_NEAR = 1.0 / 16.0


@dataclass(frozen=True)
class Scaled:
    """Landmarks prepared for distances in bandwidths.

    `raw` are the landmarks divided by `unit`, the power of two below the bandwidth: without rounding. `scale` is
    `unit/width`, in (1/2, 1]. The other arrays serve the faster forms and are None where these are not used.
    """

    width: Array  # () or (d,)
    unit: Array  # () or (d,)
    scale: Array  # () or (d,)
    raw: Array  # (p, d), dense or CSR
    factor: float  # of squared distances
    centre: Array | None = None
    points: Array | None = None  # (p, d), dense or CSR: centred landmarks, divided by the bandwidth
    augmented: Array | None = None  # (p, d + 2): the landmark side of the product, times the factor; CSR: the points

    @property
    def is_sparse(self) -> bool:
        return sparse.issparse(self.raw)


def scale_landmarks(
    landmarks: Any, bandwidth: Any, backend: Backend, owner: str, factor: float = 1.0, few: float = FEW_FEATURES
) -> Scaled:
    """Prepare landmarks for distances in units of the bandwidth, squared ones times a factor.

    Up to `few` features distances are by differences.
    """
    n_features = landmarks.shape[1]
    width = np.asarray(bandwidths(bandwidth, n_features, owner), dtype=landmarks.dtype)
    if width.ndim and (width == width[0]).all():
        width = width[0]
    _, exponent = np.frexp(width)
    unit = np.ldexp(np.ones_like(width), exponent - 1)
    raw = _divided(landmarks.tocsr() if sparse.issparse(landmarks) else landmarks, unit)
    prepared = {"width": width, "unit": unit, "scale": unit / width, "factor": factor}
    if sparse.issparse(landmarks):
        points = _divided(landmarks.tocsr(), width)
        return Scaled(**prepared, raw=raw, centre=np.zeros(1), points=points, augmented=points)
    raw = backend.from_host(raw)
    product = n_features > few
    if landmarks.dtype.itemsize > 8 or not (product or width.ndim):
        return Scaled(**prepared, raw=raw)
    # The median, not the mean: one far landmark must not move the centre away from the rest.
    with np.errstate(over="ignore"):
        centre = np.median(landmarks if len(landmarks) else np.zeros((1, 1)), axis=0).astype(landmarks.dtype)
    points = backend.from_host(_moved(landmarks, centre, width))
    augmented = _augment_landmarks(points, factor, backend) if product else None
    return Scaled(**prepared, raw=raw, centre=backend.from_host(centre), points=points, augmented=augmented)


def squared_distances(
    rows: Any, scaled: Scaled, out: Array | None, backend: Backend, accurate_near_zero: bool = False
) -> Array:
    """Return `factor |(x - z)/bandwidth|^2` for every pair, the square never negative.

    `accurate_near_zero` keeps small distances accurate relative to themselves, for kernels that depend on the
    distance rather than on its square; their factor is positive.
    """
    if scaled.augmented is None:
        return _by_differences(rows, scaled, 2, out, backend)
    x, factor = _scale_rows(rows, scaled), scaled.factor
    if scaled.is_sparse:
        block, norms = _sparse_product(x, scaled.points)
        block *= factor
    else:
        norms = backend.squared_norms(x)
        block = backend.matmul(_augment_rows(x, norms, backend), scaled.augmented.T, out=out)
    again = _replace_far_out_(block, rows, norms, scaled, 2, backend)
    if accurate_near_zero:  # which leaves nothing below zero
        near = np.flatnonzero(block.min(axis=1, initial=np.inf) < factor * _NEAR * norms)
        _replace_near_(block, near[~again[near]], rows, norms, scaled, backend)
        return block
    return backend.clip_(block, lowest=0.0) if factor > 0 else backend.clip_(block, highest=0.0)


def absolute_distances(rows: Any, scaled: Scaled, out: Array | None, backend: Backend) -> Array:
    """Return `factor sum_j |x_j - z_j| / bandwidth_j` for every pair."""
    return _by_differences(rows, scaled, 1, out, backend)


def _by_differences(rows: Any, scaled: Scaled, power: int, out: Array | None, backend: Backend) -> Array:
    if scaled.points is None:
        return _raw_differences(rows, scaled, power, backend, out)
    x = _scale_rows(rows, scaled)
    block = _multiplied_differences(x, scaled.points, power, None, scaled.factor, backend, out)
    _replace_far_out_(block, rows, backend.squared_norms(x), scaled, power, backend)
    return block


def rounding_of_values(rows: Any, scaled: Scaled, slope: float, kink: bool, backend: Backend) -> NDArray[np.float64]:
    """Return how far a kernel value `profile(r)` with any of the landmarks may be off, for every row.

    With u the unit roundoff, d the number of features and X the row's distance from the centre, in bandwidths:

    - raw differences: r errs by `(d + 8) u r/2`, and `r |profile'(r)|` is at most 0.74 for every profile here;
    - scaled differences: r errs by `2 u (X + |z|)` more, at most `2 u (2 X + r)`, and `|profile'(r)|` is at most 1
      (a sum of absolute differences is at most `sqrt(d)` times its root of squares);
    - product: r^2 errs by `(6 d + 18) u (X^2 + X r + r^2/2)`: by `(d + 2) u (|x| + |z|)^2` in the product, by
      `(d + 1) u (|x|^2 + |z|^2)` in the squared lengths and by `4 u r (|x| + |z|)` in the coordinates, `|z| <= X + r`.
      `slope` is the largest `|d profile/d r^2|`; times r it is at most 0.32, times r^2 at most 0.37. With a kink at
      zero, `profile = exp(-r)`, it is `1/(2 r)`, and r is at least `X/4`, nearer pairs being done by differences.

    The profile itself adds 8 u.
    """
    dtype = scaled.raw.dtype
    u, terms = unit_roundoff(dtype), most_terms(rows, scaled.raw)
    exactly = (0.37 * (terms + 8.0) + 8.0) * u
    if scaled.points is None:
        return np.full(rows.shape[0], exactly)
    norms = _squared_lengths(rows, scaled, backend)
    close = _close(norms * (1.0 - 1e-4), dtype)  # whatever the rounding of these lengths
    squares = np.where(close, norms, 0.0).astype(np.float64)
    if scaled.augmented is None:
        more = 2.0 * u * (2.0 * np.sqrt(terms * squares) + 0.74)
    else:
        lengths = np.sqrt(squares)
        steep = 2.5 * lengths if kink else slope * squares + 0.32 * lengths
        more = _product_rounding(rows, scaled) * (steep + 0.19)
    return np.where(close, exactly + more, exactly)


def _close(norms: Array, dtype: Any) -> Any:
    """Tell for which rows, given by their squared lengths, the faster forms are accurate enough."""
    return float(np.finfo(dtype).eps) * norms <= _TOLERANCE[np.dtype(dtype)]


def _product_rounding(rows: Any, scaled: Scaled) -> float:
    """Return `(6 d + 18) u`, d the number of terms of a product."""
    return (6.0 * most_terms(rows, scaled.raw) + 18.0) * unit_roundoff(scaled.raw.dtype)


def _raw_differences(rows: Any, scaled: Scaled, power: int, backend: Backend, out: Array | None = None) -> Array:
    """Return `factor sum_j |(x_j - z_j)/bandwidth_j|^power`, every difference taken before it is divided."""
    scale, raw = scaled.scale**power, _dense(_divided(rows, scaled.unit))
    weights, factor = (scale, scaled.factor) if scale.ndim else (None, scaled.factor * scale)
    return _multiplied_differences(raw, _dense(scaled.raw), power, weights, factor, backend, out)


def _multiplied_differences(
    left: Array, right: Array, power: int, weights: Array | None, factor: Any, backend: Backend, out: Array | None
) -> Array:
    """Return `factor sum_j weight_j |x_j - z_j|^power`, multiplied while it is in the processor's cache."""
    block = backend.empty((len(left), len(right)), like=left) if out is None else out
    step = max(1, _TILE_ENTRIES // max(1, len(right)))
    for first in range(0, len(left), step):
        rows = slice(first, first + step)
        backend.differences(left[rows], right, power, weights, out=block[rows])
        block[rows] *= factor
    return block


def _replace_far_out_(block: Array, rows: Any, norms: Array, scaled: Scaled, power: int, backend: Backend) -> Any:
    """Overwrite rows far from the centre that have a landmark near by raw differences; return which these are."""
    again = ~_close(norms, block.dtype)
    if again.any():
        # What rounding may have added to a distance is added to the one from which on a kernel is zero.
        lost = 2.0 * _product_rounding(rows, scaled) * norms
        limit = abs(scaled.factor) * (_FAR + lost) ** (power / 2)
        again[again] = (abs(block[again]) < limit[again, None]).any(axis=1)
    if again.any():
        block[again] = _raw_differences(rows[again], scaled, power, backend)
    return again


def _replace_near_(
    block: Array, some: NDArray[np.intp], rows: Any, norms: Array, scaled: Scaled, backend: Backend
) -> None:
    """Overwrite squared distances of near pairs in some rows by raw differences; of a whole row where these are many.

    What is done to a row depends on no other row.
    """
    near = block[some] < (scaled.factor * _NEAR * norms[some])[:, None]
    many = near.sum(axis=1) * rows.shape[1] > block.shape[1]
    if many.any():
        block[some[many]] = _raw_differences(rows[some[many]], scaled, 2, backend)
        near[many] = False
    row, landmark = np.divmod(np.flatnonzero(near), block.shape[1])
    if len(row):
        apart = _divided(rows[some], scaled.unit)[row] - scaled.raw[landmark]
        apart = apart.multiply(scaled.scale).tocsr() if sparse.issparse(apart) else apart * scaled.scale
        block[some[row], landmark] = scaled.factor * _squared_norms(apart)


def _squared_norms(rows: Any) -> NDArray[Any]:
    with np.errstate(over="ignore", under="ignore"):
        if sparse.issparse(rows):
            return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        return np.einsum("ij,ij->i", rows, rows)


def _squared_lengths(rows: Any, scaled: Scaled, backend: Backend) -> Array:
    """Return `|(x - centre)/bandwidth|^2` of every row without a division of each coordinate, to a few digits."""
    if scaled.is_sparse:
        return _squared_norms(_scale_rows(rows, scaled))
    with np.errstate(over="ignore", under="ignore"):
        moved = _dense(rows) - scaled.centre
        if scaled.width.ndim:
            moved *= 1.0 / scaled.width
            return backend.squared_norms(moved)
        return backend.squared_norms(moved) / scaled.width / scaled.width


def _scale_rows(rows: Any, scaled: Scaled) -> Any:
    """Move rows to the landmarks' centre and divide by the bandwidth, as dense or sparse as the landmarks."""
    if scaled.is_sparse:
        return _divided(sparse.csr_matrix(rows), scaled.width)
    return _moved(_dense(rows), scaled.centre, scaled.width)


def _moved(rows: Array, centre: Array, width: Array) -> Array:
    with np.errstate(over="ignore", under="ignore"):
        return (rows - centre) / width


def _divided(rows: Any, divisor: NDArray[Any]) -> Any:
    with np.errstate(over="ignore", under="ignore"):
        if sparse.issparse(rows) and divisor.ndim:
            return rows.multiply(1.0 / divisor).tocsr()
        return rows / divisor


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
    norms = _squared_norms(x)
    with np.errstate(over="ignore", invalid="ignore"):
        block = (x @ points.T).toarray()
        block *= -2.0
        block += norms[:, None]
        block += _squared_norms(points)[None, :]
    block[np.isnan(block)] = 0.0  # inf - inf: done again by differences, as everything beyond the range
    return block, norms


def _dense(rows: Any) -> Any:
    return rows.toarray() if sparse.issparse(rows) else rows
