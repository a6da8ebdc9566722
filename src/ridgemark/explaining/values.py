"""The values of a row's columns in words, from the features that they became."""

from __future__ import annotations

from typing import Any

import numpy as np

from ridgemark.backends import Floats
from ridgemark.rows import dense
from ridgemark.rows.places import as_written
from ridgemark.tables.dates import ELAPSED, moment
from ridgemark.tables.schema import CODE, MISSING, VALUE, Field

_DAY = 86_400.0  # seconds
_LETTERS = 24  # of a level


def values_in_words(form: Any, features: Any) -> list[list[str]]:
    """Return for every row of features the values of the user's columns; `form` is the `Form` of the fit."""
    rows = dense(features)
    if form.table is None:
        return [[as_written(value) for value in row] for row in rows]
    starts = np.searchsorted(form.owners, np.arange(form.n_features + 1))
    parts = list(zip(form.table.fields, starts, starts[1:], strict=False))
    return [[_value(field, row[first:last]) for field, first, last in parts] for row in rows]


def _value(field: Field, features: Floats) -> str:
    """Return the value of a column, as far as its features tell it."""
    if MISSING in field.parts and features[-1]:
        return "missing"
    if field.levels is not None and len(features):
        return _level(field, features)
    if field.kind == "date" and ELAPSED in field.parts:
        since = field.origin + _DAY * float(features[field.parts.index(ELAPSED)])
        return str(moment(round(since))).replace("T00:00:00", "")
    if VALUE not in field.parts:
        return ""
    return str(bool(features[0])) if field.kind == "boolean" else as_written(features[0], 6)


def _level(field: Field, features: Floats) -> str:
    """Return the level with these features; of two with equal ones, the first."""
    positions = np.arange(len(field.position))
    if CODE not in field.parts:
        positions = field.common
    expected = field.level_features(positions)
    equal = np.flatnonzero((expected == features[: expected.shape[1]]).all(axis=1))
    assert field.levels is not None
    level = str(field.levels[positions[equal[0]]]) if len(equal) else "another level"
    return level if len(level) <= _LETTERS else f"{level[: _LETTERS - 3]}..."
