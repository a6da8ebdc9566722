"""A sample of distinct rows, for data with so many rows that not even one number for each fits into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Floats, Indices
from ridgemark.passes.columns import Columns
from ridgemark.passes.task import BlockFunction, Task
from ridgemark.rows import Block, row_weights
from ridgemark.rows.base import stack_rows
from ridgemark.rows.distinct import merge_equal, row_hashes

_ROWS = 2**17  # distinct rows of a sample, about
_GROUPS = 32  # of a sample at least, about


@dataclass(frozen=True, eq=False)
class SampledRows:
    """Distinct rows, one for each hash; rows equal to one of them count with their weights and mean targets."""

    hashes: NDArray[np.uint64]  # ascending
    numbers: Indices  # of the first row of each hash
    features: Any
    targets: Floats  # (m, targets)
    weights: Floats
    groups: NDArray[np.uint64] | None = None  # hashes of the labels of their groups

    def __len__(self) -> int:
        return len(self.hashes)

    @classmethod
    def merged(cls, parts: Sequence[SampledRows]) -> SampledRows:
        """Return the rows of all parts, equal ones together."""
        names = ("hashes", "weights", "targets", "numbers")
        *values, numbers = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
        hashes, first, weights, targets = merge_equal(*values)
        features = stack_rows([part.features for part in parts])[first]
        labels = [part.groups for part in parts if part.groups is not None]
        return cls(
            hashes, numbers[first], features, targets, weights, np.concatenate(labels)[first] if labels else None
        )


def sampled_block(largest_hash: np.uint64, block: Block) -> tuple[SampledRows, Columns]:
    """Return the rows of a block whose hash is at most this, and the means and extents of the block's columns.

    Of rows with labels of groups it is the hash of the label, and equal rows of different groups stay apart.
    """
    hashes, weights, groups = row_hashes(block), row_weights(block), block.groups
    kept = np.flatnonzero(((hashes if groups is None else groups) <= largest_hash) & (weights > 0))
    targets = np.empty((len(kept), 0)) if block.targets is None else block.targets[kept]
    if groups is not None:
        hashes, groups = hashes ^ (groups << np.uint64(1)), groups[kept]
    sampled = SampledRows(hashes[kept], block.indices[kept], block.features[kept], targets, weights[kept], groups)
    return SampledRows.merged([sampled]), Columns.of(block.features, weights)


def sample_rows(
    run: Callable[[Task], Iterator[Any]], n_rows: int, n_groups: int | None = None
) -> tuple[SampledRows, int, Columns]:
    """Return distinct rows, an estimate of the number of all distinct rows, and the columns of all rows.

    The rows with the smallest hashes are a uniform sample. `run` makes a pass; there is a second one if so many rows
    are equal that the first found few distinct ones. Of groups there are 32 or more, if there are so many.
    """
    share = min(1.0, max(_ROWS / n_rows, 0.0 if n_groups is None else _GROUPS / n_groups))
    while True:
        task = BlockFunction("sample", partial(sampled_block, np.uint64(share * (2**64 - 2**11))))
        pieces, columns = [], Columns.of(np.empty((0, 1)), np.empty(0))
        for piece, of_block in run(task):
            pieces.append(piece)
            columns = columns + of_block
        sample = SampledRows.merged(pieces)
        if share == 1.0 or len(sample) >= _ROWS // 4:
            return sample, max(len(sample), round(len(sample) / share)), columns
        share = min(1.0, 16 * share)
