"""Rows of Parquet and Arrow files and of Arrow tables, CSV parsed, Parquet written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np

from ridgemark.errors import DataTypeError, SourceFileError
from ridgemark.rows.arrow_column import arrow_column, arrow_dtype, require_pyarrow
from ridgemark.rows.arrow_readers import ArrowReader, SpooledReader, arrow_errors
from ridgemark.rows.base import Array, Block, Rows
from ridgemark.rows.cells import float_dtype
from ridgemark.rows.column import Cells, rows_with_gaps
from ridgemark.rows.files import FileState, reading
from ridgemark.rows.header import Header
from ridgemark.rows.places import Place
from ridgemark.rows.scanned import ScannedRows
from ridgemark.rows.tables import FrameColumns

_PIECE_BYTES = 2**21  # bytes converted from columns to rows at once: fits in the processor's cache


class ArrowColumns(FrameColumns):
    """Columns of a pyarrow Table."""

    def _column_dtype(self, position: int) -> np.dtype[Any]:
        return arrow_dtype(self._table.schema.field(position).type)

    def column(self, position: int, rows: Rows, place: Place) -> Cells:
        column = self._table.column(position)
        chosen = column.slice(rows.start, rows.stop - rows.start) if isinstance(rows, slice) else column.take(rows)
        return arrow_column(chosen)


class ArrowRows(ScannedRows):
    """Rows of Parquet and Arrow files, datasets and streams, read batch by batch in bounded memory.

    Several files form one data set, in the order given. `take` reads only the row groups or record batches it needs.

    Parameters
    ----------
    readers : sequence of ArrowReader
        They all have the columns in use.
    target, columns, weight, group
        As in `open_rows`.
    skip : bool
        Whether rows whose target is missing are left out.
    """

    def __init__(
        self, readers: Sequence[ArrowReader], target: Any, columns: Any, weight: Any, skip: bool, group: Any = None
    ) -> None:
        self._readers = readers
        files = FileState(*(path for reader in readers for path in reader.paths))
        header = self._readers[0].header
        roles = header.choose(target, columns, weight, group)
        names = header.names_of(roles.all) or ()
        for reader in self._readers:
            reader.header.choose(columns=names)  # refuses a file without one of the columns
        self.dtype = float_dtype(
            arrow_dtype(reader.schema.field(name).type)
            for reader in self._readers
            for name in names[: len(roles.features)]
        )
        self._first_chunks = np.cumsum([0, *(len(reader.chunk_rows) for reader in self._readers)])
        chunk_rows = [rows for reader in self._readers for rows in reader.chunk_rows]
        if not sum(chunk_rows):
            raise SourceFileError(f"{header.source} has columns but no rows; at least one row is needed")
        targets = header.names_of(roles.targets) if skip else None
        skipped = () if targets is None else rows_with_gaps(self._columns_of(targets))
        super().__init__(header, roles, chunk_rows, files, skipped)

    def _columns_of(self, names: Sequence[str]) -> Iterator[list[Cells]]:
        """Iterate over some columns of all rows, in parts of some rows."""
        for reader in self._readers:
            with reading(reader.source, reader.form, *arrow_errors()):
                for _, _, batch in reader.read(list(range(len(reader.chunk_rows))), names, _PIECE_BYTES // 8):
                    yield [arrow_column(batch.column(name)) for name in names]

    def _target_columns(self) -> Iterator[Cells]:
        return (column for (column,) in self._columns_of(self.target_names or ()))

    def _read(self, chunks: Sequence[int]) -> Iterator[Block]:
        piece_rows = max(1, _PIECE_BYTES // (8 * len(self._names)))
        for file, group in groupby(chunks, lambda k: int(np.searchsorted(self._first_chunks, k, side="right")) - 1):
            reader, first = self._readers[file], int(self._first_chunks[file])
            with reading(reader.source, reader.form, *arrow_errors()):
                for k, offset, batch in reader.read([k - first for k in group], self._names, piece_rows):
                    start = int(self._bounds[first + k]) + offset
                    place = self._place(reader, start, start - int(self._bounds[first]))
                    yield self._block(start, [arrow_column(batch.column(name)) for name in self._names], place)

    def _place(self, reader: ArrowReader, start: int, start_in_file: int) -> Place:
        def row(position: int) -> str:
            among = f" ({start_in_file + position} in this file)" if len(self._readers) > 1 else ""
            return f"row {start + position}{among}"

        return Place(reader.source, self._names, row)


def stream_rows(source: Any, target: Any, columns: Any, weight: Any, skip: bool, group: Any = None) -> ArrowRows:
    """Return the rows of an object with an Arrow stream, which is read once, now: the columns in use go to a file."""
    pa = require_pyarrow("Reading Arrow streams")
    try:
        stream = pa.RecordBatchReader.from_stream(source)
    except pa.ArrowInvalid as error:
        raise DataTypeError(
            f"a stream of rows must have named columns; got a {type(source).__name__} ({error}); give a table"
        ) from error
    header = Header("the Arrow stream", len(stream.schema), tuple(stream.schema.names))
    roles = header.choose(target, columns, weight, group)
    spooled = SpooledReader(stream, header.source, header.names_of(roles.all) or ())
    parts = roles.targets, roles.features, roles.weight, roles.group
    target, columns, weight, group = map(header.names_of, parts)
    return ArrowRows([spooled], target, columns, weight, skip, group)


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
