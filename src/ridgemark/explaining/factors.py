"""Kernels as sums of products over columns, for which contributions need no sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgemark.backends import Floats, Indices
from ridgemark.kernels import Gaussian, Kernel, Laplacian, Linear, Mixture, Product, Scaled, Sum


@dataclass(frozen=True, eq=False)
class ProductTerm:
    """`weight prod_j exp(-d_j^2/(2 g_j^2) - |d_j|/l_j)`, d the difference of two rows."""

    weight: float
    squares: Floats  # (features,): 1/(2 g^2)
    sizes: Floats  # (features,): 1/l

    def times(self, other: ProductTerm, weight: float) -> ProductTerm:
        """Return the product with another one, times a weight."""
        squares, sizes = self.squares + other.squares, self.sizes + other.sizes
        return ProductTerm(weight * self.weight * other.weight, squares, sizes)

    def by_column(self, rows: Floats, points: Floats, starts: Indices) -> Floats:
        """Return the factor of every column, (rows, columns, points); the features of a column begin at `starts`."""
        factors = np.empty((len(rows), len(starts), len(points)))
        for column, (first, last) in enumerate(zip(starts, [*starts[1:], rows.shape[1]], strict=True)):
            exponent = np.zeros((len(rows), len(points)))
            for j in range(first, last):
                difference = rows[:, j, None] - points[:, j]
                if self.squares[j]:
                    exponent -= self.squares[j] * difference**2
                if self.sizes[j]:
                    exponent -= self.sizes[j] * abs(difference)
            np.exp(exponent, out=factors[:, column])
        return factors


@dataclass(frozen=True, eq=False)
class ColumnSum:
    """The parts of a kernel: products over columns, linear kernels, which are sums over columns, and others."""

    products: tuple[ProductTerm, ...] = ()
    linear: tuple[tuple[float, Linear], ...] = ()
    others: tuple[tuple[float, Kernel], ...] = ()

    def __add__(self, other: ColumnSum) -> ColumnSum:
        return ColumnSum(self.products + other.products, self.linear + other.linear, self.others + other.others)


def column_sum(kernel: Kernel, n_features: int, weight: float = 1.0) -> ColumnSum:
    """Return the parts of a kernel without a map of columns, times a weight."""
    zero = np.zeros(n_features)
    if isinstance(kernel, Linear):
        return ColumnSum(linear=((weight, kernel),))
    if isinstance(kernel, Gaussian) and kernel.metric is None:
        return ColumnSum((ProductTerm(weight, 0.5 / (zero + kernel.bandwidth) ** 2, zero),))
    if isinstance(kernel, Laplacian):
        return ColumnSum((ProductTerm(weight, zero, 1.0 / (zero + kernel.bandwidth)),))
    if isinstance(kernel, Scaled):
        return column_sum(kernel.kernel, n_features, weight * float(kernel.factor))
    if isinstance(kernel, Sum):
        return column_sum(kernel.left, n_features, weight) + column_sum(kernel.right, n_features, weight)
    if isinstance(kernel, Mixture) and kernel.columns is None:
        parts = (column_sum(part, n_features, weight * own) for own, part in kernel.separate())
        return sum(parts, ColumnSum())
    if isinstance(kernel, Product):
        left, right = (column_sum(part, n_features) for part in (kernel.left, kernel.right))
        if not (left.linear or left.others or right.linear or right.others):
            return ColumnSum(tuple(a.times(b, weight) for a in left.products for b in right.products))
    return ColumnSum(others=((weight, kernel),))


def mapped(kernel: Kernel, points: Any) -> tuple[Kernel, Any]:
    """Return a kernel without the map of its columns, and the points after this map."""
    if isinstance(kernel, Mixture) and kernel.columns is not None:
        return kernel.changed(columns=None), kernel.mapped(points)
    return kernel, points
