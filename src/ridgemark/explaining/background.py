"""The background of explanations: a sample of the rows of a fit, which stays with the model when the rows are gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from ridgemark.backends import Floats, Indices, Rows
from ridgemark.passes import RowPasses
from ridgemark.rows.base import stack_rows

_MOST, _FEWEST = 1000, 200  # rows of a sample
_ENTRIES = 100_000  # of a sample; where there are many features it has fewer rows
_GOLDEN = (5.0**0.5 - 1.0) / 2.0


@dataclass(frozen=True, eq=False)
class Background:
    """Rows of a fit, drawn by their weights, so that each stands for the same weight; and the extent of the features.

    Any first rows of the sample are a sample too.

    Attributes
    ----------
    rows : array or sparse matrix of shape (b, n_encoded)
        The rows; one of large weight occurs several times.
    weights : array of shape (b,)
        The weight of each row in the fit.
    landmarks : array of shape (b,)
        Which landmark the row is; -1 for a row that is none.
    total_weight : float
        The weight of all rows of the fit.
    low, high : arrays of shape (n_encoded,)
        The smallest and the largest value of each feature in all rows.
    """

    rows: Annotated[Any, Rows, "(b, e)"]
    weights: Annotated[Floats, "(b)", "> 0"]
    landmarks: Annotated[Indices, "(b)", "any", "< p"]
    total_weight: Annotated[float, "> 0"]
    low: Annotated[Floats, "(e)"]
    high: Annotated[Floats, "(e)"]

    def __len__(self) -> int:
        return len(self.weights)

    def at(self, positions: Indices) -> Any:
        """Return the rows at these positions, which may repeat."""
        return self.rows[positions]


def draw_background(passes: RowPasses, landmarks: Indices | None, total_weight: float) -> Background:
    """Return a sample of the rows of some passes, which stands for this weight.

    `landmarks` are the numbers of the landmarks among these rows.
    """
    distinct, weights, columns = passes.distinct_rows(), passes.row_counts(), passes.columns()
    totals = distinct.totals(weights)  # in the order of hashes, which is as good as random
    chosen = _spread(totals, min(_most(passes.source.n_features), int(np.count_nonzero(weights))))
    positions, which = np.unique(chosen, return_inverse=True)
    numbers = distinct.indices[positions]
    return Background(
        passes.take(numbers).features[which],
        weights[numbers][which],
        _positions_among(numbers, landmarks)[which],
        total_weight,
        columns.low,
        columns.high,
    )


def merged_background(before: Background, more: Background) -> Background:
    """Return a sample of the rows of two samples, each of which stands for its own total weight."""
    parts = (before, more)
    shares = np.concatenate([np.full(len(part), part.total_weight / len(part)) for part in parts])
    chosen = _spread(shares, min(_most(len(more.low)), len(shares)))
    weights, landmarks = (np.concatenate([getattr(part, name) for part in parts]) for name in ("weights", "landmarks"))
    return Background(
        stack_rows([before.rows, more.rows])[chosen],
        weights[chosen],
        landmarks[chosen],
        before.total_weight + more.total_weight,
        np.minimum(before.low, more.low),
        np.maximum(before.high, more.high),
    )


def _most(n_features: int) -> int:
    return min(_MOST, max(_FEWEST, _ENTRIES // n_features))


def _spread(weights: Floats, size: int) -> Indices:
    """Return positions drawn by weight at even steps of the cumulative weights, in an order whose beginnings are even.

    With equal weights and as many draws as positions, each position is drawn once.
    """
    cumulative = np.cumsum(weights)
    steps = (np.arange(size) + 0.5) * (cumulative[-1] / size)
    chosen = np.minimum(np.searchsorted(cumulative, steps), len(weights) - 1)
    return chosen[np.argsort(np.arange(size) * _GOLDEN % 1.0, kind="stable")]


def _positions_among(numbers: Indices, landmarks: Indices | None) -> Indices:
    """Return the position of each row number among the landmarks'; -1 where it is not there."""
    if landmarks is None:
        return np.full(len(numbers), -1, dtype=np.intp)
    order = np.argsort(landmarks)
    places = np.minimum(np.searchsorted(landmarks[order], numbers), len(order) - 1)
    return np.where(landmarks[order[places]] == numbers, order[places], -1)
