"""A schema applied to the columns of some rows."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from ridgemark.backends import Floats
from ridgemark.rows.base import Array
from ridgemark.rows.column import Column
from ridgemark.rows.places import Place, listed, shown
from ridgemark.tables.dates import PARTS, date_parts, moment
from ridgemark.tables.schema import CODE, MISSING, N_CODES, VALUE, Field, Schema
from ridgemark.tables.values import content_of, float_values, moments, parsed, rewritten, text_levels

_SHOWN = 3  # unseen levels that a message names


class Encoder:
    """Makes the features of a schema from columns; counts what the fit has not seen.

    An unseen level becomes zeros, and a gap in a column that had none in the fit is filled in. Both are counted by the
    first row of each block, so that a second pass counts nothing twice.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema, self.names, self.keeps_columns = schema, schema.encoded_names, schema.keeps_columns
        self.texts = frozenset(j for j, field in enumerate(schema.fields) if field.levels is not None)
        self._unseen: dict[tuple[str, str], dict[int, tuple[int, list[str]]]] = defaultdict(dict)
        self._by_level: dict[str, tuple[Array, Array]] = {}

    def __call__(self, start: int, columns: Sequence[Column], place: Place, weights: Array | None = None) -> Floats:
        """Return the features (n, k) of some rows, whatever their weights."""
        features, at = np.empty((len(columns[0]), len(self.names))), 0
        for k, (field, column) in enumerate(zip(self.schema.fields, columns, strict=True)):
            width = len(field.names)
            if width:
                self._encode(field, column, place.some(k, k + 1), features[:, at : at + width], start)
            at += width
        return features

    def warnings(self) -> list[str]:
        """Return what was not seen in the fit, one sentence for each column."""
        said = []
        for (name, what), blocks in self._unseen.items():
            count = sum(n for n, _ in blocks.values())
            examples = list(dict.fromkeys(text for _, texts in blocks.values() for text in texts))[:_SHOWN]
            such_as = f" (such as {listed(examples)})" if examples else ""
            said.append(f"column {shown(name)} has {count:,} value{'s' * (count > 1)} {what}{such_as}")
        return said

    def _encode(self, field: Field, column: Column, place: Place, out: Floats, start: int) -> None:
        gaps = column.gaps
        any_gap = bool(gaps.any())
        if any_gap and self.schema.missing == "error":
            raise place.missing(int(np.argmax(gaps)))
        if MISSING in field.parts:
            out[:, -1] = gaps
        elif any_gap and start >= 0:
            self._unseen[field.name, "missing, where the fit had none"][start] = int(gaps.sum()), []
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

    def _encode_levels(self, field: Field, column: Column, gaps: Any, place: Place, out: Floats, start: int) -> None:
        positions, levels = text_levels(column, place)
        known = self._cached(field, levels, lambda: np.array([_known(field, text) for text in levels], dtype=np.intp))
        chosen = np.append(known, -1)[np.where(gaps, -1, positions)]
        unseen = (chosen < 0) & ~gaps
        if unseen.any():
            row = int(np.argmax(unseen))
            if self.schema.unknown == "error":
                raise place.unseen(levels[positions[row]], row)
            texts = [levels[k] for k in dict.fromkeys(positions[unseen].tolist())][:_SHOWN]
            if start >= 0:
                self._unseen[field.name, "not seen in the fit"][start] = int(unseen.sum()), texts
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

    def _parsed(self, field: Field, column: Column) -> Array | None:
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
