"""Rows of a CSV file, parsed by pyarrow and read repeatedly in bounded memory."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from ridgemark.errors import DataError, ParameterError, SourceFileError
from ridgemark.rows import csv_scan as scan
from ridgemark.rows.arrow import CsvParser, require_pyarrow
from ridgemark.rows.base import Array, Block
from ridgemark.rows.cells import DOUBLE, LARGEST_EXACT, check_present
from ridgemark.rows.choice import Header, as_keys
from ridgemark.rows.files import FileState, open_csv, reading, require_file
from ridgemark.rows.places import Place, shown
from ridgemark.rows.scanned import ScannedRows

_INTEGER = re.compile(r"[+-]?\d+")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_TRUTH = {"true": 1.0, "false": 0.0}
_MISSING = {"", "na", "n/a", "nan", "null"}  # in any case of letters, with or without spaces around
_MISSING_EXACTLY = [*(form for word in _MISSING for form in (word, word.upper(), word.capitalize())), "NaN"]


class RawColumn(NamedTuple):
    """One column of some rows as the file has it.

    Attributes
    ----------
    name : str
    values : ndarray (n,)
        float64, with NaN for missing cells, where all cells of the file are numbers or missing; otherwise Python
        strings, exactly as written.
    missing : ndarray (n,) of bool
        Cells that are empty, NA, N/A, NaN or null, in any case of letters.
    kind : str
        "number" or "text".
    """

    name: str
    values: Array
    missing: Array
    kind: str


class CsvFile:
    """A CSV file, which may be gzip-compressed (name ending in `.gz`), with its header and the positions of its rows.

    Text in UTF-8, with or without a byte order mark. Fields may be quoted; blank lines are skipped. Opening reads the
    file once to find and count the rows.

    The first line names the columns. If it holds only numbers, the form of the arguments decides: with text
    (`target="400"`) the numbers are names; with positions (`target=3`) the file has no header, and the columns are
    named "0", "1" and so on.

    Parameters
    ----------
    path : str or path
        The file.
    asked : sequence
        What will be asked for: names or positions of columns, or None.
    delimiter : str, optional
        By default comma, semicolon or tab, whichever is most frequent in the first line.
    decimal : "." or ","
        The decimal mark.

    Attributes
    ----------
    header : Header
    names : tuple of str
        Names of the columns.
    chunk_rows : list of int
        The number of rows in every chunk; a chunk is read as a whole.

    Raises
    ------
    SourceFileError
        When the file is missing, empty, truncated or not text.
    """

    def __init__(
        self, path: str | os.PathLike[str], asked: Sequence[Any] = (), delimiter: str | None = None, decimal: str = "."
    ) -> None:
        self.path = require_file(path)
        self.source = shown(self.path)
        require_pyarrow("Reading CSV")
        _check_form(delimiter, decimal)
        self.state = FileState(self.path)
        with open_csv(self.path) as file:
            lines = scan.all_lines(file, self.path)
            first, rest = scan.split_first_row(lines, self.source)
            cells, delimiter = scan.split_cells(first[-1], self.source, delimiter, decimal)
            named = _has_header(cells, decimal, self.source, asked)
            self.names = cells if named else tuple(str(j) for j in range(len(cells)))
            self.header = Header(self.source, len(cells), self.names)
            self.parser = CsvParser(len(cells), delimiter, decimal)
            parts = chain([rest] if named else [first, rest], lines)
            self._chunks = list(scan.find_chunks(parts, self.parser, self.source))
        if not self._chunks:
            raise SourceFileError(f"{self.source} has a header but no rows; at least one row is needed")
        self.chunk_rows = [chunk.n_rows for chunk in self._chunks]

    def pieces(self, chunks: Sequence[int] | None = None) -> Iterator[CsvPiece]:
        """Iterate over some chunks, in ascending order; by default over all."""
        with open_csv(self.path) as file:
            for chunk in self._chunks if chunks is None else [self._chunks[k] for k in chunks]:
                file.seek(chunk.offset)
                yield CsvPiece(self, chunk, file.read(chunk.n_bytes))

    @cached_property
    def numeric(self) -> frozenset[int]:
        """Positions of the columns whose cells, in the whole file, are numbers or missing; one pass over the file."""
        numeric = list(range(len(self.names)))
        for piece in self.state.guard(self.pieces()):
            numeric = piece.numeric(numeric)
        return frozenset(numeric)

    def raw(
        self, columns: Sequence[int], chunks: Sequence[int] | None = None, as_text: Collection[int] = ()
    ) -> Iterator[tuple[int, list[RawColumn]]]:
        """Iterate over some columns as the file has them, chunk by chunk.

        Whether a column is read as numbers or as text is decided by all of its cells: the first call reads the file
        once more, unless all columns are asked for as text.

        Parameters
        ----------
        columns : sequence of int
            Positions of the columns.
        chunks : sequence of int, optional
            Numbers of chunks in ascending order; by default all.
        as_text : collection of int
            Positions of columns that are read as text whatever they hold.

        Yields
        ------
        first_row : int
            Number of the first row.
        columns : list of RawColumn
            In the order asked for. Infinities and integers beyond 2**53 are refused, by row, line and column.
        """
        as_number = set() if set(columns) <= set(as_text) else self.numeric.difference(as_text)
        for piece in self.state.guard(self.pieces(chunks)):
            yield piece.chunk.first_row, piece.raw(columns, as_number)


class CsvRows(ScannedRows):
    """Rows of a CSV file.

    Cells in use must be numbers, or true and false, which become 1 and 0; unused columns may hold anything. Numbers are
    read as float64 in each pass.

    Parameters
    ----------
    path, **form
        As in `CsvFile`.
    target : str, int, or list of them, optional
        Name or position of the target column or columns.
    columns : list of str or int, optional
        The features, in this order; by default all columns without another role.
    weight : str or int, optional
        Name or position of the weight column.

    Raises
    ------
    DataError
        When a column is missing, or a cell is not a finite number; the message names row, line and column.
    """

    def __init__(
        self, path: str | os.PathLike[str], target: Any = None, columns: Any = None, weight: Any = None, **form: Any
    ) -> None:
        self._file = file = CsvFile(path, (target, columns, weight), **form)
        super().__init__(file.header, file.header.choose(target, columns, weight), file.chunk_rows, DOUBLE, file.state)

    def _read(self, chunks: Sequence[int]) -> Iterator[Block]:
        for piece in self._file.pieces(chunks):
            place = piece.place(self._choice.all)
            columns = piece.floats(self._choice.all, place)
            for k, values in enumerate(columns):
                check_present(np.isnan(values), place.some(k, k + 1))
            yield self._block(piece.chunk.first_row, columns, place)


def _check_form(delimiter: Any, decimal: Any) -> None:
    ascii_character = isinstance(delimiter, str) and re.fullmatch(r"[\t -!#-~]", delimiter)
    if decimal not in (".", ",") or (delimiter is not None and (not ascii_character or delimiter == decimal)):
        raise ParameterError(
            "delimiter must be one character, such as ';' or a tab, and decimal another one, '.' or ','; "
            f"got {delimiter!r:.60} and {decimal!r:.60}"
        )


def _has_header(cells: Sequence[str], decimal: str, source: str, asked: Sequence[Any]) -> bool:
    """Return whether the first line names the columns; see `CsvFile`."""
    if not all(_value(cell, decimal) is not None and cell.lower() not in _MISSING for cell in cells):
        return True
    keys = [key for given in asked if given is not None for key in as_keys(given, "a column")]
    names = [key for key in keys if isinstance(key, str)]
    if names and set(names) <= set(cells):
        return True
    counted = list(cells) == [str(j) for j in range(len(cells))]
    if keys and not names and not counted:
        return False
    raise DataError(
        f"the first line of {source} holds numbers, not column names ({', '.join(cells[:3])}, ...); if they are names, "
        f"give columns as text: target={shown(cells[-1])}; if the file has no header, "
        + ("add one" if counted else "give positions: target=0 or columns=[0, 1]")
    )


class CsvPiece(NamedTuple):
    """One chunk of a file and its text."""

    file: CsvFile
    chunk: scan.Chunk
    text: bytes

    def place(self, columns: Sequence[int]) -> Place:
        """Return the place of some columns; its rows have line numbers."""

        def row(position: int) -> str:
            rows = scan.lines_and_cells(self.text, self.chunk.first_line, self.file.parser.delimiter)
            with reading(self.file.path, "CSV", csv.Error):
                line = next((f" (line {line})" for line, _ in islice(rows, position, None)), "")
            return f"row {self.chunk.first_row + position}{line}"

        return Place(self.file.source, [self.file.names[j] for j in columns], row)

    def floats(self, columns: Sequence[int], place: Place) -> list[Array]:
        """Return some columns as float64, which may hold infinities, and NaN for missing cells."""
        found = self.file.parser.floats(self._solid, columns, _MISSING_EXACTLY)
        if found is None:
            texts = self.file.parser.texts(self._solid, columns)
            return [self._numbers(*cells, place.some(k, k + 1)) for k, cells in enumerate(texts)]
        for k, values in enumerate(found):
            if (np.abs(values) >= LARGEST_EXACT).any():  # 2**53 + 1 also reads as 2**53
                found[k] = self._numbers(*self.file.parser.texts(self._solid, [columns[k]])[0], place.some(k, k + 1))
        return found

    def numeric(self, columns: Sequence[int]) -> list[int]:
        """Return those of some columns whose cells are all numbers or missing."""
        if self.file.parser.floats(self._solid, columns, _MISSING_EXACTLY) is not None:
            return list(columns)
        texts = zip(columns, self.file.parser.texts(self._solid, columns), strict=True)
        decimal = self.file.parser.decimal
        return [j for j, (cells, _) in texts if all(_value(_decoded(cell), decimal) is not None for cell in cells)]

    def raw(self, columns: Sequence[int], as_number: Collection[int]) -> list[RawColumn]:
        """Return some columns, each as numbers or as text."""
        numbers = [j for j in columns if j in as_number]
        place = self.place(numbers)
        made: dict[int, RawColumn] = {}
        for k, values in enumerate(self.floats(numbers, place)):
            for row in np.flatnonzero(np.isinf(values)).tolist():
                raise place.bad_number(values[row], row, k)
            made[numbers[k]] = RawColumn(self.file.names[numbers[k]], values, np.isnan(values), "number")
        texts = [j for j in columns if j not in as_number]
        for j, (cells, codes) in zip(texts, self.file.parser.texts(self._solid, texts), strict=True):
            try:
                words = np.array([cell.decode("utf-8") for cell in cells], object)
            except UnicodeDecodeError as error:
                row = codes.tolist().index(cells.index(error.object))
                raise self.place([j]).not_utf8(row) from error
            missing = np.array([word.strip().lower() in _MISSING for word in words], bool)
            made[j] = RawColumn(self.file.names[j], words[codes], missing[codes], "text")
        return [made[j] for j in columns]

    @property
    def _solid(self) -> bytes:
        return scan.without_blank_lines(self.text, self.file.parser.delimiter) if self.chunk.spaced else self.text

    def _numbers(self, cells: list[bytes], codes: Array, place: Place) -> Array:
        _, rows = np.unique(codes, return_index=True)  # where each of them appears first
        values = [self._number(_decoded(cell), row, place) for cell, row in zip(cells, rows.tolist(), strict=True)]
        return np.array(values)[codes]

    def _number(self, text: str, row: int, place: Place) -> float:
        """Return the value of a cell that pyarrow did not take for a number, or that may be too large an integer."""
        if _INTEGER.fullmatch(text) and abs(Decimal(text)) > LARGEST_EXACT:  # int() refuses very many digits
            raise place.too_large(text, row)
        value = _value(text, self.file.parser.decimal)
        if value is None:
            value = _TRUTH.get(text.lower())
        if value is not None:
            return value
        raise place.decimal_comma(text, row) if _DECIMAL_COMMA.fullmatch(text) else place.no_number(text, row)


def _decoded(cell: bytes) -> str:
    return cell.decode("utf-8", errors="replace").strip()


def _value(text: str, decimal: str) -> float | None:
    """Return the number that a cell holds, NaN if it is missing, None if it is neither."""
    if text.lower() in _MISSING:
        return np.nan
    if "_" in text or (decimal == "," and "." in text):
        return None
    try:
        return float(text.replace(decimal, "."))
    except ValueError:
        return None
