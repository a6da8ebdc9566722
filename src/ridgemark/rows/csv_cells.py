"""Parsing the text of CSV rows: fast for plain numbers, cell by cell for everything else."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from ridgemark.rows.arrow import csv_numbers
from ridgemark.rows.cells import LARGEST_EXACT
from ridgemark.rows.csv_scan import BLANK, Chunk, stray_mark
from ridgemark.rows.places import Place

_INTEGER = re.compile(r"[+-]?\d+")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_TRUTH = {"true": 1.0, "false": 0.0}
_LONG = 2**18  # characters; for longer text it pays to load pyarrow, if installed
_MISSING = {"", "na", "n/a", "null", "none", "?"}


@dataclass(frozen=True)
class CsvText:
    """The text of one chunk, in Latin-1: numbers are ASCII, and other columns may be in any encoding.

    Parameters
    ----------
    text : str
        Whole rows.
    chunk : Chunk
        Position of the rows in the file.
    delimiter : str
        One character.
    n_columns : int
        Cells in every row.
    source : str
        Name of the file in messages.
    """

    text: str
    chunk: Chunk
    delimiter: str
    n_columns: int
    source: str

    def numbers(self, columns: Sequence[int], place: Place) -> npt.NDArray[np.float64]:
        """Return some columns (n, k), which may still hold NaN and infinities."""
        values = None
        if len(self.text) >= _LONG and '"' not in self.text:
            values = csv_numbers(self.text.encode("latin-1"), self.delimiter, columns, self.n_columns)
        try:
            if values is None or len(values) != self.chunk.n_rows:
                values = np.loadtxt(
                    io.StringIO(self.text, newline="\n"),
                    delimiter=self.delimiter,
                    comments=None,
                    quotechar='"',
                    usecols=columns,
                    ndmin=2,
                )
        except ValueError:
            return self._cell_by_cell(columns, place)
        if len(values) != self.chunk.n_rows:  # a stray carriage return or quote, which scan and parser read differently
            return self._cell_by_cell(columns, place)
        if np.abs(values).max() >= LARGEST_EXACT:  # 2**53 + 1 also reads as 2**53
            self._check_integers(values, columns, place)
        return values

    def row(self, position: int) -> str:
        """Describe a row by its number and its line in the file."""
        line, _ = next(islice(self._rows(), position, None))
        return f"row {self.chunk.first_row + position} (line {line})"

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader(io.StringIO(self.text, newline="\n"), delimiter=self.delimiter)
        line = self.chunk.first_line
        for cells in reader:
            if cells and (len(cells) > 1 or cells[0].strip(BLANK)):
                yield line, cells
            line = self.chunk.first_line + reader.line_num

    def _cell_by_cell(self, columns: Sequence[int], place: Place) -> npt.NDArray[np.float64]:
        values = np.empty((self.chunk.n_rows, len(columns)))
        at = -1
        for at, (line, cells) in enumerate(self._rows()):
            if len(cells) != self.n_columns or at == len(values):
                raise stray_mark(self.source, line)
            for k, column in enumerate(columns):
                values[at, k] = _number(cells[column].strip(), place, at, k)
        if at + 1 < len(values):
            raise stray_mark(self.source, self.chunk.first_line)
        return values

    def _check_integers(self, values: npt.NDArray[np.float64], columns: Sequence[int], place: Place) -> None:
        large = np.abs(values) >= LARGEST_EXACT
        for at, (_, cells) in enumerate(self._rows()):
            for k in np.flatnonzero(large[at]).tolist():
                _number(cells[columns[k]].strip(), place, at, k)


def is_number(text: str) -> bool:
    """Return whether a cell has the form of a number."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _is_exact(integer: str) -> bool:
    """Return whether an integer is at most 2**53 in absolute value; one with too many digits is not parsed."""
    digits = integer.lstrip("+-").lstrip("0")
    return len(digits) <= len(str(LARGEST_EXACT)) and int(digits or "0") <= LARGEST_EXACT


def _number(text: str, place: Place, row: int, column: int) -> float:
    if _INTEGER.fullmatch(text) and not _is_exact(text):
        raise place.too_large(text, row, column)
    if is_number(text):
        return float(text)
    if text.lower() in _TRUTH:
        return _TRUTH[text.lower()]
    if text.lower() in _MISSING:
        raise place.missing(row, column)
    if _DECIMAL_COMMA.fullmatch(text):
        raise place.decimal_comma(text, row, column)
    raise place.no_number(text.encode("latin-1").decode("utf-8", errors="replace"), row, column)
