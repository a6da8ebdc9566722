"""Kernels made of kernels: sums, products and positive multiples."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from ridgemark.backends import Array, Backend, Floats, Indices, backend_of
from ridgemark.errors import ParameterError
from ridgemark.kernels.base import Kernel, positive, unit_roundoff
from ridgemark.kernels.gradient import Gradient


class _Composed(Kernel):
    """A kernel whose values are computed from the values of other kernels."""

    _part_names: ClassVar[tuple[str, ...]] = ("left", "right")

    @property
    def _parts(self) -> list[Kernel]:
        """The kernels it is made of, checked when they are used."""
        parts = {name: getattr(self, name) for name in self._part_names}
        for name, part in parts.items():
            if not isinstance(part, Kernel):
                owner = type(self).__name__
                raise ParameterError(f"{owner}: {name} must be a Kernel object such as Gaussian(1.0), got {part!r}")
        return list(parts.values())

    @property
    def accepts_sparse(self) -> bool:  # type: ignore[override]
        return all(part.accepts_sparse for part in self._parts)

    def _dense_only(self) -> str:
        return next(part._dense_only() for part in self._parts if not part.accepts_sparse)

    @property
    def stays_on_host(self) -> bool:  # type: ignore[override]
        return any(part.stays_on_host for part in self._parts)

    @property
    def pairwise(self) -> bool:  # type: ignore[override]
        return any(part.pairwise for part in self._parts)

    @property
    def constant_diagonal(self) -> float | None:  # type: ignore[override]
        values = [part.constant_diagonal for part in self._parts]
        return None if None in values else self._combine(*values)

    def diagonal(self, rows: Any, indices: Indices | None = None) -> Array:
        return self._combine(*(part.diagonal(rows, indices) for part in self._parts))

    def _prepare(self, landmarks: Any, indices: Indices | None, backend: Backend) -> Any:
        return [(part, part._prepare(landmarks, indices, backend)) for part in self._parts]

    def _block(self, rows: Any, prepared: Any, out: Array | None, backend: Backend) -> Array:
        (first, its_own), *others = prepared
        block = first._block(rows, its_own, out, backend)
        return self._combine(block, *(part._block(rows, own, None, backend) for part, own in others))

    def _entry_error(self, rows: Any, prepared: Any, backend: Backend) -> Floats:
        errors = (backend.from_host(part._entry_error(rows, own, backend)) for part, own in prepared)
        return self._combine_errors(*errors) + unit_roundoff(np.float64)

    def _checked(self, rows: Any) -> Any:
        for part in self._parts:
            rows = part._checked(rows)
        return rows

    @abstractmethod
    def _combine(self, *values: Any) -> Any:
        """Return the values of this kernel from those of its parts; the first array may be overwritten."""

    @abstractmethod
    def _combine_errors(self, *errors: Floats) -> Floats:
        """Return the relative errors of this kernel from those of its parts, without its own rounding."""


class _Pair(_Composed):
    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left = left
        self.right = right


class Sum(_Pair):
    """`k(x, z) = left(x, z) + right(x, z)`."""

    def _combine(self, left: Any, right: Any) -> Any:
        left += right
        return left

    def _combine_errors(self, left: Floats, right: Floats) -> Floats:  # type: ignore[override]
        # By the Cauchy-Schwarz inequality sqrt(k(x, x) k(z, z)) of the sum is at least the sum of the two kernels' own.
        return backend_of(left).xp.maximum(left, right)

    def gradient(self, rows: Floats, landmarks: Floats) -> Gradient:
        left, right = self._parts
        return left.gradient(rows, landmarks) + right.gradient(rows, landmarks)

    def centred(self, origin: Floats) -> Sum:
        return Sum(self.left.centred(origin), self.right.centred(origin))


class Product(_Pair):
    """`k(x, z) = left(x, z) right(x, z)`."""

    def _combine(self, left: Any, right: Any) -> Any:
        left *= right
        return left

    def _combine_errors(self, left: Floats, right: Floats) -> Floats:  # type: ignore[override]
        return left + right + left * right

    def gradient(self, rows: Floats, landmarks: Floats) -> Gradient:
        """Return `(dleft/dx) right + left (dright/dx)`."""
        left, right = self._parts
        first = left.gradient(rows, landmarks).times(right.bind(landmarks)(rows))
        return first + right.gradient(rows, landmarks).times(left.bind(landmarks)(rows))


class Scaled(_Composed):
    """`k(x, z) = factor kernel(x, z)`, factor > 0."""

    _part_names = ("kernel",)

    def __init__(self, kernel: Kernel, factor: float) -> None:
        self.kernel = kernel
        self.factor = factor

    def _combine(self, values: Any) -> Any:
        # Beyond the range of single precision values become infinite; they are refused where the block is used.
        with np.errstate(over="ignore", invalid="ignore"):
            values *= positive(self.factor, "factor", "Scaled")
        return values

    def _combine_errors(self, errors: Floats) -> Floats:  # type: ignore[override]
        return errors

    def gradient(self, rows: Floats, landmarks: Floats) -> Gradient:
        return self._parts[0].gradient(rows, landmarks).times(positive(self.factor, "factor", "Scaled"))

    def centred(self, origin: Floats) -> Scaled:
        return Scaled(self.kernel.centred(origin), self.factor)
