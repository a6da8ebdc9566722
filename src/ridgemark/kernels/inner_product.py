"""Kernels of the inner product of two rows: linear, polynomial, cosine."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ridgemark.backends import Array, Backend
from ridgemark.errors import ParameterError
from ridgemark.kernels.base import Kernel, bandwidths, most_terms, unit_roundoff
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
    accepts_extended = True

    def __init__(self, origin: Any = None) -> None:
        self.origin = origin

    def diagonal(self, rows: Any, indices: NDArray[np.intp] | None = None) -> NDArray[Any]:
        return _squared_norms(self.moved(rows))

    def centred(self, origin: NDArray[np.float64]) -> Linear:
        """Return the kernel with this origin, where it has none yet."""
        return Linear(origin) if self.origin is None else self

    def moved(self, rows: Any) -> Any:
        """Return `x - origin` of every row, dense unless there is no origin."""
        if self.origin is None:
            return rows
        origin = _origin(self.origin, rows.shape[1]).astype(rows.dtype)
        with np.errstate(over="ignore"):  # caught as a number beyond the range where the block is used
            return (rows.toarray() if sparse.issparse(rows) else rows) - origin

    def _prepare(self, landmarks: Any, indices: NDArray[np.intp] | None, backend: Backend) -> Array:
        moved = self.moved(landmarks)
        return moved if sparse.issparse(moved) else backend.from_host(moved)

    def _block(self, rows: Any, prepared: Array, out: Array | None, backend: Backend) -> Array:
        return _inner_products(self.moved(rows), prepared, out, backend)

    def _entry_error(self, rows: Any, prepared: Array, backend: Backend) -> NDArray[np.float64]:
        return _errors(rows, prepared, most_terms(rows, prepared))


class Polynomial(Kernel):
    """Polynomial kernel `k(x, z) = (x.z / bandwidth^2 + offset)^degree`.

    Parameters
    ----------
    degree : int
        At least 1.
    offset : float
        At least 0; a positive offset brings in the terms of lower degree.
    bandwidth : float or array of shape (n_features,)
        Rows are divided by it first.
    """

    accepts_sparse = True
    accepts_extended = True

    def __init__(self, degree: int = 3, offset: float = 1.0, bandwidth: Any = 1.0) -> None:
        self.degree = degree
        self.offset = offset
        self.bandwidth = bandwidth

    def diagonal(self, rows: Any, indices: NDArray[np.intp] | None = None) -> NDArray[Any]:
        self._check()
        return self._power(_squared_norms(self._scaled(rows)))

    def _prepare(self, landmarks: Any, indices: NDArray[np.intp] | None, backend: Backend) -> Array:
        self._check()
        scaled = self._scaled(landmarks)
        return scaled if sparse.issparse(scaled) else backend.from_host(scaled)

    def _block(self, rows: Any, prepared: Array, out: Array | None, backend: Backend) -> Array:
        return self._power(_inner_products(self._scaled(rows), prepared, out, backend))

    def _entry_error(self, rows: Any, prepared: Array, backend: Backend) -> NDArray[np.float64]:
        # |x.z| + offset is at most the root of the product of the same for x with itself and z with itself.
        return _errors(rows, prepared, int(self.degree) * (most_terms(rows, prepared) + 6) + 4)

    def _scaled(self, rows: Any) -> Any:
        width = np.asarray(bandwidths(self.bandwidth, rows.shape[1], "Polynomial"), dtype=rows.dtype)
        if sparse.issparse(rows):
            return rows.multiply(1.0 / width).tocsr()
        return rows / width

    def _power(self, products: Array) -> Array:
        with np.errstate(over="ignore"):  # caught as a number beyond the range where the block is used
            products += float(self.offset)
            products **= int(self.degree)
        return products

    def _check(self) -> None:
        if not isinstance(self.degree, int | np.integer) or isinstance(self.degree, bool) or self.degree < 1:
            msg = f"Polynomial: degree must be an integer of at least 1, got {self.degree!r}"
            raise ParameterError(msg)
        if not 0 <= real_number(self.offset) < np.inf:
            msg = (
                f"Polynomial: offset must be a finite number of at least 0 (a negative one gives no "
                f"positive semidefinite kernel), got {self.offset!r}"
            )
            raise ParameterError(msg)


class Cosine(Kernel):
    """Cosine kernel `k(x, z) = x.z / (|x| |z|)`; a row of zeros has no direction, and kernel zero with all."""

    accepts_sparse = True
    accepts_extended = True

    def diagonal(self, rows: Any, indices: NDArray[np.intp] | None = None) -> NDArray[Any]:
        return (_lengths(rows) > 0).astype(rows.dtype)

    def _prepare(self, landmarks: Any, indices: NDArray[np.intp] | None, backend: Backend) -> Array:
        unit = _unit_rows(landmarks)
        return unit if sparse.issparse(unit) else backend.from_host(unit)

    def _block(self, rows: Any, prepared: Array, out: Array | None, backend: Backend) -> Array:
        return _inner_products(_unit_rows(rows), prepared, out, backend)

    def _entry_error(self, rows: Any, prepared: Array, backend: Backend) -> NDArray[np.float64]:
        return _errors(rows, prepared, 2 * most_terms(rows, prepared) + 10)


def _origin(value: Any, n_features: int) -> NDArray[np.float64]:
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


def _errors(rows: Any, landmarks: Any, roundoffs: int) -> NDArray[np.float64]:
    return np.full(rows.shape[0], roundoffs * unit_roundoff(landmarks.dtype))


def _squared_norms(rows: Any) -> NDArray[Any]:
    if sparse.issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    with np.errstate(over="ignore"):
        return np.einsum("ij,ij->i", rows, rows)


def _largest_entries(rows: Any) -> NDArray[Any]:
    largest = abs(rows).max(axis=1)
    return np.asarray(largest.toarray() if sparse.issparse(largest) else largest).ravel()


def _lengths(rows: Any) -> NDArray[Any]:
    """Return each row's length, without overflow or underflow of the squares."""
    largest = _largest_entries(rows)
    divisor = np.where(largest > 0, largest, 1)
    return divisor * np.sqrt(_squared_norms(_divide_rows(rows, divisor)))


def _unit_rows(rows: Any) -> Any:
    largest = _largest_entries(rows)
    shrunk = _divide_rows(rows, np.where(largest > 0, largest, 1))
    norms = np.sqrt(_squared_norms(shrunk))
    return _divide_rows(shrunk, np.where(norms > 0, norms, 1))


def _divide_rows(rows: Any, divisor: NDArray[Any]) -> Any:
    if sparse.issparse(rows):
        return rows.multiply((1.0 / divisor)[:, None]).tocsr()
    return rows / divisor[:, None]
