"""CSV tables that are safe in a spreadsheet: no text cell is read as a formula, and numbers stay numbers."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table: full precision for numbers, an empty cell for None."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([_safe(cell) for cell in header])
        writer.writerows([_safe(cell) for cell in row] for row in rows)


def _safe(cell: Any) -> Any:
    """Put an apostrophe before text that a spreadsheet would read as a formula; a number with a sign is none."""
    if not isinstance(cell, str) or not cell.startswith(_FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
