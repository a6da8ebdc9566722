"""The rows that are looked at, column by column, with the facts that several checks use."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.stats import rankdata

from ridgemark.backends import Floats, Indices
from ridgemark.checks.identity import identifies, is_named_code, is_time, numbers_rows
from ridgemark.errors import DataError, ParameterError
from ridgemark.rows import BaseRows, RowSource, dense, open_rows, without_features
from ridgemark.rows.arrays import ArrayRows
from ridgemark.rows.base import Array
from ridgemark.rows.column import Cells, NoFeatures, number_column, words
from ridgemark.rows.places import Place, as_written, row_of
from ridgemark.tables.date_forms import FORMS
from ridgemark.tables.dates import seconds
from ridgemark.tables.schema import column_names
from ridgemark.tables.values import content_of, parsed, text_levels

_CELLS, _FEWEST, _MOST = 4_000_000, 10_000, 200_000  # cells to read, and the bounds of rows that follow
_STRETCHES = 40  # of consecutive rows, so that the rows of a group stay together
_BLOCK = 2**16  # rows read at once
_CLASSES = 20  # most different integers of a target of classes
_DENSE = 5_000  # most columns of sparse rows


class Column:
    """One column at the rows that are looked at, read by its content as a fit reads it.

    Attributes
    ----------
    kind : {"number", "boolean", "date", "text", "category", "other", "empty"}
        What the column holds.
    values : ndarray (n,)
        Numbers, of dates seconds, NaN where missing; of text and categories the codes of the levels, NaN where missing.
    levels : ndarray of str or None
        The levels of text and categories.
    identifies : bool
        Whether nearly every row has a value of its own, as of an identifier; `read_table` sets it.
    """

    identifies = False

    def __init__(self, name: str, cells: Cells, place: Place) -> None:
        self.name, self.cells, self.place = name, cells, place
        self.kind, self.values, self.levels = _read(cells, place)

    @property
    def is_number(self) -> bool:
        """Whether the column has numbers; booleans and dates do not count."""
        return self.kind == "number"

    @property
    def has_order(self) -> bool:
        """Whether the values are on an axis: numbers, booleans and dates."""
        return self.kind in ("number", "boolean", "date")

    @property
    def has_levels(self) -> bool:
        """Whether the column is text or a category."""
        return self.levels is not None

    @cached_property
    def present(self) -> Array:
        """The values that are not missing."""
        return self.values[~np.isnan(self.values)]

    @cached_property
    def is_whole(self) -> bool:
        """Whether all values are integers."""
        return self.is_number and len(self.present) > 0 and bool((self.present % 1 == 0).all())

    @cached_property
    def counts(self) -> Indices:
        """Rows of each different value, in the order of the values."""
        return np.unique(self.present, return_counts=True)[1]

    @property
    def n_different(self) -> int:
        """Number of different values."""
        return len(self.counts)

    @cached_property
    def codes(self) -> Indices:
        """Position of every row's value among the different ones; missing ones share a further position."""
        return np.unique(self.values, return_inverse=True)[1].astype(np.intp)

    @cached_property
    def numbers_rows(self) -> bool:
        """Whether the values number the rows."""
        return numbers_rows(self)

    @cached_property
    def is_named_code(self) -> bool:
        """Whether the name of the column is one of identifiers and codes."""
        return is_named_code(self)

    @cached_property
    def is_time(self) -> bool:
        """Whether the column has years, or another measure of time by its name."""
        return is_time(self)

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of the name, in lower case."""
        spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", self.name)
        return frozenset(re.split(r"[\W_\d]+", spaced.lower())) - {""}

    def example(self, value: float) -> str:
        """Return a value as people write it."""
        if self.levels is not None:
            return repr(str(self.levels[int(value)]))
        return as_written(value, 15 if value % 1 == 0 else 6)


@dataclass(frozen=True, eq=False)
class Table:
    """The rows that are looked at."""

    columns: tuple[Column, ...]
    target: Column | None
    rows: Indices  # their numbers in the data
    n_rows: int  # of the whole table
    n_skipped: int = 0  # rows without a target

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def n_looked_at(self) -> int:
        """Number of rows that are looked at."""
        return len(self.rows)

    @cached_property
    def is_classes(self) -> bool:
        """Whether the target has labels of classes: text, booleans, or few different integers."""
        target = self.target
        if target is None or target.kind in ("text", "category", "boolean"):
            return target is not None
        return (
            target.is_whole
            and target.n_different <= min(_CLASSES, self.n_looked_at // 10)
            and (target.n_different == 2 or bool(np.ptp(target.present) < _CLASSES))
        )

    @cached_property
    def response(self) -> Floats | None:
        """The target on a scale without outliers, (n, k): normal scores of the ranks, or indicators of classes."""
        if self.target is None or self.target.n_different < 2:
            return None
        if self.is_classes:
            return np.eye(self.target.n_different)[self.target.codes][:, : None if self.target.n_different > 2 else 1]
        return ranks(self.target.values)[:, None]

    def only(self, rows: Any) -> Table:
        """Return some of the rows."""
        columns = [_some(column, rows) for column in self.columns]
        target = None if self.target is None else _some(self.target, rows)
        return Table(tuple(columns), target, self.rows[rows], self.n_rows, self.n_skipped)

    def without(self, names: Sequence[str]) -> Table:
        """Return the table without some columns, unless these are all."""
        columns = tuple(column for column in self.columns if column.name not in names)
        return replace(self, columns=columns) if names and columns else self

    def with_levels(self, names: Sequence[str]) -> Table:
        """Return the table with some columns of numbers as categories."""
        columns = tuple(_as_levels(column) if column.name in names else column for column in self.columns)
        return replace(self, columns=columns)


def _as_levels(column: Column) -> Column:
    made = copy.copy(column)
    made.kind, made.levels = "category", words(column.example(value) for value in np.unique(column.present))
    made.values = np.where(np.isnan(column.values), np.nan, column.codes)
    made.__dict__.pop("present", None)
    return made


def _some(column: Column, rows: Any) -> Column:
    narrower = copy.copy(column)
    for name in ("present", "is_whole", "counts", "codes"):
        narrower.__dict__.pop(name, None)
    narrower.values, narrower.cells = column.values[rows], column.cells[rows]
    return narrower


def ranks(values: Array) -> Floats:
    """Return ranks with mean 0 and variance about 1."""
    ranks = rankdata(values)
    return (ranks - ranks.mean()) / max(float(ranks.std()), 1e-12)


class _Keeper(NoFeatures):
    """Keeps the columns at some rows of a pass."""

    def __init__(self, wanted: Indices, texts: frozenset[int] = frozenset()) -> None:
        self.wanted, self.texts, self.n_seen = wanted, texts, 0
        self.parts: list[tuple[int, Sequence[Cells], Place]] = []

    def __call__(self, start: int, columns: Sequence[Cells], place: Place, weights: Array | None = None) -> Array:
        """Keep the rows that are wanted; no features."""
        start, self.n_seen = self.n_seen, self.n_seen + len(columns[0])
        first, last = np.searchsorted(self.wanted, [start, self.n_seen])
        if first < last:
            rows = self.wanted[first:last] - start
            self.parts.append((start, [column[rows] for column in columns], place))
        return np.empty((len(columns[0]), 0))

    def __add__(self, later: Self) -> Self:
        both = copy.copy(self)
        both.parts = self.parts + later.parts
        return both

    @property
    def conflicts(self) -> frozenset[int]:
        """Columns of a source without types that are numbers in one part and text in another."""
        kinds = zip(*([_kind(cells) for cells in columns] for _, columns, _ in self.parts), strict=True)
        return frozenset(j for j, column in enumerate(kinds) if len(set(column) - {None}) > 1)


def _kind(cells: Cells) -> str | None:
    return None if cells.gaps.all() else cells.kind


def read_table(source: Any, target: Any = None) -> Table:
    """Return the rows of a source that are looked at: all, or stretches spread evenly over a large table."""
    rows = source if isinstance(source, RowSource) else open_rows(source, target, missing_target=_missing(target))
    if rows is source and target is not None:
        raise ParameterError("a RowSource brings its own target; give it to open_rows instead: target=...")
    if rows.n_targets > 1:
        raise DataError(f"check takes one target; the rows have {rows.n_targets}; check them one after the other")
    wanted = _rows_to_read(rows.n_rows, rows.n_features)
    names = column_names(rows.feature_names, rows.n_features)
    columns = tuple(map(Column, names, *_cells(rows, wanted)))
    kept, n_skipped = getattr(rows, "kept", None), getattr(rows, "n_skipped", 0)
    numbers = wanted if kept is None else kept[wanted]
    table = Table(columns, _target(rows, wanted), numbers, rows.n_rows, n_skipped)
    features = [column for column in columns if not column.numbers_rows]
    first = np.sort(np.unique(equal_rows(features), return_index=True)[1]) if features else slice(None)
    for column, of_distinct in zip(columns, table.only(first).columns, strict=True):
        column.identifies = identifies(of_distinct)  # a repeated row repeats its identifier
    return table


def equal_rows(columns: Sequence[Column]) -> Indices:
    """Return a number for each row that rows equal in all columns share."""
    rng = np.random.default_rng(0)
    total = np.zeros(len(columns[0].values), np.uint64)
    for column in columns:
        total += rng.integers(2**64, size=int(column.codes.max()) + 1, dtype=np.uint64)[column.codes]
    return np.unique(total, return_inverse=True)[1].astype(np.intp)


def _missing(target: Any) -> Any:
    return "error" if target is None else "skip"


def _rows_to_read(n_rows: int, n_columns: int) -> Indices:
    most = min(_MOST, max(_FEWEST, _CELLS // max(1, n_columns)))
    if n_rows <= most:
        return np.arange(n_rows)
    length = most // _STRETCHES
    starts = np.linspace(0, n_rows - length, _STRETCHES).astype(np.intp)
    return np.unique(starts[:, None] + np.arange(length))


def _cells(rows: RowSource, wanted: Indices) -> tuple[list[Cells], list[Place]]:
    """Return each column at the rows that are wanted, and its place for messages."""
    if isinstance(rows, ArrayRows) or not isinstance(rows, BaseRows) or _are_sparse(rows):
        if rows.n_features > _DENSE:
            raise DataError(f"check takes at most {_DENSE:,} columns of plain numbers; got {rows.n_features:,}")
        features = dense(rows.take(wanted).features)
        names = rows.feature_names or range(rows.n_features)
        places = [Place("the rows", [name], row_of(wanted)) for name in names]
        return [number_column(np.asarray(values, float)) for values in features.T], places
    keeper = rows.shown_to(_Keeper(wanted), _BLOCK)
    if keeper.conflicts:
        keeper = rows.shown_to(_Keeper(wanted, keeper.conflicts), _BLOCK)
    columns = [_joined([part[j] for _, part, _ in keeper.parts]) for j in range(rows.n_features)]
    place = keeper.parts[0][2]
    return columns, [place.some(j, j + 1) for j in range(rows.n_features)]


def _are_sparse(rows: BaseRows) -> bool:
    return rows.finite and sparse.issparse(rows.take([0]).features)


def _joined(parts: Sequence[Cells]) -> Cells:
    """Return the parts of one column as one."""
    filled = [part for part in parts if _kind(part)] or list(parts[:1])
    kind = filled[0].kind
    if kind == "other" or len({part.kind for part in filled}) > 1:
        n = sum(map(len, parts))
        return Cells("other", np.full(n, None), np.concatenate([part.gaps for part in parts]))
    gaps = np.concatenate([part.gaps for part in parts])
    if filled[0].levels is None:
        dtype = filled[0].values.dtype
        values = [part.values if _kind(part) else np.zeros(len(part), dtype) for part in parts]
        return Cells(kind, np.concatenate(values), gaps)
    positions: dict[str, int] = {}
    codes: list[Indices] = []
    for part in parts:
        levels = [] if part.levels is None else part.levels.tolist()
        number = np.array([positions.setdefault(level, len(positions)) for level in levels] + [-1])
        codes.append(number[np.where(part.gaps, -1, part.values if levels else -1)])
    return Cells(kind, np.concatenate(codes), gaps, words(positions), filled[0].typed, filled[0].stated)


def _read(cells: Cells, place: Place) -> tuple[str, Array, Array | None]:
    """Return what a column holds, its values and its levels."""
    gaps = cells.gaps
    if gaps.all():
        return "empty", np.full(len(cells), np.nan), None
    if cells.kind == "other":
        return "other", np.where(gaps, np.nan, 0.0), None
    if cells.levels is None:
        values = cells.values
        if values.dtype.kind == "M":
            return "date", np.where(gaps, np.nan, values.astype("datetime64[us]").astype(np.int64) / 1e6), None
        values = values / np.timedelta64(1, "D") if values.dtype.kind == "m" else values
        return cells.kind, np.where(gaps, np.nan, values.astype(float)), None
    codes, levels = text_levels(cells, place)
    levels, numbers = _used(levels, codes, gaps)
    content = content_of(levels) if cells.kind == "text" else "text"
    if content == "text":
        return cells.kind, numbers, levels
    by_level = parsed(content, levels)
    if content in FORMS:
        by_level = np.array([seconds(moment) for moment in by_level])
    kind = "date" if content in FORMS else content
    return kind, np.append(by_level, np.nan)[np.where(gaps, -1, numbers).astype(np.intp)], None


def _used(levels: Array, codes: Array, gaps: Array) -> tuple[Array, Floats]:
    """Return the levels that occur, in order, and the codes of them; NaN where a value is missing."""
    occur = np.unique(codes[~gaps])
    order = occur[np.argsort(levels[occur].astype(str), kind="stable")]
    number = np.zeros(len(levels) + 1)
    number[order] = np.arange(len(order))
    return levels[order], np.where(gaps, np.nan, number[np.where(gaps, -1, codes)])


def _target(rows: RowSource, wanted: Indices) -> Column | None:
    if rows.n_targets == 0:
        return None
    values = np.asarray(without_features(rows).take(wanted).targets)[:, 0]
    name = (rows.target_names or ("the target",))[0]
    labels = getattr(rows, "labels", None)
    place = Place("the target", None, row_of(wanted), of_target=True)
    if labels is None:
        return Column(name, number_column(values), place)
    return Column(name, Cells("category", values.astype(np.intp), levels=words(labels)), place)
