"""What commands print and write: one JSON object for machines, tables as CSV or NPY."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from ridgemark.cli.files import staged
from ridgemark.report.tables import write_csv

TABLES = (".csv", ".npy")
_ROWS = 65536  # rows of a table held as Python numbers at a time


def print_json(record: Mapping[str, Any]) -> None:
    """Print a record; a number beyond the range, which JSON has no word for, as null."""
    click.echo(json.dumps(finite(record), allow_nan=False))


def print_lines(lines: Sequence[tuple[str, str]]) -> None:
    """Print what and how much, in two columns."""
    width = max(len(what) for what, _ in lines)
    for what, value in lines:
        click.echo(f"{what:<{width}}  {value}")


def write_table(path: Path, header: Sequence[str], columns: Sequence[Any]) -> None:
    """Write columns of numbers, whole or not at all: CSV with a header, or one NPY array."""
    with staged(path) as temporary:
        if path.suffix.lower() == ".npy":
            np.save(temporary, columns[0] if len(columns) == 1 else np.column_stack(columns))
        else:
            starts = range(0, len(columns[0]), _ROWS)
            parts = (zip(*(column[k : k + _ROWS].tolist() for column in columns), strict=True) for k in starts)
            write_csv(temporary, header, (row for part in parts for row in part))


def finite(value: Any) -> Any:
    """Return plain numbers, text, lists and dicts; NaN and infinities as None."""
    if isinstance(value, Mapping):
        return {str(key): finite(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return finite(value.tolist())
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    if isinstance(value, np.generic):
        return finite(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value
