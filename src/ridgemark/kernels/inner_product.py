"""Kernels of the inner product of two rows: linear, polynomial, cosine."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ridgemark.backends import Array, Backend, Floats, Indices, backend_of
from ridgemark.errors import ParameterError
from ridgemark.kernels.base import Kernel, bandwidths, most_terms, same_for_all, unit_roundoff
from ridgemark.parameters import real_number


class Linear(Kernel):
    """Linear kernel `k(x, z) = (x - origin).(z - origin)`: ridge regression on the columns.

    With an unpenalised intercept the origin changes no function and no penalty, `w.(x - origin) + b` being
    `w.x + (b - w.origin)`, only the rounding: products of columns far from zero leave no digits for what tells rows
    apart. So an estimator with an intercept measures dense rows from a point in their midst where none is given.

    Parameters
    ----------
    origin : float or array of shape (n_features,), optional
        The point rows are measured from; zero when not given.
    """

    accepts_sparse = True

    def __init__(self, origin: Any = None) -> None:
        self.origin = origin

    def diagonal(self, rows: Any, indices: Indices | None = None) -> Array:
        return _squared_norms(self.moved(rows), backend_of(rows))

    def centred(self, origin: Floats) -> Linear:
        """Return the kernel with this origin, where it has none yet."""
        return Linear(origin) if self.origin is None else self

    def moved(self, rows: Any) -> Any:
        """Return `x - origin` of every row, dense unless there is no origin."""
        if self.origin is None:
            return rows
        rows = rows.toarray() if sparse.issparse(rows) else rows
        origin = backend_of(rows).from_host(_origin(self.origin, rows.shape[1]), like=rows)
        with np.errstate(over="ignore"):  # caught as a number beyond the range where the block is used
            return rows - origin

    def _prepare(self, landmarks: Any, indices: Indices | None, backend: Backend) -> Array:
        return self.moved(landmarks)

    def _block(self, rows: Any, prepared: Array, out: Array | None, backend: Backend) -> Array:
        return _inner_products(self.moved(rows), prepared, out, backend)

    def _entry_error(self, rows: Any, prepared: Array, backend: Backend) -> Floats:
        return _errors(rows, prepared, most_terms(rows, prepared), backend)


class Polynomial(Kernel):
    """Polynomial kernel `k(x, z) = (x.z / bandwidth^2 + offset)^degree`.

    Parameters
    ----------
    degree : int
        At least 1.
    offset : float
        At least 0; a positive offset adds the terms of lower degree.
    bandwidth : float or array of shape (n_features,)
        Rows are divided by it first.
    """

    accepts_sparse = True

    def __init__(self, degree: int = 3, offset: float = 1.0, bandwidth: Any = 1.0) -> None:
        self.degree = degree
        self.offset = offset
        self.bandwidth = bandwidth

    def diagonal(self, rows: Any, indices: Indices | None = None) -> Array:
        self._check()
        backend = backend_of(rows)
        return self._power(_squared_norms(self._scaled(rows, backend), backend))

    def _prepare(self, landmarks: Any, indices: Indices | None, backend: Backend) -> Array:
        self._check()
        return self._scaled(landmarks, backend)

    def _block(self, rows: Any, prepared: Array, out: Array | None, backend: Backend) -> Array:
        return self._power(_inner_products(self._scaled(rows, backend), prepared, out, backend))

    def _entry_error(self, rows: Any, prepared: Array, backend: Backend) -> Floats:
        # By the Cauchy-Schwarz inequality |x.z| + offset <= sqrt((x.x + offset) (z.z + offset)).
        return _errors(rows, prepared, int(self.degree) * (most_terms(rows, prepared) + 6) + 4, backend)

    def _scaled(self, rows: Any, backend: Backend) -> Any:
        width = bandwidths(self.bandwidth, rows.shape[1], "Polynomial")
        if sparse.issparse(rows):
            return rows.multiply(1.0 / np.asarray(width, dtype=rows.dtype)).tocsr()
        return rows / (width if isinstance(width, float) else backend.from_host(width, like=rows))

    def _power(self, products: Array) -> Array:
        with np.errstate(over="ignore"):  # callers check the result for values outside the range
            products += float(self.offset)
            products **= int(self.degree)
        return products

    def _check(self) -> None:
        if not isinstance(self.degree, int | np.integer) or isinstance(self.degree, bool) or self.degree < 1:
            msg = f"Polynomial: degree must be an integer of at least 1, got {self.degree!r}"
            raise ParameterError(msg)
        if not 0 <= real_number(self.offset) < np.inf:
            msg = (
                f"Polynomial: offset must be a finite number of at least 0 (the kernel is not positive "
                f"semidefinite for a negative one), got {self.offset!r}"
            )
            raise ParameterError(msg)


class Cosine(Kernel):
    """Cosine kernel `k(x, z) = x.z / (|x| |z|)`; zero if one of the rows is zero."""

    accepts_sparse = True

    def diagonal(self, rows: Any, indices: Indices | None = None) -> Array:
        backend = backend_of(rows)
        values = same_for_all(1.0, rows)
        values[_largest_entries(rows, backend) == 0] = 0.0
        return values

    def _prepare(self, landmarks: Any, indices: Indices | None, backend: Backend) -> Array:
        return _unit_rows(landmarks, backend)

    def _block(self, rows: Any, prepared: Array, out: Array | None, backend: Backend) -> Array:
        return _inner_products(_unit_rows(rows, backend), prepared, out, backend)

    def _entry_error(self, rows: Any, prepared: Array, backend: Backend) -> Floats:
        return _errors(rows, prepared, 2 * most_terms(rows, prepared) + 10, backend)


def _origin(value: Any, n_features: int) -> Floats:
    """Return the origin as one finite number, or one for each feature."""
    try:
        origin = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        origin = np.array(np.nan)
    if origin.shape not in ((), (n_features,)) or not np.isfinite(origin).all():
        msg = f"Linear: origin must be a finite number or one for each of the {n_features} features, got {value!r}"
        raise ParameterError(msg)
    return origin


def _inner_products(rows: Any, landmarks: Any, out: Array | None, backend: Backend) -> Array:
    if sparse.issparse(rows) or sparse.issparse(landmarks):
        products = rows @ landmarks.T
        return products.toarray() if sparse.issparse(products) else np.asarray(products)
    return backend.matmul(rows, landmarks.T, out=out)


def _errors(rows: Any, landmarks: Any, roundoffs: int, backend: Backend) -> Floats:
    precision = landmarks.dtype if sparse.issparse(landmarks) else backend.precision(landmarks)
    return np.full(rows.shape[0], roundoffs * unit_roundoff(precision))


def _squared_norms(rows: Any, backend: Backend) -> Array:
    if sparse.issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    return backend.squared_norms(rows)


def _largest_entries(rows: Any, backend: Backend) -> Array:
    """Return the largest absolute entry of each row."""
    return abs(rows).max(axis=1).toarray().ravel() if sparse.issparse(rows) else backend.row_max(abs(rows))


def _unit_rows(rows: Any, backend: Backend) -> Any:
    """Return rows divided by their length; the largest entry is divided out first, so that no square overflows."""
    shrunk = _divide_rows(rows, _largest_entries(rows, backend))
    return _divide_rows(shrunk, backend.sqrt_(_squared_norms(shrunk, backend)))


def _divide_rows(rows: Any, divisor: Array) -> Any:
    """Divide each row by its number, which is overwritten by 1 where it is 0."""
    divisor[divisor == 0] = 1.0
    if sparse.issparse(rows):
        return rows.multiply((1.0 / divisor)[:, None]).tocsr()
    return rows / divisor[:, None]
