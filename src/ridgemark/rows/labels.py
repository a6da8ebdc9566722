"""Labels as numbers, and as indicators of classes."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ridgemark.errors import DataError
from ridgemark.rows.base import Block, row_weights
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


@dataclass(frozen=True, eq=False)
class Indicators:
    """Targets that are numbers of classes, as indicators of the classes.

    Two classes have one column, the indicator of the second; more have one column each. A row whose label is none of
    the classes is refused unless its weight is zero.

    Parameters
    ----------
    numbers : array of shape (K,)
        The classes' numbers, ascending.
    class_weights : array of shape (K,), optional
        Factors of the rows' weights.
    """

    numbers: npt.NDArray[np.float64]
    class_weights: npt.NDArray[np.float64] | None = None

    @property
    def n_targets(self) -> int:
        """Number of columns."""
        return 1 if len(self.numbers) == 2 else len(self.numbers)

    @property
    def weighs(self) -> bool:
        """Whether rows without weights get some."""
        return self.class_weights is not None

    def __call__(self, block: Block) -> Block:
        """Return the rows with indicators as targets."""
        labels, weights = block.targets[:, 0], row_weights(block)
        which = np.minimum(np.searchsorted(self.numbers, labels), len(self.numbers) - 1)
        known = self.numbers[which] == labels
        if not known[weights > 0].all():
            row = int(np.flatnonzero(~known & (weights > 0))[0])
            raise DataError(
                f"the label of row {block.indices[row]} is none of the {len(self.numbers)} classes of the fit; "
                "correct it, or drop the row"
            )
        if self.class_weights is not None:
            weights = weights * self.class_weights[which]
        indicators = np.zeros((block.n_rows, len(self.numbers)))
        indicators[known, which[known]] = 1.0
        targets = indicators[:, 1:] if self.n_targets == 1 else indicators
        return replace(block, targets=targets, weights=weights if self.weighs or block.weights is not None else None)
