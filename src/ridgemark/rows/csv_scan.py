"""The first pass over a CSV file: finds its first row and the positions of all rows.

Every quote opens or closes a field (RFC 4180): a line end ends a row where the number of quotes before it is even.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import IO, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ridgemark.errors import DataError, SourceFileError
from ridgemark.rows.arrow import CsvParser
from ridgemark.rows.files import MAX_COLUMNS, MAX_ROW_BYTES, check_expansion
from ridgemark.rows.places import shown

CHUNK_BYTES = 2**20

# In any case of letters, with or without spaces around; so is an empty cell.
MISSING = ("na", "n/a", "nan", "null", "#n/a", "#na", "<na>")

_BOM = b"\xef\xbb\xbf"
_NEWLINE, _QUOTE = b'\n"'
_ROW = re.compile(rb'(?>[^"\n]+|"[^"]*")*+\n')


class Chunk(NamedTuple):
    """Some whole rows that are read together; `spaced` tells that lines of spaces are to be removed from them."""

    offset: int
    first_line: int  # from 1
    n_bytes: int
    first_row: int
    n_rows: int
    spaced: bool
    skipped: NDArray[np.intp]  # rows of the file that are left out


Part: TypeAlias = tuple[int, int, bytes]  # offset in the file, number of the first line, whole rows


def all_lines(file: IO[bytes], path: Path) -> Iterator[Part]:
    """Iterate over the rows of a file, about `CHUNK_BYTES` together; a row without end is refused."""
    offset, line, held, more, longest = 0, 1, b"", True, MAX_ROW_BYTES.value
    while more:
        fresh = file.read(CHUNK_BYTES)
        check_expansion(path, file.tell(), getattr(file, "fileobj", file).tell())
        if line == 1 and not held and fresh.startswith(b"\x1f\x8b"):  # gzip
            raise SourceFileError(f"{shown(path)} is compressed (name it .csv.gz); a CSV file must be text in UTF-8")
        more = bool(fresh)
        text = held + fresh if more or not held else held + b"\n"
        stop = _end_of_rows(text)
        text, held = text[:stop], text[stop:]
        n_lines = int(np.count_nonzero(np.frombuffer(text, np.uint8) == _NEWLINE))
        if len(held) > longest or (held and not more):
            open_quote = "opens a quoted field that is never closed; add the missing quote, or write the file again"
            what = open_quote if b'"' in held else f"has too many bytes; {MAX_ROW_BYTES.remedy}"
            raise DataError(f"the row at line {line + n_lines} of {shown(path)} {what}")
        if text:
            yield offset, line, text
        offset, line = offset + stop, line + n_lines


def _end_of_rows(text: bytes) -> int:
    """Return the number of bytes up to the last line end outside quotes."""
    if b'"' not in text:
        return text.rfind(b"\n") + 1
    codes = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero((codes == _NEWLINE) & ~np.bitwise_xor.accumulate(codes == _QUOTE))
    return int(ends[-1]) + 1 if len(ends) else 0


def split_first_row(parts: Iterator[Part], source: str) -> tuple[Part, Part]:
    """Return the first row that is not blank, and the rows after it that were read with it."""
    for offset, line, text in parts:
        if solid := text.removeprefix(_BOM).lstrip():
            begin = text.rfind(b"\n", 0, -len(solid)) + 1 or len(_BOM) * text.startswith(_BOM)
            end = next(_ROW.finditer(text, begin)).end()
            lines = [line + text.count(b"\n", 0, at) for at in (begin, end)]
            return (offset + begin, lines[0], text[begin:end]), (offset + end, lines[1], text[end:])
    raise SourceFileError(f"{source} is empty: it holds only blank lines; rewrite the file")


def split_cells(text: bytes, source: str, delimiter: str | None, decimal: str) -> tuple[tuple[str, ...], str]:
    """Return the cells of the first row and the delimiter; see `CsvRows`."""
    if re.search(rb"[\0-\x08\x0e-\x1f]", text):
        raise SourceFileError(
            f"{source} is not plain text, or not UTF-8; a CSV file must be text in UTF-8; "
            "save it as such, or use the extension of its format"
        )
    if re.search(rb"\r[^\n]", text):
        raise SourceFileError(f"{source} ends its lines with carriage returns only; save it with line feeds")
    try:
        row = text.decode("utf-8").strip("\r\n")
    except UnicodeDecodeError as error:
        raise SourceFileError(
            f"the first line of {source} is not in UTF-8 (byte {error.start}); save the file as UTF-8"
        ) from error
    delimiter = delimiter or max(",;\t|".replace(decimal, ""), key=re.sub('"[^"]*"', "", row).count)
    try:
        cells = tuple(cell.strip() for cell in next(csv.reader([row], delimiter=delimiter)))
    except csv.Error as error:  # a line break that is in quotes only with another delimiter
        raise SourceFileError(
            f"the first row of {source} cannot be split at {delimiter!r}; give the character between its cells as "
            "delimiter=... (command line: --delimiter)"
        ) from error
    if len(cells) > MAX_COLUMNS.value:
        raise DataError(f"the first line of {source} has {len(cells):,} columns; {MAX_COLUMNS.remedy}")
    return cells, delimiter


def find_chunks(parts: Iterator[Part], parser: CsvParser, source: str, needed: Sequence[int]) -> Iterator[Chunk]:
    """Iterate over the chunks of a file; refuse rows with another number of cells; leave out rows with a gap."""
    row = 0
    for part in parts:
        offset, line, text = part
        gaps, n_bytes, spaced = parser.gaps(text, needed, MISSING), len(text), False
        if gaps is None or parser.n_columns == 1:
            solid = without_blank_lines(text, parser.delimiter)
            gaps, spaced = parser.gaps(solid, needed, MISSING), len(solid) < n_bytes
        if gaps is None:
            raise _inseparable(part, row, parser, source, parts)
        if len(gaps):
            yield Chunk(offset, line, n_bytes, row, len(gaps), spaced, row + np.flatnonzero(gaps))
        row += len(gaps)


def without_blank_lines(text: bytes, delimiter: str) -> bytes:
    """Return the text without lines of spaces and tabs, unless they are inside quotes."""
    blank = b" \t".replace(delimiter.encode(), b"")
    return re.sub(rb'(?m)("[^"]*")|^[%b]+\r?\n' % blank, rb"\1", text)


def lines_and_cells(text: bytes, first_line: int, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Iterate over the line number and the cells, as Latin-1, of every row: slow, for messages."""
    reader = csv.reader(StringIO(text.decode("latin-1"), newline="\n"), delimiter=delimiter)
    line = first_line
    for cells in reader:
        if len(cells) > 1 or (cells and cells[0].strip()):
            yield line, cells
        line = first_line + reader.line_num


def _inseparable(part: Part, row: int, parser: CsvParser, source: str, rest: Iterator[Part]) -> DataError:
    """Return the error for rows with too few or too many cells, or whose quotes do not separate them."""
    _, first_line, text = part
    rows = lines_and_cells(text, first_line, parser.delimiter)
    for k, (line, cells) in enumerate(rows, row):
        if len(cells) != parser.n_columns:
            short = len(cells) < parser.n_columns
            last = short and next(rows, None) is None and not any(text.strip() for _, _, text in rest)
            hint = "it is the last row: the file may be truncated" if last else "correct that line"
            return DataError(
                f"row {k} (line {line}) of {source} has {len(cells)} cells and the first line has {parser.n_columns}; "
                f"every row must have the same number; {hint}"
            )
    return DataError(
        f"at or after line {first_line} of {source} a field that is not quoted contains a quote or a carriage "
        "return, so the rows cannot be separated; quote the field, and double the quotes inside it"
    )
