"""Rows of a CSV file, read repeatedly in bounded memory; needs no optional package."""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from ridgemark.errors import DataError, SourceFileError
from ridgemark.rows.base import Block
from ridgemark.rows.cells import DOUBLE
from ridgemark.rows.choice import Header, as_keys
from ridgemark.rows.csv_cells import CsvText, is_number
from ridgemark.rows.csv_scan import Chunk, FirstRow, find_chunks, read_first_row
from ridgemark.rows.files import FileState, bomb, reading, require_file
from ridgemark.rows.limits import is_bomb
from ridgemark.rows.places import Place, shown
from ridgemark.rows.scanned import ScannedRows


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
        files = [FileState(self._path)]
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
            msg = f"{source} has a header but no rows; at least one row is needed"
            raise SourceFileError(msg)
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
    msg = (
        f"the first line of {source} holds numbers, not column names ({start}, ...); if they are names, give "
        f"columns as text: target={shown(first.cells[-1])}; if the file has no header, "
        + ("add one" if counted else "give positions: target=0 or columns=[0, 1]")
    )
    raise DataError(msg)
