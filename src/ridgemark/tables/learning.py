"""Learn the schema of a table in one pass over its rows."""

import copy
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Floats
from ridgemark.errors import ColumnWarning, DataError, ParameterError, warn_user
from ridgemark.rows.base import Array, BaseRows
from ridgemark.rows.choice import Header
from ridgemark.rows.column import Column, NoFeatures, words
from ridgemark.rows.places import LEAVE_OUT, TEXT, Place, listed, shown
from ridgemark.tables.dates import PARTS, date_parts, seconds
from ridgemark.tables.encoding import Encoder
from ridgemark.tables.schema import MISSING, MOST_LEVELS, VALUE, Field, Schema, column_names
from ridgemark.tables.values import Content, content_of, float_values, moments, not_of_kind, parsed, text_levels

_COMMON, _FEW = 0.005, 10  # share and number of rows of a level with a column of its own among more than 100
_MOST_TEXTS = 1_000_000  # different texts of one column that are counted
_SAMPLED = 2**16  # rows that a median is taken from
_BLOCK = 2**16  # rows read at once
_FEWEST_NUMBERED = 20  # rows; in fewer, columns that number the rows, or differ in each, are no surprise
_LOOKED_AT = 1000  # texts that say whether most of a column are numbers or dates


class RowNumbers:
    """Whether integers number the rows: all from the lowest to the highest, or more than half of these, ascending.

    All of them, in any order, are known by their sums and sums of squares, modulo 2^64. Some may be gone with rows that
    were left out.
    """

    def __init__(self) -> None:
        self.count, self.low, self.high, self.ascending = 0, 0, 0, True
        self.sums: NDArray[np.uint64] | None = np.zeros(2, np.uint64)

    def add(self, values: Array) -> None:
        """Add the values of some rows."""
        if self.sums is None or values.dtype.kind not in "iu" or not values.size:
            self.sums = None
            return
        low, high = int(values.min()), int(values.max())
        first = self.count == 0
        self.ascending &= (first or low > self.high) and bool((values[1:] > values[:-1]).all())
        self.low, self.high = (low, high) if first else (min(low, self.low), max(high, self.high))
        self.count += len(values)
        whole = values.astype(np.uint64)
        self.sums = self.sums + np.array([whole.sum(), (whole * whole).sum()], np.uint64)

    def __add__(self, later: Self) -> Self:
        """Return what is known after the rows of both."""
        if self.sums is None or later.sums is None:
            return self if self.sums is None else later
        if not (self.count and later.count):
            return self if self.count else later
        both = copy.copy(self)
        both.count, both.sums = self.count + later.count, self.sums + later.sums
        both.low, both.high = min(self.low, later.low), max(self.high, later.high)
        return both

    def __bool__(self) -> bool:
        n_between = self.high - self.low + 1
        if self.sums is None or not _FEWEST_NUMBERED <= self.count <= n_between < 2 * self.count:
            return False
        if n_between > self.count:
            return self.ascending
        n, low = self.count, self.low
        total = n * low + n * (n - 1) // 2
        squares = n * low * low + low * n * (n - 1) + (n - 1) * n * (2 * n - 1) // 6
        return self.sums.tolist() == [total % 2**64, squares % 2**64]


