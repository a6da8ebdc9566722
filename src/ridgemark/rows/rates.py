"""Counts and amounts with exposures as rates."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ridgemark.errors import DataError
from ridgemark.rows.base import Block, row_weights


@dataclass(frozen=True, eq=False)
class Rates:
    """Rows whose second target is their exposure, as rows of rates; the loss says what becomes of the weights."""

    loss: Any

    @property
    def n_targets(self) -> int:
        """One rate."""
        return 1

    @property
    def weighs(self) -> bool:
        """Weights follow from the exposure."""
        return True

    def __call__(self, block: Block) -> Block:
        """Return the rows with rates as targets; refuse exposures that are not positive."""
        exposure, weights = block.targets[:, 1], row_weights(block)
        wrong = np.flatnonzero(~(exposure > 0) & (weights > 0))
        if len(wrong):
            raise DataError(
                f"the exposure must be positive, got {exposure[wrong[0]]:g} in row {block.indices[wrong[0]]}; correct "
                "or drop the row"
            )
        targets, weights = self.loss.with_exposure(block.targets[:, :1], weights, np.where(exposure > 0, exposure, 1.0))
        return replace(block, targets=targets, weights=weights)
