"""The base class of operators over rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

from ridgemark.backends import Floats
from ridgemark.backends.threads import all_blas_threads
from ridgemark.passes import RowPasses


class RowOperator(ABC):
    """An (n, m) matrix with one row for each row of the data; a product takes one pass, or none where it is held."""

    __array_ufunc__ = None  # an array on the left of `@` is an error, not an array of operators

    def __init__(self, passes: RowPasses) -> None:
        self.passes = passes
        self.held: Floats | None = None

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    def n_bytes(self) -> int:
        """Bytes that the matrix takes when it is held."""
        return 8 * self.shape[0] * self.shape[1]

    def hold(self, budget: int) -> Self:
        """Evaluate the matrix once and keep it, where it takes at most `budget` bytes."""
        if self.held is None and self.n_bytes <= budget:
            self.held = self._evaluate()
        return self

    @property
    def bytes_held(self) -> int:
        """Bytes that are held now."""
        return 0 if self.held is None else self.n_bytes

    def __matmul__(self, vectors: Floats) -> Floats:
        """Return `A V`."""
        if self.held is None:
            return self._product(vectors)
        with all_blas_threads():
            return self.held @ vectors

    @property
    def T(self) -> Transposed:
        """The transpose, for `A.T @ V`."""
        return Transposed(self)

    def transposed_product(self, vectors: Floats) -> Floats:
        """Return `A'V`."""
        if self.held is None:
            return self._transposed_product(vectors)
        with all_blas_threads():
            return self.held.T @ vectors

    @abstractmethod
    def _evaluate(self) -> Floats:
        """Return the matrix."""

    @abstractmethod
    def _product(self, vectors: Floats) -> Floats:
        """Return `A V` by a pass."""

    @abstractmethod
    def _transposed_product(self, vectors: Floats) -> Floats:
        """Return `A'V` by a pass."""


@dataclass(frozen=True, eq=False)
class Transposed:
    """The transpose of an operator over rows."""

    __array_ufunc__ = None
    operator: RowOperator

    def __matmul__(self, vectors: Floats) -> Floats:
        return self.operator.transposed_product(vectors)
