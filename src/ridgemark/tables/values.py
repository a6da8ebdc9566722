"""The values of a column in the form of one kind: numbers, moments or levels; text is read by its content."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ridgemark.backends import Floats, Indices
from ridgemark.rows.base import Array
from ridgemark.rows.cells import CODE, DOUBLE, LARGEST_EXACT, TRUTH, is_large_integer, numbers
from ridgemark.rows.column import MOMENT, Cells, words
from ridgemark.rows.places import Place
from ridgemark.tables.date_forms import FORMS, ISO, forms_of, read_dates

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.ASCII | re.IGNORECASE)
_WITH_UNIT = re.compile(r"[^\w\s]{0,2}\s?[+-]?(?!0\d)\d[\d.,']*\s?[^\d\s]{0,6}")  # $1,200.50 or 12 kg
_AMOUNT = re.compile(r"[-+(]?([$€£¥] ?\d[\d.,']*\)?|\d[\d.,']* ?[%‰$€£¥]|\d{1,3}(,\d{3})+(\.\d+)?)")
_LIKE_DATE = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}(\D.*)?")  # 31.12.2024 14:05
_DATE, _MIDNIGHT = re.compile(r"\d{4}-\d\d-\d\d"), " 00:00:00"
_DAY = np.timedelta64(1, "D")


def looks_measured(texts: Iterable[str], strictly: bool = False) -> str | None:
    """Return the first text that looks like a number with a unit, or like a date in any order, if most texts do.

    `strictly` only amounts of money, percentages and thousands: few levels such as "4th" and "2 doors" are categories.
    """
    known = list(texts)
    forms = (_AMOUNT,) if strictly else (_WITH_UNIT, _LIKE_DATE)
    found = [text for text in known if any(form.fullmatch(text.strip()) for form in forms)]
    return found[0] if 2 * len(found) > len(known) else None


def content_of(levels: Array) -> str:
    """Return what texts hold: "number", "boolean", the form of their dates, or "text" if one of them is nothing else.

    Dates whose order of day and month cannot be told are text, and so are codes: integers, of which one begins with 0.
    """
    if not len(levels):
        return "text"
    if all(level.strip().lower() in TRUTH for level in levels):
        return "boolean"
    if not any(not_of_kind("number", some).any() for some in (levels[:1], levels)):  # mostly the first one tells
        return "text" if any(CODE.fullmatch(level.strip()) for level in levels) else "number"
    forms = forms_of(levels)
    return forms[0] if len(forms) == 1 else "text"


def not_of_kind(kind: str, levels: Sequence[str] | Array) -> Array:
    """Return which texts are not values of a kind."""
    return _absent(parsed(kind, levels))


def parsed(kind: str, levels: Sequence[str] | Array) -> Array:
    """Return texts as numbers, as 0 and 1, or, for a form of dates, as moments; NaN or NaT marks other text."""
    if kind in FORMS:
        return read_dates(levels, kind)
    read = _number if kind == "number" else lambda text: TRUTH.get(text.lower(), np.nan)
    return np.array([read(level.strip()) for level in levels], dtype=float)


def float_values(column: Cells, kind: str, place: Place, by_level: Array | None = None) -> Floats:
    """Return a column as numbers, or as booleans 0 and 1; NaN where a value is missing.

    Time spans are counted in days. `by_level` holds the number of each level of a column of text.
    """
    gaps = column.gaps
    if gaps.all():  # whatever its type: sources state any for a column without values
        return np.full(len(column), np.nan)
    if column.levels is not None:
        by_level = parsed(kind, column.levels) if by_level is None else by_level
        values = _of_rows(by_level, column, gaps, kind, place)
        _check_long_integers(column, values, place)
    elif column.kind in ("date", "other"):
        raise column.refusal(place)
    else:
        values = column.values / _DAY if column.values.dtype.kind == "m" else column.values
    result = numbers(values, DOUBLE, place, gaps=True)
    if kind == "boolean" and column.kind == "number" and (other := ~np.isin(result, (0.0, 1.0)) & ~gaps).any():
        row = int(np.argmax(other))
        raise place.not_of_kind(result[row], kind, row)
    return np.where(gaps, np.nan, result) if gaps.any() else result


def moments(column: Cells, place: Place, by_level: Array | None = None) -> Array:
    """Return a column as moments; NaT where a value is missing."""
    gaps = column.gaps
    if gaps.all():
        return np.full(len(column), "NaT", MOMENT)
    if column.levels is not None:
        by_level = parsed(ISO, column.levels) if by_level is None else by_level
        return _of_rows(by_level, column, gaps, "date", place)
    if column.kind != "date":
        row = int(np.argmin(gaps))
        raise place.not_of_kind(column.values[row], "date", row)
    return np.where(gaps, np.datetime64("NaT", "us"), column.values.astype(MOMENT))


def text_levels(column: Cells, place: Place) -> tuple[Indices, Array]:
    """Return the level of every row, as a position in the levels, and these; numbers, booleans and dates as text."""
    if column.levels is not None:
        return column.values, column.levels
    if column.kind == "other":
        raise column.refusal(place)
    present = column.values[~column.gaps]
    if present.dtype.kind in "Mm":  # of nanoseconds NumPy would make integers
        present = present.astype(f"{present.dtype.kind}8[us]")
    different, position = np.unique(present, return_inverse=True)
    codes = np.zeros(len(column), dtype=np.intp)
    codes[~column.gaps] = position
    return codes, words(map(_text, different.tolist()))


def _text(value: Any) -> str:
    """Return a value as text, the same for 1 and 1.0: a column of integers with gaps is often one of floats."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def rewritten(level: str) -> str:
    """Return the other text of a value: 1 of 1.0, true of True, the day of its midnight, and back; else the text."""
    if (lower := level.lower()) in ("true", "false"):
        return level.capitalize() if level == lower else lower
    if _DATE.fullmatch(level):
        return level + _MIDNIGHT
    if level.endswith(_MIDNIGHT):
        return level.removesuffix(_MIDNIGHT)
    whole = level.removesuffix(".0")
    if not whole.removeprefix("-").isdecimal():
        return level
    return f"{level}.0" if whole == level else whole


def _of_rows(by_level: Array, column: Cells, gaps: Array, kind: str, place: Place) -> Array:
    """Return the value of each row's level; refuse a level that is not a value of this kind."""
    assert column.levels is not None
    nothing = np.datetime64("NaT", "us") if kind == "date" else np.nan
    values = np.append(by_level, np.array([nothing], by_level.dtype))[np.where(gaps, -1, column.values)]
    if (wrong := _absent(values) & ~gaps).any():
        row = int(np.argmax(wrong))
        raise place.not_of_kind(column.levels[column.values[row]], kind, row)
    return values


def _absent(values: Array) -> Array:
    """Return where values are NaN or NaT."""
    return np.isnat(values) if values.dtype.kind == "M" else np.isnan(values)


def _check_long_integers(column: Cells, values: Floats, place: Place) -> None:
    """Refuse integers beyond 2**53 among texts."""
    assert column.levels is not None
    for row in np.flatnonzero(np.abs(values) >= LARGEST_EXACT).tolist():
        text = column.levels[column.values[row]].strip()
        if is_large_integer(text):
            raise place.too_large(text, row)


def _number(text: str) -> float:
    return float(text) if _NUMBER.fullmatch(text) else np.nan
