"""What is known of one column of a table after some blocks of rows."""

import copy
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any, Literal, Self

import numpy as np

from ridgemark.backends import Floats, Indices
from ridgemark.errors import DataError, DataTypeError
from ridgemark.rows.base import Array
from ridgemark.rows.column import Cells, words
from ridgemark.rows.places import LEAVE_OUT, TEXT, Place, listed, shown
from ridgemark.tables.date_forms import CLOCK, FORMS, FULL_FORMS, ISO, forms_of
from ridgemark.tables.dates import PARTS, date_parts, seconds
from ridgemark.tables.row_numbers import RowNumbers
from ridgemark.tables.schema import CODE, MISSING, MOST_LEVELS, VALUE, Field
from ridgemark.tables.values import content_of, float_values, looks_measured, moments, not_of_kind, parsed, text_levels

_COMMON, _FEW = 0.005, 10  # share and number of rows of a level with a column of its own among more than 100
_REPEATED = 2  # mean number of rows per level from which on levels have codes; fewer rows tell little of new ones
_ROUNDING = 1e-9  # of sums of weights, relative
_MOST_TEXTS = 1_000_000  # different texts of one column that are counted
_FEWEST_DIFFERENT = 20  # rows; in fewer rows, texts may well differ in each
_FIRST, _LOOKED_AT = 20, 1000  # texts that say whether most of a column are numbers or dates
_NAME_IT = "name the column in categorical_features (command line: --categorical)"


