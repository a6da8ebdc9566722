"""The rows that tune and the rows that judge: distinct rows, drawn apart, in units of their columns."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ridgemark.backends import Floats
from ridgemark.linalg import rounded
from ridgemark.passes import RowPasses
from ridgemark.passes.columns import Columns
from ridgemark.tuning.criterion import Sample

FEWEST_ROWS = 100  # distinct rows; with fewer, one bandwidth serves all columns
MOST_FEATURES = 500  # beyond which one bandwidth serves all columns, and sparse rows stay sparse
_ARRAYS = 20  # of tuning rows by landmarks, that two descents hold
_FEWEST_TUNING = 50
_LARGER = 2  # times the rows and landmarks, for a last comparison of families
_ALL_LANDMARKS = 2500  # rows of that comparison where all rows are landmarks, as in an exact fit


@dataclass(frozen=True, eq=False)
class TuningRows:
    """Rows that tune, rows that judge, none of them in both, and the units of the columns."""

    tuning: Sample
    larger: Sample  # with more landmarks: for an exact fit all of its rows
    judging: Sample
    units: Floats
    was_sparse: bool


def draw_rows(
    passes: RowPasses, sizes: tuple[int, int, int], exact: bool, fit_intercept: bool, rng: np.random.Generator
) -> TuningRows:
    """Draw distinct rows; equal rows are one row, with their total weight and mean target.

    `sizes` are the numbers of tuning rows, judging rows and landmarks, at most. With fewer than a hundred rows, all of
    them tune, all are landmarks and none judges. `exact` says that all rows are the landmarks of the fit: then families
    are compared by exact fits, in which rougher ones do better than with few landmarks.
    """
    (n_tuning, n_judging, n_landmarks), distinct, columns = sizes, passes.distinct_rows(), passes.columns()
    available = len(distinct)
    few = available < FEWEST_ROWS
    n_judging = 0 if few else min(n_judging, available // 4)
    n_landmarks = min(n_landmarks, available if few else (available - n_judging) // 2)
    most = max(_FEWEST_TUNING, passes.budget // (8 * _ARRAYS * n_landmarks))
    n_larger = min(_LARGER * n_tuning, available - n_judging, most)
    n_tuning = min(n_tuning, n_larger)
    chosen = distinct.indices[rng.permutation(available)[: n_judging + n_larger]]
    taken = passes.take_groups(chosen)
    targets, weights = _standardised(taken.targets, fit_intercept), rounded(taken.weights / taken.weights.mean())
    features = _scaled(taken.features, columns)

    def sample(start: int, count: int, n_landmarks: int, all_landmarks: bool = few) -> Sample:
        part = slice(start, start + count)
        shares = weights[part] / weights[part].sum() if count else weights[part]
        n_landmarks = min(n_landmarks, count if all_landmarks else count // 2)
        return Sample(features[part], targets[part], shares, n_landmarks, fit_intercept, passes.backend)

    larger = sample(n_judging, n_larger, _LARGER * n_landmarks)
    if exact:
        larger = sample(n_judging, min(n_larger, _ALL_LANDMARKS), _ALL_LANDMARKS, all_landmarks=True)
    tuning, judging = sample(n_judging, n_tuning, n_landmarks), sample(0, n_judging, 0)
    return TuningRows(tuning, larger, judging, columns.units, sparse.issparse(taken.features))


def _scaled(features: Any, columns: Columns) -> Any:
    """Return rows in units of their columns: dense rows centred, sparse rows dense unless they have many columns."""
    if not sparse.issparse(features):  # the mean to a millionth of its unit: a factor on all weights does not move it
        return columns.in_units(features - np.round(columns.mean / columns.units, 6) * columns.units)
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
