"""What matters: by how much predictions change when a column takes its value from another row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ridgemark.backends import Floats, Indices
from ridgemark.kernels.base import count_rows
from ridgemark.rows import dense

_MOST, _FEWEST, _DONORS = 1000, 100, 2  # rows whose values are replaced, and rows that replace each
_WORK, _MOST_WORK = 1e10, 2e11  # products of numbers: as wanted, and beyond which importances are left out
_BESIDE = 20  # products that a kernel value takes besides those of its features
_BATCH = 2**22  # numbers of rows that are evaluated at once

Predictor = Callable[[Any], Floats]  # from rows of features to the linear predictor, (rows, outputs)


@dataclass(frozen=True, eq=False)
class Importance:
    """How much each column matters: total indices `E[(f(x) - f(x with column j of another row))^2]/(2 Var f)`.

    The total index of a column is the share of the variance of the prediction that is lost without the column, with
    all its interactions; so the sum over the columns may exceed one. Replacing one of two dependent columns makes rows
    that do not occur in the data.

    Attributes
    ----------
    column_names : tuple of str
        The names of the columns.
    shares : array of shape (n_features, n_outputs)
        The total index of each column, an estimate; zero for all columns where the prediction is constant.
    standard_errors : array of shape (n_features, n_outputs)
        Standard errors of the shares, since they are averages over a sample of rows.
    n_rows : int
        The number of rows in the sample.
    """

    column_names: tuple[str, ...]
    shares: Floats
    standard_errors: Floats
    n_rows: int

    @property
    def normalised(self) -> Floats:
        """The shares with the sum one, their mean over the outputs; zero for all columns of a constant prediction."""
        summed = self.shares.sum(axis=1)
        total = float(summed.sum())
        return summed / total if total > 0.0 else summed

    def to_record(self) -> list[dict[str, Any]]:
        """Return one dict for each column, the most important first."""
        order, normalised = np.argsort(-self.normalised, kind="stable"), self.normalised
        return [
            {
                "column": self.column_names[j],
                "importance": float(normalised[j]),
                "share": self.shares[j].tolist(),
                "standard_error": self.standard_errors[j].tolist(),
            }
            for j in order
        ]

    def __str__(self) -> str:
        lines = [f"Share of the variance of the prediction that is lost without a column, over {self.n_rows} rows", ""]
        width = max(map(len, self.column_names))
        for row in self.to_record():
            shares = zip(row["share"], row["standard_error"], strict=True)
            lines.append(f"{row['column']:<{width}}  " + "  ".join(f"{a:6.3f} +- {e:.3f}" for a, e in shares))
        return "\n".join(lines)


def total_indices(
    predict: Predictor, n_points: int, rows: Any, owners: Indices, names: tuple[str, ...]
) -> Importance | None:
    """Return the total indices of columns; None where they would take too long.

    `owners` says which column each feature comes from: all features of a column are replaced together. With u_ij the
    half squared change of the prediction at row i by column j of row i', the index is `mean u_ij/Var f`. Its standard
    error is that of the mean of the influences `a_i + b_i - share v_i`, where a_i is the mean of u where row i
    receives a value, b_i that where it gives one, and `v_i = (f(x_i) - mean f)^2`.
    """
    rows, n_donors = _affordable(rows, owners, n_points)
    if rows is None:
        return None
    n_rows, n_columns = count_rows(rows), len(names)
    values = predict(rows)
    square = (values - values.mean(axis=0)) ** 2
    variance = square.mean(axis=0)
    lost = np.zeros((2, n_columns, n_rows, values.shape[1]))  # by the row that receives, and by the row that gives
    for column, receivers, givers, replaced in _batches(rows, _replacements(rows, owners, n_donors)):
        change = (predict(replaced) - values[receivers]) ** 2 / (2.0 * n_donors)
        np.add.at(lost[0], (column, receivers), change)
        np.add.at(lost[1], (column, givers), change)
    usable = np.where(variance > 0.0, variance, np.inf)
    shares = lost[0].mean(axis=1) / usable
    influences = (lost[0] + lost[1]) / usable - shares[:, None] * (square / usable)
    errors = influences.std(axis=1) / np.sqrt(n_rows)
    return Importance(names, shares, errors, n_rows)


def _affordable(rows: Any, owners: Indices, n_points: int) -> tuple[Any, int]:
    """Return so many first rows, and so many donors for each, as take the work that is wanted; None for too much."""
    n_rows = min(count_rows(rows), _MOST)
    rows = rows[:n_rows]
    changed = sum(len(replacement.receivers) for replacement in _replacements(rows, owners, 1))
    features = rows.nnz / n_rows if sparse.issparse(rows) else rows.shape[1]
    work = max(1.0, changed * n_points * (_BESIDE + features))
    n_donors = int(np.clip(_WORK // work, 1, min(_DONORS, max(1, n_rows - 1))))
    if work > _WORK:
        fewer = max(min(n_rows, _FEWEST), int(n_rows * _WORK / work))
        rows, work = rows[:fewer], work * fewer / n_rows
    return (None if work > _MOST_WORK else rows), n_donors


class _Replacement(NamedTuple):
    """The features of one column, of rows that receive its value from other rows."""

    column: int
    receivers: Indices
    givers: Indices
    features: Indices
    values: Floats  # (receivers, features)


def _replacements(rows: Any, owners: Indices, n_donors: int) -> Iterator[_Replacement]:
    """Yield for every column the rows whose value changes with that of row i + s, for some shifts s.

    The rows are in random order.
    """
    n_rows = count_rows(rows)
    shifts = 1 + np.arange(n_donors) * max(1, (n_rows - 1) // n_donors)
    by_column = np.argsort(owners, kind="stable")
    bounds = np.searchsorted(owners[by_column], np.arange(owners.max(initial=-1) + 2))
    columns = rows.tocsc() if sparse.issparse(rows) else rows
    for column, (first, last) in enumerate(pairwise(bounds)):
        own = dense(columns[:, (features := by_column[first:last])])
        for shift in shifts:
            givers = (np.arange(n_rows) + shift) % n_rows
            receivers = np.flatnonzero((own != own[givers]).any(axis=1))
            if len(receivers):
                yield _Replacement(column, receivers, givers[receivers], features, own[givers[receivers]])


def _batches(rows: Any, replacements: Iterable[_Replacement]) -> Iterator[tuple[Indices, Indices, Indices, Any]]:
    """Yield columns, receivers, givers and the rows after the replacement, so many at a time as memory should hold."""
    waiting: list[_Replacement] = []
    most = max(count_rows(rows), _BATCH // rows.shape[1])
    for replacement in replacements:
        if waiting and sum(len(other.receivers) for other in waiting) + len(replacement.receivers) > most:
            yield _batch(rows, waiting)
            waiting = []
        waiting.append(replacement)
    if waiting:
        yield _batch(rows, waiting)


def _batch(rows: Any, waiting: Sequence[_Replacement]) -> tuple[Indices, Indices, Indices, Any]:
    columns = np.repeat([part.column for part in waiting], [len(part.receivers) for part in waiting])
    receivers, givers = (np.concatenate(parts) for parts in zip(*(part[1:3] for part in waiting), strict=True))
    replaced, start = np.array(dense(rows[receivers])), 0
    for part in waiting:
        replaced[start : start + len(part.receivers), part.features] = part.values
        start += len(part.receivers)
    return columns, receivers, givers, sparse.csr_array(replaced) if sparse.issparse(rows) else replaced