class ColumnLearner:
    """What is known of one column after some blocks.

    Parameters
    ----------
    name : str
        Of the column.
    kind : {None, "text", "number", "dropped"}
        What the user says of the column.
    allows_text : bool
        Whether text may be a category.
    """

    def __init__(self, name: str, kind: Literal["text", "number", "dropped"] | None, allows_text: bool) -> None:
        self.name, self.given, self.allows_text = name, kind, allows_text
        self.kind: str | None = kind
        self.stated, self.as_is = False, kind is None  # whether levels are stated; whether nothing is encoded
        self.n_rows = self.n_missing = 0
        self.weight = 0.0  # of all rows; their number where they have no weights
        self.texts: Counter[str] = Counter()
        self.text_weights: Counter[str] = Counter()  # empty where rows have no weights
        self.low = self.high = np.empty(0)
        self.first: Any = None  # the earliest date
        self.sample: list[Array] = []  # values, without gaps
        self.sample_weights: list[Floats] = []  # empty where rows have no weights
        self.numbered = RowNumbers()
        self.place: Place | None = None

    def add(self, column: Cells, place: Place, sampled: Indices, weights: Floats | None = None) -> None:
        """Add the values of some rows, of which some are sampled for medians; weights are positive."""
        self.place = self.place or place
        gaps = column.gaps
        n_missing = int(np.count_nonzero(gaps))
        self.n_rows, self.n_missing = self.n_rows + len(gaps), self.n_missing + n_missing
        self.weight += len(gaps) if weights is None else float(weights.sum())
        sampled = sampled[~gaps[sampled]]
        empty = n_missing == len(gaps)
        self.as_is &= not empty
        if self.given == "dropped" or (empty and column.levels is None):
            return
        self._see_kind(column, place)
        if self.kind == "conflict":
            return
        self.as_is &= column.kind in ("number", "boolean") and column.values.dtype.kind != "m"
        if self.kind == "text":
            self._add_text(column, gaps, place, sampled, weights)
        elif self.kind == "date":
            found = moments(column, place)
            earliest = found[~gaps].min()
            self.first = earliest if self.first is None else min(earliest, self.first)
            self._add_extent(date_parts(found[~gaps], 0.0))
            self._add_sample(found[sampled], sampled, weights)
        else:
            values = float_values(column, "number", place)
            self._add_extent((values[~gaps] if n_missing else values)[:, None])
            self.numbered.add(values if column.levels is not None else column.values)
            self._add_sample(values[sampled], sampled, weights)

    def _see_kind(self, column: Cells, place: Place) -> None:
        if self.given is not None:
            return
        if column.kind == "other":
            raise column.refusal(place)
        if column.kind == "category" and not self.allows_text:
            raise place.wrong_kind(TEXT, column.stated)
        self.stated |= column.kind == "category"
        self._join_kind("text" if column.kind == "category" else column.kind, column.typed, place)

    def _join_kind(self, kind: str, typed: bool, place: Place) -> None:
        """Note the kind of some rows, which must go with that of the rows before."""
        if self.kind is None:
            self.kind = kind
        elif self.kind != kind and not typed:
            self.kind = "conflict"  # the source delivers the column as text in a second pass
        elif {self.kind, kind} == {"number", "boolean"}:
            self.kind = "number"
        elif self.kind != kind:
            raise DataTypeError(
                f"{place.column()} holds values of kind {kind} here and of kind {self.kind} in earlier rows; a column "
                "must hold one type: convert it"
            )

    def __add__(self, later: Self) -> Self:
        """Return what is known after the rows of both."""
        both = copy.copy(self)
        both.place, both.as_is = self.place or later.place, self.as_is and later.as_is
        both.stated = self.stated or later.stated
        both.n_rows, both.n_missing = self.n_rows + later.n_rows, self.n_missing + later.n_missing
        if self.given is None and later.kind is not None and later.place is not None:
            both._join_kind(later.kind, True, later.place)
        both.weight, both.numbered = self.weight + later.weight, self.numbered + later.numbered
        both.texts, both.text_weights = self.texts + later.texts, self.text_weights + later.text_weights
        both.sample, both.sample_weights = self.sample + later.sample, self.sample_weights + later.sample_weights
        if later.low.size:
            both._add_extent(np.stack([later.low, later.high]))
        dates = [one.first for one in (self, later) if one.first is not None]
        both.first = min(dates, default=None)
        both._check_texts(both.place)
        return both

    def _add_text(self, column: Cells, gaps: Array, place: Place, sampled: Indices, weights: Floats | None) -> None:
        positions, levels = text_levels(column, place)
        present = positions[~gaps]
        counts = np.bincount(present, minlength=len(levels))
        sums = None if weights is None else np.bincount(present, weights[~gaps], len(levels))
        for k in np.flatnonzero(counts).tolist():
            self.texts[levels[k]] += int(counts[k])
            if sums is not None:
                self.text_weights[levels[k]] += sums[k]
        self._check_texts(place)
        if self.given is None and not self.stated:
            self._add_sample(levels[positions[sampled]], sampled, weights)

    def _add_sample(self, values: Array, sampled: Indices, weights: Floats | None) -> None:
        self.sample.append(values)
        if weights is not None:
            self.sample_weights.append(weights[sampled])

    def _check_texts(self, place: Place | None) -> None:
        if place is not None and len(self.texts) > _MOST_TEXTS:
            raise DataError(f"{place.column()} holds more than {_MOST_TEXTS:,} different texts; {LEAVE_OUT}")

    def _add_extent(self, parts: Floats) -> None:
        low, high = parts.min(axis=0), parts.max(axis=0)
        self.low = low if not self.low.size else np.minimum(low, self.low)
        self.high = high if not self.high.size else np.maximum(high, self.high)

    def field(self, keep_constant: bool) -> Field:
        """Return how the column is encoded."""
        if self.given == "dropped" or (self.n_missing == self.n_rows and not keep_constant):
            return Field(self.name, "dropped")
        content: str | None = None
        if self.kind == "text" and self.given is None and not self.stated:
            content = content_of(words(self.texts))
            if content == "text" and not self.allows_text:
                assert self.place is not None
                raise self.place.wrong_kind(TEXT, "text")
        if self.kind == "text" and content in (None, "text"):
            return self._field_of_text(keep_constant)
        if content is not None:
            self._read_texts(content)
        sample = np.concatenate(self.sample) if self.sample else np.empty(0)
        if self.kind == "date" or content in FORMS:
            of_day = 0 <= self.low[-1] <= self.high[-1] < 1  # in the first day of 1970, as times without a date are
            return self._field_of_date(sample, content or (CLOCK if of_day else ISO), keep_constant)
        return self._field_of_numbers(sample, content or self.kind, keep_constant)

    @property
    def emptiness(self) -> str:
        """Why a column without features has none."""
        if self.n_missing == self.n_rows:
            return "only missing values"
        return "a different text in every row" if len(self.texts) > MOST_LEVELS else "one value"

    def doubt(self, left_out: bool) -> str | None:
        """Return why a column that is read as text may be meant otherwise, and what to do about it."""
        if not self.texts:
            return None
        if not self.stated and (doubt := self._doubt_of_content()):
            return f"is read as text, {doubt}, or {_NAME_IT}"
        if not left_out and len(self.texts) > max(_FEWEST_DIFFERENT, 0.9 * self.texts.total()):
            return (
                f"has a different text in nearly every row, such as {shown(next(iter(self.texts)))}; it tells little "
                f"of new rows: {LEAVE_OUT}"
            )
        return None

    def _doubt_of_content(self) -> str | None:
        others = {kind: self._exceptions(kind) for kind in ("number", *FULL_FORMS)}
        if kinds := [kind for kind, other in others.items() if other]:
            kind = min(kinds, key=lambda one: len(others[one]))
            other = others[kind]
            return (
                f"though most values are {'dates' if kind in FORMS else 'numbers'}: "
                f"{sum(self.texts[text] for text in other):,} of {self.texts.total():,} are not (such as "
                f"{listed(other[:3])}); correct these or leave them empty"
            )
        if forms := forms_of(list(self.texts)):
            return (
                f"as its dates may be written as {' or '.join(forms)}, such as {shown(next(iter(self.texts)))}: write "
                f"dates as {ISO}"
            )
        if text := looks_measured(islice(self.texts, _LOOKED_AT), strictly=len(self.texts) <= MOST_LEVELS):
            return (
                f"though most look like numbers or dates, such as {shown(text)}: write numbers without units or "
                f"thousands separators, and dates as {ISO}"
            )
        return None

    def _exceptions(self, kind: str) -> list[str]:
        """Return the texts that are not values of a kind, where most rows hold such values; none otherwise."""
        other: list[str] = []
        for count in (_FIRST, _LOOKED_AT, len(self.texts)):  # mostly the first ones tell
            some = list(islice(self.texts, count))
            other = [text for text, wrong in zip(some, not_of_kind(kind, some), strict=True) if wrong]
            if 2 * sum(self.texts[text] for text in other) >= sum(self.texts[text] for text in some):
                return []
        return other

    def _read_texts(self, content: str) -> None:
        """Replace texts by the values they hold."""
        values = parsed(content, words(self.texts))
        if content in FORMS:
            self.first = values.min()
        self._add_extent(date_parts(values, 0.0) if content in FORMS else values[:, None])
        self.sample = [parsed(content, texts) for texts in self.sample]

    def _parts(self, names: Sequence[str], varies: Any, keep_constant: bool) -> tuple[str, ...]:
        """Return the parts that vary, and the one that says where values are missing."""
        kept = tuple(name for name, one in zip(names, varies, strict=True) if one or keep_constant)
        return (*kept, MISSING) if 0 < self.n_missing < self.n_rows or (self.n_missing and keep_constant) else kept

    def _middle(self, sample: Array) -> Array:
        """Return the values in the middle of the sample, one or two, where each counts by its weight."""
        if not self.sample_weights:
            return np.sort(sample)[(len(sample) - 1) // 2 : len(sample) // 2 + 1]
        order = np.argsort(sample)
        up_to = np.cumsum(np.concatenate(self.sample_weights)[order])
        half = up_to[-1] / 2
        first = np.searchsorted(up_to, (1 - _ROUNDING) * half)
        last = np.searchsorted(up_to, (1 + _ROUNDING) * half, side="right")
        return sample[order[first : last + 1]]

    def _field_of_numbers(self, sample: Floats, kind: str | None, keep_constant: bool) -> Field:
        fill = float(np.mean(self._middle(sample))) if sample.size else 0.0
        parts = self._parts([VALUE], [self.low.size and self.low[0] < self.high[0]], keep_constant)
        if kind == "boolean":
            return Field(self.name, "boolean", parts, float(np.floor(fill)))
        return Field(self.name, "number", parts, fill)

    def _field_of_date(self, sample: Array, form: str, keep_constant: bool) -> Field:
        fill = self._middle(sample)[0] if sample.size else self.first
        parts = self._parts(PARTS, self.low < self.high, keep_constant)
        origin = seconds(self.first.astype("datetime64[D]"))
        return Field(self.name, "date", parts, seconds(fill), origin, form=form)

    def _field_of_text(self, keep_constant: bool) -> Field:
        levels = sorted(self.texts)
        if len(levels) <= MOST_LEVELS:
            parts = self._parts([VALUE], [len(levels) > 1], keep_constant)
            return Field(self.name, "category", parts, levels=words(levels))
        counts = self.text_weights or self.texts
        shares = np.array([counts[level] for level in levels]) / self.weight
        least = max(_COMMON, _FEW / self.n_rows)  # of rows, not weights: a factor on all weights changes nothing
        shares[np.abs(shares - least) <= _ROUNDING * least] = least
        varies = shares.min() < (1 - _ROUNDING) * shares.max() or shares.max() >= least
        repeated = self.texts.total() >= _REPEATED * len(levels)
        parts = self._parts([VALUE, CODE], [varies, repeated], keep_constant)
        return Field(self.name, "frequency", parts, levels=words(levels), shares=shares, least=least)
