"""The linear system of exact kernel ridge regression on merged rows, its rounding errors, and its preconditioners."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ridgemark.backends import NUMPY, Flags, Floats, Indices
from ridgemark.kernels import Kernel
from ridgemark.linalg import raised_cholesky, solve_cholesky, sum_rounding, symmetric_eigen
from ridgemark.operators import Features, KernelMatrix, ShiftedInverse, Weighting, hold_on_device, kernel_diagonal
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows, DistinctRows
from ridgemark.solvers.landmark_fit import LandmarkFit

UNIT = float(np.finfo(np.float64).eps) / 2.0
# Rounding of weighting, centring and updating an iterate, in unit roundoffs of a product, and added to its own.
_AROUND_A_PRODUCT = 40.0
# Unit roundoffs in means of targets, the intercept and the ridge, relative to the targets.
_IN_TARGETS = 64.0
# A ridge below this share of the largest eigenvalue is smaller than the rounding error of a product.
_ROUNDING_RIDGE = 100 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class MergedRows:
    """Rows without repeats; `sum_i w_i (y_i - f(x_i))^2` is the same function of f as for all rows, up to a constant.

    The rows of a precomputed kernel are also its columns, so all of them stay, and a repeat has the weight zero.
    """

    passes: RowPasses  # its targets are measured from the origin
    numbers: Indices  # (m,): number of each row in the source before merging
    largest: int  # number of rows in the largest group of equal rows


def merge_equal_rows(passes: RowPasses, kernel: Kernel, distinct: DistinctRows, target_origin: Floats) -> MergedRows:
    """Merge rows with equal features, and drop rows of weight zero; targets are measured from the origin."""
    first, group = _equal_rows(passes, distinct)
    present = group >= 0
    weights, targets = passes.row_counts(), passes.targets() - target_origin
    if len(first) < len(group):
        total = np.bincount(group[present], weights=weights[present])
        share = weights[present] / total[group[present]]
        means = [np.bincount(group[present], weights=share * t) for t in targets[present].T]
        weights, targets = np.zeros(len(group)), np.zeros_like(targets)
        weights[first], targets[first] = total, np.stack(means, axis=1)
    numbers = np.arange(len(group)) if kernel.pairwise else first
    source = ArrayRows(passes.take(numbers).features, targets[numbers], weights[numbers])
    merged = RowPasses(source, passes.memory_budget, passes.progress, journal=passes.journal)
    merged.cost = passes.cost
    return MergedRows(merged, numbers, int(np.bincount(group[present]).max()))


def _equal_rows(passes: RowPasses, distinct: DistinctRows) -> tuple[Indices, Indices]:
    """Return the first row of each group of equal rows, in order, and every row's group; -1 for weight zero.

    Different rows may have equal hashes, so rows that differ from the first of their group become groups of one row.
    """
    group = distinct.kind.copy()
    repeats = np.setdiff1d(np.flatnonzero(group >= 0), distinct.indices)
    if len(repeats):
        features = (passes.take(rows).features for rows in (repeats, distinct.indices[group[repeats]]))
        different = repeats[_differ(*features)]
        group[different] = len(distinct) + np.arange(len(different))
    present = np.flatnonzero(group >= 0)
    _, where, inverse = np.unique(group[present], return_index=True, return_inverse=True)
    order = np.argsort(where)
    group[present] = np.argsort(order)[inverse]
    return present[where[order]], group


def _differ(left: Any, right: Any) -> Flags:
    """Return which rows of two arrays, or sparse matrices, differ."""
    different = left != right
    if sparse.issparse(different):
        return np.diff(different.tocsr().indptr) > 0
    return np.asarray(different.any(axis=1))


class KernelSystem:
    """`(A + s) x = b` with `A = P W^1/2 K W^1/2 P`, `b = P W^1/2 y` and the scaled ridge s.

    The coefficients of the function are `W^1/2 x`. P projects onto the complement of `W^1/2 1` where there is an
    intercept, and is the identity where there is none. Right sides are in units of the largest target, so that no
    square overflows.

    With u the unit roundoff, the error of a computed kernel value is at most `e u sqrt(k(x, x) k(z, z))`, and that of
    a sum of products at most `g u` times the sum of their absolute values. So the error of what `predict` returns at
    x, and of a product of a row of K with the coefficients c, is at most

        `(g + e) u sqrt(k(x, x)) S(c)`, `S(c) = sum_j |c_j| sqrt(k(x_j, x_j))`.

    Attributes
    ----------
    weights, roots : arrays of shape (m,) and (m, 1)
        The weights of the merged rows, and their square roots.
    length : float
        The root of the total weight: a weighted norm divided by it is a root mean square.
    targets : array of shape (m, t)
        Measured from the origin.
    right, units : arrays of shape (m, t) and (t,)
        The right sides, in these units.
    mean_diagonal : float
        The weighted mean of `k(x_i, x_i)`.
    entry_errors : array of shape (m,)
        `e u`, for the kernel values of each row.
    roundoff, largest_roundoff : float
        `(g + e) u` plus the roundoff of weighting and updates: the root mean square over the rows, and the largest.
    floor : array of shape (t,)
        The rounding error of predictions that does not depend on the coefficients, RMS.
    n_roundings : float
        How many sums over the rows lie between a residual and a prediction: the product, the prediction and, where
        there is one, the intercept.
    matrix : array of shape (m, m) or None
        K, where it is held.
    """

    def __init__(self, merged: MergedRows, kernel: Kernel, fit: LandmarkFit, reserved: int) -> None:
        passes, centre = merged.passes, fit.fit_intercept
        self.passes, self.kernel, self.scaled_ridge, self.centre = passes, kernel, fit.scaled_ridge, centre
        self.weights = passes.row_counts()
        self.weighting = Weighting(self.weights, centre)
        self.roots, self.length = self.weighting.roots, self.weighting.length
        self.targets = passes.targets()
        right = self.weighting(self.targets)
        self.units = np.abs(right).max(axis=0)
        self.units[self.units == 0] = 1.0
        self.right = right / self.units
        weighted = kernel_diagonal(passes, kernel)
        self.mean_diagonal = float(weighted.sum()) / self.length**2
        self._lengths = np.sqrt(weighted)  # of W^1/2 k(x_i, .): S(c) = |x|'lengths
        size = self.rms(self.targets) + np.abs(fit.target_origin)
        self.floor = (2 * merged.largest + _IN_TARGETS) * UNIT * size
        n = len(self.weights)
        self.kernel_matrix = KernelMatrix(passes, kernel).hold(passes.budget - reserved)
        self.matrix = self.kernel_matrix.held
        parts = [n] if self.matrix is not None else [n, self.kernel_matrix.columns_at_once]
        self.entry_errors = _entry_errors(passes, kernel, parts)
        of_sum = sum_rounding(n) + _AROUND_A_PRODUCT * UNIT
        self.roundoff = of_sum + self.diagonal_mean(self.entry_errors)
        self.largest_roundoff = of_sum + float(self.entry_errors.max())
        self.n_roundings = 2.0 + centre
        # The mean is subtracted from the coefficients of all rows, also of those with the largest k(x, x).
        of_mean = _AROUND_A_PRODUCT * UNIT / self.roundoff if centre else 0.0
        self._mean_size = of_mean * float(self._lengths @ self.roots[:, 0]) / self.length
        self._row_sums: Floats | None = None  # K w, for the intercept

    def diagonal_mean(self, errors: Floats) -> float:
        """Return the root mean square of errors, one for each row, weighted by `w_i k(x_i, x_i)`."""
        return float(np.linalg.norm(self._lengths * errors) / (np.linalg.norm(self._lengths) or 1.0))

    def rms(self, values: Floats) -> Floats:
        """Return the weighted root mean square of values at the rows."""
        largest = np.abs(values).max(axis=0)
        largest[largest == 0] = 1.0  # in units of the largest value no square overflows
        return largest * np.linalg.norm(self.roots / self.length * (values / largest), axis=0)

    def product(self, vectors: Floats, columns: Indices) -> Floats:
        """Return `(A + s) v` for the ridges of these columns."""
        coefficients = self.weighting.transpose(vectors)
        if self._row_sums is None:  # computed with the first product, so that K is evaluated once for both
            images = self.kernel_matrix @ np.hstack([coefficients, self.weights[:, None]])
            images, self._row_sums = images[:, :-1], images[:, -1]
        else:
            images = self.kernel_matrix @ coefficients
        return self.weighting(images) + self.scaled_ridge[columns] * vectors

    def rounding(self, vectors: Floats, columns: Indices) -> Floats:
        """Bound the norm of the rounding error of `product`, of the intercept and of predictions, together.

        Each of the three is at most `roundoff S(c) sqrt(sum_i w_i k(x_i, x_i))`; the mean that makes the coefficients
        sum to zero is rounded relative to their sizes, and this error counts in S(c) with every row's own k(x, x).
        Coefficients that sum to zero only up to rounding add `sqrt(s)` to the root of the total weight.
        """
        ridges, absolute = self.scaled_ridge[columns], np.abs(vectors)
        size = self._lengths @ absolute + self._mean_size * (self.roots[:, 0] @ absolute) / self.length
        kernel_part = size * np.sqrt(self.mean_diagonal) * (self.length + np.sqrt(ridges))
        return self.n_roundings * self.roundoff * (kernel_part + ridges * np.linalg.norm(vectors, axis=0))

    def coefficients(self, solution: Floats) -> tuple[Floats, Floats]:
        """Return the coefficients `c = W^1/2 x`, in the targets' units, and the intercept `mean(y - K c)`."""
        dual_coef = self.weighting.transpose(solution) * self.units
        if not self.centre:
            return dual_coef, np.zeros(len(self.units))
        sums = self.weights[:, None] * self.targets
        if self._row_sums is not None:
            sums = sums - self._row_sums[:, None] * dual_coef
        return dual_coef, np.ascontiguousarray(sums.T).sum(axis=1) / self.length**2

    def values(self, solution: Floats, residual: Floats) -> Floats:
        """Return the function's values at the rows without a product: `W^1/2 f = W^1/2 y - r - s x`."""
        weighted = self.units * (residual + self.scaled_ridge * solution)
        return self.targets - np.divide(weighted, self.roots, out=np.zeros_like(weighted), where=self.roots > 0)


