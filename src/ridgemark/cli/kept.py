"""Columns of a data file as they are, text included, to stand beside predictions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ridgemark.cli.data import is_csv
from ridgemark.cli.options import Key
from ridgemark.errors import DataError
from ridgemark.rows import CsvRows, RowSource, open_rows, shown
from ridgemark.rows.arrow_column import require_pyarrow
from ridgemark.rows.arrow_readers import open_arrow
from ridgemark.rows.column import words

_BATCH = 65536  # rows of an Arrow file read at once


def kept_columns(path: Path, keys: Sequence[Key], source: RowSource, **form: Any) -> dict[str, Any]:
    """Return columns of the file of a source by name; each is an array with `tolist`, and all are held in memory."""
    if is_csv(path):
        columns = csv_columns(path, keys, **form)
    elif path.is_dir() or path.name.lower().endswith((".parquet", ".arrow", ".feather")):
        columns = _from_arrow(path, keys)
    else:
        rows = open_rows(path, columns=keys)
        names = rows.feature_names or [f"column {key}" for key in keys]
        columns = dict(zip(names, rows.take(np.arange(rows.n_rows)).features.T, strict=True))
    if any(len(column) != source.n_rows for column in columns.values()):
        raise DataError(f"the columns of {shown(path)} to keep do not have one value for each of its rows")
    return columns


def csv_columns(path: Path, keys: Sequence[Key], **form: Any) -> dict[str, Any]:
    """Return columns of a CSV file by name, as text."""
    source = CsvRows(path, columns=keys, **form)
    positions = source.roles.features
    counted = source.names == tuple(map(str, range(len(source.names))))  # the file names no columns
    names = [f"column {j}" if counted else source.names[j] for j in positions]
    cells: dict[str, list[str]] = {name: [] for name in names}
    for piece in source.pieces():
        for name, part in zip(names, piece.columns(positions, as_text=positions), strict=True):
            assert part.levels is not None
            cells[name].extend(part.levels[part.values])
    return {name: words(texts) for name, texts in cells.items()}


def _from_arrow(path: Path, keys: Sequence[Key]) -> dict[str, Any]:
    readers = [open_arrow(part) for part in (sorted(path.glob("*.parquet")) if path.is_dir() else [path])]
    header = readers[0].header
    names = header.names_of(header.choose(columns=keys).features) or ()
    batches = [
        batch for reader in readers for _, _, batch in reader.read(list(range(len(reader.chunk_rows))), names, _BATCH)
    ]
    table = require_pyarrow().Table.from_batches(batches).combine_chunks()
    return {name: table.column(name).chunk(0) for name in names}
