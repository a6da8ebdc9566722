"""A fit on its own rows as a primal point (a function) and a dual point (one coefficient for each row)."""

import time
from typing import ClassVar

import numpy as np

from ridgemark.backends import Floats
from ridgemark.certificates.record import BEYOND_RANGE
from ridgemark.certificates.rounding import condition
from ridgemark.errors import DataError, NumericalError
from ridgemark.linalg import EPS, LANDMARKS_AT_ONCE, product_in_blocks, sum_rounding
from ridgemark.operators import Cross, CrossTask, cross_block, kernel_diagonal
from ridgemark.passes import RowPasses, Workspace
from ridgemark.rows import Block
from ridgemark.solvers import LandmarkFit
from ridgemark.solvers.rounding import landmark_rounding


class FittedRows:
    """The rows of a fit with its residuals.

    Exact kernel ridge regression minimises `sum_i w_i (y_i - f(x_i) - c)^2 + s |f|^2`, s the scaled ridge. For any dual
    vector `alpha` (of sum zero where there is an intercept c) and any function f, with c the best for f,

        primal(f) - dual(alpha) = sum_i w_i (u_i - s alpha_i/w_i)^2 + s |sum_i alpha_i k(., x_i) - f|^2,

    with the residual `u = y - f - c`. For `alpha = w u/s` the first term is zero and the second is the duality gap G.
    With d the difference of f from the exact solution on the rows and `e = u - s alpha/w`, for any alpha,

        sum_i w_i (d_i - e_i/2)^2 <= (primal(f) - dual(alpha))/4,   so   |d| <= (|e| + sqrt(primal - dual))/2.

    Attributes
    ----------
    weights, diagonal : arrays of shape (n,)
        w_i and `w_i k(x_i, x_i)`.
    values : array of shape (n, t)
        f(x_i), without the constant.
    residual, offset : arrays of shape (n, t) and (t,)
        y - f minus its weighted mean where there is an intercept; and that mean, zero up to rounding.
    dual : array of shape (n, t)
        alpha.
    unsolved : array of shape (p, t)
        C' alpha - W c, zero up to rounding where the fit solves the landmark problem.
    sizes, function_size : arrays of shape (n, t) and (t,)
        `|alpha_i| |k(., x_i)|` and `sum_j |c_j| |k(., z_j)|`, to which rounding errors are relative.
    share : array of shape (n,)
        Error of a sum over the landmarks at each row, relative to the sizes.
    unsolved_rounding : array of shape (t,)
        Rounding error of `unsolved` at landmark j, relative to |k(., z_j)|.
    value_rounding : array of shape (t,)
        Root mean square of the rounding error of f, and of the residual as a dual vector.

    Raises
    ------
    DataError
        When these are not the rows the model was fitted on.
    """

    def __init__(self, passes: RowPasses, fit: LandmarkFit) -> None:
        self._start, self._entries = time.perf_counter(), passes.n_kernel_evaluations
        self.passes, self.fit = passes, fit
        n_targets, ridge = len(fit.scaled_ridge), fit.scaled_ridge
        if passes.source.n_targets != n_targets:
            raise DataError(f"the model was fitted on {n_targets} targets, got rows with {passes.source.n_targets}")
        self.weights = weights = passes.row_counts()
        self.total_weight = float(weights.sum())
        self._check_count()
        factor, coef = fit.factor, fit.dual_coef
        of_rows = passes.map(ValuesAndTargets(factor.cross_kernel, coef))
        self.values, targets, errors = np.hsplit(of_rows, [n_targets, 2 * n_targets])
        self.residual, self.offset = self._residuals(targets)
        self.dual = weights[:, None] * self.residual / ridge
        self.unsolved = Cross(passes, factor.cross_kernel).T @ self.dual - factor.landmark_kernel @ coef
        self.diagonal = kernel_diagonal(passes, factor.cross_kernel.kernel)
        self.lengths = np.sqrt(self.diagonal)
        # sqrt(w_i k_ii) sqrt(w_i) |u_i|/s is |alpha_i| sqrt(k_ii) without a division by w_i, which may be zero.
        roots = np.sqrt(weights)[:, None]
        self.sizes = self.lengths[:, None] * roots * np.abs(self.residual) / ridge
        self.function_size = factor.function_size(coef)
        self.share = sum_rounding(len(coef), LANDMARKS_AT_ONCE) + errors[:, 0]
        own = (landmark_rounding(factor) + factor.cross_kernel.landmark_error) * self.function_size
        self.unsolved_rounding = (sum_rounding(len(weights)) + self.share) @ self.sizes + own
        cancelled = 4 * EPS * roots * (np.abs(targets) + np.abs(self.values) + np.abs(fit.intercept))
        self.value_rounding = self.rms(cancelled) + self.rms(self.lengths * self.share) * self.function_size
        self._check_solved(targets)

    def _residuals(self, targets: Floats) -> tuple[Floats, Floats]:
        """Return the residuals of which alpha is a multiple, and their mean, which was subtracted."""
        residual, mean = targets - self.values - self.fit.intercept, np.zeros(targets.shape[1])
        if self.fit.fit_intercept:
            mean = self.weights @ residual / self.total_weight
        return residual - mean, mean

    @property
    def cost(self) -> dict[str, float]:
        """The kernel entries and seconds spent since the rows were first read."""
        entries = self.passes.n_kernel_evaluations - self._entries
        return {"kernel_entries": entries, "seconds": time.perf_counter() - self._start}

    @property
    def rms_residual(self) -> Floats:
        """The root mean square of the residual, per target."""
        return np.sqrt(self.weights @ self.residual**2 / self.total_weight)

    @property
    def size(self) -> Floats:
        """A bound on the norm of `sum_i alpha_i k(., x_i) - f`, per target."""
        return self.sizes.sum(axis=0) + self.function_size

    @property
    def primal(self) -> Floats:
        """An upper bound on `primal(f)` per unit of weight, for f that solves the landmark problem."""
        norm = (self.dual * self.values).sum(axis=0) + sum_rounding(len(self.dual)) * self.size**2
        return self.rms_residual**2 + self.fit.scaled_ridge * norm / self.total_weight

    def rms(self, weighted: Floats) -> Floats:
        """Return the root mean square over the rows of values that are already multiplied by `sqrt(w_i)`."""
        return np.sqrt((weighted**2).sum(axis=0) / self.total_weight)

    def centred(self, values: Floats) -> Floats:
        """Return values minus their weighted mean; without an intercept, the values."""
        return values - self.weights @ values / self.total_weight if self.fit.fit_intercept else values

    def _check_count(self) -> None:
        n_rows, total, fitted = int(np.count_nonzero(self.weights)), self.total_weight, self.fit.moments
        if n_rows != fitted.n_rows or abs(total - fitted.total_weight) > 1e-9 * fitted.total_weight:
            unit = self.fit.weight_unit
            raise DataError(
                f"these are not the rows the model was fitted on: it was fitted on {fitted.n_rows} rows of total "
                f"weight {fitted.total_weight * unit:.12g}, got {n_rows} of {total * unit:.12g}; a certificate holds "
                "only for the training rows, all of them and with their weights"
            )

    def _check_solved(self, targets: Floats) -> None:
        """Check that the landmark problem of these rows is solved: `B' alpha = coefficients`, to rounding.

        The size, as a dual vector, of the rounding error of y - f matters where y and f nearly agree.
        """
        fit = self.fit
        scale = np.abs(targets).max(axis=0) + np.abs(self.values).max(axis=0) + np.abs(fit.intercept)
        cancelled = 8 * EPS * scale * (self.lengths @ np.sqrt(self.weights)) / fit.scaled_ridge
        unsolved = np.abs(fit.factor.whitener.T @ self.unsolved)
        allowed = np.outer(fit.factor.feature_sizes, self.unsolved_rounding + cancelled) + self._solve_rounding()
        if np.isnan(unsolved).any() or np.isnan(allowed).any():
            raise NumericalError(BEYOND_RANGE)
        if not (unsolved <= allowed).all():
            worst = float((unsolved / np.maximum(allowed, np.finfo(np.float64).tiny)).max())
            raise DataError(
                "these are not the rows the model was fitted on, or not with these targets and weights: its "
                f"coefficients do not solve their problem (the error is {worst:.3g} times the allowed rounding "
                "error); a certificate holds only for the training rows"
            )

    def _solve_rounding(self) -> Floats:
        """Return the error of `B' alpha = coefficients` due to rounding, of the solver and of the sums B'WB and B'Wy.

        Deferred whitening adds at most 1e-9, which the first term covers.
        """
        fit, moments, coefficients = self.fit, self.fit.moments, np.abs(self.fit.solution.coefficients)
        length = np.sqrt((coefficients**2).sum(axis=0))
        sizes = fit.factor.feature_sizes
        summed = sum_rounding(moments.n_rows) + landmark_rounding(fit.factor)
        at_rows = float(np.sqrt(self.diagonal @ (self.share + summed) ** 2))
        features = np.sqrt(moments.trace_kernel) * length + np.sqrt(moments.target_square)
        others = np.outer(np.sqrt(np.diagonal(moments.gram)), sizes @ coefficients)
        of_sums = at_rows * (np.outer(sizes, features) + others) / fit.scaled_ridge
        return (1e-8 + 1e3 * EPS * condition(fit)) * length + of_sums


