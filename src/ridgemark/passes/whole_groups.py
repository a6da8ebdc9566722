"""Blocks of whole groups of rows, for tasks that leave all rows of a group out together."""

from collections.abc import Iterator

import numpy as np

from ridgemark.backends import Indices


def whole_groups(numbers: Indices, most_rows: int) -> Iterator[Indices]:
    """Yield the rows of every block: whole groups, of at most `most_rows` rows or one group, the smallest groups first.

    The rows of a group follow each other. A row with a negative number, as one of weight zero has, is a group of its
    own.
    """
    sizes = np.bincount(numbers[numbers >= 0])
    size = np.where(numbers >= 0, sizes[numbers], 1) if len(sizes) else np.ones(len(numbers), dtype=np.intp)
    order = np.lexsort((numbers, size))
    ends = np.flatnonzero(_begins(numbers[order])[1:]) + 1  # of groups
    ends = np.append(ends, len(order))
    first = 0
    while first < len(order):
        last = ends[max(np.searchsorted(ends, first + most_rows, side="right") - 1, np.searchsorted(ends, first + 1))]
        yield order[first:last]
        first = int(last)


def group_sizes(numbers: Indices) -> Indices:
    """Return the number of rows of every group of a block that `whole_groups` made."""
    return np.diff(np.append(np.flatnonzero(_begins(numbers)), len(numbers)))


def _begins(numbers: Indices) -> Indices:
    """Return at which rows a group begins."""
    begins = np.ones(len(numbers), dtype=bool)
    begins[1:] = (numbers[1:] != numbers[:-1]) | (numbers[1:] < 0)
    return begins
