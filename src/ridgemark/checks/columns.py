"""Columns that tell little of new rows: identifiers, row numbers, constants; and values far beyond the others."""

from collections.abc import Iterator

import numpy as np

from ridgemark.backends import Floats
from ridgemark.checks.identity import FEWEST
from ridgemark.checks.record import Finding, left_out, named, rows
from ridgemark.checks.table import Column, Table

_RARE = 0.005  # share of the rows with other values than the most frequent one
_APART = 5.0  # times the distance of the next value from the median
_TAIL = 1.5  # power of that distance, in units of the spread, that tails of data seldom reach
_FAR = 20.0  # units of the spread
_FEW_FAR, _SAME_FAR = 0.005, 0.3  # shares of far values, and of one far value that stands for something else


def find_identifiers(table: Table) -> Iterator[Finding]:
    """Look for columns that identify or number the rows."""
    numbering = [column for column in table.columns if column.numbers_rows]
    others = [column for column in table.columns if column not in numbering and column.identifies]
    if numbering and len(table.columns) > 1:
        names = [column.name for column in numbering]
        yield Finding(
            "row number",
            tuple(names),
            f"{named(names, 'numbers')} the rows",
            "the order of the rows tells nothing of new ones, unless it is their order in time",
            left_out(names),
        )
    if others and len(table.columns) > 1:
        names, n_different = [column.name for column in others], [column.n_different for column in others]
        counts = ", ".join(f"{k:,}" for k in n_different)
        example = others[0].example(others[0].present[0])
        yield Finding(
            "identifier",
            tuple(names),
            f"{named(names, 'has')} another value in nearly every row ({counts} different in "
            f"{rows(table.n_looked_at)}, such as {example})",
            "an identifier tells nothing of new rows, and distances between its values mean nothing",
            left_out(names),
            {"n_different": n_different},
        )


def find_constants(table: Table) -> Iterator[Finding]:
    """Look for columns of one value, and of nearly one."""
    if table.n_looked_at < 2:
        return
    constant = [column.name for column in table.columns if column.n_different < 2 and not _says_missing(column)]
    nearly = [column for column in table.columns if 0 < _n_others(column) <= max(2, _RARE * table.n_looked_at)]
    if constant:
        yield Finding(
            "constant",
            tuple(constant),
            f"{named(constant, 'has')} one value in all rows, or none",
            "it cannot distinguish rows; a fit leaves it out",
            left_out(constant),
        )
    if nearly and table.n_looked_at >= FEWEST:
        names, others = [column.name for column in nearly], [_n_others(column) for column in nearly]
        most = f"{'at most ' * (len(names) > 1)}{max(others):,} of {rows(table.n_looked_at)} have another"
        yield Finding(
            "nearly constant",
            tuple(names),
            f"{named(names, 'has')} one value in nearly all rows ({most})",
            "so few rows hardly say what the other values do, and leave-one-out depends on single rows",
            f"check that the others are not mistakes, or {left_out(names)}",
            {"n_others": others},
        )


def _says_missing(column: Column) -> bool:
    """Return whether the only value and its absence distinguish rows."""
    return column.n_different == 1 and len(column.present) < len(column.values)


def _n_others(column: Column) -> int:
    """Return the number of rows with another value than the most frequent one; 0 for one value, or with gaps."""
    if column.n_different < 2 or len(column.present) < len(column.values):
        return 0
    return len(column.present) - int(column.counts.max())


def find_far_values(table: Table) -> Iterator[Finding]:
    """Look for values far beyond all others, such as 9.99e9 or 999, in the columns and in the target."""
    columns = [
        column for column in table.columns if column.is_number and not (column.identifies or column.is_named_code)
    ]
    far = {column: values for column in columns if (values := _far_values(column)).size}
    if far:
        names = [column.name for column in far]
        yield Finding(
            "far values",
            tuple(names),
            f"{named(names, 'holds')} values far beyond the others: {_listed(far)}",
            "such rows bend the fit and stretch the column's scale; often they stand for a missing value",
            "correct these values, or leave them empty: gaps are filled in, with a column that says where",
            {"n_far": [len(values) for values in far.values()]},
        )
    target = table.target
    if target is not None and target.is_number and not table.is_classes and (values := _far_values(target)).size:
        yield Finding(
            "far values",
            (),
            f"the target holds values far beyond the others: {_listed({target: values})}",
            "squared error is ruled by these rows",
            "correct these rows or leave them out",
            {"n_far": [len(values)]},
        )


def _listed(far: dict[Column, Floats]) -> str:
    """Return the far values of some columns, of many the first few, and where the others lie."""
    parts = []
    for column, values in list(far.items())[:4]:
        rest = column.present[~np.isin(column.present, values)]
        examples = ", ".join(column.example(float(value)) for value in np.unique(values)[:3])
        ends = column.example(float(rest.min())), column.example(float(rest.max()))
        parts.append(f"{column.name} has {examples} in {rows(len(values))}, and else {ends[0]} to {ends[1]}")
    return "; ".join(parts)


def _far_values(column: Column) -> Floats:
    """Return the values at one end that lie far beyond the others.

    With d the distance from the median in units of the median distance, values from some d >= 20 on are far if the
    next smaller distance on their side is at most `d/5` and `d^(2/3)`, which heavy tails hardly ever have. One repeated
    value may be far in more rows than different ones.
    """
    values = np.sort(column.present)
    if len(values) < FEWEST or column.n_different < 5:
        return np.empty(0)
    middle = float(np.median(values))
    distances = np.abs(values - middle)
    unit = float(np.median(distances[distances > 0]))
    far = np.empty(0)
    for side in (values[values > middle][::-1], values[values < middle]):
        d = np.maximum(np.abs(side - middle) / unit, 1.0)
        for k in range(1, len(d)):
            repeated = side[0] == side[k - 1]
            if k > max(3, _FEW_FAR * len(values)) and not (repeated and k <= _SAME_FAR * len(values)):
                break
            if d[k - 1] >= max(_FAR, _APART * d[k], d[k] ** _TAIL):
                far = np.append(far, side[:k])
                break
    return far
