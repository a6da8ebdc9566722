"""Columns of text that are something else: amounts of money, per cent, numbers with units, dates in several forms."""

from collections.abc import Iterator

from ridgemark.checks.forms import TextKind, kind_of_text
from ridgemark.checks.record import Finding, left_out, named
from ridgemark.checks.table import Column, Table
from ridgemark.rows.places import listed, shown


def find_texts(table: Table) -> Iterator[Finding]:
    """Look for text that a fit would read better as numbers or dates."""
    for column in table.columns:
        if column.kind == "other":
            yield Finding(
                "text",
                (column.name,),
                f"column {shown(column.name)} holds values of several types, or lists",
                "a fit refuses it",
                f"convert it, or {left_out([column.name])}",
            )
    kinds = [(column, _kind(column)) for column in table.columns]
    for what in dict.fromkeys(kind.what for _, kind in kinds if kind is not None):
        alike = [(column, kind) for column, kind in kinds if kind is not None and kind.what == what]
        names, kind = [column.name for column, _ in alike], alike[0][1]
        others = f", and values written otherwise, such as {listed(kind.others[:2])}" if kind.others else ""
        write = "plain numbers, without signs, units and separators; leave other values empty"
        yield Finding(
            "text",
            tuple(names),
            f"{named(names, 'holds')} {what}, such as {shown(kind.example)}{others}",
            "it is read as text, every value a level of its own, and its order is lost",
            f"write {'all dates as 2024-12-31' if what.startswith('dates') else write}",
            {"n_levels": [column.n_different for column, _ in alike]},
        )


def _kind(column: Column) -> TextKind | None:
    return None if column.kind != "text" or column.levels is None else kind_of_text(column.levels.tolist())
