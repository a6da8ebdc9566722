"""A part of a source: rows that can be read wherever the part is sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ridgemark.rows import Block, RowSource


@dataclass(frozen=True, eq=False)
class Part:
    """The rows `start` to `stop` (excluded) of a source; picklable where the source is."""

    source: RowSource
    start: int
    stop: int

    def blocks(self, block_rows: int) -> Iterator[Block]:
        """Iterate over the part's rows in order, `block_rows` at a time."""
        return self.source.blocks(block_rows, self.start, self.stop)

    def n_blocks(self, block_rows: int) -> int:
        """Return the number of blocks of this size."""
        return -(-(self.stop - self.start) // block_rows)
