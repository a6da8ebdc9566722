"""One column of a table as NumPy arrays, before it is encoded as numbers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, cached_property
from numbers import Real
from typing import Any, Literal, Protocol

import numpy as np

from ridgemark.backends import Flags, Indices
from ridgemark.errors import DataError
from ridgemark.rows.base import Array, BaseRows, Rows, RowSource
from ridgemark.rows.cells import DOUBLE, check_present, from_objects, is_missing, numbers
from ridgemark.rows.places import CATEGORY, TEXT, Place

Kind = Literal["number", "boolean", "text", "category", "date", "other"]

_KINDS: dict[str, Kind] = {"b": "boolean", "M": "date", "f": "number", "i": "number", "u": "number", "m": "number"}
MOMENT = np.dtype("datetime64[us]")  # of dates and times; those with a time zone in UTC
_EPOCH = dt.date(1970, 1, 1)
_LONGEST = dt.timedelta(days=10**8)  # of time spans, which 64 bits count in microseconds


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of one column at some rows.

    Parameters
    ----------
    kind : {"number", "boolean", "text", "category", "date", "other"}
        "other" is what no rule encodes, such as lists.
    values : ndarray (n,)
        Numbers or time spans, booleans, datetime64; of text and categories, positions in `levels`.
    missing : ndarray (n,) of bool, optional
        Which values are missing, besides those that are NaN or NaT; values there mean nothing.
    levels : ndarray (k,) of str, optional
        The different texts, in any order; some may not occur.
    typed : bool, default=True
        Whether the source states the type. One that does not, a CSV file, can deliver any column as text.
    stated : str
        The type in the source's words, for messages.
    """

    kind: Kind
    values: Array
    missing: Flags | None = None
    levels: Array | None = None
    typed: bool = True
    stated: str = ""

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Rows) -> Cells:
        missing = None if self.missing is None else self.missing[rows]
        return replace(self, values=self.values[rows], missing=missing)

    @cached_property
    def gaps(self) -> Flags:
        """Which values are missing, shape (n,)."""
        gaps = np.zeros(len(self), dtype=bool) if self.missing is None else self.missing
        if self.values.dtype.kind == "f":
            return gaps | np.isnan(self.values)
        return gaps | np.isnat(self.values) if self.values.dtype.kind in "mM" else gaps

    def plain(self, place: Place) -> Array:
        """Return the values of a column that needs no encoding; refuse text, categories and missing values."""
        if self.kind in ("text", "category"):
            raise place.wrong_kind(TEXT if self.kind == "text" else CATEGORY, self.stated)
        if self.kind == "other" or self.values.dtype.kind in "mM":
            raise self.refusal(place)
        if self.missing is not None:
            check_present(self.missing, place)
        return self.values

    def refusal(self, place: Place) -> DataError:
        """Return the error for a column of a wrong kind; objects that are not of one type are named."""
        if self.kind == "other" and self.values.dtype.kind == "O":
            return _not_one_type(self.values, place)
        return place.wrong_kind(self.values.dtype.kind, self.stated)


class ColumnEncoder(Protocol):
    """Turns the columns of some rows into features; `BaseRows.encoded_by` takes one.

    Attributes
    ----------
    names : tuple of str
        Names of the features.
    texts : frozenset of int
        Positions of the columns that a source without types must deliver as text.
    keeps_columns : bool
        Whether the features are the columns themselves, so that single precision stays.
    """

    names: tuple[str, ...]
    texts: frozenset[int]
    keeps_columns: bool

    def __call__(self, start: int, columns: Sequence[Cells], place: Place, weights: Array | None = None) -> Array:
        """Return the features (n, k) of the rows from `start` on, in float64; `weights` are those of the rows."""


class NoFeatures:
    """An encoder that makes no features: rows are read for their targets and weights, and numbers are checked."""

    names: tuple[str, ...] = ()
    texts: frozenset[int] = frozenset()
    keeps_columns = False

    def __call__(self, start: int, columns: Sequence[Cells], place: Place, weights: Array | None = None) -> Array:
        """Return features (n, 0); refuse infinities and integers beyond 2**53."""
        for k, column in enumerate(columns):
            if column.kind == "number" and column.values.dtype.kind != "m":
                numbers(column.values, DOUBLE, place.some(k, k + 1), gaps=True)
        return np.empty((len(columns[0]), 0))


def without_features(source: RowSource) -> RowSource:
    """Return the rows without features, where these are not known to be finite numbers, to read targets and weights."""
    return source.encoded_by(NoFeatures()) if isinstance(source, BaseRows) and not source.finite else source


