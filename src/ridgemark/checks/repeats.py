"""Rows that are there twice, and rows of nearly the same features with different targets."""

from collections.abc import Iterator

import numpy as np

from ridgemark.backends import Flags, Floats, Indices
from ridgemark.checks.quick_fit import features_of
from ridgemark.checks.record import Finding, share
from ridgemark.checks.table import Column, Table, equal_rows

_BY_CHANCE = 0.05  # share of the equal pairs that chance may explain
_MOST_EQUAL = 0.5  # share of repeated rows from which on repeats are the design of the table
# A repeat is not due to chance if a value of the row is rare, or several are unusual and not the most frequent ones.
_RARE, _UNUSUAL, _SEVERAL = 0.005, 0.05, 3  # shares of the rows, and columns
_NEAR = 0.03  # of the median distance to the nearest row
_BLOCK = 500  # rows whose distances from all others are held at once
_ROWS = 6000  # whose nearest rows are looked for
_DIFFERENT = 0.25  # standard deviations of the target between two rows
_FEWEST = 3


def find_repeats(table: Table) -> Iterator[Finding]:
    """Rows that repeat earlier ones, and near-duplicates whose targets differ."""
    columns = [
        column
        for column in table.columns
        if not (column.identifies or column.numbers_rows) and column.kind not in ("empty", "other")
    ]
    if not columns or table.n_looked_at < 20:
        return
    codes = equal_rows(columns)
    if not _mean_something(columns, codes):
        return
    rare = _are_rare(columns)
    yield from _repeats(table, codes, rare)
    yield from _contradictions(table, columns, codes, rare)


def _are_rare(columns: list[Column]) -> Flags:
    """Return which rows have values that rows hardly share by chance, unlike rows of zeros only."""
    n = len(columns[0].values)
    rarest, unusual = np.full(n, n), np.zeros(n, np.intp)
    for column in columns:
        counts = np.bincount(column.codes)
        in_rows = counts[column.codes]
        rarest = np.minimum(rarest, in_rows)
        unusual += (in_rows < counts.max()) & (in_rows <= _UNUSUAL * n)
    return (rarest <= max(5, _RARE * n)) | (unusual >= _SEVERAL)


def _repeats(table: Table, codes: Indices, rare: Flags) -> Iterator[Finding]:
    """Rows equal to an earlier one, with the target."""
    with_target = codes
    if table.target is not None:
        with_target = np.unique(np.stack([codes, table.target.codes]), axis=1, return_inverse=True)[1].ravel()
    n_repeated = int(rare.sum()) - len(np.unique(with_target[rare]))
    if n_repeated:
        what = "features and target" if table.target is not None else "features"
        yield Finding(
            "repeated rows",
            (),
            f"{n_repeated:,} of {table.n_looked_at:,} rows ({share(n_repeated, table.n_looked_at)}) repeat the {what} "
            "of an earlier row",
            "a random split puts copies on both sides, so errors on held-out rows are too small",
            "leave copies out before splitting: drop_duplicates()",
            {"n_repeated": n_repeated},
        )


def _contradictions(table: Table, columns: list[Column], codes: Indices, rare: Flags) -> Iterator[Finding]:
    """Pairs of rows with equal or nearly equal features whose targets differ."""
    target = table.target
    if target is None or target.n_different < 2:
        return
    pairs = np.concatenate([_equal_pairs(codes), _near_pairs(columns, codes)])
    pairs = pairs[rare[pairs].any(axis=1)]
    if not len(pairs):
        return
    first, second = target.values[pairs[:, 0]], target.values[pairs[:, 1]]
    if table.is_classes:
        differ = first != second
    else:
        low, high = np.quantile(target.present, [0.16, 0.84])  # far values of the target do not count
        unit = (high - low) / 2 or float(target.present.std())
        differ = np.abs(first - second) > _DIFFERENT * unit
    n = int(differ.sum())
    if n < _FEWEST:
        return
    row = pairs[np.flatnonzero(differ)[0]]
    values = " and ".join(target.example(target.values[k]) for k in row)
    yield Finding(
        "contradictions",
        (),
        f"{n:,} pairs of rows have nearly the same features and different targets, such as rows {table.rows[row[0]]} "
        f"and {table.rows[row[1]]} with {values}",
        "no model can be right for both: one may be a mistake or a correction, or a column that distinguishes them is "
        "missing",
        "look at these rows; keep the right one, or rows of one object together with groups=",
        {"n_pairs": n, "pairs": [[int(table.rows[i]), int(table.rows[j])] for i, j in pairs[differ][:20]]},
    )


def _mean_something(columns: list[Column], codes: Indices) -> bool:
    """Return whether rows of this table are not equal by chance, or by design.

    If columns were independent, two rows would be equal with the product of the probabilities that their values are.
    Related columns make equal rows more likely; half as many independent columns are assumed.
    """
    n, counts = len(codes), np.bincount(codes)
    if n - len(counts) > _MOST_EQUAL * n:
        return False
    equal = max(float((counts * (counts - 1)).sum()) / 2, 1.0)
    chance = sum(np.log(np.sum((np.bincount(column.codes) / n) ** 2)) for column in columns)
    return bool(n * (n - 1) / 2 * np.exp(chance / 2) < _BY_CHANCE * equal)


def _equal_pairs(codes: Indices) -> Indices:
    """Return rows with the next row of equal features."""
    order = np.argsort(codes, kind="stable")
    same = codes[order[1:]] == codes[order[:-1]]
    return np.stack([order[:-1][same], order[1:][same]], axis=1)


def _near_pairs(columns: list[Column], codes: Indices) -> Indices:
    """Return distinct rows much nearer to each other than rows are to their nearest ones, beyond what chance makes.

    If the nearest of n points in m dimensions is at distance d, one within `_NEAR d` has the probability
    `log(2) _NEAR^m`; m follows from the first two quartiles of d.
    """
    matrix: Floats = features_of(columns)
    distinct = np.unique(codes, return_index=True)[1]
    some = np.sort(np.random.default_rng(0).permutation(distinct)[:_ROWS])
    nothing = np.empty((0, 2), np.intp)
    if len(some) < 50:
        return nothing
    nearest, neighbours = _nearest(matrix[some])
    quarter, middle = np.quantile(nearest, [0.25, 0.5])
    if not 0 < quarter < middle:
        return nothing
    dimension = np.log(np.log(2) / np.log(4 / 3)) / np.log(middle / quarter)
    near = np.flatnonzero(nearest < _NEAR * middle)
    if len(near) < 2 * _FEWEST or len(near) < 5 * np.log(2) * _NEAR**dimension * len(some):
        return nothing
    pairs = np.sort(np.stack([near, neighbours[near]], axis=1), axis=1)
    return some[np.unique(pairs, axis=0)]


def _nearest(points: Floats) -> tuple[Floats, Indices]:
    """Return the distance of each point from the nearest other one, and which that is."""
    squares = (points**2).sum(axis=1)
    distances, neighbours = np.empty(len(points)), np.empty(len(points), np.intp)
    for start in range(0, len(points), _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, len(points)))
        between = squares[rows, None] + squares - 2 * points[rows] @ points.T
        between[np.arange(len(rows)), rows] = np.inf
        neighbours[rows] = between.argmin(axis=1)
        distances[rows] = np.linalg.norm(points[rows] - points[neighbours[rows]], axis=1)
    return distances, neighbours
