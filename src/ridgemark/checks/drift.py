"""What differs between two tables: columns, levels that one lacks, and values that have moved."""

from collections.abc import Iterator

import numpy as np
from scipy.stats import ks_2samp

from ridgemark.backends import Floats
from ridgemark.checks.record import Finding, left_out, named, rows, share
from ridgemark.checks.table import Column, Table
from ridgemark.rows.base import Array
from ridgemark.rows.places import listed

_MOVED = 0.1  # largest difference of two distribution functions, or of two distributions of levels
_SURE = 1e-4  # probability of a difference as large by chance
_MORE_GAPS = 0.05  # change of the share of missing values
_MOST_LEVELS = 100


def find_differences(table: Table, new: Table) -> Iterator[Finding]:
    """Columns that are not in both tables, unseen levels, drift, and values that are missing in the new table only."""
    there = {column.name: column for column in new.columns}
    lacking = [column.name for column in table.columns if column.name not in there]
    if lacking:
        yield Finding(
            "missing columns",
            tuple(lacking),
            f"the new table lacks {named(lacking)}",
            "a prediction needs the columns of the fit",
            f"add them, or fit without them: {left_out(lacking)}",
        )
    drifting: list[tuple[float, Column, str]] = []
    for column in table.columns:
        if (other := there.get(column.name)) is None or column.identifies or column.numbers_rows:
            continue
        yield from _unseen(column, other)
        if moved := _moved(column, other):
            drifting.append((moved[0], column, moved[1]))
    if drifting:
        drifting.sort(key=lambda entry: -entry[0])
        names = [column.name for _, column, _ in drifting]
        told = "; ".join(words for *_, words in drifting[:4])
        yield Finding(
            "drift",
            tuple(names),
            f"{named(names, 'has')} moved in the new table ({told})",
            "predictions there rest on few rows of the fit, and errors and intervals of the fit need not hold",
            "fit rows like the new ones too, and look at the intervals, which widen away from the rows of the fit",
            {"differences": {column.name: size for size, column, _ in drifting}},
        )


def _unseen(column: Column, other: Column) -> Iterator[Finding]:
    """Levels of the new table that the first one lacks, and gaps where it has none."""
    n = len(other.values)
    n_gaps, before = n - len(other.present), len(column.values) - len(column.present)
    if n_gaps and not before:
        yield Finding(
            "missing values",
            (column.name,),
            f"{n_gaps:,} of {n:,} values of {named([column.name])} are missing in the new table, and none in the first",
            "a fit that has seen no gap fills in the median",
            "fill them in, or fit to rows with gaps too",
            {"n_missing": n_gaps},
        )
    if column.levels is None or other.levels is None:
        return
    unseen = ~np.isin(other.levels.astype(str), column.levels.astype(str))
    if unseen.any() and column.n_different < 0.5 * len(column.present):
        n_rows = int(unseen[other.present.astype(np.intp)].sum())
        levels = other.levels[unseen].tolist()
        yield Finding(
            "unseen levels",
            (column.name,),
            f"{named([column.name], 'has')} {len(levels):,} level{'s' * (len(levels) > 1)} in the new table that the "
            f"first lacks ({listed(levels[:3])}), in {rows(n_rows)} ({share(n_rows, n)})",
            "such a level counts as none of the known ones",
            "correct the spelling, fit to rows with it, or refuse it: --unknown error",
            {"n_levels": len(levels), "n_rows": n_rows},
        )


def _moved(column: Column, other: Column) -> tuple[float, str] | None:
    """Return how far a column's distribution has moved, and in what; None where that may be chance."""
    if column.has_order and other.has_order and len(column.present) and len(other.present):
        test = ks_2samp(column.present, other.present, method="asymp")
        if test.statistic > _MOVED and test.pvalue < _SURE:
            before, after = (column.example(float(np.median(part.present))) for part in (column, other))
            return float(test.statistic), f"{column.name}: median {before} before, {after} now"
    if column.levels is not None and other.levels is not None and column.n_different <= _MOST_LEVELS:
        levels = np.union1d(column.levels.astype(str), other.levels.astype(str))
        shares = [_shares(part, levels) for part in (column, other)]
        size = float(np.abs(shares[0] - shares[1]).sum()) / 2
        chance = np.sqrt(len(levels) * (1 / len(column.present) + 1 / len(other.present)))
        if size > _MOVED + chance:
            k = int(np.abs(shares[0] - shares[1]).argmax())
            return size, f"{column.name}: {str(levels[k])!r} {shares[0][k]:.0%} before, {shares[1][k]:.0%} now"
    return None


def _shares(column: Column, levels: Array) -> Floats:
    assert column.levels is not None
    counts = np.zeros(len(levels))
    counts[np.searchsorted(levels, column.levels.astype(str))] = np.bincount(
        column.present.astype(np.intp), minlength=len(column.levels)
    )
    return counts / counts.sum()
