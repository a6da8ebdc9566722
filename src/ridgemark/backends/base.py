"""The operations a backend provides."""

from __future__ import annotations

from math import inf
from typing import Any, Protocol, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = Any
"""An array of the backend in use: a numpy array here, a tensor elsewhere."""


class Backend(Protocol):
    """About ten operations; a name ending in `_` overwrites its argument and returns it."""

    name: str

    def from_host(self, values: NDArray[Any]) -> Array:
        """Hand a numpy array to the backend, keeping its precision."""
        ...

    def to_host(self, values: Array) -> NDArray[Any]:
        """Hand an array of the backend back as a numpy array."""
        ...

    def empty(self, shape: tuple[int, ...], like: Array) -> Array:
        """Return an uninitialised array of the precision (and device) of `like`."""
        ...

    def matmul(self, left: Array, right: Array, out: Array | None = None) -> Array:
        """Matrix product, into `out` where given."""
        ...

    def gram(self, rows: Array) -> Array:
        """Return the upper triangle of `rows' rows` in float64; what lies below is of no account."""
        ...

    def times_triangle_(self, rows: Array, triangle: Array) -> Array:
        """Multiply rows by an upper triangle, in place."""
        ...

    def subtract_product_(self, values: Array, left: Array, right: Array) -> Array:
        """Take the product of two matrices away from `values`, in place."""
        ...

    def squared_norms(self, rows: Array) -> Array:
        """Squared Euclidean length of each row; infinite where it exceeds the range, without a warning."""
        ...

    def differences(self, left: Array, right: Array, power: int, weights: Array | None, out: Array) -> Array:
        """Write into `out` the sum over features of `weight |left - right|^power` (1 or 2), never by a product."""
        ...

    def exp_(self, values: Array) -> Array:
        """Exponential, in place."""
        ...

    def sqrt_(self, values: Array) -> Array:
        """Square root, in place."""
        ...

    def floor(self, values: Array) -> Array:
        """Largest integer not above each value."""
        ...

    def clip_(self, values: Array, lowest: float = -inf, highest: float = inf) -> Array:
        """Move every value into this range, in place."""
        ...

    def eigh(self, matrix: Array) -> tuple[Array, Array]:
        """Eigenvalues in ascending order, and eigenvectors as columns, of a symmetric matrix."""
        ...