def rows_with_gaps(parts: Iterable[Sequence[Cells]]) -> Indices:
    """Return the rows with a missing value in one of some columns, given in parts of some rows."""
    return np.flatnonzero(np.concatenate([np.any([column.gaps for column in part], axis=0) for part in parts]))


def number_column(values: Array) -> Cells:
    """Return an array of numbers, booleans, dates or time spans as a column; other types are of the kind "other"."""
    return Cells(_KINDS.get(values.dtype.kind, "other"), values, stated=_stated(values.dtype))


@cache  # as NumPy takes longer to name a type than to convert a short column
def _stated(dtype: np.dtype[Any]) -> str:
    return str(dtype)


def times(nanoseconds: Array) -> Cells:
    """Return times of the day as moments of the first day of 1970."""
    return Cells("date", (nanoseconds // 1000).astype(np.int64).view(MOMENT))


def text_column(values: Iterable[Any], missing: Flags, stated: str, kind: Kind = "text") -> Cells:
    """Return text, one for each row; what stands where a value is missing is ignored."""
    known: dict[str, int] = {}
    positions = (
        -1 if gap else known.setdefault(value, len(known)) for value, gap in zip(values, missing.tolist(), strict=True)
    )
    codes = np.fromiter(positions, dtype=np.intp, count=len(missing))
    return Cells(kind, codes, missing, words(known), stated=stated)


def words(texts: Iterable[Any]) -> Array:
    """Return texts as an array of Python strings; other objects are written as text."""
    return np.array([*map(str, texts), None], dtype=object)[:-1]  # None: an array of objects, also if it is empty


def array_column(values: Array, place: Place) -> Cells:
    """Return an array (n,) of any type as a column; text and objects are read by their content."""
    return object_column(values.astype(object), place) if values.dtype.kind in "OUT" else number_column(values)


def object_column(values: Array, place: Place) -> Cells:
    """Return Python objects of one type as a column; text is read by its content, and no encoding takes other types."""
    missing = np.fromiter(map(is_missing, values), dtype=bool, count=len(values))
    present = values[~missing]
    types = set(map(type, present))

    def all_are(*allowed: type) -> bool:
        return all(issubclass(one, allowed) for one in types)

    if not types:
        return Cells("number", np.zeros(len(values)), missing, stated="object")
    if all_are(str):
        return text_column(values, missing, "object")
    if all_are(bool, np.bool_):
        return Cells("boolean", np.where(missing, False, values).astype(bool), missing, stated="object")
    if all_are(Real, Decimal, np.bool_):
        filled = values.copy()
        filled[missing] = 0.0
        return Cells("number", from_objects(filled, place), missing, stated="object")
    if all_are(dt.date):
        moments = np.full(len(values), "NaT", MOMENT)
        moments[~missing] = np.array(list(map(in_utc, present)), MOMENT)
        return Cells("date", moments, stated="object")
    if all_are(dt.time):
        of_day = [None if gap else dt.datetime.combine(_EPOCH, one) for one, gap in zip(values, missing, strict=True)]
        return object_column(np.array(of_day, dtype=object), place)
    if all(one.__module__.startswith("pandas") and one.__name__ == "Period" for one in types):
        starts = np.array([getattr(one, "start_time", None) for one in values], dtype=object)
        return object_column(starts, place)
    if all_are(dt.timedelta) and max(map(abs, present)) < _LONGEST:
        spans = np.full(len(values), "NaT", "timedelta64[us]")
        spans[~missing] = list(present)
        return number_column(spans)
    return Cells("other", values, missing, stated="object")


def in_utc(moment: Any) -> Any:
    """Return a date or time without its time zone, in UTC."""
    if getattr(moment, "tzinfo", None) is None:
        return moment
    return moment.astimezone(dt.UTC).replace(tzinfo=None)


def _not_one_type(values: Array, place: Place) -> DataError:
    """Return the error for objects that are not numbers, or of several types; it names the first unexpected one."""
    rows, number = [k for k, value in enumerate(values) if not is_missing(value)], Real | Decimal | np.bool_
    first = values[rows[0]]
    expected = number if isinstance(first, number) else type(first)
    row = next((k for k in rows if not isinstance(values[k], expected)), rows[0])
    refuse = place.no_number if row == rows[0] and not isinstance(first, str | dt.date) else place.mixed
    return refuse(values[row], row)
