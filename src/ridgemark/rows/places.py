"""Every error message about the contents of rows: where the cell is and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import numpy as np

from ridgemark.errors import DataError, DataTypeError

LONGEST_SHOWN = 60
MOST_LISTED = 12
_SET_APART = 10_000

TEXT, CATEGORY = "U", "category"

LEAVE_OUT = "leave the column out: X.drop(columns=[...]), or open_rows(..., columns=[...]); command line: --drop"

# What an array of each numpy kind (or a column of categories) holds, and the remedy.
_KINDS = {
    TEXT: ("text", "convert it to numbers"),
    "M": ("dates or times", "convert them to a number first, such as days since a start"),
    "m": ("time spans", "convert them to a number first, such as seconds"),
    "c": ("complex numbers", "split them into real and imaginary parts"),
    "V": ("structured records", "give a dict instead: {name: a[name] for name in a.dtype.names}"),
    "O": ("Python objects", "convert them with .astype(float)"),
    CATEGORY: ("categories", "encode them first, for example as one column of 0 and 1 for each category"),
}
_KINDS["S"] = _KINDS["T"] = _KINDS[TEXT]


def shown(name: object) -> str:
    """Return a name or cell as it appears in messages: quoted, control characters escaped, shortened.

    Of a long path the end is kept, since the file name is there.
    """
    text = str(name)
    if isinstance(name, PurePath) and len(text) > LONGEST_SHOWN:
        return repr("..." + text[3 - LONGEST_SHOWN :])
    return repr(_short(text))


def listed(names: Iterable[object]) -> str:
    """Return names joined by commas; of many names, the first few and the number of the others."""
    every = list(names)
    text = ", ".join(shown(name) for name in every[:MOST_LISTED])
    return text if len(every) <= MOST_LISTED else f"{text} and {len(every) - MOST_LISTED} more"


def as_written(value: float, digits: int = 4, sign: str = "") -> str:
    """Return a number rounded to some significant digits, as people write it: 540,000, not 5.4e+05.

    Thousands are set apart from 10,000 on, so that a year stays as it is. Beyond 1e15, and nearer to zero than 1e-4,
    there is an exponent. With `sign` "+" positive numbers have a sign too.
    """
    rounded = float(f"{value:.{digits}g}")
    thousands = "," if abs(rounded) >= _SET_APART else ""
    return f"{rounded:{sign}{thousands}.15g}"


@dataclass(frozen=True)
class Place:
    """Where some cells come from, so that an error can name row and column.

    Parameters
    ----------
    source : str
        Name of the data, as in "column 'x' of SOURCE": a quoted file name, "the DataFrame", "the targets".
    columns : sequence of str or int, or None
        Name or position of each column; None for a single column without a name.
    row : callable
        Takes the position of a row among these cells, returns its description, as in "row 12 (line 14)".
    of_target : bool
        Whether all columns are targets; rows without one can be left out, and text needs another remedy.
    """

    source: str
    columns: Sequence[str | int] | None
    row: Callable[[int], str]
    of_target: bool = False

    def column(self, position: int = 0) -> str:
        """Describe one column."""
        if self.columns is None:
            return self.source
        name = self.columns[position]
        return f"column {shown(name) if isinstance(name, str) else name} of {self.source}"

    def cell(self, row: int, column: int = 0) -> str:
        """Describe one cell."""
        return f"{self.row(row)}{' of ' if self.columns is None else ', '}{self.column(column)}"

    def some(self, first: int, last: int | None = None) -> Place:
        """Return the place of the columns `first` to `last` (excluded)."""
        if self.columns is None:
            return self
        return Place(self.source, self.columns[first:last], self.row, self.of_target)

    def at(self, rows: Any) -> Place:
        """Return the place of some of the rows, by their positions."""
        return replace(self, row=lambda position: self.row(int(rows[position])))

    @property
    def remedy(self) -> str:
        """What to do about a value that is missing."""
        skip = 'fill it in, or leave such rows out with open_rows(..., missing_target="skip")'
        return skip if self.of_target else "fill it in or drop the row first"

    def bad_number(self, value: float, row: int, column: int = 0) -> DataError:
        """Refuse NaN or an infinity."""
        gap = np.isnan(value)
        what = "NaN (not a number)" if gap else f"{value} (infinity)"
        remedy = self.remedy if gap else "fill it in or drop the row first"  # none is left out for an infinity
        return DataError(f"{self.cell(row, column)} is {what}; every value must be a finite number; {remedy}")

    def missing(self, row: int, column: int = 0) -> DataError:
        """Refuse an empty or null cell."""
        rule = "every row needs its target" if self.of_target else "every cell must have a value"
        return DataError(f"{self.cell(row, column)} is missing; {rule}; {self.remedy}")

    def no_number(self, value: object, row: int) -> DataTypeError:
        """Refuse a cell that holds text or another value that is not a number."""
        remedy = f"every value must be a number; convert it, or {LEAVE_OUT}"
        if self.of_target:
            remedy = (
                "a target must hold numbers only, or labels that are all text; correct it, or read the labels of a CSV "
                'file as text: open_rows(..., labels="text") (command line: --classify)'
            )
        return DataTypeError(f"{self.cell(row)} holds {_described(value)}; {remedy}")

    def not_utf8(self, row: int) -> DataError:
        """Refuse text in another encoding."""
        return DataError(f"{self.cell(row)} is not in UTF-8; save the file as UTF-8, or {LEAVE_OUT}")

    def mixed(self, value: object, row: int) -> DataTypeError:
        """Refuse a value whose type differs from that of the values before it."""
        return DataTypeError(
            f"{self.cell(row)} holds {_described(value)}, and the values before it are of another type; a column must "
            f"hold one type: convert it (astype(str) makes text), or {LEAVE_OUT}"
        )

    def not_of_kind(self, value: object, kind: str, row: int) -> DataTypeError:
        """Refuse a value in a column that holds numbers, booleans or dates; other remedies than its own need a fit."""
        held = {"number": "numbers", "boolean": "true and false", "date": "dates"}[kind]
        return DataTypeError(
            f"{self.cell(row)} is {shown(value)}; the column holds {held} by its other rows or in the fit; "
            f"correct the value{' (a date may be written as 2024-12-31)' * (kind == 'date')}; or, in the fit, name the "
            f"column in categorical_features (command line: --categorical) or {LEAVE_OUT}"
        )

    def unseen(self, value: object, row: int) -> DataError:
        """Refuse a level that the fit has not seen."""
        return DataError(
            f"{self.cell(row)} is {shown(value)}, a level that the fit has not seen; correct it, drop the row, "
            'or fit with unknown="ignore" (command line: --unknown ignore)'
        )

    def separated(self, text: str, row: int, decimal: str) -> DataError:
        """Refuse a number with another decimal mark than `decimal`, or with thousands separators."""
        mark, name = (".", "point") if decimal == "," else (",", "comma")
        return DataError(
            f"{self.cell(row)} is {shown(text)}, with a decimal {name} or a thousands separator; give "
            f"decimal={mark!r} (command line: --decimal {mark}) for decimal {name}s; remove thousands separators from "
            "the file"
        )

    def too_large(self, value: object, row: int, column: int = 0) -> DataError:
        """Refuse an integer that a float64 cannot hold."""
        return DataError(
            f"{self.cell(row, column)} is the integer {_integer(value)}, beyond 2**53: as a floating "
            f"number it would lose digits; subtract an offset first, or {LEAVE_OUT}"
        )

    def wrong_kind(self, kind: str, dtype: object) -> DataTypeError:
        """Refuse a whole column, or array, by its type."""
        what, remedy = _KINDS.get(kind, ("values that are not numbers", "convert it to numbers"))
        out = "" if self.columns is None else f", or {LEAVE_OUT}"
        return DataTypeError(
            f"{self.column()} holds {what} (type {dtype}); every value must be a number; {remedy}{out}"
        )

    def bad_weight(self, value: float, row: int) -> DataError:
        """Refuse a negative weight."""
        return DataError(f"{self.cell(row)} is {value}; a weight must be 0 or more; 0 leaves a row out of the fit")


def _described(value: object) -> str:
    """Return what a cell holds that is not a number."""
    return f"{'text' if isinstance(value, str) else f'a value of type {type(value).__name__}'}, {shown(value)}"


def _integer(value: Any) -> str:
    """Return an integer as text; Python refuses to print very long ones."""
    if isinstance(value, int) and value.bit_length() > 1000:
        return f"of about {int(value.bit_length() * 0.30103)} digits"
    return _short(str(value))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 3] + "..."


def row_of(rows: slice | Any) -> Callable[[int], str]:
    """Return a function that describes the k-th of `rows`, a slice with a start or an array of row numbers."""
    if isinstance(rows, slice):
        return lambda position: f"row {rows.start + position}"
    return lambda position: f"row {rows[position]}"
