"""A sample of distinct rows kept over several batches, for leave-one-out when the rows are gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Floats, Rows
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.rows.base import stack_rows
from ridgemark.rows.distinct import KEPT_HASHES, merge_equal


@dataclass(frozen=True, eq=False)
class KeptRows:
    """A uniform sample of the distinct rows of several batches, for leave-one-out without the earlier batches.

    The rows kept are those with the smallest hashes. A row kept after the last batch was kept in every batch that has
    it, so its sums are complete.

    Attributes
    ----------
    hashes : array of shape (m,)
        Ascending.
    rows : array or sparse matrix of shape (m, n_features)
        One row for each hash.
    weights : array of shape (m,)
        The weight of all rows equal to it.
    targets : array of shape (m, n_targets)
        Their weighted mean target.
    most : int
        Largest number of rows kept.
    """

    hashes: Annotated[NDArray[np.uint64], "(k)", "ascending"]
    rows: Annotated[Any, Rows, "(k, e)"]
    weights: Annotated[Floats, "(k)", ">= 0"]
    targets: Annotated[Floats, "(k, t)"]
    most: Annotated[int, "> 0"]

    def __add__(self, other: KeptRows) -> KeptRows:
        names, most = ("hashes", "weights", "targets"), min(self.most, other.most)
        values = (np.concatenate([getattr(part, name) for part in (self, other)]) for name in names)
        hashes, first, weights, targets = merge_equal(*values)
        rows = stack_rows([self.rows, other.rows])[first[:most]]
        return KeptRows(hashes[:most], rows, weights[:most], targets[:most], most)

    def passes(self, memory_budget: int | None) -> RowPasses:
        """Return passes over these rows alone."""
        return RowPasses(ArrayRows(self.rows, self.targets, self.weights), memory_budget)


def keep_rows(passes: RowPasses) -> KeptRows:
    """Return those distinct rows of a batch that have the smallest hashes: 2,048, or what 1/4 of the budget holds."""
    distinct = passes.distinct_rows()
    most = max(100, min(KEPT_HASHES, passes.budget // (32 * passes.source.n_features)))
    taken = passes.take_groups(distinct.indices[:most])  # in the order of hashes
    return KeptRows(distinct.smallest[:most], taken.features, taken.weights, taken.targets, most)
