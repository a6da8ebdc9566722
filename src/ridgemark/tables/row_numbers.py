"""Recognise a column that numbers the rows."""

import copy
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ridgemark.rows.base import Array

_FEWEST_NUMBERED = 20  # rows; in fewer rows, a column may number them by chance


class RowNumbers:
    """Whether the integers of a column number the rows.

    They do if they are all integers from the lowest to the highest, in any order: then their sum and their sum of
    squares, modulo 2^64, have the right values. They also do if they ascend and are more than half of these integers,
    since rows may have been left out.
    """

    def __init__(self) -> None:
        self.count, self.low, self.high, self.ascending = 0, 0, 0, True
        self.sums: NDArray[np.uint64] | None = np.zeros(2, np.uint64)

    def add(self, values: Array) -> None:
        """Add the values of some rows."""
        if self.sums is None or values.dtype.kind not in "iu" or not values.size:
            self.sums = None
            return
        low, high = int(values.min()), int(values.max())
        first = self.count == 0
        self.ascending &= (first or low > self.high) and bool((values[1:] > values[:-1]).all())
        self.low, self.high = (low, high) if first else (min(low, self.low), max(high, self.high))
        self.count += len(values)
        whole = values.astype(np.uint64)
        self.sums = self.sums + np.array([whole.sum(), (whole * whole).sum()], np.uint64)

    def __add__(self, later: Self) -> Self:
        """Return what is known after the rows of both."""
        if self.sums is None or later.sums is None:
            return self if self.sums is None else later
        if not (self.count and later.count):
            return self if self.count else later
        both = copy.copy(self)
        both.count, both.sums = self.count + later.count, self.sums + later.sums
        both.low, both.high = min(self.low, later.low), max(self.high, later.high)
        return both

    def __bool__(self) -> bool:
        n_between = self.high - self.low + 1
        if self.sums is None or not _FEWEST_NUMBERED <= self.count <= n_between < 2 * self.count:
            return False
        if n_between > self.count:
            return self.ascending
        n, low = self.count, self.low
        total = n * low + n * (n - 1) // 2
        squares = n * low * low + low * n * (n - 1) + (n - 1) * n * (2 * n - 1) // 6
        return self.sums.tolist() == [total % 2**64, squares % 2**64]
