"""Distances between rows and landmarks: fast forms where they are accurate, differences where they are not.

*Raw differences* subtract the columns unscaled and divide by the bandwidth afterwards. A squared distance then has a
relative error of a few machine epsilons, however far from the origin or from each other the rows are. Two faster forms
centre both sides at the landmarks' median and divide by the bandwidth first. The *product* form
`|x|^2 + |z|^2 - 2 x.z`, for three features or more, has an error of a few machine epsilons times `(|x| + |z|)^2`.
*Scaled differences*, for few features with one bandwidth each, have an error of a few machine epsilons times
`|x - z| (|x| + |z|)`. Rows far from the centre that have a landmark near them are computed again by raw differences.
For a kernel that is singular at zero distance, near pairs are computed again too.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ridgemark.backends import NUMPY, Array, Backend, Floats
from ridgemark.kernels.base import bandwidths, most_terms, row_tiles, squared_norms, unit_roundoff
from ridgemark.kernels.projection import Projection
from ridgemark.rows import dense

# Number of features up to which differences are not slower than the product; the second is for singular kernels,
# whose near pairs the product form computes twice.
FEW_FEATURES, FEW_IF_SINGULAR = 2, 4
# Squared distance beyond which a kernel is zero for all purposes, so that its rounding error does not matter.
FAR = 1e4
# Largest `machine eps |x|^2` of a row, in shortest lengths, for which the faster forms are used, by precision.
_TOLERANCE: dict[np.dtype[Any], float] = {np.dtype(np.float64): 1e-13, np.dtype(np.float32): 1e-5}
# Squared length of a row up to which the product form cannot overflow, by precision.
_LARGEST_NORM = {precision: float(np.finfo(precision).max) * 1e-10 for precision in _TOLERANCE}
# A pair is near if its squared distance is below this fraction of the row's squared length.
_NEAR = 1.0 / 16.0


@dataclass(frozen=True)
class DistanceForm:
    """How a kernel depends on distances r: what decides in which form they are computed, and how rounding acts.

    `k = profile(factor r^2)`, or `profile(factor r)` for sums of absolute differences.
    """

    power: int = 2  # 1 for sums of absolute differences
    factor: float = 1.0
    difference_limit: float = FEW_FEATURES  # with more features, distances are computed by a product
    far: float = FAR  # squared distance from which on k is zero
    singular: bool = False  # whether dk/dr^2 is unbounded near zero, so that small distances must be accurate
    steepest: float = 1.0  # the largest |dk/dr|; if infinite, `|k(r) - k(s)| <= |r - s|^growth[1]`
    # (c, e): with X the row's distance from the centre, `X^2 |dk/dr^2| <= c X^e` for all r (for `r >= X/4` if
    # singular); if `steepest` is infinite, `(X^2 + X r) |dk/dr^2| <= c X^e`.
    growth: tuple[float, float] = (1.0, 2.0)
    shortest: float = 1.0  # the shortest length over which k varies, in bandwidths

    @property
    def lipschitz(self) -> bool:
        """Whether |dk/dr| is bounded."""
        return self.steepest < np.inf


@dataclass(frozen=True)
class PreparedLandmarks:
    """Landmarks prepared for distances in bandwidths.

    `unit` is the largest power of two not above the bandwidth, so that `raw`, the landmarks divided by it, has no
    rounding error; `scale` is `unit/width`, in (1/2, 1]. These three are floats, or arrays of shape (d,). The fields
    from `centre` to `augmented` are for the faster forms and are None where these are not used.
    """

    form: DistanceForm
    width: Any
    unit: Any
    scale: Any
    raw: Array  # (p, d), dense or CSR
    centre: Array | None = None
    points: Array | None = None  # (p, d), dense or CSR: centred landmarks, divided by the bandwidth
    augmented: Array | None = None  # (p, d + 2): landmark side of the product, times the factor; CSR: the points
    projection: Projection | None = None  # to be applied to rows first

    @cached_property
    def is_sparse(self) -> bool:
        return sparse.issparse(self.raw)


def prepare_landmarks(
    landmarks: Any, bandwidth: Any, form: DistanceForm, backend: Backend, owner: str
) -> PreparedLandmarks:
    """Prepare landmarks for distances in units of the bandwidth; `owner` names the kernel in error messages."""
    is_sparse, n_features = sparse.issparse(landmarks), landmarks.shape[1]
    landmarks = landmarks.tocsr() if is_sparse else landmarks
    precision = landmarks.dtype if is_sparse else backend.precision(landmarks)
    width, unit, scale = _widths(bandwidths(bandwidth, n_features, owner), precision)
    per_feature = isinstance(width, np.ndarray)
    if per_feature and not is_sparse:
        width, unit, scale = (backend.from_host(value, like=landmarks) for value in (width, unit, scale))
    prepared = {"form": form, "width": width, "unit": unit, "scale": scale, "raw": _divided(landmarks, unit)}
    if is_sparse:
        points = _divided(landmarks, width)
        return PreparedLandmarks(**prepared, points=points, augmented=points)
    product = n_features > form.difference_limit
    if not (product or (per_feature and form.lipschitz)):
        return PreparedLandmarks(**prepared)
    centre = backend.median(landmarks)  # not the mean, which one far landmark moves away from all others
    points = _moved(landmarks, centre, width)
    augmented = _augment_landmarks(points, form.factor, backend) if product else None
    return PreparedLandmarks(**prepared, centre=centre, points=points, augmented=augmented)


def _widths(bandwidth: float | Floats, precision: np.dtype[Any]) -> tuple[Any, Any, Any]:
    """Return the bandwidth, the power of two below it, and their ratio: three floats or three arrays."""
    width = np.asarray(bandwidth, dtype=precision)
    if width.ndim and (width == width[0]).all():
        width = width[0]
    _, exponent = np.frexp(width)
    unit = np.ldexp(np.ones_like(width), exponent - 1)
    if width.ndim:
        return width, unit, unit / width
    return float(width), float(unit), float(unit / width)


def distances(rows: Any, prepared: PreparedLandmarks, out: Array | None, backend: Backend) -> Array:
    """Return `factor sum_j |(x_j - z_j)/bandwidth_j|^power` for every pair, the sum never negative.

    For a singular kernel small distances are accurate relative to themselves; its factor is positive.
    """
    if prepared.projection is not None:
        rows = prepared.projection.apply(rows, backend)
    form = prepared.form
    if prepared.points is None:
        return _raw_differences(rows, prepared, backend, out)
    rows = sparse.csr_matrix(rows) if prepared.is_sparse else dense(rows)
    x = _scale_rows(rows, prepared)
    norms = squared_norms(x, backend)
    if prepared.augmented is None:
        block = _multiplied_differences(x, prepared.points, None, form.factor, form.power, backend, out)
    elif prepared.is_sparse:
        block = _sparse_product(x, norms, prepared.points, form.factor)
    else:
        # Rows beyond the range would give inf - inf in the product; they are computed by differences afterwards.
        beyond = ~(norms < _LARGEST_NORM[backend.precision(x)])
        block = backend.matmul(_augment(x, norms, 1.0, beyond, backend), prepared.augmented.T, out=out)
    if block.shape[1] == 0:
        return block
    again = _replace_far_out_(block, rows, norms, prepared, backend)
    if prepared.augmented is None:
        return block
    if form.singular:  # every negative value belongs to a near pair
        near = backend.xp.min(block, axis=1) < form.factor * _NEAR * norms
        near &= ~again
        if backend.count(near):
            _replace_near_(block, near, rows, norms, prepared, backend)
        return block
    return backend.clip_(block, lowest=0.0) if form.factor > 0 else backend.clip_(block, highest=0.0)


def rounding_of_values(rows: Any, prepared: PreparedLandmarks, backend: Backend, length: float = 1.0) -> Array:
    """Return a bound on the rounding error of the kernel values of every row, functions of the distance over `length`.

    With u the unit roundoff, d the number of features, r the distance and X the row's distance from the centre, in
    bandwidths:

    - raw differences: r has an error of `(d + 8) u r/2`, and `r |dk/dr|` is at most 0.74 for every kernel here;
    - scaled differences: r has a further error of `2 u (X + |z|)`, at most `2 u (2 X + r)`, and `|dk/dr|` is at most 1
      (a sum of absolute differences is at most `sqrt(d)` times the root of the sum of their squares);
    - product: r^2 has an error of `(6 d + 18) u (X^2 + X r + r^2/2)`: `(d + 2) u (X + |z|)^2` in the product,
      `(d + 1) u (X^2 + |z|^2)` in the squared lengths and `4 u r (X + |z|)` in the coordinates, with `|z| <= X + r`.
      `X^2 |dk/dr^2|` is at most the form's `c X^e`, `r |dk/dr^2|` is `|dk/dr|/2`, and `r^2 |dk/dr^2|` is at most 0.37.
      For singular kernels the first holds for `r >= X/4`; nearer pairs are computed by differences.

    Evaluating the profile adds 8 u.
    """
    form = prepared.form
    if prepared.projection is not None:
        moved = prepared.projection.distance_error(rows, backend)
        effect = form.steepest * moved if form.lipschitz else moved ** form.growth[1]
        rows = prepared.projection.apply(rows, backend)
        return effect + rounding_of_values(rows, replace(prepared, projection=None), backend)
    precision = prepared.raw.dtype if prepared.is_sparse else backend.precision(prepared.raw)
    u, terms = unit_roundoff(precision), most_terms(rows, prepared.raw)
    exactly = (0.37 * (terms + 8.0) + 8.0) * u
    if prepared.points is None:
        return backend.zeros((rows.shape[0],)) + exactly
    norms, xp = squared_norms(_scale_rows(rows, prepared), backend), backend.xp
    close = _close(norms, precision, form)
    lengths = xp.sqrt(backend.double(xp.where(close, norms, 0.0))) / length
    if prepared.augmented is None:
        more = 2.0 * u * (2.0 * math.sqrt(terms) * lengths + 0.74)
    else:
        coefficient, exponent = form.growth
        steep = coefficient * lengths**exponent + (form.steepest / 2.0 * lengths if form.lipschitz else 0.0)
        more = _product_rounding(terms, precision) * (steep + 0.19)
    return xp.where(close, exactly + more, exactly)


def _close(norms: Array, precision: np.dtype[Any], form: DistanceForm) -> Any:
    """Return for which rows, given their squared lengths, the faster forms are accurate enough."""
    return float(np.finfo(precision).eps) * norms <= _TOLERANCE[precision] * form.shortest**2


def _product_rounding(n_terms: int, precision: np.dtype[Any]) -> float:
    """Return `(6 d + 18) u`, with d the number of terms of a product."""
    return (6.0 * n_terms + 18.0) * unit_roundoff(precision)


def _raw_differences(rows: Any, prepared: PreparedLandmarks, backend: Backend, out: Array | None = None) -> Array:
    """Return `factor sum_j |(x_j - z_j)/bandwidth_j|^power`; every difference is formed before it is divided."""
    power, factor = prepared.form.power, prepared.form.factor
    scale = prepared.scale**power
    weights, factor = (None, factor * scale) if isinstance(scale, float) else (scale, factor)
    left, right = dense(_divided(rows, prepared.unit)), dense(prepared.raw)
    return _multiplied_differences(left, right, weights, factor, power, backend, out)


def _multiplied_differences(
    left: Array, right: Array, weights: Array | None, factor: float, power: int, backend: Backend, out: Array | None
) -> Array:
    """Return `factor sum_j weight_j |x_j - z_j|^power`, on the host in tiles that stay in the cache."""
    block = backend.empty((left.shape[0], right.shape[0]), like=left) if out is None else out
    for tile in row_tiles(block, backend):
        distances = block[tile, :]
        backend.differences(left[tile, :], right, power, weights, out=distances)
        distances *= factor
    return block


def _replace_far_out_(block: Array, rows: Any, norms: Array, prepared: PreparedLandmarks, backend: Backend) -> Array:
    """Compute rows far from the centre that have a landmark near them by raw differences; return a mask of these."""
    precision, form = backend.precision(block), prepared.form
    far_out = ~_close(norms, precision, form)
    if not backend.count(far_out):
        return far_out
    # The distance beyond which the kernel is zero, plus the largest rounding error of the computed one.
    error = 2.0 * _product_rounding(most_terms(rows, prepared.raw), precision) * norms[far_out]
    limit = abs(form.factor) * (form.far + error) ** (form.power / 2)
    again = ~_close(norms, precision, form)
    again[far_out] = backend.xp.min(abs(block[far_out]), axis=1) < limit
    if backend.count(again):
        block[again] = _raw_differences(rows[again], prepared, backend)
    return again


def _replace_near_(
    block: Array, some: Array, rows: Any, norms: Array, prepared: PreparedLandmarks, backend: Backend
) -> None:
    """Compute near pairs in some rows (a mask) by raw differences, or the whole row if it has many near pairs.

    How a row is computed does not depend on the other rows.
    """
    values, rows = block[some], rows[some]
    near = values < (prepared.form.factor * _NEAR * norms[some])[:, None]
    many = backend.count(near, axis=1) * rows.shape[1] > values.shape[1]
    if backend.count(many):
        values[many] = _raw_differences(rows[many], prepared, backend)
        near[many] = False
    row, landmark = backend.nonzero(near)
    if row.shape[0]:
        difference = _take(_divided(rows, prepared.unit), row, backend) - _take(prepared.raw, landmark, backend)
        is_sparse = sparse.issparse(difference)
        scaled = difference.multiply(prepared.scale).tocsr() if is_sparse else difference * prepared.scale
        values[near] = prepared.form.factor * squared_norms(scaled, backend)
    block[some] = values


def _scale_rows(rows: Any, prepared: PreparedLandmarks) -> Any:
    """Return rows relative to the landmarks' centre and divided by the bandwidth, sparse if the landmarks are."""
    if prepared.is_sparse:
        return _divided(sparse.csr_matrix(rows), prepared.width)
    return _moved(dense(rows), prepared.centre, prepared.width)


