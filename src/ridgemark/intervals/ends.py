"""Intervals of new rows: by all calibration rows, within named sets of rows, or under a shift."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ridgemark.backends import Floats
from ridgemark.errors import CoverageWarning, ParameterError, warn_user
from ridgemark.intervals.adaptive import adaptive_intervals
from ridgemark.intervals.calibration import Calibration
from ridgemark.intervals.jackknife import jackknife_intervals
from ridgemark.intervals.quantiles import check_coverage, quantile_levels, rows_needed
from ridgemark.passes import RowPasses
from ridgemark.rows.groups import Hashes
from ridgemark.solvers import LandmarkFit


def interval_ends(
    passes: RowPasses,
    fit: LandmarkFit,
    calibration: Calibration,
    coverages: Sequence[Any],
    adaptive: bool,
    labels: Hashes | None = None,
    ratios: Floats | None = None,
) -> Floats:
    """Return the ends of intervals, shape (n, 2, coverages, targets).

    With `labels`, hashes of the labels of named sets, a row has the interval by the calibration rows of its set alone
    (Mondrian). A set with too few rows for a coverage gets the pooled interval, and a warning counts such rows. With
    density ratios of the rows, calibration rows are weighted by theirs, and a new row has its ratio at infinity.
    """
    _check(calibration, labels, ratios)
    for coverage in coverages:
        check_coverage(coverage)
    if labels is None:
        return _ends(passes, fit, calibration, coverages, adaptive, ratios)
    assert calibration.sets is not None
    hashes, of_rows = calibration.sets.hashes, np.full(len(labels), -1)
    place = np.minimum(np.searchsorted(hashes, labels), len(hashes) - 1)
    of_rows[hashes[place] == labels] = place[hashes[place] == labels]
    needed = 1 if ratios is not None else max(rows_needed(coverage) for coverage in coverages)
    parts = {k: calibration.of_set(k) for k in np.unique(of_rows[of_rows >= 0]).tolist()}
    small = [k for k, part in parts.items() if part.n_distinct < needed]
    pooled = np.isin(of_rows, [-1, *small])
    if pooled.any():
        msg = (
            f"{np.count_nonzero(pooled):,} of {len(labels):,} rows are in {len(np.unique(labels[pooled])):,} sets with "
            f"fewer than {needed} {calibration.units}, which the coverage needs; they get the interval of all rows"
        )
        warn_user(msg, CoverageWarning)
    pieces = [(pooled, calibration), *((of_rows == k, part) for k, part in parts.items() if k not in small)]
    ends = None
    for chosen, part in pieces:
        rows = np.flatnonzero(chosen)
        if len(rows):
            own = None if ratios is None else ratios[rows]
            of_part = _ends(passes.passes_over_rows(rows), fit, part, coverages, adaptive, own)
            ends = np.empty((len(labels), *of_part.shape[1:])) if ends is None else ends
            ends[rows] = of_part
    assert ends is not None
    return ends


def _ends(
    passes: RowPasses,
    fit: LandmarkFit,
    calibration: Calibration,
    coverages: Sequence[Any],
    adaptive: bool,
    ratios: Floats | None,
) -> Floats:
    intervals = adaptive_intervals if adaptive else jackknife_intervals
    if ratios is None:
        return intervals(
            passes, fit, calibration, quantile_levels(coverages, calibration.n_distinct, calibration.units)
        )
    return intervals(passes, fit, calibration, [float(coverage) for coverage in coverages], ratios)


def _check(calibration: Calibration, labels: Hashes | None, ratios: Floats | None) -> None:
    """Refuse labels or ratios that the calibration knows nothing of."""
    if labels is not None and calibration.sets is None:
        raise ParameterError("by needs calibration rows with labels; call calibrate(X, y, by=labels) first")
    if (ratios is None) != (calibration.ratios is None):
        where = "calibrate(X, y, density_ratio=...) too" if calibration.ratios is None else "predict_interval too"
        raise ParameterError(
            f"density_ratio must be given for the calibration rows and for new rows; give it to {where}"
        )
