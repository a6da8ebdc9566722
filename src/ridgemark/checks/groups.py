"""Columns of groups: rows of one patient or shop are alike, and a model may have to predict for new ones."""

from collections.abc import Iterator

import numpy as np

from ridgemark.backends import Floats, Indices
from ridgemark.checks.quick_fit import quick_fit, some_rows
from ridgemark.checks.record import Finding, named
from ridgemark.checks.table import Column, Table
from ridgemark.errors import DataError

_FEWEST, _FEWEST_NAMED = 20, 5  # groups; fewer only where the name says that they are
_LARGER = 1.21  # squared error for new groups over that for new rows of known groups: 10% more error
_ROWS_PER_GROUP = 2
_MOST_TRIED = 6
_COUNTS = frozenset(("number", "num", "n", "count", "size", "total"))  # names of numbers of customers
_MOST_MISSING = 0.1  # share of rows without a group
_SHRINKAGES = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 1e3)  # noise over variance of groups, in rows
_NAMES = frozenset(
    ("id", "subject", "subj", "subjid", "patient", "participant", "person", "customer", "agent", "household")
)


def find_groups(table: Table, groups: Column | None = None) -> Iterator[Finding]:
    """Columns whose values make the error larger when they are left out as a whole; or the groups asked about."""
    if table.response is None:
        return
    if groups is not None:
        if groups.n_different < 2 or len(groups.present) < len(groups.values):
            raise DataError("groups must have a label for every row, and two different ones or more")
        yield _finding(table, [groups], _errors(table, groups), asked=True)
        return
    errors = {column.name: (column, _errors(table, column)) for column in _candidates(table)}
    alike = [(column, error) for column, error in errors.values() if error[1] > _LARGER * error[0]]
    if alike:
        alike.sort(key=lambda pair: pair[1][0] / pair[1][1])
        yield _finding(table, [column for column, _ in alike], alike[0][1])


def _candidates(table: Table) -> list[Column]:
    """Return columns of text or categories whose values repeat; those whose name speaks of groups first.

    Codes are categories here. A number has neighbours that tell what to expect of a value left out.
    """
    candidates = [column for column in table.columns if _may_be_groups(column)]
    candidates.sort(key=lambda column: (not _NAMES & column.words, -column.n_different))
    return candidates[:_MOST_TRIED]


def _may_be_groups(column: Column) -> bool:
    by_name = bool(_NAMES & column.words)
    if (
        not (column.has_levels or (by_name and column.is_whole))
        or column.is_time
        or not column.words.isdisjoint(_COUNTS)
    ):
        return False
    if column.identifies or column.numbers_rows:
        return False
    if len(column.present) < (1 - _MOST_MISSING) * len(column.values):
        return False
    fewest = _FEWEST_NAMED if by_name else _FEWEST
    return fewest <= column.n_different <= len(column.present) / _ROWS_PER_GROUP


def _errors(table: Table, groups: Column) -> tuple[float, float]:
    """Return the squared errors, relative to the spread, for new rows of known groups and for new groups.

    A quick fit without text groups gives leave-one-out residuals e and residuals r of groups left out. A row of a known
    group is also helped by the mean residual of its group's other rows, as far as that helps most:
    `e_i - s mean e_j`, `s = (m - 1)/(m - 1 + c)` in a group of m rows.
    """
    rng = np.random.default_rng(0)
    rows = some_rows(table, rng, groups.codes)
    part = table.only(rows)
    assert part.response is not None
    codes = np.unique(groups.codes[rows], return_inverse=True)[1]
    columns = [column for column in part.columns if not (column.name == groups.name and column.has_levels)]
    columns = [column for column in columns if column.n_different > 1 and not column.identifies]
    fit = quick_fit(columns, part.response, rng)
    spread = float(np.var(part.response, axis=0).sum())
    if spread == 0:
        return 0.0, 0.0
    of_rows = min(_with_groups(fit.left_out, codes, c) for c in _SHRINKAGES)
    new = float((fit.without_groups(codes) ** 2).sum(axis=1).mean())
    return of_rows / spread, max(new, 0.0) / spread


def _with_groups(residuals: Floats, codes: Indices, c: float) -> float:
    counts = np.bincount(codes)
    sums = np.stack([np.bincount(codes, part) for part in residuals.T], axis=1)
    others = (counts - 1)[codes, None]
    help_of_group = (sums[codes] - residuals) / np.maximum(others + c, 1e-9)
    return float(((residuals - help_of_group * (others > 0)) ** 2).sum(axis=1).mean())


def _finding(table: Table, columns: list[Column], errors: tuple[float, float], asked: bool = False) -> Finding:
    names = [] if asked and columns[0].name not in table.names else [column.name for column in columns]
    column = columns[0]
    of_rows, new = map(float, np.sqrt(errors))
    larger = new / max(of_rows, 1e-9)
    size = len(column.present) / column.n_different
    what = named(names[:1], "has") if names else "the column of groups has"
    also = f"; the same holds for {named(names[1:])}" if len(names) > 1 else ""
    verdict = f"{larger:.2g} times" if larger > 1.02 else "as large as"
    seen = (
        f"{what} {column.n_different:,} values of about {size:,.0f} rows each, and in a quick fit the error for "
        f"rows of a value left out as a whole is {verdict} that for single rows left out ({new:.2f} and {of_rows:.2f} "
        f"standard deviations of the target){also}"
    )
    serious = errors[1] > _LARGER * errors[0]
    why = (
        "rows of one value are alike, so errors from random splits and leave-one-out are too small for new values"
        if serious
        else "errors from random splits hold for new groups too"
    )
    option = f"groups=X[{names[0]!r}]); command line: --group {names[0]}" if names else "groups=...)"
    remedy = f"if predictions are for new values, fit(..., {option}" if serious else "no option is needed"
    numbers = {"n_groups": column.n_different, "error_known": of_rows, "error_new": new}
    return Finding("groups", tuple(names), seen, why, remedy, numbers)
