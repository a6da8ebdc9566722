"""The first pass over the rows: hashes that tell which are equal, and the columns' means and extents."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ridgemark.passes.columns import Columns
from ridgemark.passes.task import Task, Workspace
from ridgemark.rows import Block, row_weights
from ridgemark.rows.distinct import row_hashes


@dataclass(frozen=True, eq=False)
class Survey(Task):
    """The hash of every row of a block, and the block's columns; both on the host."""

    what: ClassVar[str] = "distinct rows"

    def __call__(self, block: Block, workspace: Workspace) -> tuple[NDArray[np.uint64], Columns]:
        return row_hashes(block), Columns.of(block.features, row_weights(block))
