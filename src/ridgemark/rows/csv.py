"""Rows of a CSV file, read repeatedly in bounded memory; needs no optional package.

Plain numbers are parsed fast, and everything else cell by cell.
"""

import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt

from ridgemark.errors import DataError, SourceFileError
from ridgemark.rows.arrow import csv_numbers
from ridgemark.rows.base import Block
from ridgemark.rows.cells import DOUBLE, LARGEST_EXACT
from ridgemark.rows.choice import Header, as_keys
from ridgemark.rows.csv_scan import BLANK, Chunk, FirstRow, find_chunks, read_first_row, stray_mark
from ridgemark.rows.files import FileState, bomb, is_bomb, reading, require_file
from ridgemark.rows.places import Place, shown
from ridgemark.rows.scanned import ScannedRows

_INTEGER = re.compile(r"[+-]?\d+")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_TRUTH = {"true": 1.0, "false": 0.0}
_LONG = 2**18  # characters; for longer text it pays to load pyarrow, if installed
_MISSING = {"", "na", "n/a", "null", "none", "?"}


class CsvRows(ScannedRows):
    """Rows of a CSV file, which may be gzip-compressed (name ending in `.gz`).

    Text in UTF-8, with or without a byte order mark. The delimiter is comma, semicolon or tab, whichever is most
    frequent in the first line; fields may be quoted; blank lines are skipped. Cells in use must be numbers, or true and
    false, which become 1 and 0; unused columns may hold anything. Opening reads the file once to find and count the
    rows; numbers are read as float64 in each pass.

    The first line names the columns. If it holds only numbers, the form of the arguments decides: with text
    (`target="400"`) the numbers are names; with positions (`target=3`) the file has no header, and the columns are
    named "0", "1" and so on.

    Parameters
    ----------
    path : str or path
        The file.
    target : str, int, or list of them, optional
        Name or position of the target column or columns.
    columns : list of str or int, optional
        The features, in this order; by default all columns without another role.
    weight : str or int, optional
        Name or position of the weight column.

    Raises
    ------
    SourceFileError
        When the file is missing, empty, truncated or not text.
    DataError
        When a column is missing, or a cell is not a finite number; the message names row, line and column.
    """

    def __init__(
        self, path: str | os.PathLike[str], target: Any = None, columns: Any = None, weight: Any = None
    ) -> None:
        self._path = require_file(path)
        source = shown(self._path)
        files = FileState(self._path)
        with open_csv(self._path) as file:
            first = read_first_row(file, source)
            has_header = _has_header(first, source, target, columns, weight)
            offset, line = (first.next_offset, first.next_line) if has_header else (first.offset, first.line)
            self._delimiter, self._n_columns = first.delimiter, len(first.cells)
            names = first.cells if has_header else tuple(str(j) for j in range(self._n_columns))
            header = Header(source, self._n_columns, names)
            choice = header.choose(target, columns, weight)
            self._chunks = find_chunks(file, offset, line, self._delimiter, self._n_columns, source)
        if not self._chunks:
            raise SourceFileError(f"{source} has a header but no rows; at least one row is needed")
        super().__init__(header, choice, [chunk.n_rows for chunk in self._chunks], DOUBLE, files)

    def _read(self, chunks: Sequence[int]) -> Iterator[Block]:
        with open_csv(self._path) as file:
            for k in chunks:
                yield self._block_of(self._chunks[k], file)

    def _block_of(self, chunk: Chunk, file: IO[bytes]) -> Block:
        file.seek(chunk.offset)
        text = file.read(chunk.n_bytes).decode("latin-1")
        rows = CsvText(text, chunk, self._delimiter, self._n_columns, self._source)
        place = Place(self._source, self._names, rows.row)
        return self._block(chunk.first_row, list(rows.numbers(self._choice.all, place).T), place)


@contextmanager
def open_csv(path: Path) -> Iterator[IO[bytes]]:
    """Open a CSV file, compressed or not; every failure to read it is a `SourceFileError`."""
    compressed = path.name.lower().endswith(".gz")
    form = "gzip-compressed CSV (.csv.gz)" if compressed else "CSV"
    with (
        reading(path, form, EOFError, zlib.error, csv.Error),
        _Expanding(path) if compressed else path.open("rb") as file,
    ):
        yield cast(IO[bytes], file)


class _Expanding(gzip.GzipFile):
    """A compressed file that is refused if it expands beyond the limit."""

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__(path, "rb")

    def read(self, size: int | None = -1) -> bytes:
        return self._checked(super().read(size))

    def readline(self, size: int | None = -1) -> bytes:
        return self._checked(super().readline(size))

    def _checked(self, data: bytes) -> bytes:
        if is_bomb(self.tell(), cast(IO[bytes], self.fileobj).tell()):
            raise bomb(self._path)
        return data


def _has_header(first: FirstRow, source: str, *asked: Any) -> bool:
    """Return whether the first line names the columns; see `CsvRows`."""
    if not all(map(is_number, first.cells)):
        return True
    keys = [key for given in asked if given is not None for key in as_keys(given, "a column")]
    names = [key for key in keys if isinstance(key, str)]
    if names and set(names) <= set(first.cells):
        return True
    counted = list(first.cells) == [str(j) for j in range(len(first.cells))]
    if keys and not names and not counted:
        return False
    start = ", ".join(first.cells[:3])
    raise DataError(
        f"the first line of {source} holds numbers, not column names ({start}, ...); if they are names, give "
        f"columns as text: target={shown(first.cells[-1])}; if the file has no header, "
        + ("add one" if counted else "give positions: target=0 or columns=[0, 1]")
    )


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


def _number(text: str, place: Place, row: int, column: int) -> float:
    if _INTEGER.fullmatch(text) and abs(Decimal(text)) > LARGEST_EXACT:  # int() refuses very many digits
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
