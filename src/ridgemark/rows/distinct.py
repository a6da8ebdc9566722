"""Which rows are equal: the candidates for landmarks, found by hashes of their bits."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ridgemark.backends import NUMPY, Backend, Floats, backend_of
from ridgemark.rows.base import Block

KEPT_HASHES = 2048  # smallest hashes kept, to sample and count distinct rows over batches


@dataclass(frozen=True)
class DistinctRows:
    """Groups of equal rows; the first row of each group is a candidate for a landmark.

    The order of the candidates depends on the values of the rows and not on their order, so a draw by position does
    not depend on it either.
    """

    indices: NDArray[np.intp]  # (m,): the first row of each group
    kind: NDArray[np.intp]  # (n,): position of a row's group among the candidates; -1 for a row of weight zero
    smallest: NDArray[np.uint64]  # the smallest hashes, ascending; `count_distinct` uses them over several batches

    def __len__(self) -> int:
        return len(self.indices)

    def totals(self, values: Floats) -> Floats:
        """Sum one value per row over each group; m equal rows count like one row of weight m."""
        present = slice(None) if self.kind.min() >= 0 else self.kind >= 0
        # astype: for zero rows bincount would return integers.
        return np.bincount(self.kind[present], weights=values[present], minlength=len(self)).astype(float, copy=False)

    def of_rows(self, values: Floats) -> Floats:
        """Return for every row the value of its group; zero for a row of weight zero."""
        return np.where(self.kind >= 0, values[self.kind], 0.0)

    @property
    def has_repeats(self) -> bool:
        """Whether two rows of positive weight are equal."""
        return len(self) < int(np.count_nonzero(self.kind >= 0))

    def one_by_one(self) -> "DistinctRows":
        """Return groups of one row each, in random order, but for rows of weight zero."""
        rows = np.random.default_rng(0).permutation(np.flatnonzero(self.kind >= 0))
        kind = np.full(len(self.kind), -1, dtype=np.intp)
        kind[rows] = np.arange(len(rows))
        return DistinctRows(rows, kind, self.smallest)


@dataclass(frozen=True)
class RowGroups:
    """Two sums over each group of equal rows, needed to leave out a whole group.

    Attributes
    ----------
    weights : array of shape (n,)
        The total weight of each row's group; zero for a row of weight zero.
    gaps : array of shape (n, n_targets) or None
        The weighted mean target of the group minus the row's target; None if no rows are equal.
    """

    weights: Floats
    gaps: Floats | None


def group_rows(distinct: DistinctRows, weights: Floats, targets: Floats | None) -> RowGroups:
    """Return the groups of equal rows; `targets`, required if some rows are equal, are overwritten."""
    totals = distinct.totals(weights)
    for column in () if targets is None else targets.T:
        # Relative to the group's first target: equal targets then have gaps of exactly zero.
        column -= column[distinct.indices[distinct.kind]]
        column[:] = distinct.of_rows(distinct.totals(weights * column) / totals) - column
    return RowGroups(distinct.of_rows(totals), targets)


def merge_smallest(one: NDArray[np.uint64], other: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the smallest hashes of two batches of rows together."""
    return np.union1d(one, other)[:KEPT_HASHES]


def count_distinct(smallest: NDArray[np.uint64]) -> int:
    """Return the number of distinct rows, from their smallest hashes.

    Exact for fewer than k = 2,048 rows. Otherwise the k-th smallest hash h, uniform on [0, 2^64), gives the estimate
    `(k - 1) 2^64/h`, with relative standard deviation 1/sqrt(k) = 2.2%.
    """
    if len(smallest) < KEPT_HASHES:
        return len(smallest)
    return max(KEPT_HASHES, round((KEPT_HASHES - 1) * 2.0**64 / float(smallest[-1])))


