"""CSV tables that are safe in a spreadsheet: no text cell is read as a formula, and numbers stay numbers."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
    """Write a table: full precision for numbers, an empty cell for None, an apostrophe before formulas.

    Returns the number of cells with an apostrophe.
    """
    marked = 0

    def safe(cell: Any) -> Any:
        nonlocal marked
        if not _is_formula(cell):
            return cell
        marked += 1
        return f"'{cell}"

    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([safe(cell) for cell in header])
        writer.writerows([safe(cell) for cell in row] for row in rows)
    return marked


def _is_formula(cell: Any) -> bool:
    """Return whether a spreadsheet would compute with text; not a sign alone, nor a number with a sign."""
    if not isinstance(cell, str) or len(cell) < 2 or not cell.startswith(_FORMULA):
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False
