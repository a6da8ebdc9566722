"""The base class of kernels: parameters, blocks of values with landmarks, and the diagonal."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from ridgemark.backends import NUMPY, Array, Backend, Floats, Indices, backend_of
from ridgemark.errors import DataError, DataTypeError, ParameterError
from ridgemark.kernels.gradient import Gradient
from ridgemark.linalg import check_range
from ridgemark.parameters import Parameterised, real_number


@dataclass(frozen=True)
class CrossKernel:
    """A kernel bound to its landmarks: call it on rows to get the block `k(x_i, z_j)`.

    Everything that depends on the landmarks alone is computed once, when the kernel is bound. A value `k(x, z)` does
    not depend on the other rows of its block.
    """

    kernel: Kernel
    prepared: Any
    backend: Backend
    n_landmarks: int
    landmarks: Any

    def __call__(self, rows: Array, out: Array | None = None) -> Array:
        """Return the block of shape (rows, landmarks), written into `out` if the kernel can use it."""
        return self.kernel._block(rows, self.prepared, out, self.backend)

    def symmetric_block(self, landmarks: Array) -> Floats:
        """Return the kernel of the landmarks with each other in float64, made symmetric to the last bit."""
        block = self.backend.double(self(landmarks))
        return (block + block.T) / 2

    def entry_error(self, rows: Array) -> Array:
        """Return for each row a bound e on the rounding error of its kernel values, where the kernel is computed.

        A value computed by calling this object differs from `k(x_i, z_j)` in exact arithmetic by at most
        `e_i sqrt(k(x_i, x_i) k(z_j, z_j))`, for every landmark.
        """
        return self.backend.from_host(self.kernel._entry_error(rows, self.prepared, self.backend))

    @cached_property
    def landmark_error(self) -> float:
        """The largest entry error of the kernel values of the landmarks with each other."""
        return float(self.backend.to_host(self.entry_error(self.landmarks)).max(initial=0.0))


class Kernel(Parameterised, ABC):
    """A positive semidefinite function of two rows.

    A subclass defines `_prepare` (what depends on the landmarks alone), `_block` and `diagonal`. Kernels can be added,
    multiplied with each other, and multiplied by a positive number.
    """

    accepts_sparse = False
    stays_on_host = False  # whether its values are computed, or given, on the host only
    pairwise = False  # whether the rows given are rows of the kernel matrix itself
    constant_diagonal: float | None = None  # `k(x, x)` if it is the same for every row

    def bind(self, landmarks: Any, indices: Indices | None = None) -> CrossKernel:
        """Bind the kernel to landmarks; `indices` are their row numbers, which a precomputed kernel needs."""
        if sparse.issparse(landmarks):
            self._check_sparse(landmarks)
        backend = backend_of(landmarks)
        n_landmarks = len(indices) if indices is not None else count_rows(landmarks)
        return CrossKernel(self, self._prepare(landmarks, indices, backend), backend, n_landmarks, landmarks)

    def __call__(self, rows: Any, landmarks: Any = None) -> Array:
        """Return the block of kernel values between two sets of rows, or of one set with itself.

        The block of one set with itself is exactly symmetric and its diagonal is `diagonal(rows)`.
        """
        rows = self._checked(rows)
        other = rows if landmarks is None else self._checked(landmarks)
        if _width(rows) != _width(other):
            raise DataError(
                f"the two sets of rows must have the same number of features, got {_width(rows)} and {_width(other)}"
            )
        numbers = np.arange(count_rows(rows)) if landmarks is None else None
        block: Array = check_range(self.bind(other, numbers)(rows))
        if landmarks is None:
            block = (block + block.T) / 2
            np.fill_diagonal(block, self.diagonal(rows))
        return block

    @abstractmethod
    def diagonal(self, rows: Any, indices: Indices | None = None) -> Array:
        """Return `k(x_i, x_i)` for every row without forming a block."""

    def value_and_derivative(self, squared_distances: Array, rounding: Any = 0.0) -> tuple[Array, Array]:
        """Return `k` and `dk/d rho` for a kernel that is a function of the squared distance rho.

        `RadialKernel` implements this method. Other kernels raise ParameterError.
        """
        raise ParameterError(
            f"{type(self).__name__} is not a function of the squared distance |x - z|^2, so it has no derivative with "
            "respect to it; use a gaussian, matern12, matern32, matern52 or power_exponential kernel"
        )

    def gradient(self, rows: Floats, landmarks: Floats) -> Gradient:
        """Return the derivatives `dk(x, z)/dx` of dense rows with dense landmarks.

        All kernels except those given as functions or values have these derivatives, and so do sums, products and
        multiples. Where a kernel has a kink at `x_j = z_j`, the mean of the derivatives on both sides is returned:
        zero.
        """
        raise ParameterError(
            f"the derivatives of {type(self).__name__} by the columns are not known; use a kernel by name, such as "
            "gaussian, matern52 or laplacian, or sums and products of such kernels"
        )

    def centred(self, origin: Floats) -> Kernel:
        """Return a kernel that gives the same model where there is an unpenalised intercept, and rounds less.

        A linear kernel without an origin takes this one. Other kernels return themselves: they do not depend on the
        origin, or another origin would change the model.
        """
        return self

    @abstractmethod
    def _prepare(self, landmarks: Any, indices: Indices | None, backend: Backend) -> Any:
        """Return what depends on the landmarks alone, given as an array of the backend or a sparse matrix."""

    @abstractmethod
    def _block(self, rows: Any, prepared: Any, out: Array | None, backend: Backend) -> Array:
        """Return the kernel values of rows with the prepared landmarks; `out` may be used for the result."""

    def _entry_error(self, rows: Any, prepared: Any, backend: Backend) -> Floats:
        """Return the bound of `CrossKernel.entry_error`; by default 64 unit roundoffs are assumed."""
        return np.full(count_rows(rows), 64.0 * unit_roundoff(getattr(rows, "dtype", np.float64)))

    def _checked(self, rows: Any) -> Any:
        """Return rows as a finite 2-d array of float32 or float64, or as CSR if the kernel accepts sparse rows."""
        self._check_sparse(rows)
        return check_array(rows, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="rows")

    def _check_sparse(self, rows: Any) -> None:
        if sparse.issparse(rows) and not self.accepts_sparse:
            raise DataTypeError(
                f"{self._dense_only()} does not accept sparse rows; convert them with .toarray(), or choose a "
                "gaussian, matern, power_exponential, linear, polynomial or cosine kernel (without a metric)"
            )

    def _dense_only(self) -> str:
        """Return the name of what does not accept sparse rows, this kernel or one of its parts, for error messages."""
        return type(self).__name__

    def __add__(self, other: object) -> Kernel:
        from ridgemark.kernels.algebra import Sum

        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: object) -> Kernel:
        from ridgemark.kernels.algebra import Product, Scaled

        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(self, other) if np.isscalar(other) else NotImplemented  # type: ignore[arg-type]

    __rmul__ = __mul__


def count_rows(rows: Any) -> int:
    """Return the number of rows of an array, a sparse matrix or a list."""
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def same_for_all(value: float, rows: Any) -> Array:
    """Return one number for each row, all equal to `value`, in the precision of the rows."""
    values = backend_of(rows).empty((count_rows(rows),), like=rows)
    values[...] = value
    return values


def unit_roundoff(dtype: Any) -> float:
    """Return u, the largest relative rounding error of one operation in this precision."""
    return float(np.finfo(dtype if np.dtype(dtype).kind == "f" else np.float64).eps) / 2.0


def row_tiles(values: Array, backend: Backend, entries: int = 2**16) -> Iterator[Any]:
    """Return slices of rows whose values stay in the processor's cache; one of all rows on a device."""
    step = max(1, entries // max(1, values.shape[1])) if backend is NUMPY else max(1, values.shape[0])
    # Not by scikit-learn's `gen_batches`: to check its arguments takes longer than a small tile.
    return (slice(start, start + step) for start in range(0, values.shape[0], step))


def squared_norms(rows: Any, backend: Backend) -> Array:
    """Return the squared length of each row, also of a sparse matrix; inf on overflow, without a warning."""
    if not sparse.issparse(rows):
        return backend.squared_norms(rows)
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()


def most_terms(rows: Any, landmarks: Any) -> int:
    """Return the largest number of terms in a sum over the features of a row and a landmark."""
    if not (sparse.issparse(rows) and sparse.issparse(landmarks)):
        return int(landmarks.shape[1])
    stored = [int(np.diff(side.tocsr().indptr).max(initial=0)) for side in (rows, landmarks)]
    return max(stored)


def positive(value: Any, name: str, owner: str) -> float:
    """Return a parameter as a float; raise ParameterError unless it is a positive finite number."""
    number = real_number(value)
    if 0 < number < np.inf:
        return number
    raise ParameterError(f"{owner}: {name} must be a positive finite number, got {value!r}")


def bandwidths(value: Any, n_features: int, owner: str, name: str = "bandwidth") -> float | Floats:
    """Return a bandwidth as a positive float, or as one positive float per feature."""
    if np.ndim(value) == 0:
        return positive(value, name, owner)
    if np.ndim(value) > 1:
        raise ParameterError(
            f"{owner}: {name} must be one number or one number per feature, got an array of shape "
            f"{np.shape(value)}; to measure distances by a matrix P give the kernel metric=P, as in Gaussian(metric=P)"
        )
    widths = np.asarray(value, dtype=np.float64)
    if widths.shape != (n_features,):
        raise ParameterError(
            f"{owner}: {name} per feature needs one value for each of the {n_features} features, "
            f"got shape {widths.shape}"
        )
    if len(wrong := np.flatnonzero(~(np.isfinite(widths) & (widths > 0)))):
        got = f"got {float(widths[wrong[0]])} for feature {wrong[0]}"
        raise ParameterError(f"{owner}: every {name} must be positive and finite, {got}")
    return widths


def _width(rows: Any) -> int | None:
    """Return the number of features; None if rows are not vectors, which a custom kernel allows."""
    return int(rows.shape[1]) if getattr(rows, "ndim", 0) == 2 else None
