"""Kernels made of kernels: sums, products and positive multiples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Array, Backend
from ridgemark.kernels.base import Kernel, positive, unit_roundoff


class _Pair(Kernel):
    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left = left
        self.right = right

    @property
    def accepts_sparse(self) -> bool:  # type: ignore[override]
        return self.left.accepts_sparse and self.right.accepts_sparse

    @property
    def pairwise(self) -> bool:
        return self.left.pairwise or self.right.pairwise

    def _prepare(self, landmarks: Any, indices: NDArray[np.intp] | None, backend: Backend) -> Any:
        return (
            self.left._prepare(landmarks, indices, backend),
            self.right._prepare(landmarks, indices, backend),
        )

    def _both(self, rows: Any, prepared: Any, out: Array | None, backend: Backend) -> tuple[Array, Array]:
        left = self.left._block(rows, prepared[0], out, backend)
        return left, self.right._block(rows, prepared[1], None, backend)

    def _errors(self, rows: Any, prepared: Any, backend: Backend) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        left = self.left._entry_error(rows, prepared[0], backend)
        return left, self.right._entry_error(rows, prepared[1], backend)

    def _checked(self, rows: Any) -> Any:
        self._check_sparse(rows)
        return self.right._checked(self.left._checked(rows))


class Sum(_Pair):
    """`k(x, z) = left(x, z) + right(x, z)`."""

    def _block(self, rows: Any, prepared: Any, out: Array | None, backend: Backend) -> Array:
        left, right = self._both(rows, prepared, out, backend)
        left += right
        return left

    def _entry_error(self, rows: Any, prepared: Any, backend: Backend) -> NDArray[np.float64]:
        # By the Cauchy-Schwarz inequality sqrt(k(x, x) k(z, z)) of the sum is at least the sum of the two kernels' own.
        return np.maximum(*self._errors(rows, prepared, backend)) + unit_roundoff(np.float64)

    def diagonal(self, rows: Any, indices: NDArray[np.intp] | None = None) -> NDArray[Any]:
        return self.left.diagonal(rows, indices) + self.right.diagonal(rows, indices)

    @property
    def constant_diagonal(self) -> float | None:
        left, right = self.left.constant_diagonal, self.right.constant_diagonal
        return None if left is None or right is None else left + right


class Product(_Pair):
    """`k(x, z) = left(x, z) right(x, z)`."""

    def _block(self, rows: Any, prepared: Any, out: Array | None, backend: Backend) -> Array:
        left, right = self._both(rows, prepared, out, backend)
        left *= right
        return left

    def _entry_error(self, rows: Any, prepared: Any, backend: Backend) -> NDArray[np.float64]:
        left, right = self._errors(rows, prepared, backend)
        return left + right + left * right + unit_roundoff(np.float64)

    def diagonal(self, rows: Any, indices: NDArray[np.intp] | None = None) -> NDArray[Any]:
        return self.left.diagonal(rows, indices) * self.right.diagonal(rows, indices)

    @property
    def constant_diagonal(self) -> float | None:
        left, right = self.left.constant_diagonal, self.right.constant_diagonal
        return None if left is None or right is None else left * right


class Scaled(Kernel):
    """`k(x, z) = factor kernel(x, z)`, factor > 0."""

    def __init__(self, kernel: Kernel, factor: float) -> None:
        self.kernel = kernel
        self.factor = factor

    @property
    def accepts_sparse(self) -> bool:  # type: ignore[override]
        return self.kernel.accepts_sparse

    @property
    def pairwise(self) -> bool:
        return self.kernel.pairwise

    def _prepare(self, landmarks: Any, indices: NDArray[np.intp] | None, backend: Backend) -> Any:
        return self.kernel._prepare(landmarks, indices, backend)

    def _block(self, rows: Any, prepared: Any, out: Array | None, backend: Backend) -> Array:
        block = self.kernel._block(rows, prepared, out, backend)
        block *= self._positive_factor()
        return block

    def _entry_error(self, rows: Any, prepared: Any, backend: Backend) -> NDArray[np.float64]:
        return self.kernel._entry_error(rows, prepared, backend) + unit_roundoff(np.float64)

    def diagonal(self, rows: Any, indices: NDArray[np.intp] | None = None) -> NDArray[Any]:
        return self.kernel.diagonal(rows, indices) * self._positive_factor()

    @property
    def constant_diagonal(self) -> float | None:
        inner = self.kernel.constant_diagonal
        return None if inner is None else inner * self._positive_factor()

    def _positive_factor(self) -> float:
        return positive(self.factor, "factor", "Scaled")

    def _checked(self, rows: Any) -> Any:
        return self.kernel._checked(rows)
