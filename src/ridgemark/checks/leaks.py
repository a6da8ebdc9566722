"""Columns that know the target too well: a copy, a curve of it, or its parts, known only when the target is."""

from collections.abc import Iterator

import numpy as np

from ridgemark.backends import Floats
from ridgemark.checks.record import Finding, left_out, named
from ridgemark.checks.table import Column, Table

_FEWEST = 50  # rows
_COPY = 0.985  # share of the target that one column explains alone
_PARTS = 0.9999  # share that straight lines of all columns explain together
_MOST_PARTS = 200  # columns of a sum
_SURE = 0.02  # most errors of labels by one column, relative to those of always the most frequent label
_RARE = 10  # rows outside the most frequent label that are needed
_REPEATED = 5  # mean rows of a value from which on a column's values are levels


def find_leaks(table: Table) -> Iterator[Finding]:
    """Columns that explain nearly all of the target alone, or as the parts of a sum."""
    response = table.response
    if response is None or table.n_looked_at < _FEWEST or table.target is None:
        return
    knowing: list[tuple[Column, float]] = []
    for column in table.columns:
        explained = _explained(column, response, table.is_classes)
        if explained > (1 - _SURE if table.is_classes else _COPY):
            knowing.append((column, explained))
    if knowing:
        names, shares = [column.name for column, _ in knowing], [explained for _, explained in knowing]
        of_what = "of the errors in the label" if table.is_classes else "of the target's order"
        yield _finding(names, f"{named(names, 'explains')} {_percent(max(shares))} {of_what} alone", shares)
    elif not table.is_classes and (parts := _parts(table)):
        yield _finding(parts, f"the target is a sum of multiples of {named(parts)}, up to rounding", [])


def _finding(names: list[str], seen: str, shares: list[float]) -> Finding:
    return Finding(
        "leak",
        tuple(names),
        seen,
        "columns that are computed from the target, or known only after it, make errors look far too small",
        f"if a new row would not have the value before its target is known, {left_out(names)}",
        {"explained": shares},
    )


def _percent(part: float) -> str:
    return "all" if part > 0.9999 else f"{part:.1%}"


def _explained(column: Column, response: Floats, classes: bool) -> float:
    """Return the share of a response that one column explains: by its levels, or by the nearest rows along it.

    A row is predicted by the mean of the next row on either side, whose noise makes the squared error 1.5 times that
    of a curve; a level by the mean of its other rows.
    """
    rows = np.flatnonzero(~np.isnan(column.values))
    if len(rows) < max(_FEWEST, 0.5 * len(column.values)) or column.n_different < 2:
        return 0.0
    y, values = response[rows], column.values[rows]
    total = float(((y - y.mean(axis=0)) ** 2).sum())
    if total == 0 or (classes and min(y.sum(axis=0).min(), (len(y) - y.sum(axis=0)).min()) < _RARE):
        return 0.0
    by_level = column.has_levels or len(rows) >= _REPEATED * column.n_different
    if by_level:
        codes = np.unique(values, return_inverse=True)[1]
        counts = np.bincount(codes)
        if 2 * len(counts) > len(rows):
            return 0.0
        means = np.stack([np.bincount(codes, part) for part in y.T], axis=1) / counts[:, None]
        errors = (y - means[codes]) * (counts / np.maximum(counts - 1, 0.5))[codes, None]
        return 1 - float((errors**2).sum()) / total
    # Ties in an order of their own, so that sorting does not carry the order of the rows.
    order = np.lexsort((np.random.default_rng(0).permutation(len(values)), values))
    sorted_y = y[order]
    errors = sorted_y[1:-1] - (sorted_y[:-2] + sorted_y[2:]) / 2
    return 1 - float((errors**2).sum()) / 1.5 / total


def _parts(table: Table) -> list[str]:
    """Return the columns whose sum, with factors, is the target up to rounding; none where there is no such sum."""
    assert table.target is not None
    columns = [column for column in table.columns if column.is_number and len(column.present) == len(column.values)]
    y = table.target.values
    if not 1 < len(columns) <= min(_MOST_PARTS, len(y) // 3) or np.isnan(y).any():
        return []
    X = np.stack([column.values for column in columns], axis=1)
    X, y = X - X.mean(axis=0), y - y.mean()
    spread = X.std(axis=0)
    keep = spread > 0
    X, columns = X[:, keep] / spread[keep], [column for column, kept in zip(columns, keep, strict=True) if kept]

    def unexplained(which: list[int]) -> float:
        left = y - X[:, which] @ np.linalg.lstsq(X[:, which], y, rcond=None)[0]
        return float(left @ left / (y @ y))

    which = list(range(len(columns)))
    if not which or unexplained(which) > 1 - _PARTS:
        return []
    weights = np.abs(np.linalg.lstsq(X, y, rcond=None)[0])
    for j in np.argsort(weights, kind="stable").tolist():
        rest = [k for k in which if k != j]
        if rest and unexplained(rest) <= 1 - _PARTS:
            which = rest
    return [columns[k].name for k in which]
