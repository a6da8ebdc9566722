"""Kernels of the inner product of two rows: linear, polynomial, cosine."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy import sparse

from ridgemark.backends import Array, Backend, Floats, Indices, backend_of
from ridgemark.errors import ParameterError
from ridgemark.kernels.base import Kernel, bandwidths, most_terms, same_for_all, squared_norms, unit_roundoff
from ridgemark.kernels.gradient import Gradient, Term
from ridgemark.parameters import real_number
from ridgemark.rows import dense


class _InnerProductKernel(Kernel):
    """`k(x, z) = values(map(x).map(z))`; a subclass defines the map, and the values where they are not the products."""

    accepts_sparse = True

    def diagonal(self, rows: Any, indices: Indices | None = None) -> Array:
        backend = backend_of(rows)
        return self._values(squared_norms(self._map(rows, backend), backend))

    def _prepare(self, landmarks: Any, indices: Indices | None, backend: Backend) -> Array:
        return self._map(landmarks, backend)

    def _block(self, rows: Any, prepared: Array, out: Array | None, backend: Backend) -> Array:
        rows = self._map(rows, backend)
        if sparse.issparse(rows) or sparse.issparse(prepared):
            return self._values(np.asarray(dense(rows @ prepared.T)))
        return self._values(backend.matmul(rows, prepared.T, out=out))

    def _entry_error(self, rows: Any, prepared: Array, backend: Backend) -> Floats:
        precision = prepared.dtype if sparse.issparse(prepared) else backend.precision(prepared)
        return np.full(rows.shape[0], self._n_roundings(most_terms(rows, prepared)) * unit_roundoff(precision))

    @abstractmethod
    def _map(self, rows: Any, backend: Backend) -> Any:
        """Return the rows of which inner products are taken."""

    def _values(self, products: Array) -> Array:
        """Overwrite inner products by kernel values."""
        return products

    @abstractmethod
    def _n_roundings(self, n_terms: int) -> int:
        """Return the unit roundoffs in a kernel value, for inner products of this many terms."""


class Linear(_InnerProductKernel):
    """Linear kernel `k(x, z) = sum_j (x_j - origin_j)(z_j - origin_j)/width_j^2`: ridge regression on the columns.

    With an unpenalised intercept the origin changes only the rounding, not the function or the penalty, since
    `w.(x - origin) + b = w.x + (b - w.origin)`. For columns far from zero products lose the digits in which rows
    differ. So an estimator with an intercept measures dense rows from a point in the middle of the rows if no origin is
    given.

    Parameters
    ----------
    origin : float or array of shape (n_features,), optional
        The point rows are measured from; zero when not given.
    widths : float or array of shape (n_features,), default=1.0
        Rows are divided by it.
    """

    def __init__(self, origin: Any = None, widths: Any = 1.0) -> None:
        self.origin = origin
        self.widths = widths

    def centred(self, origin: Floats) -> Linear:
        """Return the kernel with this origin, where it has none yet."""
        return Linear(origin, self.widths) if self.origin is None else self

    def moved(self, rows: Any) -> Any:
        """Return `(x - origin)/widths` of every row, dense unless there is no origin."""
        if self.origin is not None:
            rows = dense(rows)
            origin = backend_of(rows).from_host(_origin(self.origin, rows.shape[1]), like=rows)
            with np.errstate(over="ignore"):  # caught as a number beyond the range where the block is used
                rows = rows - origin
        return rows if np.array_equal(self.widths, 1.0) else _divided(rows, self.widths, "Linear", "widths")

    def gradient(self, rows: Floats, landmarks: Floats) -> Gradient:
        """Return `dk/dx = (z - origin)/widths^2`."""
        backend = backend_of(rows)
        slope = backend.zeros((len(rows), len(landmarks))) + 1.0
        points = _divided(self.moved(landmarks), self.widths, "Linear", "widths")
        return Gradient([Term(slope, backend.xp.zeros_like(rows), points)])

    def _map(self, rows: Any, backend: Backend) -> Any:
        return self.moved(rows)

    def _n_roundings(self, n_terms: int) -> int:
        return n_terms + 6


class Polynomial(_InnerProductKernel):
    """Polynomial kernel `k(x, z) = (x.z / bandwidth^2 + offset)^degree`.

    Parameters
    ----------
    degree : int, default=3
        At least 1.
    offset : float, default=1.0
        At least 0; a positive offset adds the terms of lower degree.
    bandwidth : float or array of shape (n_features,), default=1.0
        Rows are divided by it first.
    """

    def __init__(self, degree: int = 3, offset: float = 1.0, bandwidth: Any = 1.0) -> None:
        self.degree = degree
        self.offset = offset
        self.bandwidth = bandwidth

    def gradient(self, rows: Floats, landmarks: Floats) -> Gradient:
        """Return `dk/dx = degree (x.z/bandwidth^2 + offset)^(degree - 1) z/bandwidth^2`."""
        backend = backend_of(rows)
        points = self._map(landmarks, backend)
        slope = self.degree * (self._map(rows, backend) @ points.T + float(self.offset)) ** int(self.degree - 1)
        return Gradient([Term(slope, backend.xp.zeros_like(rows), self._map(points, backend))])

    def _n_roundings(self, n_terms: int) -> int:
        # By the Cauchy-Schwarz inequality |x.z| + offset <= sqrt((x.x + offset) (z.z + offset)).
        return int(self.degree) * (n_terms + 6) + 4

    def _map(self, rows: Any, backend: Backend) -> Any:
        self._check()
        return _divided(rows, self.bandwidth, "Polynomial")

    def _values(self, products: Array) -> Array:
        with np.errstate(over="ignore"):  # callers check the result for values outside the range
            products += float(self.offset)
            products **= int(self.degree)
        return products

    def _check(self) -> None:
        if not isinstance(self.degree, int | np.integer) or isinstance(self.degree, bool) or self.degree < 1:
            raise ParameterError(f"Polynomial: degree must be an integer of at least 1, got {self.degree!r}")
        if not 0 <= real_number(self.offset) < np.inf:
            raise ParameterError(
                f"Polynomial: offset must be a finite number of at least 0 (the kernel is not positive "
                f"semidefinite for a negative one), got {self.offset!r}"
            )


class Cosine(_InnerProductKernel):
    """Cosine kernel `k(x, z) = x.z / (|x| |z|)`; zero if one of the rows is zero."""

    def diagonal(self, rows: Any, indices: Indices | None = None) -> Array:
        backend = backend_of(rows)
        values = same_for_all(1.0, rows)
        values[_largest_entries(rows, backend) == 0] = 0.0
        return values

    def gradient(self, rows: Floats, landmarks: Floats) -> Gradient:
        """Return `dk/dx = (z/|z| - k x/|x|)/|x|`; zero where x is zero."""
        backend, xp = backend_of(rows), backend_of(rows).xp
        x, z = self._map(rows, backend), self._map(landmarks, backend)
        length = backend.sqrt_(backend.squared_norms(rows))[:, None]
        inverse = backend.ratio(xp.ones_like(length), length)
        first = Term(inverse + backend.zeros((1, len(z))), xp.zeros_like(x), z)
        return Gradient([first, Term(-inverse * (x @ z.T), x, xp.zeros_like(z))])

    def _map(self, rows: Any, backend: Backend) -> Any:
        # The largest entry is divided out first, so that no square overflows.
        shrunk = _divide_rows(rows, _largest_entries(rows, backend))
        return _divide_rows(shrunk, backend.sqrt_(squared_norms(shrunk, backend)))

    def _n_roundings(self, n_terms: int) -> int:
        return 2 * n_terms + 10


def _divided(rows: Any, bandwidth: Any, owner: str, name: str = "bandwidth") -> Any:
    """Return rows divided by one bandwidth, or one per feature."""
    width = bandwidths(bandwidth, rows.shape[1], owner, name)
    if sparse.issparse(rows):
        return rows.multiply(1.0 / np.asarray(width, dtype=rows.dtype)).tocsr()
    return rows / (width if isinstance(width, float) else backend_of(rows).from_host(width, like=rows))


def _origin(value: Any, n_features: int) -> Floats:
    """Return the origin as one finite number, or one for each feature."""
    try:
        origin = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        origin = np.array(np.nan)
    if origin.shape not in ((), (n_features,)) or not np.isfinite(origin).all():
        raise ParameterError(
            f"Linear: origin must be a finite number or one for each of the {n_features} features, got {value!r}"
        )
    return origin


def _largest_entries(rows: Any, backend: Backend) -> Array:
    """Return the largest absolute entry of each row."""
    return abs(rows).max(axis=1).toarray().ravel() if sparse.issparse(rows) else backend.xp.max(abs(rows), axis=1)


def _divide_rows(rows: Any, divisor: Array) -> Any:
    """Divide each row by its number, which is overwritten by 1 where it is 0."""
    divisor[divisor == 0] = 1.0
    if sparse.issparse(rows):
        return rows.multiply((1.0 / divisor)[:, None]).tocsr()
    return rows / divisor[:, None]
