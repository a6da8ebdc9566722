"""Rows of a CSV file, parsed by pyarrow and read repeatedly in bounded memory."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from ridgemark.errors import DataError, ParameterError, SourceFileError
from ridgemark.rows import csv_scan as scan
from ridgemark.rows.arrow import CsvParser
from ridgemark.rows.arrow_column import require_pyarrow
from ridgemark.rows.base import Array, Block
from ridgemark.rows.cells import CODE, LARGEST_EXACT, TRUTH, has_gaps, is_large_integer
from ridgemark.rows.column import Cells, words
from ridgemark.rows.files import FileState, open_csv, reading, require_file
from ridgemark.rows.header import Header, as_keys
from ridgemark.rows.labels import text_labels
from ridgemark.rows.places import Place, shown
from ridgemark.rows.scanned import ScannedRows

_SEPARATED = re.compile(r"[+-]?(\d+,\d+|\d{1,3}([,.'\u2019\s]\d{3})+([.,]\d+)?)")  # a decimal comma, or thousands
_MISSING = {"", *scan.MISSING}
_MISSING_EXACTLY = [*(form for word in _MISSING for form in (word, word.upper(), word.capitalize())), "NaN"]


class CsvRows(ScannedRows):
    """Rows of a CSV file, which may be gzip-compressed (name ending in `.gz`).

    Text in UTF-8, with or without a byte order mark. Fields may be quoted; blank lines are skipped. Opening reads the
    file once to find and count the rows; numbers are read as float64 in each pass. Cells of targets and weights, and of
    features that are not encoded, must be numbers, or true and false, which become 1 and 0; one target may be text, the
    labels of classes, which become their positions in `labels`; unused columns may hold anything.

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
    weight, group : str or int, optional
        Name or position of the weight column, and of that with the labels of groups, which are read as text.
    delimiter : str, optional
        By default comma, semicolon, tab or bar, whichever is most frequent in the first line.
    decimal : "." or ",", default="."
        The decimal mark.
    skip : bool, default=False
        Whether rows whose target is missing are left out.
    labels : {"auto", "text"}
        As in `open_rows`.

    Attributes
    ----------
    names : tuple of str
        Names of all columns of the file.

    Raises
    ------
    SourceFileError
        When the file is missing, empty, truncated or not text.
    DataError
        When a column is missing, or a cell is not a finite number; the message names row, line and column.
    """

    def __init__(
        self,
        path: Any,
        target: Any = None,
        columns: Any = None,
        weight: Any = None,
        delimiter: str | None = None,
        decimal: str = ".",
        skip: bool = False,
        labels: str = "auto",
        group: Any = None,
    ) -> None:
        self.path = require_file(path)
        self.source = shown(self.path)
        require_pyarrow("Reading CSV")
        _check_form(delimiter, decimal)
        files = FileState(self.path)
        with open_csv(self.path) as file:
            lines = scan.all_lines(file, self.path)
            first, rest = scan.split_first_row(lines, self.source)
            cells, delimiter = scan.split_cells(first[-1], self.source, delimiter, decimal)
            named = _has_header(cells, decimal, self.source, target, columns, weight, group)
            self.names = cells if named else tuple(str(j) for j in range(len(cells)))
            header = Header(self.source, len(cells), self.names)
            roles = header.choose(target, columns, weight, group)
            self.parser = CsvParser(len(cells), delimiter, decimal)
            parts = chain([rest] if named else [first, rest], lines)
            needed = roles.targets if skip else ()
            self._chunks = list(scan.find_chunks(parts, self.parser, self.source, needed))
        if not self._chunks:
            raise SourceFileError(f"{self.source} has a header but no rows; at least one row is needed")
        self.targets, self._labels_are_text = roles.targets, labels == "text"
        self.words: set[int] = set()  # columns in which text was found: it saves to try to read them as numbers
        self.without_codes: set[tuple[int, int]] = set()  # first rows of chunks, and columns, known to hold none
        skipped = np.concatenate([chunk.skipped for chunk in self._chunks])
        super().__init__(header, roles, [chunk.n_rows for chunk in self._chunks], files, skipped)

    def _check_roles(self) -> None:
        roles = self.roles.weight if text_labels(self) else self.roles.targets + self.roles.weight
        for piece in self.pieces([0]) if roles else ():
            piece.columns(roles, as_number=roles)

    def _target_columns(self) -> Iterator[Cells]:
        """Iterate over the column of the target: numbers, booleans, or text; the first text decides."""
        read: dict[str, Sequence[int]] = {"as_text": self.targets} if self._labels_are_text else {}
        for piece in self.pieces():
            (column,) = piece.columns(self.targets, **read)
            if self._labels_are_text:
                column = replace(column, typed=True)
            if column.levels is not None and not read:
                texts = {level.strip().lower() for level in column.levels} - _MISSING
                if texts <= TRUTH.keys():
                    column = replace(column, kind="boolean", levels=None)
                elif any(_value(text, self.parser.decimal) is not None for text in texts):
                    piece.columns(self.targets, as_number=self.targets)  # refuses the first text
                read = {"as_text": self.targets}
            yield column

    def pieces(self, chunks: Sequence[int] | None = None) -> Iterator[CsvPiece]:
        """Iterate over some chunks, in ascending order; by default over all."""
        with open_csv(self.path) as file:
            for chunk in self._chunks if chunks is None else [self._chunks[k] for k in chunks]:
                file.seek(chunk.offset)
                yield CsvPiece(self, chunk, file.read(chunk.n_bytes))

    def _read(self, chunks: Sequence[int]) -> Iterator[Block]:
        n_encoded = 0 if self.encoder is None else len(self.roles.features)
        texts = [] if self.encoder is None else [self.roles.features[j] for j in self.encoder.texts]
        labels = self.targets if text_labels(self) else ()
        labels = (*labels, *(j for j in self.roles.group if j not in self.roles.features))
        numbers = [j for j in self.roles.all[n_encoded:] if j not in labels]
        for piece in self.pieces(chunks):
            columns = piece.columns(self.roles.all, as_number=numbers, as_text=[*texts, *labels])
            yield self._block(piece.chunk.first_row, columns, piece.place(self.roles.all))


def _check_form(delimiter: Any, decimal: Any) -> None:
    is_character = delimiter is None or (isinstance(delimiter, str) and re.fullmatch(r"[\t -!#-~]", delimiter))
    if not is_character or decimal not in (".", ",") or delimiter == decimal:
        raise ParameterError(
            "delimiter must be one character, such as ';' or a tab, and decimal another one, '.' or ','; "
            f"got {delimiter!r:.60} and {decimal!r:.60}"
        )


def _has_header(cells: Sequence[str], decimal: str, source: str, *asked: Any) -> bool:
    """Return whether the first line names the columns; see `CsvRows`."""
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

    file: CsvRows
    chunk: scan.Chunk
    text: bytes

    def place(self, columns: Sequence[int]) -> Place:
        """Return the place of some columns; its rows have line numbers."""

        def row(position: int) -> str:
            rows = scan.lines_and_cells(self.text, self.chunk.first_line, self.file.parser.delimiter)
            with reading(self.file.source, "CSV", csv.Error):
                line = next((f" (line {line})" for line, _ in islice(rows, position, None)), "")
            return f"row {self.chunk.first_row + position}{line}"

        of_target = set(columns) <= set(self.file.targets)
        return Place(self.file.source, [self.file.names[j] for j in columns], row, of_target)

    def columns(
        self, columns: Sequence[int], as_number: Collection[int] = (), as_text: Collection[int] = ()
    ) -> list[Cells]:
        """Return some columns without a stated type.

        They hold numbers where all cells of this chunk are numbers or missing, otherwise text, exactly as written, as
        where an integer begins with 0, such as a postcode; a column of numbers with the other decimal mark or with
        thousands separators is refused.
        Those in `as_number` must be numbers, or true and false, which become 1 and 0; those in `as_text` are text.
        """
        tried = [j for j in columns if j not in as_text and j not in self.file.words]
        numbers = dict(zip(tried, self._if_numbers(tried) or (), strict=False))
        for j in self._with_codes([j for j in numbers if j not in as_number]):
            del numbers[j]
        made = {}
        for j, (cells, codes) in self._texts([j for j in columns if j not in numbers]):
            if j in as_number or (j not in as_text and any(_are_numbers(cells, mark) for mark in ".,")):
                numbers[j] = self._numbers(j, cells, codes)  # refuses the other decimal mark and thousands separators
            else:
                made[j] = self._text_column(j, cells, codes)
                self.file.words.add(j)
        made |= {j: _number_column(values, j not in as_number) for j, values in numbers.items()}
        return [made[j] for j in columns]

    @property
    def _solid(self) -> bytes:
        return scan.without_blank_lines(self.text, self.file.parser.delimiter) if self.chunk.spaced else self.text

    def _texts(self, columns: Sequence[int]) -> Iterator[tuple[int, tuple[list[bytes], Array]]]:
        return zip(columns, self.file.parser.texts(self._solid, columns), strict=True)

    def _with_codes(self, columns: Sequence[int]) -> list[int]:
        """Return which columns of numbers hold an integer that begins with 0."""
        begins = rb'0(?<![^\s"%b]0)\d' % re.escape(self.file.parser.delimiter.encode())  # a cell, or a part of one
        some = [j for j in columns if (self.chunk.first_row, j) not in self.file.without_codes]
        if not some or not re.search(begins, self.text):
            return []
        found = [j for j, (cells, _) in self._texts(some) if any(CODE.fullmatch(_decoded(cell)) for cell in cells)]
        self.file.without_codes |= {(self.chunk.first_row, j) for j in some if j not in found}
        return found

    def _if_numbers(self, columns: Sequence[int]) -> list[Array] | None:
        """Return some columns as float64, with NaN for missing cells; None if a cell of them may be something else."""
        found = self.file.parser.floats(self._solid, columns, _MISSING_EXACTLY)
        for k, values in enumerate(found or ()):
            if (np.abs(values) >= LARGEST_EXACT).any():  # 2**53 + 1 also reads as 2**53
                ((j, cells),) = self._texts(columns[k : k + 1])
                self._numbers(j, *cells)
        return found

    def _text_column(self, column: int, cells: list[bytes], codes: Array) -> Cells:
        try:
            levels = words(cell.decode("utf-8") for cell in cells)
        except UnicodeDecodeError as error:
            row = codes.tolist().index(cells.index(error.object))
            raise self.place([column]).not_utf8(row) from error
        missing = np.array([level.strip().lower() in _MISSING for level in levels])[codes]
        return Cells("text", codes, missing, levels, typed=False, stated="text")

    def _numbers(self, column: int, cells: list[bytes], codes: Array) -> Array:
        """Return the values of a column that pyarrow does not take for numbers, or where integers may be too large."""
        place, (_, rows) = self.place([column]), np.unique(codes, return_index=True)  # where each cell appears first
        values = [self._number(cell, row, place) for cell, row in zip(cells, rows.tolist(), strict=True)]
        return np.array(values)[codes]

    def _number(self, cell: bytes, row: int, place: Place) -> float:
        text = _decoded(cell)
        if is_large_integer(text):
            raise place.too_large(text, row)
        decimal = self.file.parser.decimal
        value = TRUTH.get(text.lower(), _value(text, decimal))
        if value is not None:
            return value
        separated = _SEPARATED.fullmatch(text) or (decimal == "," and _value(text, ".") is not None)
        raise place.separated(text, row, decimal) if separated else place.no_number(text, row)


def _decoded(cell: bytes) -> str:
    return cell.decode("utf-8", errors="replace").strip()


def _are_numbers(cells: list[bytes], decimal: str) -> bool:
    """Return whether all cells are numbers or missing, also with thousands separators, and none begins with 0."""
    texts = list(map(_decoded, cells))
    are = all(_value(text, decimal) is not None or _SEPARATED.fullmatch(text) for text in texts)
    return are and not any(map(CODE.fullmatch, texts))


def _number_column(values: Array, integers: bool) -> Cells:
    """Return float64 as a column; with `integers`, whole numbers as such."""
    missing = np.isnan(values) if has_gaps(values) else None
    if integers and missing is None and values[0].is_integer() and np.abs(values).max() < LARGEST_EXACT:
        whole = values.astype(np.int64)
        if np.array_equal(values, whole):
            return Cells("number", whole, typed=False, stated="integers")
    return Cells("number", values, missing, typed=False, stated="numbers")


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
