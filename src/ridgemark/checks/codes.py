"""Integers that are codes: a zip code has no order that a distance between numbers could mean."""

from collections.abc import Iterator

import numpy as np

from ridgemark.backends import Floats
from ridgemark.checks.identity import CODES
from ridgemark.checks.record import Finding, as_categories, named
from ridgemark.checks.table import Column, Table, ranks

_ENDINGS = ("id", "code", "nr", "no")  # of names that may be those of codes, such as schoolid, paid and grid
_FEWEST_LEVELS, _ROWS_PER_LEVEL, _MOST_LEVELS = 6, 3, 10_000
_ALONE, _BESIDE_OTHERS = 5, 3  # digits that all codes have, such as 98052: that say it alone, and with other evidence
_SPARSE, _DENSE = 0.5, 0.8  # share of the integers in between that occur: of codes with many digits, of 1, 2, 3, ...
_MORE = 0.02  # share of the target's spread that levels explain beyond a curve
_TIMES_MORE = 3.0  # as much as the curve, of 1, 2, 3, ..., which may be counts
_SIGNIFICANT = 4.0  # standard deviations of a ratio of variances beyond one
_DISORDERED, _ORDERED = 1.0, 0.5  # ratio of squared differences of adjacent levels; 2 without any order


def find_codes(table: Table) -> Iterator[Finding]:
    """Look for columns of integers that are levels without an order."""
    codes = [(column, order) for column in table.columns if (order := _as_codes(table, column)) is not None]
    if not codes:
        return
    names, levels = [column.name for column, _ in codes], [column.n_different for column, _ in codes]
    column, order = max(codes, key=lambda pair: pair[1].by_level - pair[1].by_curve)
    example = ", ".join(str(int(value)) for value in np.unique(column.present)[:2])
    gain = ""
    if order.is_disordered:
        gain = (
            f"; as levels {column.name} explains {order.by_level:.0%} of the target, as a number {order.by_curve:.0%}"
        )
    yield Finding(
        "codes",
        tuple(names),
        f"{named(names, 'holds')} integers that look like codes, such as {example}{gain}",
        "as a number, neighbouring codes count as alike",
        as_categories(names),
        {"n_levels": levels, "by_level": order.by_level, "by_curve": order.by_curve},
    )


def _as_codes(table: Table, column: Column) -> "_Order | None":
    """Return how the levels of a column of codes explain the target; None for other columns.

    Codes have a name that says so, or all the same number of digits, five or more. Or the target differs between them
    without an order, and they are 1, 2, 3, ..., have three digits, or a name that ends like those of codes.
    """
    if not _may_be_codes(column):
        return None
    order = _Order() if table.response is None else _order(column, table.response[:, 0])
    by_name, suggests = bool(CODES & column.words), column.name.lower().endswith(_ENDINGS)
    form = _same_digits(column)
    counts_up = _counts_up(column) and order.by_level > _TIMES_MORE * order.by_curve
    by_target = order.is_disordered and (form >= _BESIDE_OTHERS or counts_up or suggests)
    if not (by_name or form >= _ALONE or by_target):
        return None
    others = [other for other in table.columns if other.is_number and other.n_different > 20 and other is not column]
    ordered = order.is_ordered or any(_order(column, ranks(other.values)).is_ordered for other in others[:10])
    return None if ordered else order


def _may_be_codes(column: Column) -> bool:
    if not column.is_whole or column.identifies or column.numbers_rows or column.is_time:
        return False
    most = min(_MOST_LEVELS, len(column.present) / _ROWS_PER_LEVEL)
    return _FEWEST_LEVELS <= column.n_different <= most and column.present.min() >= 0


def _same_digits(column: Column) -> int:
    """Return how many digits all integers have, where gaps in between are irregular; 0 for others."""
    values = np.unique(column.present).astype(np.int64)
    low, high = int(values[0]), int(values[-1])
    regular = np.gcd.reduce(np.diff(values)) > 1 or len(values) > _SPARSE * (high - low + 1)
    return 0 if regular or len(str(low)) != len(str(high)) else len(str(low))


def _counts_up(column: Column) -> bool:
    """Return whether the integers are 0 or 1, 2, 3, ..., nearly all of them."""
    low, high = float(column.present.min()), float(column.present.max())
    return low <= 1 and column.n_different >= _DENSE * (high - low + 1)


class _Order:
    """How levels of a column explain a response: each for itself, or as a curve along the numbers."""

    def __init__(
        self,
        by_level: float = 0.0,
        by_curve: float = 0.0,
        ratio: float = 2.0,
        significant: bool = False,
        beyond_curve: bool = False,
    ) -> None:
        self.by_level, self.by_curve = max(by_level, 0.0), max(by_curve, 0.0)
        self.is_ordered = significant and ratio < _ORDERED
        self.is_disordered = beyond_curve and ratio > _DISORDERED and by_level - by_curve > _MORE


def _order(column: Column, response: Floats) -> _Order:
    """Compare the means of a response at the levels with a cubic curve, and with their neighbours.

    Von Neumann's ratio, the mean squared difference of means at adjacent levels over their variance, is 2 where
    levels have no order and small where the means follow a curve. Shares explained are corrected for the number of
    parameters.
    """
    rows = ~np.isnan(column.values) & ~np.isnan(response)
    y, (levels, codes) = response[rows], np.unique(column.values[rows], return_inverse=True)
    n, k = len(y), len(levels)
    if n - k < 2 or y.std() == 0:
        return _Order()
    counts = np.bincount(codes)
    means = np.bincount(codes, y) / counts
    total = float(((y - y.mean()) ** 2).sum())
    within = max(float(((y - means[codes]) ** 2).sum()), 1e-12 * total)
    t = np.interp(column.values[rows], [levels[0], levels[-1]], [-1.0, 1.0])
    powers = np.vander(t, 4)
    curve = float(((y - powers @ np.linalg.lstsq(powers, y, rcond=None)[0]) ** 2).sum())
    noise = within / (n - k)

    def adjusted(left: float, n_parameters: int) -> float:
        return 1 - (left / (n - n_parameters)) / (total / (n - 1))

    def stands_out(sum_of_squares: float, degrees: int) -> bool:
        return degrees > 0 and sum_of_squares / degrees / noise > 1 + _SIGNIFICANT * np.sqrt(2 / degrees)

    # The noise of the means makes adjacent ones differ too: it is subtracted from both sums.
    apart = np.sum(np.diff(means) ** 2 - noise * (1 / counts[1:] + 1 / counts[:-1])) / (k - 1)
    spread = np.sum((means - means.mean()) ** 2 - noise * (1 - 1 / k) / counts) / k
    ratio = float(apart / spread) if spread > 0 else 2.0
    return _Order(
        adjusted(within, k),
        adjusted(curve, 4),
        ratio,
        stands_out(total - within, k - 1),
        stands_out(curve - within, k - 4),
    )
