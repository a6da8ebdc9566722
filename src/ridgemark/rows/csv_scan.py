"""The first pass over a CSV file: finds its header and the positions of its rows, at a few hundred MB/s.

Only line ends, delimiters and quotes are examined. Every quote opens or closes a field (RFC 4180), so the parity of
the quotes before a byte says whether the byte is inside quotes.
"""

import csv
import re
from dataclasses import dataclass
from typing import IO

import numpy as np
import numpy.typing as npt

from ridgemark.errors import DataError, SourceFileError
from ridgemark.rows.base import Array
from ridgemark.rows.files import MAX_COLUMNS, MAX_ROW_BYTES

CHUNK_BYTES = 2**20

_BOM = b"\xef\xbb\xbf"
BLANK = " \t\r\n"
_BLANK = BLANK.encode()
_DELIMITERS = ",;\t"
_NEWLINE, _QUOTE = b'\n"'
_IS_SOLID = np.isin(np.arange(256), list(_BLANK), invert=True)  # by byte: True if not white space


@dataclass(frozen=True)
class Chunk:
    """Some whole rows of a file: their bytes, row numbers and line numbers (from 1)."""

    offset: int
    n_bytes: int
    first_row: int
    n_rows: int
    first_line: int


@dataclass(frozen=True)
class FirstRow:
    """The first row of a file, which may be its header, and the offsets of this row and the next."""

    cells: tuple[str, ...]
    delimiter: str
    offset: int
    line: int
    next_offset: int
    next_line: int


def read_first_row(file: IO[bytes], source: str) -> FirstRow:
    """Return the first row that is not blank, split at the most frequent of comma, semicolon and tab."""
    offset, line = _skip_blank_lines(file, source)
    text = _read_row(file, source, line)
    _check_text(text, source)
    outside = re.sub(rb'"[^"]*"', b"", text).decode("latin-1")
    delimiter = max(_DELIMITERS, key=outside.count)
    if (n_columns := outside.count(delimiter) + 1) > MAX_COLUMNS.value:
        raise DataError(f"the first line of {source} has {n_columns:,} columns; {MAX_COLUMNS.remedy}")
    cells = next(csv.reader([text.decode("utf-8").strip("\r\n")], delimiter=delimiter))
    names = tuple(cell.strip() for cell in cells)
    return FirstRow(names, delimiter, offset, line, offset + len(text), line + text.count(b"\n"))


def _skip_blank_lines(file: IO[bytes], source: str) -> tuple[int, int]:
    """Seek to the first line that is not blank, after a byte order mark; return its offset and line number."""
    begin = offset = len(_BOM) if file.read(len(_BOM)) == _BOM else 0
    file.seek(begin)
    line, text = 1, file.read(CHUNK_BYTES)
    while text and not text.strip(_BLANK):
        begin, line = max(begin, offset + text.rfind(b"\n") + 1), line + text.count(b"\n")
        offset, text = offset + len(text), file.read(CHUNK_BYTES)
    if not text:
        raise SourceFileError(f"{source} is empty: it holds only blank lines; rewrite the file")
    blank = text[: len(text) - len(text.lstrip(_BLANK))]
    begin, line = max(begin, offset + blank.rfind(b"\n") + 1), line + blank.count(b"\n")
    file.seek(begin)
    return begin, line


def _read_row(file: IO[bytes], source: str, line: int) -> bytes:
    """Return the row that begins here; inside quotes it continues across line ends."""
    lines: list[bytes] = []
    n_quotes, room = 0, MAX_ROW_BYTES.value
    while not lines or n_quotes % 2:
        lines.append(file.readline(room))
        room, n_quotes = room - len(lines[-1]), n_quotes + lines[-1].count(_QUOTE)
        if room <= 0 or not lines[-1]:
            raise no_end(source, line, b"".join(lines))
    return b"".join(lines)


