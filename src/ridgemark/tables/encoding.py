"""A schema applied to the columns of some rows."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ridgemark.backends import Floats
from ridgemark.rows.base import Array
from ridgemark.rows.cells import DOUBLE
from ridgemark.rows.column import Cells
from ridgemark.rows.places import Place, listed, shown
from ridgemark.tables.dates import PARTS, date_parts, moment
from ridgemark.tables.schema import CODE, MISSING, N_CODES, VALUE, Field, Schema
from ridgemark.tables.values import content_of, float_values, moments, parsed, rewritten, text_levels

_SHOWN = 3  # unseen levels that a message names
_MOST_COUNTED = 1000  # unseen levels of a column
_GAPS, _LEVELS = "gaps", "levels"  # what a column may have that the fit has not seen

# What was said of the columns of a fit; not kept in the schema, since predictions change nothing in a model.
_said: WeakKeyDictionary[Schema, set[tuple[str, str]]] = WeakKeyDictionary()


@np.errstate(over="ignore", invalid="ignore")
def _is_feature(field: Field, column: Cells) -> bool:
    """Return whether a column of numbers is a feature as it is: its values are finite, so that none is missing."""
    is_plain = field.kind == column.kind == "number" and field.parts == (VALUE,) and column.missing is None
    return is_plain and column.values.dtype == DOUBLE and bool(np.isfinite(column.values.sum()))


class SchemaEncoder:
    """Makes the features of a schema from columns; counts what the fit has not seen.

    An unseen level becomes zeros, and a gap in a column that had none in the fit is filled in. Rows of both are counted
    by the first row of each block, so that a second pass counts nothing twice.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema, self.names, self.keeps_columns = schema, schema.encoded_names, schema.keeps_columns
        self.texts = frozenset(j for j, field in enumerate(schema.fields) if field.levels is not None)
        self._unseen: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)  # rows, by the first row of a block
        self._levels: dict[str, dict[str, None]] = defaultdict(dict)  # that are not known
        self._by_level: dict[str, tuple[Array, Array]] = {}

    def __call__(self, start: int, columns: Sequence[Cells], place: Place, weights: Array | None = None) -> Floats:
        """Return the features (n, k) of some rows, whatever their weights."""
        features, at = np.empty((len(columns[0]), len(self.names))), 0
        for k, (field, column) in enumerate(zip(self.schema.fields, columns, strict=True)):
            width = len(field.names)
            if width and not _is_feature(field, column):
                self._encode(field, column, place.some(k, k + 1), features[:, at : at + width], start)
            elif width:
                features[:, at] = column.values
            at += width
        return features

    def warnings(self) -> list[str]:
        """Return what was not seen in the fit, one sentence for each column, and for each fit only once."""
        before = _said.setdefault(self.schema, set())
        new = [key for key in self._unseen if key not in before]
        before.update(new)
        return [f"column {shown(name)} has {self._unseen_values(name, what)}" for name, what in new]

    def _unseen_values(self, name: str, what: str) -> str:
        n_rows = sum(self._unseen[name, what].values())
        if what == _GAPS:
            return f"{n_rows:,} value{'s' * (n_rows > 1)} missing, where the fit had none"
        levels = list(self._levels[name])
        number = f"{'more than ' * (len(levels) > _MOST_COUNTED)}{min(len(levels), _MOST_COUNTED):,}"
        seen = f"level{'s' * (len(levels) > 1)} not seen in the fit, in {n_rows:,} row{'s' * (n_rows > 1)}"
        return f"{number} {seen} (such as {listed(levels[:_SHOWN])})"

    def _encode(self, field: Field, column: Cells, place: Place, out: Floats, start: int) -> None:
        gaps = column.gaps
        any_gap = bool(gaps.any())
        if any_gap and self.schema.missing == "error":
            raise place.missing(int(np.argmax(gaps)))
        if MISSING in field.parts:
            out[:, -1] = gaps
        elif any_gap and start >= 0:
            self._unseen[field.name, _GAPS][start] = int(gaps.sum())
        if field.kind in ("category", "frequency"):
            self._encode_levels(field, column, gaps, place, out, start)
        elif field.kind == "date":
            found = moments(column, place, self._parsed(field, column))
            parts = date_parts(np.where(gaps, moment(field.fill), found), field.origin)
            chosen = [PARTS.index(part) for part in field.parts if part != MISSING]
            out[:, : len(chosen)] = parts[:, chosen]
        elif VALUE in field.parts:
            values = float_values(column, field.kind, place, self._parsed(field, column))
            out[:, 0] = np.where(gaps, field.fill, values) if any_gap else values

    def _encode_levels(self, field: Field, column: Cells, gaps: Any, place: Place, out: Floats, start: int) -> None:
        positions, levels = text_levels(column, place)
        known = self._cached(field, levels, lambda: np.array([_known(field, text) for text in levels], dtype=np.intp))
        chosen = np.append(known, -1)[np.where(gaps, -1, positions)]
        unseen = (chosen < 0) & ~gaps
        if unseen.any():
            row = int(np.argmax(unseen))
            if self.schema.unknown == "error":
                raise place.unseen(levels[positions[row]], row)
            if start >= 0:
                self._unseen[field.name, _LEVELS][start] = int(unseen.sum())
                found = self._levels[field.name]
                new = (levels[k] for k in dict.fromkeys(positions[unseen].tolist()) if levels[k] not in found)
                found.update(dict.fromkeys(islice(new, _MOST_COUNTED + 1 - len(found))))
        at = 0
        if VALUE in field.parts:
            at = len(field.common)
            column_of = np.full(len(field.position) + 1, -1)  # of each level; the last entry is for unknown ones
            column_of[field.common] = np.arange(at)
            hot = column_of[chosen]
            rows = np.flatnonzero(hot >= 0)
            out[:, :at] = 0.0
            out[rows, hot[rows]] = 1.0
            if field.shares is not None:
                # Unknown levels are as rare as the rarest: zero would lie far from all rows of the fit.
                out[:, at] = np.append(field.shares, field.shares.min())[chosen]
                at += 1
        if CODE in field.parts:
            out[:, at : at + N_CODES] = field.codes[chosen]

    def _parsed(self, field: Field, column: Cells) -> Array | None:
        """Return the value of each level of a column of text; None for other columns.

        True and false are 1 and 0 among numbers, as typed booleans are: without gaps both are fitted without a schema.
        """
        if (levels := column.levels) is None:
            return None

        def values() -> Array:
            truth = field.kind == "number" and all(content_of(some) == "boolean" for some in (levels[:1], levels))
            return parsed("boolean" if truth else field.form if field.kind == "date" else field.kind, levels)

        return self._cached(field, levels, values)

    def _cached(self, field: Field, levels: Array, make: Any) -> Array:
        """Return what `make` returns for these levels; all blocks of a table in memory share their levels."""
        known = self._by_level.get(field.name)
        if known is None or known[0] is not levels:
            known = self._by_level[field.name] = levels, make()
        return known[1]


def _known(field: Field, text: str) -> int:
    """Return the position of a level, -1 if it is not known; of two texts of one value one may be known."""
    return field.position.get(text, field.position.get(rewritten(text), -1))