class ValuesAndTargets(CrossTask):
    """`C c`, the targets, and the error of kernel values, shape (rows, 2 targets + 1)."""

    what: ClassVar[str] = "fitted values"
    dual_coef: Floats

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        cross = cross_block(self.cross_kernel, block, workspace)
        values = product_in_blocks(cross, self.dual_coef, LANDMARKS_AT_ONCE)
        errors = self.cross_kernel.entry_error(block.features)
        return workspace.backend.xp.concat([values, block.targets, errors[:, None]], axis=1)


def best_mixture(part: Floats, energy: Floats, gap: Floats, overlap: float | Floats = 0.0) -> Floats:
    """Return `((1 - t) p + sqrt((1 - t)^2 E + t^2 G + 2 t (1 - t) overlap))/2`, E the energy and G the gap.

    t in [0, 1] is the best for overlap 0, for which the result is at most `sqrt(G)/2` and `(p + sqrt(E))/2`. p^2 must
    not exceed E.
    """
    both = energy + gap
    spread = both * np.sqrt(np.maximum(both - part**2, 0.0))
    share = np.divide(energy, both, out=np.ones_like(both), where=both > 0)
    share += np.divide(part * np.sqrt(energy * gap), spread, out=np.zeros_like(both), where=spread > 0)
    t = np.clip(share, 0.0, 1.0)
    square = (1 - t) ** 2 * energy + t**2 * gap + 2 * t * (1 - t) * overlap
    return ((1 - t) * part + np.sqrt(np.maximum(square, 0.0))) / 2