def _check_text(text: bytes, source: str) -> None:
    if b"\0" in text or text.startswith((b"PK\x03\x04", b"PAR1", b"\x1f\x8b")):
        what = "compressed (name it .csv.gz)" if text.startswith(b"\x1f\x8b") else "not plain text, or not UTF-8"
        raise SourceFileError(f"{source} is {what}; a CSV file must be text in UTF-8; use the extension of its format")
    if re.search(rb"\r[^\n]", text):
        raise SourceFileError(f"{source} ends its lines with carriage returns only; save it with line feeds")
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SourceFileError(
            f"the first line of {source} is not in UTF-8 (byte {error.start}); save the file as UTF-8"
        ) from error


def find_chunks(file: IO[bytes], offset: int, line: int, delimiter: str, n_columns: int, source: str) -> list[Chunk]:
    """Return the chunks of whole rows from `offset` to the end; refuse rows with another number of cells."""
    file.seek(offset)
    chunks: list[Chunk] = []
    row, held, more, longest = 0, b"", True, MAX_ROW_BYTES.value
    while more:
        fresh = file.read(CHUNK_BYTES)
        more = bool(fresh)
        text = held + fresh if more or not held else held + b"\n"
        ends, cells = _rows(text, delimiter)
        stop = int(ends[-1]) + 1 if len(ends) else 0
        held = text[stop:]
        if len(held) > longest or (held and not more):
            raise no_end(source, line + text.count(b"\n", 0, stop), held)
        if not stop:
            continue
        used = cells > 0
        wrong = np.flatnonzero(used & (cells != n_columns))
        if wrong.size:
            at = int(wrong[0])
            begin = int(ends[at - 1]) + 1 if at else 0
            bad_line = line + text.count(b"\n", 0, begin)
            is_last = not more or (not held and not file.read(1))
            last = is_last and not used[at + 1 :].any()
            raise ragged(source, row + int(used[:at].sum()), bad_line, int(cells[at]), n_columns, last)
        n_rows = int(used.sum())
        if n_rows:
            chunks.append(Chunk(offset, stop, row, n_rows, line))
        row, offset, line = row + n_rows, offset + stop, line + text.count(b"\n", 0, stop)
    return chunks


def _rows(text: bytes, delimiter: str) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the end and the number of cells of each row; 0 cells for a blank line."""
    codes = np.frombuffer(text, np.uint8)
    ends, marks = np.flatnonzero(codes == _NEWLINE), np.flatnonzero(codes == ord(delimiter))
    if b'"' in text:
        inside = np.bitwise_xor.accumulate(codes == _QUOTE)
        ends, marks = ends[~inside[ends]], marks[~inside[marks]]
    cells = np.diff(np.searchsorted(marks, ends), prepend=0) + 1
    cells[_blank_lines(codes, ends, cells)] = 0
    return ends, cells


def _blank_lines(codes: Array, ends: Array, cells: Array) -> Array:
    """Return which lines are blank: one cell of white space only."""
    begins = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    blank: Array = (cells == 1) & (codes[begins] <= ord(" "))
    if blank.any():  # rare
        solid = np.flatnonzero(_IS_SOLID[codes])
        blank &= np.searchsorted(solid, begins) == np.searchsorted(solid, ends)
    return blank


def ragged(source: str, row: int, line: int, got: int, expected: int, last: bool = False) -> DataError:
    """Refuse a row with too few or too many cells."""
    hint = "it is the last row: the file may be truncated" if last and got < expected else "correct that line"
    return DataError(
        f"row {row} (line {line}) of {source} has {got} cells and the first line has {expected}; every row must have "
        f"the same number; {hint}"
    )


def stray_mark(source: str, line: int) -> DataError:
    """Refuse rows that the scan and the parser separate differently."""
    return DataError(
        f"at or after line {line} of {source} a field that is not quoted contains a quote or a carriage return, "
        "so the rows cannot be separated; quote the field, and double the quotes inside it"
    )


def no_end(source: str, line: int, text: bytes) -> DataError:
    """Refuse a row that does not end, usually because a quote is not closed."""
    if b'"' in text:
        return DataError(
            f"the row at line {line} of {source} opens a quoted field that is never closed; add the missing quote, or "
            "write the file again if it is truncated"
        )
    return DataError(f"the row at line {line} of {source} has too many bytes; {MAX_ROW_BYTES.remedy}")