def _moved(rows: Array, centre: Array, width: Any) -> Array:
    with np.errstate(over="ignore", under="ignore"):
        return (rows - centre) / width


def _divided(rows: Any, divisor: Any) -> Any:
    with np.errstate(over="ignore", under="ignore"):
        if sparse.issparse(rows) and not isinstance(divisor, float):
            return rows.multiply(1.0 / divisor).tocsr()
        return rows / divisor


def _augment_landmarks(points: Array, factor: float, backend: Backend) -> Array:
    """Return `factor [-2 z, 1, |z|^2]`, whose product with `[x, |x|^2, 1]` is `factor |x - z|^2`."""
    norms, largest = backend.squared_norms(points), _LARGEST_NORM[backend.precision(points)]
    beyond = ~(norms < largest)
    augmented = _augment(-2.0 * points, 1.0, 0.0, beyond, backend)
    # For a row near the centre such a landmark is infinitely far; other rows are computed by differences.
    norms[beyond] = largest
    augmented[:, points.shape[1] + 1] = norms
    augmented *= factor
    return augmented


def _augment(rows: Array, first: Any, second: Any, zero: Array, backend: Backend) -> Array:
    """Return `[x, first, second]` for every row x, and zeros for some rows (a mask)."""
    count, n_features = rows.shape
    augmented = backend.empty((count, n_features + 2), like=rows)
    augmented[:, :n_features] = rows
    augmented[:, n_features] = first
    augmented[:, n_features + 1] = second
    augmented[zero] = 0.0
    return augmented


def _sparse_product(x: Any, norms: Array, points: Any, factor: float) -> Array:
    """Return squared distances of sparse rows and points, times the factor, in the product form."""
    with np.errstate(over="ignore", invalid="ignore"):
        block = (x @ points.T).toarray()
        block *= -2.0
        block += norms[:, None]
        block += squared_norms(points, NUMPY)[None, :]
    block[np.isnan(block)] = 0.0  # inf - inf: such rows are computed again by differences
    block *= factor
    return block


def _take(rows: Any, numbers: Array, backend: Backend) -> Any:
    return rows[numbers] if sparse.issparse(rows) else backend.xp.take(rows, numbers, axis=0)