def share_in_common(smallest: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> float:
    """Return the share of hashes that are among those of known rows, from the smallest of these.

    An estimate for more than 2,048 known rows, by the hashes up to the largest that is kept.
    """
    if len(smallest) == KEPT_HASHES:
        hashes = hashes[hashes <= smallest[-1]]
    return float(np.isin(hashes, smallest).mean()) if len(hashes) else 0.0


def merge_equal(hashes: NDArray[np.uint64], weights: Floats, targets: Floats) -> tuple[Any, Any, Floats, Floats]:
    """Return the different hashes, ascending, the first row of each, and its rows' total weight and mean targets."""
    hashes, first, which = np.unique(hashes, return_index=True, return_inverse=True)
    total = np.bincount(which, weights, len(hashes)).astype(float)
    sums = [np.bincount(which, weights * column, len(hashes)) for column in targets.T]
    means = np.stack(sums, axis=1) / total[:, None] if sums else np.empty((len(hashes), 0))
    return hashes, first, total, means


def find_distinct(hashes: NDArray[np.uint64], weights: Floats | None, backend: Backend = NUMPY) -> DistinctRows:
    """Return which rows of positive weight have equal hashes; they are sorted on the backend."""
    if weights is None:
        first, kind = _groups(hashes, backend)
        return DistinctRows(first, kind, hashes[first[:KEPT_HASHES]])
    present = np.flatnonzero(weights)
    hashes = hashes[present]
    first, group = _groups(hashes, backend)
    kind = np.full(len(weights), -1, dtype=np.intp)
    kind[present] = group
    return DistinctRows(present[first], kind, hashes[first[:KEPT_HASHES]])


def _groups(hashes: NDArray[np.uint64], backend: Backend) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first row of each hash, in the hashes' order, and every row's position among them.

    The same as `np.unique` in half the memory: for a long file these are the largest arrays.
    """
    # Devices have signed integers only; these have the same order.
    keys = hashes if backend is NUMPY else backend.from_host((hashes ^ np.uint64(2**63)).view(np.int64))
    order = backend.xp.argsort(keys)
    ranked = keys[order]
    differs = ranked[1:] != ranked[:-1]  # from the hash before it
    del ranked
    group = backend.xp.zeros_like(order)
    group[order[1:]] = differs.cumsum(0)
    repeats = not bool(differs.all())
    order, group = (backend.to_host(one).astype(np.intp, copy=False) for one in (order, group))
    if repeats:
        starts = np.flatnonzero(np.concatenate([[True], backend.to_host(differs)]))
        order = np.minimum.reduceat(order, starts)
    return order, group


def row_hashes(block: Block) -> NDArray[np.uint64]:
    """Hash each row: multiply and xor-shift every value, then sum with odd multipliers; a zero adds nothing."""
    features = block.features
    multipliers = np.random.default_rng(0).integers(0, 2**63, features.shape[1], dtype=np.uint64) * 2 + 1
    backend = backend_of(features)
    if backend is not NUMPY:
        # Devices have signed integers only; their products wrap around to the same bits.
        hashed = backend.xp.sum(_mixed(features, backend.from_host(multipliers.view(np.int64))), axis=1)
        return backend.to_host(hashed).view(np.uint64)
    if sparse.issparse(features):
        running = np.zeros(len(features.data) + 1, dtype=np.uint64)
        np.cumsum(_mixed(features.data, multipliers[features.indices]), out=running[1:])
        return running[features.indptr[1:]] - running[features.indptr[:-1]]
    total = np.zeros(block.n_rows, dtype=np.uint64)
    for column, multiplier in zip(features.T, multipliers, strict=True):
        total += _mixed(column, multiplier)
    return total


def _mixed(values: Floats, multiplier: Any) -> Any:
    # Adding zero turns -0.0 into 0.0, so that equal numbers have equal bits.
    bits = backend_of(values).bits(values + 0.0)
    mixed = (bits ^ _shifted(bits, 32)) * multiplier
    return (mixed ^ _shifted(mixed, 29)) * multiplier


def _shifted(bits: Any, count: int) -> Any:
    """Return the bits moved to the right, with zeros on the left."""
    # In signed integers copies of the sign come in from the left.
    return bits >> np.uint64(count) if isinstance(bits, np.ndarray) else (bits >> count) & (2 ** (64 - count) - 1)
