"""A quick ridge regression on landmark features of some rows, with errors of rows and of groups left out."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from ridgemark.backends import Floats, Indices
from ridgemark.checks.table import Column, Table

ROWS = 2500  # of a quick fit
_LANDMARKS = 200
_LEVELS, _NEAR_LEVELS = 100, 20  # most frequent levels of a column of text that are features: of lines, of the kernel
_RIDGES = np.geomspace(1e-5, 1e2, 15)
_CLIPPED = 0.002  # share of the values at each end that count as the next one
_LEAST = 1e-10  # eigenvalue of the landmark kernel, relative to the largest, that counts


@dataclass(frozen=True, eq=False)
class QuickFit:
    """Ridge regression `f = B c + b` of the targets on features B (n, p), without columns that are left out.

    `H = 11'/n + B (B'B + n ridge I)^-1 B'` makes fitted values of targets; B has centred columns.
    """

    features: Floats  # (n, p), orthonormal columns
    shrinkage: Floats  # (p,): the diagonal of H in these features, `s/(s + n ridge)`, s the eigenvalues of B'B
    residuals: Floats  # (n, k)

    @property
    def left_out(self) -> Floats:
        """Leave-one-out residuals `e_i/(1 - h_i)`, shape (n, k)."""
        leverage = 1 / len(self.features) + (self.features**2) @ self.shrinkage
        return self.residuals / np.maximum(1 - leverage, 1e-6)[:, None]

    def without_groups(self, groups: Indices) -> Floats:
        """Return the residuals of rows whose group is left out, `(I - H_gg)^-1 e_g`, shape (n, k)."""
        result, n = np.empty_like(self.residuals), len(groups)
        order = np.argsort(groups, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
            B, e = self.features[rows], self.residuals[rows]
            H = 1 / n + (B * self.shrinkage) @ B.T
            result[rows] = np.linalg.solve(np.eye(len(rows)) * (1 + 1e-9) - H, e)
        return result


def quick_fit(columns: list[Column], targets: Floats, rng: np.random.Generator) -> QuickFit:
    """Fit a Gaussian kernel from random landmarks, and straight lines; leave-one-out chooses the ridge."""
    matrix, lines = features_of(columns), features_of(columns, _LEVELS)
    points = matrix[rng.permutation(len(matrix))[:_LANDMARKS]]
    B = np.hstack([_kernel_features(matrix, points), lines / np.sqrt(len(columns))])
    B -= B.mean(axis=0)
    spectrum, vectors = np.linalg.eigh(B.T @ B)
    keep = spectrum > _LEAST * max(float(spectrum[-1]), 1e-300)
    spectrum = spectrum[keep]
    left = B @ (vectors[:, keep] / np.sqrt(spectrum))
    centred = targets - targets.mean(axis=0)
    along = left.T @ centred
    best: tuple[float, QuickFit] | None = None
    for ridge in _RIDGES:
        shrinkage = spectrum / (spectrum + len(targets) * ridge)
        fit = QuickFit(left, shrinkage, centred - left @ (shrinkage[:, None] * along))
        error = float(np.mean(fit.left_out**2))
        if best is None or error < best[0]:
            best = error, fit
    assert best is not None
    return best[1]


def features_of(columns: list[Column], most_levels: int = _NEAR_LEVELS) -> Floats:
    """Return numbers in units of their spread, and one column of 0 and 1 for each frequent level, shape (n, q)."""
    parts = [_levels(column, most_levels) if column.has_levels else _numbers(column)[:, None] for column in columns]
    return np.hstack([part for part in parts if part.size] or [np.zeros((len(columns[0].values), 1))])


def _numbers(column: Column) -> Floats:
    """Return numbers whose few far values are drawn in, filled by the median, with mean 0 and variance 1."""
    if not column.present.size:
        return np.zeros(len(column.values))
    low, high = np.quantile(column.present, [_CLIPPED, 1 - _CLIPPED])
    values = np.clip(np.where(np.isnan(column.values), np.median(column.present), column.values), low, high)
    spread = values.std()
    return (values - values.mean()) / spread if spread > 0 else np.zeros(len(values))


def _levels(column: Column, most: int) -> Floats:
    frequent = np.argsort(-np.bincount(column.values[~np.isnan(column.values)].astype(np.intp)), kind="stable")
    return (column.values[:, None] == frequent[:most]).astype(float)


def _kernel_features(matrix: Floats, points: Floats) -> Floats:
    """Return features B with `BB' = K_np K_pp^-1 K_pn` of the Gaussian kernel with the median distance."""
    distances = cdist(points, points)
    bandwidth = float(np.median(distances[distances > 0])) if (distances > 0).any() else 1.0
    values, vectors = np.linalg.eigh(np.exp(-0.5 * (distances / bandwidth) ** 2))
    keep = values > _LEAST * values.max()
    cross = np.exp(-0.5 * (cdist(matrix, points) / bandwidth) ** 2)
    return cross @ (vectors[:, keep] / np.sqrt(values[keep]))


def some_rows(table: Table, rng: np.random.Generator, groups: Indices | None = None) -> Indices:
    """Return the rows of a quick fit, drawn at random; with `groups` whole groups, all of a small table."""
    n = table.n_looked_at
    if n <= ROWS:
        return np.arange(n)
    if groups is None:
        return np.sort(rng.permutation(n)[:ROWS])
    order = rng.permutation(int(groups.max()) + 1)
    sizes = np.bincount(groups, minlength=len(order))[order]
    chosen = order[: max(2, int(np.searchsorted(np.cumsum(sizes), ROWS)))]
    rows = np.flatnonzero(np.isin(groups, chosen))
    return rows if len(rows) <= 2 * ROWS else np.sort(rng.choice(rows, 2 * ROWS, replace=False))
