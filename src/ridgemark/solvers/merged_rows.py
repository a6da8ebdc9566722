"""Equal rows, merged into one row that has their total weight and their mean target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ridgemark.backends import Floats, Indices
from ridgemark.kernels import Kernel
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.rows.distinct import DistinctRows


@dataclass(frozen=True, eq=False)
class MergedRows:
    """Rows without repeats; `sum_i w_i (y_i - f(x_i))^2` is the same function of f as for all rows, up to a constant.

    The rows of a precomputed kernel are also its columns, so all of them stay, and a repeat has the weight zero.
    """

    passes: RowPasses  # its targets are measured from the origin
    numbers: Indices  # (m,): number of each row in the source before merging
    largest: int  # number of rows in the largest group of equal rows


def merge_equal_rows(passes: RowPasses, kernel: Kernel, distinct: DistinctRows, target_origin: Floats) -> MergedRows:
    """Merge rows with equal features, and drop rows of weight zero; targets are measured from the origin."""
    first, group = _equal_rows(passes, distinct)
    present = group >= 0
    weights, targets = passes.row_counts(), passes.targets() - target_origin
    if len(first) < len(group):
        total = np.bincount(group[present], weights=weights[present])
        share = weights[present] / total[group[present]]
        means = [np.bincount(group[present], weights=share * t) for t in targets[present].T]
        weights, targets = np.zeros(len(group)), np.zeros_like(targets)
        weights[first], targets[first] = total, np.stack(means, axis=1)
    numbers = np.arange(len(group)) if kernel.pairwise else first
    source = ArrayRows(passes.take(numbers).features, targets[numbers], weights[numbers])
    merged = RowPasses(source, passes.memory_budget, passes.progress)
    merged.cost = passes.cost
    return MergedRows(merged, numbers, int(np.bincount(group[present]).max()))


def _equal_rows(passes: RowPasses, distinct: DistinctRows) -> tuple[Indices, Indices]:
    """Return the first row of each group of equal rows, in order, and every row's group; -1 for weight zero.

    Different rows may have equal hashes, so rows that differ from the first of their group become groups of one row.
    """
    group = distinct.kind.copy()
    repeats = np.setdiff1d(np.flatnonzero(group >= 0), distinct.indices)
    if len(repeats):
        features = (passes.take(rows).features for rows in (repeats, distinct.indices[group[repeats]]))
        different = repeats[_differ(*features)]
        group[different] = len(distinct) + np.arange(len(different))
    present = np.flatnonzero(group >= 0)
    _, where, inverse = np.unique(group[present], return_index=True, return_inverse=True)
    order = np.argsort(where)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    group[present] = rank[inverse]
    return present[where[order]], group


def _differ(left: Any, right: Any) -> NDArray[np.bool_]:
    """Return which rows of two arrays, or sparse matrices, differ."""
    different = left != right
    if sparse.issparse(different):
        return np.diff(different.tocsr().indptr) > 0
    return np.asarray(different.any(axis=1))
