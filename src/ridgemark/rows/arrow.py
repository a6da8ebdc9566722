"""Rows of Parquet and Arrow files and of Arrow tables, CSV parsed, Parquet written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np

from ridgemark.errors import SourceFileError
from ridgemark.rows.arrow_column import arrow_column, arrow_dtype, require_pyarrow
from ridgemark.rows.base import Array, Block, Rows
from ridgemark.rows.cells import float_dtype
from ridgemark.rows.choice import Header
from ridgemark.rows.column import Column, rows_with_gaps
from ridgemark.rows.files import FileState, reading, require_file, unreadable
from ridgemark.rows.places import Place, shown
from ridgemark.rows.scanned import ScannedRows
from ridgemark.rows.tables import FrameColumns

_PIECE_BYTES = 2**21  # bytes converted from columns to rows at once: fits in the processor's cache
_BUFFER_BYTES = 2**20  # bytes of a Parquet column read at once; without a buffer a whole column chunk is read


class ArrowColumns(FrameColumns):
    """Columns of a pyarrow Table."""

    def _column_dtype(self, position: int) -> np.dtype[Any]:
        return arrow_dtype(self._table.schema.field(position).type)

    def column(self, position: int, rows: Rows, place: Place) -> Column:
        column = self._table.column(position)
        chosen = column.slice(rows.start, rows.stop - rows.start) if isinstance(rows, slice) else column.take(rows)
        return arrow_column(chosen)


class ArrowRows(ScannedRows):
    """Rows of Parquet files, or of an Arrow IPC (Feather) file, read batch by batch in bounded memory.

    Several files form one data set, in the order given. `take` reads only the row groups or record batches it needs.

    Parameters
    ----------
    paths : list of paths
        Files that all have the columns in use.
    target, columns, weight
        As in `open_rows`.
    skip : bool
        Whether rows whose target is missing are left out.
    """

    def __init__(self, paths: Sequence[Path], target: Any, columns: Any, weight: Any, skip: bool) -> None:
        self._readers = [open_arrow(require_file(path)) for path in paths]
        files = FileState(*(reader.path for reader in self._readers))
        header = self._readers[0].header
        choice = header.choose(target, columns, weight)
        names = header.names_of(choice.all) or ()
        for reader in self._readers:
            reader.header.choose(columns=names)  # refuses a file without one of the columns
        self.dtype = float_dtype(
            arrow_dtype(reader.schema.field(name).type)
            for reader in self._readers
            for name in names[: len(choice.features)]
        )
        self._first_chunks = np.cumsum([0, *(len(reader.chunk_rows) for reader in self._readers)])
        chunk_rows = [rows for reader in self._readers for rows in reader.chunk_rows]
        if not sum(chunk_rows):
            raise SourceFileError(f"{header.source} has columns but no rows; at least one row is needed")
        targets = header.names_of(choice.targets) if skip else None
        skipped = () if targets is None else rows_with_gaps(self._columns_of(targets))
        super().__init__(header, choice, chunk_rows, files, skipped)

    def _columns_of(self, names: Sequence[str]) -> Iterator[list[Column]]:
        """Iterate over some columns of all rows, in parts of some rows."""
        for reader in self._readers:
            with reading(reader.path, reader.form, *_arrow_errors()):
                for _, _, batch in reader.read(list(range(len(reader.chunk_rows))), names, _PIECE_BYTES // 8):
                    yield [arrow_column(batch.column(name)) for name in names]

    def _target_columns(self) -> Iterator[Column]:
        return (column for (column,) in self._columns_of(self.target_names or ()))

    def _read(self, chunks: Sequence[int]) -> Iterator[Block]:
        piece_rows = max(1, _PIECE_BYTES // (8 * len(self._names)))
        for file, group in groupby(chunks, lambda k: int(np.searchsorted(self._first_chunks, k, side="right")) - 1):
            reader, first = self._readers[file], int(self._first_chunks[file])
            with reading(reader.path, reader.form, *_arrow_errors()):
                for k, offset, batch in reader.read([k - first for k in group], self._names, piece_rows):
                    start = int(self._bounds[first + k]) + offset
                    place = self._place(reader, start, start - int(self._bounds[first]))
                    yield self._block(start, [arrow_column(batch.column(name)) for name in self._names], place)

    def _place(self, reader: _Reader, start: int, start_in_file: int) -> Place:
        def row(position: int) -> str:
            among = f" ({start_in_file + position} in this file)" if len(self._readers) > 1 else ""
            return f"row {start + position}{among}"

        return Place(shown(reader.path), self._names, row)


class _Reader:
    """One Parquet file: its schema, the number of rows in each chunk (row group), and how to read chunks."""

    form = "Parquet"
    schema: Any
    chunk_rows: list[int]

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path, self.form, *_arrow_errors()):
            self._inspect()
            names = tuple(self.schema.names)  # damaged bytes are not text
        self.header = Header(shown(path), len(names), names)

    def _inspect(self) -> None:
        with require_pyarrow().parquet.ParquetFile(self.path) as file:
            self.schema = file.schema_arrow
            self.chunk_rows = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]

    def read(self, chunks: list[int], names: Sequence[str], piece_rows: int) -> Iterator[tuple[int, int, Any]]:
        """Iterate over (chunk, row within it, record batch of at most `piece_rows`) for ascending chunks."""
        with require_pyarrow().parquet.ParquetFile(self.path, buffer_size=_BUFFER_BYTES, pre_buffer=False) as file:
            for k in chunks:
                offset = 0
                # Without threads of pyarrow: all cores work on earlier blocks.
                for batch in file.iter_batches(piece_rows, row_groups=[k], columns=list(names), use_threads=False):
                    yield k, offset, batch
                    offset += batch.num_rows
                if offset != self.chunk_rows[k]:
                    what = f"row group {k} has {offset} rows, and the file says {self.chunk_rows[k]}"
                    raise unreadable(self.path, self.form, what)


class _IpcReader(_Reader):
    """One file in the file format of Arrow IPC (also Feather), or its stream format, which some programs name .arrow.

    A chunk is a record batch.
    """

    form = "Arrow IPC (.arrow or .feather)"

    def _inspect(self) -> None:
        with self.path.open("rb") as file:
            magic = file.read(6)
        if magic.startswith(b"FEA1"):
            raise unreadable(self.path, self.form, "it is in the old Feather format 1, not format 2")
        self._is_stream = magic != b"ARROW1"
        pa = require_pyarrow()
        with pa.memory_map(str(self.path)) as file:
            self.schema = self._open(file, pa.ipc.IpcReadOptions()).schema
        self.chunk_rows = [batch.num_rows for batch in self._batches(None, [0])]

    def _open(self, file: Any, options: Any) -> Any:
        ipc = require_pyarrow().ipc
        return (ipc.open_stream if self._is_stream else ipc.open_file)(file, options=options)

    def _batches(self, chunks: list[int] | None, fields: list[int]) -> Iterator[Any]:
        """Iterate over the record batches in `chunks`, or over all, with the given fields."""
        pa = require_pyarrow()
        with pa.memory_map(str(self.path)) as file:
            reader = self._open(file, pa.ipc.IpcReadOptions(included_fields=fields))
            if not self._is_stream:
                yield from map(reader.get_batch, range(reader.num_record_batches) if chunks is None else chunks)
                return
            wanted = None if chunks is None else set(chunks)
            for k, batch in enumerate(reader):  # a stream has no index: other batches are read and skipped
                if wanted is None or k in wanted:
                    yield batch

    def read(self, chunks: list[int], names: Sequence[str], piece_rows: int) -> Iterator[tuple[int, int, Any]]:
        fields = [self.schema.get_field_index(name) for name in names]
        for k, batch in zip(chunks, self._batches(chunks, fields), strict=True):
            batch.validate(full=True)  # a damaged position of a text or category would be read outside of memory
            for offset in range(0, batch.num_rows, piece_rows):
                yield k, offset, batch.slice(offset, piece_rows)


@dataclass(frozen=True)
class CsvParser:
    """Parses whole rows of CSV text. Without threads of pyarrow: all cores work on earlier blocks.

    Parameters
    ----------
    n_columns : int
        Cells in every row.
    delimiter, decimal : str
        One character each.
    """

    n_columns: int
    delimiter: str
    decimal: str

    def gaps(self, text: bytes, columns: Sequence[int], missing: Sequence[str]) -> Array | None:
        """Return for each row whether a cell of the columns is in `missing`, in any case of letters, or empty.

        None if some rows have another number of cells, or the text ends within quotes: pyarrow closes a quote at the
        end of the text; then a row that is added does not come back as the last one.
        """
        if not text:
            return np.zeros(0, dtype=bool)
        if quoted := b'"' in text:
            text += self.delimiter.encode().join([b"\0"] * self.n_columns) + b"\n"
        table = self._table(text, columns or [0], "binary", ())
        if table is None or (quoted and table.column(0)[-1].as_py() != b"\0"):
            return None
        found = np.zeros(table.num_rows, dtype=bool)
        form = rf"^\s*(?i:{'|'.join(missing)})?\s*$"
        if columns:
            from pyarrow import compute  # takes longer to import than to open a small file

            for cells in table.columns:
                found |= compute.match_substring_regex(cells, form).to_numpy()
        return found[: len(found) - quoted]

    def floats(self, text: bytes, columns: Sequence[int], missing: Sequence[str]) -> list[Array] | None:
        """Return some columns as float64, with NaN for the cells in `missing`; None if a cell is not a number."""
        table = self._table(text, columns, "float64", missing)
        return None if table is None else [column.to_numpy() for column in table.columns]

    def texts(self, text: bytes, columns: Sequence[int]) -> list[tuple[list[bytes], Array]]:
        """Return the distinct cells of some columns, in order of appearance, and their number for every row."""
        table = self._table(text, columns, "binary", ())
        if table is None:
            raise SourceFileError("the rows of the CSV file have changed since it was opened; open it again")
        coded = [column.combine_chunks().dictionary_encode() for column in table.columns]
        return [(column.dictionary.to_pylist(), np.asarray(column.indices)) for column in coded]

    def _table(self, text: bytes, columns: Sequence[int], kind: str, missing: Sequence[str]) -> Any:
        pa = require_pyarrow("Reading CSV")
        names = [str(j) for j in range(self.n_columns)]
        types = {names[j]: getattr(pa, kind)() for j in columns}
        if not types:  # pyarrow would read all columns
            return pa.table({})
        try:
            return pa.csv.read_csv(
                pa.BufferReader(text),
                pa.csv.ReadOptions(use_threads=False, block_size=len(text), column_names=names),
                pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
                pa.csv.ConvertOptions(
                    include_columns=list(types), column_types=types, null_values=missing, decimal_point=self.decimal
                ),
            )
        except pa.ArrowInvalid:
            return None


def write_parquet(path: Path, names: Sequence[str], parts: Iterable[Sequence[Array]]) -> None:
    """Write columns of numbers, given in parts of some rows; every part becomes a row group."""
    pa = require_pyarrow("Writing Parquet")
    tables = (pa.table(dict(zip(names, part, strict=True))) for part in parts)
    first = next(tables)
    with pa.parquet.ParquetWriter(path, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


def open_arrow(path: Path) -> _Reader:
    """Return the reader of a Parquet or Arrow file."""
    return (_IpcReader if path.suffix.lower() in {".arrow", ".feather"} else _Reader)(path)


def _arrow_errors() -> tuple[type[BaseException], ...]:
    return (require_pyarrow().ArrowException, ValueError)
