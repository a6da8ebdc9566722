"""The rows that tune and the rows that judge: distinct rows, drawn separately, in units of their columns."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ridgemark.backends import Floats, Indices
from ridgemark.kernels import ColumnMap
from ridgemark.linalg import rounded
from ridgemark.passes import RowPasses
from ridgemark.passes.columns import Columns
from ridgemark.rows import row_weights
from ridgemark.tuning.criterion import Sample

FEWEST_ROWS = 100  # distinct rows; with fewer, all columns share one bandwidth
FEWEST_GROUPS = 4  # with fewer, none judges
MOST_FEATURES = 500  # beyond which all columns share one bandwidth, and sparse rows stay sparse
_ARRAYS = 20  # arrays of shape (tuning rows, landmarks) that two descents hold
_FEWEST_TUNING = 50
_ENOUGH_GROUPS = 100  # that judge, whatever their number of rows
_REACH = 0.75  # a column is clipped this share of its range outside the range of the training rows
_LARGER = 2  # times the rows and landmarks, for a last comparison


@dataclass(frozen=True, eq=False)
class TuningRows:
    """Rows that tune, rows that judge, none of them in both, and the units of the columns."""

    tuning: Sample
    larger: Sample  # the same rows and more, with more landmarks
    judging: Sample
    units: Floats
    origin: Floats  # from which the rows' columns are measured
    columns: ColumnMap | None  # that bounds the columns outside the range of all rows; sparse rows have none
    was_sparse: bool

    @property
    def is_wide(self) -> bool:
        """Whether the rows have too many features for a descent."""
        return len(self.units) > MOST_FEATURES


def draw_rows(
    passes: RowPasses, sizes: tuple[int, int, int], fit_intercept: bool, rng: np.random.Generator
) -> TuningRows:
    """Draw distinct rows; equal rows are one row, with their total weight and mean target.

    `sizes` are the numbers of tuning rows, judging rows and landmarks, at most. With fewer than a hundred rows, all of
    them tune, all are landmarks and none judges. Where rows leave in groups, equal rows stay apart, a group either
    tunes or judges, and with fewer than four groups none judges.
    """
    (n_tuning, n_judging, n_landmarks), columns = sizes, passes.columns()
    judging_rows, tuning_rows = _drawn(passes, n_judging, rng)
    n_judging, available = len(judging_rows), len(judging_rows) + len(tuning_rows)
    all_tune = available < FEWEST_ROWS
    n_landmarks = min(n_landmarks, available if all_tune else (available - n_judging) // 2)
    most = max(_FEWEST_TUNING, passes.budget // (8 * _ARRAYS * n_landmarks))
    n_larger = min(_LARGER * n_tuning, available - n_judging, most)
    n_tuning = min(n_tuning, n_larger)
    chosen, groups = np.concatenate([judging_rows, tuning_rows[:n_larger]]), None
    if passes.leaves_groups:
        chosen[n_judging:], n_different = _different_first(chosen[n_judging:], passes.distinct_rows().kind)
        n_landmarks, groups = min(n_landmarks, n_different), passes.left_out().kind[chosen]
        taken = passes.take(chosen)
        taken = replace(taken, weights=row_weights(taken))
    else:
        taken = passes.take_groups(chosen)
    targets, weights = _standardised(taken.targets, fit_intercept), rounded(taken.weights / taken.weights.mean())
    is_sparse = sparse.issparse(taken.features)
    # The mean to a millionth of its unit: a factor on all weights does not move it.
    origin = np.zeros(len(columns.units)) if is_sparse else np.round(columns.mean / columns.units, 6) * columns.units
    features = _scaled(taken.features, columns, origin)

    def sample(start: int, count: int, n_landmarks: int) -> Sample:
        part = slice(start, start + count)
        shares = weights[part] / weights[part].sum() if count else weights[part]
        n_landmarks = min(n_landmarks, count if all_tune else count // 2)
        own = None if groups is None else groups[part]
        return Sample(features[part], targets[part], shares, n_landmarks, fit_intercept, passes.backend, own)

    tuning, judging = sample(n_judging, n_tuning, n_landmarks), sample(0, n_judging, 0)
    larger = sample(n_judging, n_larger, _LARGER * n_landmarks)
    bounded = None if is_sparse else _bounded(columns)
    return TuningRows(tuning, larger, judging, columns.units, origin, bounded, is_sparse)


def _drawn(passes: RowPasses, most_judging: int, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Return the rows that judge and those that tune, in random order.

    A quarter of the rows judge, at most `most_judging`, and none of fewer than a hundred. Of groups that leave together
    those that judge have about so many rows, are at least a quarter of the groups where these are few, and never half
    of the rows or of the weight.
    """
    distinct = passes.distinct_rows()
    rows = distinct.indices if not passes.leaves_groups else np.argsort(distinct.kind, kind="stable")
    rows = rows[distinct.kind[rows] >= 0]
    order = rng.permutation(len(rows))
    n_judging = 0 if len(rows) < FEWEST_ROWS else min(most_judging, len(rows) // 4)
    if not passes.leaves_groups:
        return rows[order[:n_judging]], rows[order[n_judging:]]
    left_out, weights = passes.left_out(), passes.row_counts()
    judges = np.zeros(len(left_out), dtype=bool)
    if n_judging and len(left_out) >= FEWEST_GROUPS:
        place = np.empty(len(weights), dtype=np.intp)
        place[rows[order]] = np.arange(len(rows))
        sizes = left_out.totals(np.ones(len(weights))).astype(np.intp), left_out.totals(weights)
        judges[_judging_groups(np.argsort(place[left_out.indices]), *sizes, n_judging)] = True
    judging = judges[left_out.kind[rows[order]]]
    return rows[order[judging]][:n_judging], rows[order[~judging]]


def _judging_groups(order: Indices, sizes: Indices, weights: Floats, n_rows: int) -> list[int]:
    """Return groups in this order: of `n_rows` rows together, and at least a quarter of all groups up to 100."""
    least, half, heavy = min(len(order) // 4, _ENOUGH_GROUPS), sizes.sum() / 2, weights.sum() / 2
    chosen: list[int] = []
    total, weight = 0, 0.0
    for group in order.tolist():
        if len(chosen) >= least and total + sizes[group] > n_rows:
            break
        if total + sizes[group] <= half and weight + weights[group] <= heavy:
            chosen.append(group)
            total, weight = total + sizes[group], weight + weights[group]
    return chosen


def _different_first(rows: Indices, kind: Indices) -> tuple[Indices, int]:
    """Return the rows with the first of each kind before the others, which may not be landmarks; and their number."""
    first = np.zeros(len(rows), dtype=bool)
    first[np.unique(kind[rows], return_index=True)[1]] = True
    return np.concatenate([rows[first], rows[~first]]), int(first.sum())


def _bounded(columns: Columns) -> ColumnMap:
    """Return the map that ends every column three quarters of its range outside the range of its values."""
    with np.errstate(over="ignore"):
        reach = _REACH * (columns.high - columns.low)
        low, high = columns.low - reach, columns.high + reach
    largest = float(np.finfo(np.float64).max)
    return ColumnMap(np.clip(low, -largest, largest), np.clip(high, -largest, largest))


def _scaled(features: Any, columns: Columns, origin: Floats) -> Any:
    """Return rows in units of their columns: dense rows centred, sparse rows dense unless they have many columns."""
    if not sparse.issparse(features):
        return columns.in_units(features - origin)
    scaled = columns.in_units(features)
    return scaled.toarray() if features.shape[1] <= MOST_FEATURES else scaled


def _standardised(targets: Floats, centred: bool) -> Floats:
    """Return targets with a standard deviation of one; a constant one stays."""
    deviations = targets - targets.mean(axis=0)
    largest = np.abs(deviations).max(axis=0)
    largest[largest == 0.0] = 1.0
    spread = largest * (deviations / largest).std(axis=0)
    scaled = (deviations if centred else targets) / np.where(spread > 0.0, spread, 1.0)
    return np.round(scaled, 9)  # the mean of equal rows' targets is then the same for a factor on all weights
