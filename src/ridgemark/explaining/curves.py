"""The prediction as a function of one column, the other columns as in rows of the fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ridgemark.backends import Floats, Indices
from ridgemark.errors import ParameterError
from ridgemark.rows import dense
from ridgemark.tables.dates import ELAPSED, PARTS, date_parts, moment
from ridgemark.tables.schema import MISSING, VALUE, Field

_POINTS = 40  # of a grid, at most
_LEVELS = 20  # of a category, at most
_ROWS = 200  # whose curves are drawn
_ENDS = 0.01, 0.99  # quantiles of the column between which the grid lies
_BAND = 0.1, 0.9  # quantiles over the rows
_DAY = 86_400.0  # seconds


@dataclass(frozen=True, eq=False)
class Curve:
    """The prediction as a function of one column; of classes the log-odds.

    Attributes
    ----------
    column : str
        The name of the column.
    grid : array of shape (g,)
        Its values: numbers, dates, or the levels of a category.
    mean : array of shape (g,) or (g, n_outputs)
        The mean prediction over rows of the fit whose value of the column is replaced: the partial dependence.
        Replacing one of two dependent columns makes rows that do not occur in the data.
    rows : array of shape (b, g) or (b, g, n_outputs)
        The same of single rows.
    low, high : arrays of the shape of the mean
        The band: the quantiles 0.1 and 0.9 over the rows. It shows how much the other columns change the prediction,
        and is not a confidence interval.
    """

    column: str
    grid: Any
    mean: Floats
    rows: Floats
    low: Floats
    high: Floats

    @property
    def is_category(self) -> bool:
        """Whether the values are levels and not numbers or dates."""
        return self.grid.dtype.kind not in "fM"

    def mapped(self, function: Callable[[Floats], Floats]) -> Curve:
        """Return the curve of a function of the values, which it takes as (m, outputs), one row for each."""
        values = function(self.rows.reshape(-1, 1 if self.rows.ndim == 2 else self.rows.shape[2]))
        rows = values.reshape(*self.rows.shape[:2], *values.shape[1:])
        low, high = np.quantile(rows, _BAND, axis=0)
        return replace(self, mean=rows.mean(axis=0), rows=rows, low=low, high=high)


def curve_of(
    predict: Callable[[Any], Floats], name: str, field: Field | None, features: Indices, rows: Any, flat: bool
) -> Curve:
    """Return the curve of a column, the one that became these features; `field` says how, in a table."""
    rows = dense(rows[:_ROWS])
    grid, settings = _grid(name, field, rows[:, features])
    changed = np.repeat(rows, len(settings), axis=0)
    changed[:, features] = np.tile(settings, (len(rows), 1))
    values = predict(changed).reshape(len(rows), len(settings), -1)
    values = values[:, :, 0] if flat else values
    low, high = np.quantile(values, _BAND, axis=0)
    return Curve(name, grid, values.mean(axis=0), values, low, high)


def _grid(name: str, field: Field | None, values: Floats) -> tuple[Any, Floats]:
    """Return values of a column, and the features (g, width) that they become; `values` are those of some rows."""
    if field is None:
        numbers = _numbers(values[:, 0])
        return numbers, numbers[:, None]
    if not field.parts:
        raise ParameterError(f"column {name!r} has no curve: it has one value, or was left out of the fit")
    settings = np.zeros((0, values.shape[1]))
    if field.levels is not None and len(field.parts) > (MISSING in field.parts):
        chosen = _levels(field, values)
        grid, settings = field.levels[chosen], field.level_features(chosen)
    elif field.kind == "boolean" and VALUE in field.parts:
        grid, settings = np.array([False, True]), np.array([[0.0], [1.0]])
    elif field.kind == "date" and ELAPSED in field.parts:
        days = _numbers(values[:, field.parts.index(ELAPSED)])
        grid = np.array([moment(field.origin + _DAY * day) for day in days])
        settings = date_parts(grid, field.origin)[:, [PARTS.index(part) for part in field.parts if part != MISSING]]
    elif field.kind == "number" and VALUE in field.parts:
        present = values[:, -1] == 0.0 if MISSING in field.parts else np.ones(len(values), dtype=bool)
        grid = _numbers(values[present, 0] if present.any() else values[:, 0])
        settings = grid[:, None]
    if not len(settings):
        raise ParameterError(f"column {name!r} has no curve: in the fit it only says where a value is missing, or when")
    absent = np.zeros((len(settings), values.shape[1] - settings.shape[1]))  # nothing is missing
    return grid, np.column_stack([settings, absent])


def _numbers(values: Floats) -> Floats:
    """Return the different values, or where they are many, even steps between their outer quantiles."""
    different = np.unique(values)
    if len(different) <= _POINTS:
        return different
    first, last = np.quantile(values, _ENDS)
    return np.linspace(first, last, _POINTS)


def _levels(field: Field, values: Floats) -> Indices:
    """Return the positions of the most frequent levels, ascending; of a category, in some rows with these features."""
    counts = values[:, : len(field.common)].sum(axis=0) if field.shares is None else field.shares
    return np.sort(np.argsort(-counts, kind="stable")[:_LEVELS])
