"""Which columns identify or number the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ridgemark.backends import Floats
from ridgemark.checks.forms import kind_of_text

if TYPE_CHECKING:
    from ridgemark.checks.table import Column

FEWEST = 50  # rows; in fewer rows values differ, or are equal, by chance
_NEARLY_ALL = 0.95  # share of different values from which on a column may identify the rows
_NAMES = frozenset(("id", "ids", "uuid", "guid", "uid", "key", "identifier", "serial", "barcode", "ssn", "isbn"))
_TIMES = frozenset(
    ("year", "years", "yr", "date", "time", "month", "week", "day", "days", "hour", "quarter", "decade", "t")
)
CODES = _NAMES | {"zip", "zipcode", "postal", "postcode", "plz", "code", "codes", "fips", "sic", "naics"}
_BINS = 32  # of equally many values, in each of which integers are about equally likely
_EXPECTED = 10.0  # equal pairs from which on none would be a surprise
_DIGITS = 10  # times as many possible integers as rows: then equal values are rare by chance
_UNIFORM = 1.5  # largest sqrt(n) times the distance from the uniform distribution


def identifies(column: Column) -> bool:
    """Return whether a column gives nearly every row a value of its own, as an identifier does.

    Text does if nearly all texts differ, and they are not numbers or dates in another form. Integers do if so few are
    equal that chance would make ten times as many equal, or if the name says so. Of integers with many digits, of which
    chance makes few equal, those do that are spread evenly.
    """
    n = len(column.present)
    if n < FEWEST or column.n_different < _NEARLY_ALL * n:
        return False
    if column.levels is not None:
        return kind_of_text(column.levels.tolist()) is None
    if not column.is_whole or column.is_time or column.n_different < 2:
        return False
    values = np.sort(column.present)
    return bool(_NAMES & column.words) or _too_different(values) or _evenly_spread(values)


def is_named_code(column: Column) -> bool:
    """Return whether the name of a column says that it holds identifiers or codes."""
    return bool(CODES & column.words) or column.name.lower().endswith("id")


def is_time(column: Column) -> bool:
    """Return whether the name of a column says that it counts time; also that of years."""
    years = column.is_whole and column.present.min() > 1500 and column.present.max() < 2200
    return bool(_TIMES & column.words) or bool(years)


def numbers_rows(column: Column) -> bool:
    """Return whether integers ascend by one from nearly every row to the next."""
    n = len(column.present)
    if not column.is_whole or n < FEWEST or n < len(column.values) or column.is_time:
        return False
    return bool(np.mean(np.diff(column.values) == 1) > 0.9)


def _too_different(values: Floats) -> bool:
    """Return whether far fewer of these integers, in order, are equal than if each were drawn for itself.

    In a bin of m values between a and b, chance makes `m^2/(2 (b - a + 1))` pairs equal.
    """
    expected = 0.0
    for part in np.array_split(values, _BINS):
        if len(part) > 1:
            expected += len(part) ** 2 / (2 * (part[-1] - part[0] + 1))
    equal = len(values) - len(np.unique(values))
    return bool(expected > _EXPECTED and equal < 0.1 * expected)


def _evenly_spread(values: Floats) -> bool:
    """Return whether integers with many digits are spread evenly between the lowest and the highest."""
    extent = values[-1] - values[0]
    if extent < _DIGITS * len(values) or len(str(int(abs(values[-1])))) < 5:
        return False
    uniform = (values - values[0]) / extent
    distance = np.abs(uniform - np.arange(len(values)) / len(values)).max()
    on_grid = np.gcd.reduce(np.diff(values).astype(np.int64)) > 1  # as of rounded measurements
    return bool(np.sqrt(len(values)) * distance < _UNIFORM and not on_grid)
