"""Kernels made of kernels: sums, products and positive multiples."""

from __future__ import annotations

from typing import Any

import numpy as np

from ridgemark.backends import Array, Backend, Floats, Indices
from ridgemark.errors import ParameterError
from ridgemark.kernels.base import Kernel, positive, unit_roundoff


class _Pair(Kernel):
    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left = left
        self.right = right

    @property
    def _parts(self) -> tuple[Kernel, Kernel]:
        """Both kernels, checked when they are used."""
        owner = type(self).__name__
        return _kernel(self.left, "left", owner), _kernel(self.right, "right", owner)

    @property
    def accepts_sparse(self) -> bool:  # type: ignore[override]
        return all(part.accepts_sparse for part in self._parts)

    @property
    def pairwise(self) -> bool:
        return any(part.pairwise for part in self._parts)

    def _prepare(self, landmarks: Any, indices: Indices | None, backend: Backend) -> Any:
        return tuple(part._prepare(landmarks, indices, backend) for part in self._parts)

    def _both(self, rows: Any, prepared: Any, out: Array | None, backend: Backend) -> tuple[Array, Array]:
        left = self.left._block(rows, prepared[0], out, backend)
        return left, self.right._block(rows, prepared[1], None, backend)

    def _errors(self, rows: Any, prepared: Any, backend: Backend) -> tuple[Floats, Floats]:
        left = self.left._entry_error(rows, prepared[0], backend)
        return left, self.right._entry_error(rows, prepared[1], backend)

    def _checked(self, rows: Any) -> Any:
        self._check_sparse(rows)
        left, right = self._parts
        return right._checked(left._checked(rows))


class Sum(_Pair):
    """`k(x, z) = left(x, z) + right(x, z)`."""

    def _block(self, rows: Any, prepared: Any, out: Array | None, backend: Backend) -> Array:
        left, right = self._both(rows, prepared, out, backend)
        left += right
        return left

    def _entry_error(self, rows: Any, prepared: Any, backend: Backend) -> Floats:
        # By the Cauchy-Schwarz inequality sqrt(k(x, x) k(z, z)) of the sum is at least the sum of the two kernels' own.
        return np.maximum(*self._errors(rows, prepared, backend)) + unit_roundoff(np.float64)

    def diagonal(self, rows: Any, indices: Indices | None = None) -> Array:
        left, right = (part.diagonal(rows, indices) for part in self._parts)
        return left + right

    @property
    def constant_diagonal(self) -> float | None:
        left, right = (part.constant_diagonal for part in self._parts)
        return None if left is None or right is None else left + right

    def centred(self, origin: Floats) -> Sum:
        return Sum(self.left.centred(origin), self.right.centred(origin))


class Product(_Pair):
    """`k(x, z) = left(x, z) right(x, z)`."""

    def _block(self, rows: Any, prepared: Any, out: Array | None, backend: Backend) -> Array:
        left, right = self._both(rows, prepared, out, backend)
        left *= right
        return left

    def _entry_error(self, rows: Any, prepared: Any, backend: Backend) -> Floats:
        left, right = self._errors(rows, prepared, backend)
        return left + right + left * right + unit_roundoff(np.float64)

    def diagonal(self, rows: Any, indices: Indices | None = None) -> Array:
        left, right = (part.diagonal(rows, indices) for part in self._parts)
        return left * right

    @property
    def constant_diagonal(self) -> float | None:
        left, right = (part.constant_diagonal for part in self._parts)
        return None if left is None or right is None else left * right


class Scaled(Kernel):
    """`k(x, z) = factor kernel(x, z)`, factor > 0."""

    def __init__(self, kernel: Kernel, factor: float) -> None:
        self.kernel = kernel
        self.factor = factor

    @property
    def _inner(self) -> Kernel:
        """The kernel, checked when it is used."""
        return _kernel(self.kernel, "kernel", "Scaled")

    @property
    def accepts_sparse(self) -> bool:  # type: ignore[override]
        return self._inner.accepts_sparse

    @property
    def pairwise(self) -> bool:
        return self._inner.pairwise

    def _prepare(self, landmarks: Any, indices: Indices | None, backend: Backend) -> Any:
        return self._inner._prepare(landmarks, indices, backend)

    def _block(self, rows: Any, prepared: Any, out: Array | None, backend: Backend) -> Array:
        block = self.kernel._block(rows, prepared, out, backend)
        # A factor beyond the range of single precision gives what is no finite number, caught where the block is used.
        with np.errstate(over="ignore", invalid="ignore"):
            block *= self._positive_factor()
        return block

    def _entry_error(self, rows: Any, prepared: Any, backend: Backend) -> Floats:
        return self.kernel._entry_error(rows, prepared, backend) + unit_roundoff(np.float64)

    def diagonal(self, rows: Any, indices: Indices | None = None) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return self._inner.diagonal(rows, indices) * self._positive_factor()

    @property
    def constant_diagonal(self) -> float | None:
        inner = self._inner.constant_diagonal
        return None if inner is None else inner * self._positive_factor()

    def centred(self, origin: Floats) -> Scaled:
        return Scaled(self.kernel.centred(origin), self.factor)

    def _positive_factor(self) -> float:
        return positive(self.factor, "factor", "Scaled")

    def _checked(self, rows: Any) -> Any:
        return self._inner._checked(rows)


def _kernel(value: Any, name: str, owner: str) -> Kernel:
    """Return a part of a composed kernel, or say what was got."""
    if isinstance(value, Kernel):
        return value
    msg = f"{owner}: {name} must be a Kernel object such as Gaussian(1.0), got {value!r}"
    raise ParameterError(msg)
