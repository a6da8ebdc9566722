"""Arrow data in chunks with known numbers of rows: files, datasets, and streams, which go to a temporary file first."""

from __future__ import annotations

import os
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ridgemark.errors import SourceFileError
from ridgemark.rows.arrow_column import require_pyarrow
from ridgemark.rows.files import MAX_SPOOLED_BYTES, reading, unreadable
from ridgemark.rows.header import Header
from ridgemark.rows.places import shown

_BUFFER_BYTES = 2**20  # bytes of a Parquet column read at once; without a buffer a whole column chunk is read


class ArrowReader(ABC):
    """Arrow data that can be read repeatedly: its schema, the number of rows in each chunk, and how to read chunks.

    Parameters
    ----------
    source : str
        Name of the data in messages.
    paths : sequence of paths
        The files with the data; none where these are not files of this machine.
    """

    form: str
    schema: Any
    chunk_rows: list[int]

    def __init__(self, source: str, paths: Sequence[Path]) -> None:
        self.source, self.paths = source, tuple(paths)
        with reading(source, self.form, *arrow_errors()):
            self._inspect()
            names = tuple(self.schema.names)  # damaged bytes are not text
        self.header = Header(source, len(names), names)

    @abstractmethod
    def _inspect(self) -> None:
        """Find the schema and the number of rows in each chunk."""

    @abstractmethod
    def read(self, chunks: list[int], names: Sequence[str], piece_rows: int) -> Iterator[tuple[int, int, Any]]:
        """Iterate over (chunk, row within it, record batch of at most `piece_rows`) for ascending chunks."""

    def _numbered(self, chunk: int, batches: Iterator[Any]) -> Iterator[tuple[int, int, Any]]:
        """Yield the batches of a chunk; refuse another number of rows than was stated."""
        offset = 0
        for batch in batches:
            yield chunk, offset, batch
            offset += batch.num_rows
        if offset != self.chunk_rows[chunk]:
            what = f"row group {chunk} has {offset} rows, and the file says {self.chunk_rows[chunk]}"
            raise unreadable(self.source, self.form, what)


class ParquetReader(ArrowReader):
    """One Parquet file; a chunk is a row group."""

    form = "Parquet"

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__(shown(path), [path])

    def _inspect(self) -> None:
        with require_pyarrow().parquet.ParquetFile(self._path) as file:
            self.schema = file.schema_arrow
            self.chunk_rows = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]

    def read(self, chunks: list[int], names: Sequence[str], piece_rows: int) -> Iterator[tuple[int, int, Any]]:
        with require_pyarrow().parquet.ParquetFile(self._path, buffer_size=_BUFFER_BYTES, pre_buffer=False) as file:
            for k in chunks:
                # Without threads of pyarrow: all cores work on earlier blocks.
                batches = file.iter_batches(piece_rows, row_groups=[k], columns=list(names), use_threads=False)
                yield from self._numbered(k, batches)


class DatasetReader(ArrowReader):
    """A dataset of pyarrow without a filter; a chunk is a row group of Parquet, or a file of another format."""

    form = "a dataset of pyarrow"

    def __init__(self, dataset: Any, fragments: Iterable[Any]) -> None:
        self._dataset, self._fragments = dataset, fragments
        is_local = isinstance(getattr(dataset, "filesystem", None), require_pyarrow().fs.LocalFileSystem)
        super().__init__("the Arrow dataset", [Path(file) for file in dataset.files] if is_local else [])

    def _inspect(self) -> None:
        self.schema, self.chunk_rows = self._dataset.schema, []
        self._chunks: list[Any] = []
        for fragment in self._fragments:
            groups = fragment.split_by_row_group() if hasattr(fragment, "split_by_row_group") else []
            self._chunks += groups or [fragment]
            self.chunk_rows += [group.row_groups[0].num_rows for group in groups] or [fragment.count_rows()]

    def read(self, chunks: list[int], names: Sequence[str], piece_rows: int) -> Iterator[tuple[int, int, Any]]:
        for k in chunks:
            batches = self._chunks[k].to_batches(
                schema=self.schema, columns=list(names), batch_size=piece_rows, batch_readahead=0, use_threads=False
            )
            yield from self._numbered(k, batches)


