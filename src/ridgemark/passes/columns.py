"""The columns of the rows: mean, variance and extent of each, added up over blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis

from ridgemark.backends import Flags, Floats, backend_of
from ridgemark.linalg import rounded


@dataclass(frozen=True, eq=False)
class Columns:
    """Weighted mean and sum of squared deviations of every column, its extremes, and whether it has two values only."""

    weight: float
    mean: Floats
    squares: Floats  # sum_i w_i (x_ij - mean_j)^2
    low: Floats
    high: Floats
    two_valued: Flags  # whether every value is low or high

    @classmethod
    def of(cls, features: Any, weights: Floats) -> Columns:
        """Return the columns of some rows; rows of weight zero are left out."""
        present = weights > 0
        if not bool(present.all()):
            features, weights = features[present], weights[present]
        if features.shape[0] == 0:
            nothing = np.zeros(features.shape[1])
            return cls(0.0, nothing, nothing, nothing + np.inf, nothing - np.inf, np.ones(len(nothing), dtype=bool))
        summary = _sparse_summary if sparse.issparse(features) else _dense_summary
        return cls(float(weights.sum()), *summary(features, weights))

    @np.errstate(over="ignore", invalid="ignore")
    def __add__(self, other: Columns) -> Columns:
        """Return the columns of both sets of rows together."""
        if not (self.weight and other.weight):
            return self if self.weight else other
        weight, gap = self.weight + other.weight, other.mean - self.mean
        share = other.weight / weight
        squares = self.squares + other.squares + self.weight * share * gap**2
        ends = np.sort([self.low, self.high, other.low, other.high], axis=0)
        at_most_two = self.two_valued & other.two_valued & ((ends[1:] != ends[:-1]).sum(axis=0) <= 1)
        return Columns(weight, self.mean + share * gap, squares, ends[0], ends[-1], at_most_two)

    def in_units(self, features: Any) -> Any:
        """Return rows, dense or sparse, in units of their columns."""
        units = self.units
        return features.multiply(1.0 / units).tocsr() if sparse.issparse(features) else features / units

    @property
    def constant(self) -> Flags:
        """Which columns have one value."""
        return self.low == self.high

    @property
    @np.errstate(over="ignore", invalid="ignore")
    def units(self) -> Floats:
        """The unit of each column: its standard deviation; half the range of a column of two values; 1 of a constant.

        In units of its standard deviation, which is small, a rare indicator would be the largest column.
        """
        half_range = self.high / 2.0 - self.low / 2.0
        deviation = np.sqrt(self.squares / self.weight) if self.weight else np.zeros_like(self.mean)
        # Squares of very large or small numbers leave the floating-point range.
        usable = ~self.two_valued & np.isfinite(deviation) & (deviation > 0.0)
        units = rounded(np.where(usable, deviation, half_range))
        return np.where((units > 0.0) & np.isfinite(units), units, 1.0)


def _dense_summary(features: Any, weights: Any) -> tuple[Any, ...]:
    backend = backend_of(features)
    low, high = backend.xp.min(features, axis=0), backend.xp.max(features, axis=0)
    mean = backend.within(weights @ features / weights.sum(), low, high)
    two_valued = backend.xp.all((features == low) | (features == high), axis=0)
    numbers = mean, weights @ (features - mean) ** 2, low, high, backend.xp.ones_like(mean) * two_valued
    *summary, flags = backend.to_host(backend.xp.stack(numbers))  # in one copy: each waits for the device
    return *summary, flags > 0.0


def _sparse_summary(features: Any, weights: Floats) -> tuple[Any, ...]:
    features = sparse.csr_matrix(features)
    mean, variance = mean_variance_axis(features, axis=0, weights=weights)
    low, high = min_max_axis(features, axis=0)
    n_rows, n_columns = features.shape
    between = (features.data != low[features.indices]) & (features.data != high[features.indices])
    others = np.bincount(features.indices[between], minlength=n_columns)
    some_zero = np.bincount(features.indices, minlength=n_columns) < n_rows
    two_valued = (others == 0) & ~(some_zero & (low < 0.0) & (high > 0.0))
    return mean, variance * weights.sum(), low, high, two_valued
