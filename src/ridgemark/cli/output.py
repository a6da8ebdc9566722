"""What commands print and write: one JSON object, lines of text, and tables as CSV, NPY or Parquet."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from ridgemark.cli.files import is_stream, staged
from ridgemark.errors import ParameterError
from ridgemark.report.tables import write_csv
from ridgemark.rows.arrow import require_pyarrow, write_parquet
from ridgemark.rows.places import shown

_ROWS = 65536  # rows of a table converted to Python numbers at once


def print_json(record: Mapping[str, Any]) -> None:
    """Print a record as JSON; NaN and infinities become null."""
    click.echo(json.dumps(finite(record), allow_nan=False))


def print_lines(lines: Sequence[tuple[str, str | None]]) -> None:
    """Print labels and values in two columns, without values that are None."""
    shown = [(what, value) for what, value in lines if value is not None]
    width = max((len(what) for what, _ in shown), default=0)
    for what, value in shown:
        click.echo(f"{what:<{width}}  {value}")


def print_result(
    as_json: bool, record: Mapping[str, Any], lines: Sequence[tuple[str, str | None]], *written: Path | None
) -> None:
    """Print the record as JSON; or else lines of labels and values, and the files written."""
    if as_json:
        print_json(record)
        return
    print_lines(lines)
    for path in filter(None, written):
        click.echo(str(path))


def table_form(path: Path) -> str:
    """Return the extension that sets the format: that of the path, or .csv for a stream without one."""
    form = path.suffix.lower()
    if not form and is_stream(path):
        return ".csv"
    if form not in _WRITERS:
        msg = f"{shown(path)} must end in {' or '.join(_WRITERS)}, which sets the format"
        raise ParameterError(msg)
    if form == ".parquet":
        require_pyarrow("Writing Parquet")
    return form


def write_table(path: Path, force: bool, header: Sequence[str], n_rows: int, parts: Iterable[Sequence[Any]]) -> None:
    """Write columns of numbers part by part; the file is written completely or not at all.

    Parameters
    ----------
    path : Path
        The extension sets the format: CSV with a header, one NPY array, or Parquet.
    force : bool
        Whether an existing file is replaced.
    header : sequence of str
        Names of the columns.
    n_rows : int
        Rows of all parts together.
    parts : iterable of sequences of arrays
        Each part holds the columns of some rows.
    """
    with staged(path, force) as temporary:
        _WRITERS[table_form(path)](temporary, header, n_rows, parts)


def _write_csv(path: Path, header: Sequence[str], n_rows: int, parts: Iterable[Sequence[Any]]) -> None:
    pieces = (
        zip(*(column[k : k + _ROWS].tolist() for column in part), strict=True)
        for part in parts
        for k in range(0, len(part[0]), _ROWS)
    )
    write_csv(path, header, itertools.chain.from_iterable(pieces))


def _write_npy(path: Path, header: Sequence[str], n_rows: int, parts: Iterable[Sequence[Any]]) -> None:
    with path.open("wb") as file:
        for part in parts:
            values = part[0] if len(header) == 1 else np.column_stack(part)
            if not file.tell():
                shape = (n_rows, *values.shape[1:])
                about = {"descr": values.dtype.str, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, about)
            file.write(values.tobytes())


_WRITERS: dict[str, Callable[[Path, Sequence[str], int, Iterable[Sequence[Any]]], None]] = {
    ".csv": _write_csv,
    ".npy": _write_npy,
    ".parquet": lambda path, header, _, parts: write_parquet(path, header, parts),
}


def finite(value: Any) -> Any:
    """Return a value as plain numbers, text, lists and dicts; NaN and infinities become None."""
    if isinstance(value, Mapping):
        return {str(key): finite(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return finite(value.tolist())
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    if isinstance(value, np.generic):
        return finite(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value
