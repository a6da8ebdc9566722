"""Labels as numbers, and rows whose targets are labels as rows whose targets are indicators of classes."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ridgemark.errors import DataError
from ridgemark.rows.base import BaseRows, Block, RowSource, row_weights
from ridgemark.rows.cells import check_present, is_number
from ridgemark.rows.column import Cells
from ridgemark.rows.places import Place, shown

MOST_LABELS = 1000  # different texts of a target


def labels_in(columns: Iterable[Cells], where: str) -> tuple[Any, ...] | None:
    """Return the labels of a target of text, ascending, or (False, True) for booleans; None for other targets.

    A column without a stated type holds no labels if a number is among the values read first.
    """
    texts: set[str] = set()
    for column in columns:
        gaps = column.gaps
        if gaps.all():
            continue
        if column.levels is None:
            return (False, True) if column.kind == "boolean" else None
        found = column.levels[np.unique(column.values[~gaps])].tolist()
        if not (texts or column.typed) and any(map(is_number, found)):
            return None
        texts.update(found)
        if len(texts) > MOST_LABELS:
            raise DataError(
                f"{where} holds more than {MOST_LABELS:,} different texts, such as {shown(found[0])}; a target must be "
                "a number, or the label of a class"
            )
    return tuple(sorted(texts)) or None


def text_labels(source: Any) -> tuple[str, ...] | None:
    """Return the labels of a source whose target is text; None for other targets."""
    labels = getattr(source, "labels", None)
    return labels if labels and isinstance(labels[0], str) else None


def label_numbers(labels: tuple[str, ...], column: Cells, place: Place) -> npt.NDArray[np.float64]:
    """Return the position among the labels of every row's text; refuse missing ones."""
    assert column.levels is not None
    check_present(column.gaps, replace(place, of_target=True))
    known = {label: number for number, label in enumerate(labels)}
    return np.array([known.get(level, -1.0) for level in column.levels], dtype=float)[column.values]


class LabelRows(BaseRows):
    """Rows of a source with one target, a number for each class, as rows with indicators of the classes.

    Two classes have one column, the indicator of the second; more have one column each. A row whose label is none of
    the classes is refused unless its weight is zero.

    Parameters
    ----------
    source : RowSource
        The rows.
    numbers : array of shape (K,)
        The classes' numbers, ascending.
    class_weights : array of shape (K,), optional
        Factors of the rows' weights.
    """

    def __init__(
        self, source: RowSource, numbers: npt.NDArray[np.float64], class_weights: npt.NDArray[np.float64] | None = None
    ) -> None:
        self._source, self._numbers, self._class_weights = source, numbers, class_weights
        self.n_rows, self.n_features, self.dtype = source.n_rows, source.n_features, source.dtype
        self.n_targets = 1 if len(numbers) == 2 else len(numbers)
        self.has_weights = source.has_weights or class_weights is not None
        self.has_groups = getattr(source, "has_groups", False)
        self.feature_names, self.target_names = source.feature_names, None
        self.whole = getattr(source, "whole", True)
        self.paths = getattr(source, "paths", ())
        self.encoder, self.encoded = getattr(source, "encoder", None), True  # the source's columns are features

    @property
    def reads_ahead(self) -> bool:  # type: ignore[override]
        return getattr(self._source, "reads_ahead", False)

    def _blocks(self, block_rows: int, start: int, stop: int) -> Iterator[Block]:
        return map(self._converted, self._source.blocks(block_rows, start, stop))

    def _take(self, indices: npt.NDArray[np.intp]) -> Block:
        return self._converted(self._source.take(indices))

    def _converted(self, block: Block) -> Block:
        labels, weights = block.targets[:, 0], row_weights(block)
        which = np.minimum(np.searchsorted(self._numbers, labels), len(self._numbers) - 1)
        known = self._numbers[which] == labels
        if not known[weights > 0].all():
            row = int(np.flatnonzero(~known & (weights > 0))[0])
            raise DataError(
                f"the label of row {block.indices[row]} is none of the {len(self._numbers)} classes of the fit; "
                "correct it, or drop the row"
            )
        if self._class_weights is not None:
            weights = weights * self._class_weights[which]
        indicators = np.zeros((block.n_rows, len(self._numbers)))
        indicators[known, which[known]] = 1.0
        targets = indicators[:, 1:] if self.n_targets == 1 else indicators
        return replace(block, targets=targets, weights=weights if self.has_weights else None)