def _entry_errors(passes: RowPasses, kernel: Kernel, part_sizes: list[int]) -> Floats:
    """Return `e u` for each row's kernel values with all rows, in parts of these sizes.

    The error depends on which rows form a part. A streamed product uses each kernel value of a row and a part on both
    sides, so the rows of the part get the largest error of any row.
    """
    all_rows = passes.take(np.arange(passes.source.n_rows))
    _, (features, _) = passes.placed((all_rows.features, kernel))
    errors = np.zeros(all_rows.n_rows)
    for size in part_sizes:
        for start in range(0, all_rows.n_rows, size):
            part = slice(start, start + size)
            bound = kernel.bind(features[part], all_rows.indices[part])
            of_rows = bound.backend.to_host(bound.entry_error(features))
            errors = np.maximum(errors, of_rows)
            if size < all_rows.n_rows:
                errors[part] = np.maximum(errors[part], of_rows.max())
    return errors


def landmark_preconditioner(system: KernelSystem, fit: LandmarkFit, reserved: int) -> ShiftedInverse:
    """Return `(L + s)^-1`, its features held where they take at most `reserved` bytes.

    The ridge s is raised to the rounding error of a product with L, below which the result would not be positive
    definite. Features with large coefficients have larger rounding errors: those with an error above the ridge are left
    out.
    """
    factor, largest = fit.factor, float(np.trace(fit.centred.gram))
    ridges = np.maximum(fit.scaled_ridge, _ROUNDING_RIDGE * largest)
    reliable = np.flatnonzero(_ROUNDING_RIDGE * largest * factor.feature_sizes <= 10 * ridges.min())
    spectrum, rotation = fit.solver.spectrum, fit.solver.rotation
    if len(reliable) < factor.rank:
        spectrum, of_reliable = symmetric_eigen(fit.centred.gram[np.ix_(reliable, reliable)])
        rotation = np.zeros((factor.rank, len(reliable)))
        rotation[reliable] = of_reliable
    features = Features(system.passes, factor)
    if system.passes.backend is NUMPY:
        features.hold(reserved)
    else:
        hold_on_device(features, single=False)
    return ShiftedInverse(features, system.weighting, spectrum, rotation, ridges)


class DirectPreconditioner:
    """`(A + s)^-1 v` from the Cholesky factor of `A + s`, for the ridge s of each column; K is held.

    Where rounding makes `A + s` indefinite, s is raised: that changes the speed of convergence, not the solution.
    """

    def __init__(self, system: KernelSystem) -> None:
        assert system.matrix is not None
        weighted = system.weighting(system.weighting(system.matrix).T)
        matrix = (weighted + weighted.T) / 2
        self._system, self._ridges = system, system.scaled_ridge
        self._factors = {ridge: raised_cholesky(matrix, float(ridge)) for ridge in np.unique(self._ridges)}

    def __call__(self, vectors: Floats, columns: Indices) -> Floats:
        """Return `(A + s)^-1 v`."""
        solution = np.empty_like(vectors)
        for ridge in np.unique(self._ridges[columns]):
            chosen = np.flatnonzero(self._ridges[columns] == ridge)
            solution[:, chosen] = solve_cholesky(self._factors[ridge], vectors[:, chosen])
        return self._system.weighting.project(solution)  # P commutes with A + s, but not its rounding error
