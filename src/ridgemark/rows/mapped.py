"""Rows with other targets: indicators of classes, rates, or targets on another scale."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ridgemark.rows.base import BaseRows, Block, RowSource


class TargetMap(Protocol):
    """What becomes of the targets and weights of a block of rows; it can be pickled."""

    @property
    def n_targets(self) -> int:
        """Number of targets afterwards."""

    @property
    def weighs(self) -> bool:
        """Whether rows without weights get some."""

    def __call__(self, block: Block) -> Block:
        """Return the rows with other targets and weights."""


class MappedRows(BaseRows):
    """The rows of a source, whose columns are features already, with other targets."""

    def __init__(self, source: RowSource, mapping: TargetMap) -> None:
        self._source, self._mapping = source, mapping
        self.n_rows, self.n_features, self.dtype = source.n_rows, source.n_features, source.dtype
        self.n_targets, self.has_weights = mapping.n_targets, source.has_weights or mapping.weighs
        self.has_groups = getattr(source, "has_groups", False)
        self.feature_names = source.feature_names
        self.target_names: tuple[str, ...] | None = None
        self.whole = getattr(source, "whole", True)
        self.paths = getattr(source, "paths", ())
        self.encoder, self.encoded = getattr(source, "encoder", None), True

    @property
    def reads_ahead(self) -> bool:  # type: ignore[override]
        return getattr(self._source, "reads_ahead", False)

    def _blocks(self, block_rows: int, start: int, stop: int) -> Iterator[Block]:
        return map(self._mapping, self._source.blocks(block_rows, start, stop))

    def _take(self, indices: npt.NDArray[np.intp]) -> Block:
        return self._mapping(self._source.take(indices))


def mapped_in_turn(rows: Any, mappings: tuple[TargetMap, ...]) -> Any:
    """Return the rows with their targets mapped by each mapping in turn."""
    for mapping in mappings:
        rows = MappedRows(rows, mapping)
    return rows