class _ColumnLearner:
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
        self.typed, self.as_is = True, kind is None  # whether all blocks state their type; whether nothing is encoded
        self.n_rows = self.n_missing = 0
        self.texts: Counter[str] = Counter()
        self.low = self.high = np.empty(0)
        self.first: Any = None  # the earliest date
        self.sample: list[Array] = []
        self.numbered = RowNumbers()
        self.place: Place | None = None

    def add(self, column: Column, place: Place, sampled: NDArray[np.intp]) -> None:
        """Add the values of some rows, of which some are sampled for medians."""
        self.place = self.place or place
        gaps = column.gaps
        n_missing = int(np.count_nonzero(gaps))
        self.n_rows, self.n_missing = self.n_rows + len(gaps), self.n_missing + n_missing
        empty = n_missing == len(gaps)
        self.as_is &= not empty
        if self.given == "dropped" or (empty and column.levels is None):
            return
        self._see_kind(column, place)
        if self.kind == "conflict":
            return
        self.as_is &= column.kind in ("number", "boolean") and column.values.dtype.kind != "m"
        if self.kind == "text":
            self._add_text(column, gaps, place, sampled)
        elif self.kind == "date":
            found = moments(column, place)
            earliest = found[~gaps].min()
            self.first = earliest if self.first is None else min(earliest, self.first)
            self._add_extent(date_parts(found[~gaps], 0.0))
            self.sample.append(found[sampled])
        else:
            values = float_values(column, "number", place)
            self._add_extent((values[~gaps] if n_missing else values)[:, None])
            self.numbered.add(values if column.levels is not None else column.values)
            self.sample.append(values[sampled])

    def _see_kind(self, column: Column, place: Place) -> None:
        if self.given is not None:
            return
        kind = "text" if column.kind == "category" else column.kind
        if kind == "other":
            raise column.refusal(place)
        if kind == "text" and column.typed and not self.allows_text:
            raise place.wrong_kind(TEXT, column.stated)
        self._join_kind(kind, column.typed, place)

    def _join_kind(self, kind: str, typed: bool, place: Place) -> None:
        """Note the kind of some rows, which must go with that of the rows before."""
        self.typed &= typed
        if self.kind is None:
            self.kind = kind
        elif self.kind != kind and not typed:
            self.kind = "conflict"  # the source delivers the column as text in a second pass
        elif {self.kind, kind} == {"number", "boolean"}:
            self.kind = "number"
        elif self.kind != kind:
            raise DataError(
                f"{place.column()} holds values of kind {kind} here and of kind {self.kind} in earlier rows; a column "
                "must hold one type: convert it"
            )

    def __add__(self, later: Self) -> Self:
        """Return what is known after the rows of both."""
        both = copy.copy(self)
        both.place, both.as_is = self.place or later.place, self.as_is and later.as_is
        both.n_rows, both.n_missing = self.n_rows + later.n_rows, self.n_missing + later.n_missing
        if self.given is None and later.kind is not None and both.place is not None:
            both._join_kind(later.kind, later.typed, both.place)
        both.texts, both.numbered = self.texts + later.texts, self.numbered + later.numbered
        both.sample = self.sample + later.sample
        if later.low.size:
            both._add_extent(np.stack([later.low, later.high]))
        dates = [one.first for one in (self, later) if one.first is not None]
        both.first = min(dates, default=None)
        both._check_texts(both.place)
        return both

    def _add_text(self, column: Column, gaps: Array, place: Place, sampled: NDArray[np.intp]) -> None:
        positions, levels = text_levels(column, place)
        counts = np.bincount(positions[~gaps], minlength=len(levels))
        for k in np.flatnonzero(counts).tolist():
            self.texts[levels[k]] += int(counts[k])
        self._check_texts(place)
        if not self.typed:
            self.sample.append(levels[positions[sampled[~gaps[sampled]]]])

    def _check_texts(self, place: Place | None) -> None:
        if place is not None and len(self.texts) > _MOST_TEXTS:
            raise DataError(f"{place.column()} holds more than {_MOST_TEXTS:,} different texts; {LEAVE_OUT}")

    def _add_extent(self, parts: Floats) -> None:
        low, high = parts.min(axis=0), parts.max(axis=0)
        self.low = low if not self.low.size else np.minimum(low, self.low)
        self.high = high if not self.high.size else np.maximum(high, self.high)

    def field(self, keep_constant: bool) -> Field:
        """Return how the column is encoded."""
        if self.given == "dropped":
            return Field(self.name, "dropped")
        content: Content | None = None
        if self.kind == "text" and self.given is None and not self.typed:
            content = content_of(words(self.texts))
            if content == "text" and not self.allows_text:
                assert self.place is not None
                raise self.place.wrong_kind(TEXT, "text")
        if self.kind == "text" and content in (None, "text"):
            return self._field_of_text(keep_constant)
        if content is not None:
            self._read_texts(content)
        sample = np.concatenate(self.sample) if self.sample else np.empty(0)
        if (content or self.kind) == "date":
            return self._field_of_date(sample, keep_constant)
        return self._field_of_numbers(sample, content or self.kind, keep_constant)

    @property
    def emptiness(self) -> str:
        """Why a column without features has none."""
        if self.n_missing == self.n_rows:
            return "only missing values"
        return "a different text in every row" if len(self.texts) > MOST_LEVELS else "one value"

    @property
    def doubt(self) -> str | None:
        """Why a column that is read as text may be meant otherwise, and what to do about it."""
        n_present = self.texts.total()
        for kind in () if self.typed else ("number", "date"):
            if other := self._exceptions(kind):
                return (
                    f"is read as text: most values are {kind}s, but {sum(self.texts[text] for text in other):,} of "
                    f"{n_present:,} are not (such as {listed(other[:3])}); correct these or leave them empty, or name "
                    "the column in categorical_features (command line: --categorical)"
                )
        if len(self.texts) > max(_FEWEST_NUMBERED, 0.9 * n_present):
            return (
                f"has a different text in nearly every row, such as {shown(next(iter(self.texts)))}; it tells little "
                f"of new rows: write numbers without units and dates as 2024-12-31, or {LEAVE_OUT}"
            )
        return None

    def _exceptions(self, kind: str) -> list[str]:
        """Return the texts that are not values of a kind, where most rows hold such values; none otherwise."""
        other: list[str] = []
        for some in (list(islice(self.texts, _LOOKED_AT)), list(self.texts)):  # mostly the first ones tell
            other = [text for text, wrong in zip(some, not_of_kind(kind, some), strict=True) if wrong]
            if 2 * sum(self.texts[text] for text in other) >= sum(self.texts[text] for text in some):
                return []
        return other

    def _read_texts(self, content: Content) -> None:
        """Replace texts by the values they hold."""
        values = parsed(content, words(self.texts))
        if content == "date":
            self.first = values.min()
        self._add_extent(date_parts(values, 0.0) if content == "date" else values[:, None])
        self.sample = [parsed(content, texts) for texts in self.sample]

    def _parts(self, names: Sequence[str], varies: Any, keep_constant: bool) -> tuple[str, ...]:
        """Return the parts that vary, and the one that says where values are missing."""
        kept = tuple(name for name, one in zip(names, varies, strict=True) if one or keep_constant)
        return (*kept, MISSING) if 0 < self.n_missing < self.n_rows or (self.n_missing and keep_constant) else kept

    def _field_of_numbers(self, sample: Floats, kind: str | None, keep_constant: bool) -> Field:
        present = sample[~np.isnan(sample)]
        fill = float(np.median(present)) if present.size else 0.0
        parts = self._parts([VALUE], [self.low.size and self.low[0] < self.high[0]], keep_constant)
        if kind == "boolean":
            return Field(self.name, "boolean", parts, float(np.floor(fill)))
        return Field(self.name, "number", parts, fill)

    def _field_of_date(self, sample: Array, keep_constant: bool) -> Field:
        present = np.sort(sample[~np.isnat(sample)])
        fill = present[(len(present) - 1) // 2] if present.size else self.first
        parts = self._parts(PARTS, self.low < self.high, keep_constant)
        return Field(self.name, "date", parts, seconds(fill), seconds(self.first.astype("datetime64[D]")))

    def _field_of_text(self, keep_constant: bool) -> Field:
        levels = sorted(self.texts)
        if len(levels) <= MOST_LEVELS:
            parts = self._parts([VALUE], [len(levels) > 1], keep_constant)
            return Field(self.name, "category", parts, levels=words(levels))
        shares = np.array([self.texts[level] for level in levels]) / self.n_rows
        least = max(_COMMON, _FEW / self.n_rows)
        varies = shares.min() < shares.max() or shares.max() >= least
        parts = self._parts([VALUE], [varies], keep_constant)
        return Field(self.name, "frequency", parts, levels=words(levels), shares=shares, least=least)


class Learner(NoFeatures):
    """An encoder without features, which sees the columns of every block in one pass."""

    def __init__(self, learners: Sequence[_ColumnLearner], n_rows: int, texts: frozenset[int]) -> None:
        self.learners, self.texts, self.first = learners, texts, 0  # `first`: number of the first row
        rows = np.random.default_rng(0).choice(n_rows, min(n_rows, _SAMPLED), replace=False, shuffle=False)
        self._sampled = np.sort(rows)

    def __call__(self, start: int, columns: Sequence[Column], place: Place) -> Floats:
        """Add the columns of some rows; no features."""
        start += self.first
        first, last = np.searchsorted(self._sampled, [start, start + len(columns[0])])
        sampled = self._sampled[first:last] - start
        for k, (learner, column) in enumerate(zip(self.learners, columns, strict=True)):
            learner.add(column, place.some(k, k + 1), sampled)
        return np.empty((len(columns[0]), 0))

    def __add__(self, later: Self) -> Self:
        """Return what is known after the rows of both."""
        both = copy.copy(self)
        both.learners = [one + other for one, other in zip(self.learners, later.learners, strict=True)]
        return both

    @property
    def conflicts(self) -> frozenset[int]:
        """Columns without a type whose blocks were read as different kinds."""
        return frozenset(j for j, learner in enumerate(self.learners) if learner.kind == "conflict")


def learn_schema(
    source: BaseRows,
    *,
    categorical: Literal["from_dtype"] | Iterable[str | int] | None = "from_dtype",
    numeric: Iterable[str | int] | None = None,
    drop: Iterable[str | int] | None = None,
    missing: Literal["fill", "error"] = "fill",
    unknown: Literal["ignore", "error"] = "ignore",
    keep_constant: bool = False,
) -> Schema | None:
    """Return the schema of the feature columns of a source, learned in one pass; None if it would change nothing.

    Parameters
    ----------
    source : BaseRows
        The rows.
    categorical : "from_dtype", list of names or positions, or None
        By default text and categories are categorical; a list adds columns to these; None refuses text.
    numeric : list of names or positions, optional
        Columns that are read as numbers, whatever their type.
    drop : list of names or positions, optional
        Columns that are left out.
    missing, unknown
        As in `Schema`.
    keep_constant : bool, default=False
        Whether columns with one value are kept: later rows may have others.

    Warns
    -----
    ColumnWarning
        When a column is left out because it is constant, when it numbers the rows, or when it is read as text although
        most of its values are numbers or dates, or nearly all differ.
    """
    asked: dict[str, tuple[Any, str]] = {"numeric": (numeric, "number"), "drop": (drop, "dropped")}
    if categorical is not None and not (isinstance(categorical, str) and categorical == "from_dtype"):
        asked["categorical_features"] = categorical, "text"
    given = _given(source, asked)
    names = column_names(source.feature_names, source.n_features)
    texts = frozenset(j for j, kind in given.items() if kind == "text")
    while True:
        learners = [_ColumnLearner(name, given.get(j), categorical is not None) for j, name in enumerate(names)]
        learner = source.shown_to(Learner(learners, source.n_rows, texts), _BLOCK)
        learners = learner.learners
        if not learner.conflicts:
            break
        texts |= learner.conflicts
    if source.feature_names is not None:
        _warn_of_numbers([one.name for one in learners if one.numbered], len(names))
    if missing == "fill" and all(one.as_is and not one.n_missing for one in learners):
        return None
    fields = tuple(one.field(keep_constant) for one in learners)
    _warn_of_constants([one for one, field in zip(learners, fields, strict=True) if not field.parts], fields)
    _warn_of_texts(
        [one for one, field in zip(learners, fields, strict=True) if field.parts and field.levels is not None]
    )
    return Schema(fields, missing, unknown)


def encoded_by_content(source: BaseRows, **options: Any) -> BaseRows:
    """Return rows whose features are the columns encoded by their schema; `schema_options` of the source come first."""
    schema = learn_schema(source, **options | dict(source.schema_options))
    return source if schema is None else source.encoded_by(Encoder(schema))


def warn_of_row_numbers(names: Sequence[str], columns: Sequence[Column]) -> None:
    """Warn of columns of a table in memory that number its rows."""
    found = []
    for name, column in zip(names, columns, strict=True):
        numbers = RowNumbers()
        numbers.add(column.values)
        found += [name] if numbers else []
    _warn_of_numbers(found, len(names))


def _given(source: BaseRows, asked: dict[str, tuple[Any, Any]]) -> dict[int, Any]:
    """Return what the user says of columns, by their positions."""
    header = Header("the table", source.n_features, source.feature_names)
    given: dict[int, Any] = {}
    for role, (keys, kind) in asked.items():
        if isinstance(keys, str) or (keys is not None and not hasattr(keys, "__iter__")):
            raise ParameterError(
                f'{role} must be "from_dtype", None or a list of column names or positions, got {keys!r:.60}'
            )
        keys = None if keys is None else list(keys)
        for position in header.positions(keys or None, role):
            if position in given:
                raise ParameterError(f"{role} names column {position}, which another option names too; name it once")
            given[position] = kind
    return given


def _warn_of_numbers(names: Sequence[str], n_columns: int) -> None:
    if names and n_columns > 1:
        warn_user(
            f"column {listed(names)} numbers the rows: it tells nothing of new rows; leave it out (command line: "
            "--drop), unless the order of the rows matters",
            ColumnWarning,
        )


def _warn_of_constants(learners: Sequence[_ColumnLearner], fields: Sequence[Field]) -> None:
    """Say which columns tell rows not apart, and why; refuse a table without others."""
    why = ", ".join(f"{shown(one.name)} ({one.emptiness})" for one in learners if one.given != "dropped")
    if not any(field.parts for field in fields):
        raise DataError(
            f"no column is left for the features{why and f': {why}'}; at least one column must tell rows apart"
        )
    if why:
        warn_user(f"left out of the features: {why}", ColumnWarning)


def _warn_of_texts(learners: Sequence[_ColumnLearner]) -> None:
    """Warn of columns that are read as text and may be meant otherwise, unless the user says what they are."""
    for one in learners:
        if one.given is None and (doubt := one.doubt):
            warn_user(f"column {shown(one.name)} {doubt}", ColumnWarning)