class IpcReader(ArrowReader):
    """One file in the file format of Arrow IPC (also Feather), or its stream format, which some programs name .arrow.

    A chunk is a record batch.
    """

    form = "Arrow IPC (.arrow or .feather)"

    def __init__(self, path: Path, source: str | None = None) -> None:
        self._path = path
        super().__init__(source or shown(path), [path])

    def _inspect(self) -> None:
        with self._path.open("rb") as file:
            magic = file.read(6)
        if magic.startswith(b"FEA1"):
            raise unreadable(self.source, self.form, "it is in the old Feather format 1, not format 2")
        self._is_stream = magic != b"ARROW1"
        pa = require_pyarrow()
        with pa.memory_map(str(self._path)) as file:
            self.schema = self._open(file, pa.ipc.IpcReadOptions()).schema
        self.chunk_rows = [batch.num_rows for batch in self._batches(None, [0])]

    def _open(self, file: Any, options: Any) -> Any:
        ipc = require_pyarrow().ipc
        return (ipc.open_stream if self._is_stream else ipc.open_file)(file, options=options)

    def _batches(self, chunks: list[int] | None, fields: list[int]) -> Iterator[Any]:
        """Iterate over the record batches in `chunks`, or over all, with the given fields."""
        pa = require_pyarrow()
        with pa.memory_map(str(self._path)) as file:
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


class SpooledReader(IpcReader):
    """A stream, which can be read only once, in a temporary file; it is removed when nothing refers to the reader.

    Parameters
    ----------
    stream : pyarrow.RecordBatchReader
        The stream.
    source : str
        Name of the stream in messages.
    names : sequence of str
        The columns to keep.
    """

    def __init__(self, stream: Any, source: str, names: Sequence[str]) -> None:
        handle, path = tempfile.mkstemp(prefix="ridgemark-", suffix=".arrow")
        os.close(handle)
        remove = weakref.finalize(self, _remove, path, os.getpid())
        try:
            _write(stream, path, names)
            super().__init__(Path(path), source)
        except BaseException:
            remove()
            raise


def _write(stream: Any, path: str, names: Sequence[str]) -> None:
    """Write some columns of a stream to a file; its format takes categories that differ from batch to batch."""
    pa, limit = require_pyarrow(), MAX_SPOOLED_BYTES
    schema = pa.schema([stream.schema.field(name) for name in names])
    with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, schema) as writer:
        for batch in stream:
            chosen = batch.select(list(names))
            if file.tell() + chosen.nbytes > limit.value:
                raise SourceFileError(
                    f"the Arrow stream has more than {limit.value:,} bytes, the limit of its temporary file; give "
                    f"fewer rows or columns, or raise the limit with the environment variable {limit.name}"
                )
            try:
                writer.write_batch(chosen)
            except OSError as error:
                raise SourceFileError(
                    f"the Arrow stream cannot be written to a temporary file, {shown(Path(path))}: {error}; free space "
                    "there, or name another folder with the environment variable TMPDIR"
                ) from error


def _remove(path: str, process: int) -> None:
    if os.getpid() == process:  # not a fork of it, which may forget its reader earlier
        Path(path).unlink(missing_ok=True)


def open_arrow(path: Path) -> ArrowReader:
    """Return the reader of a Parquet or Arrow file."""
    return (IpcReader if path.suffix.lower() in {".arrow", ".feather"} else ParquetReader)(path)


def arrow_errors() -> tuple[type[BaseException], ...]:
    """Return what pyarrow raises for damaged data, besides OSError."""
    return (require_pyarrow().ArrowException, ValueError)
