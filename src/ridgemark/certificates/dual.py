"""A fit on its own rows as a primal point (a function) and a dual point (one coefficient for each row)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ridgemark.backends import Floats
from ridgemark.certificates.rounding import EPS, condition, feature_sizes, function_size, landmark_rounding
from ridgemark.errors import DataError
from ridgemark.linalg import sum_rounding
from ridgemark.operators import Cross, CrossTask, cross_block, kernel_diagonal
from ridgemark.passes import RowPasses, Workspace
from ridgemark.rows import Block
from ridgemark.solvers import LandmarkFit


class Meter:
    """Counts what a certificate costs, from the meter's construction on."""

    def __init__(self, passes: RowPasses) -> None:
        self._passes, self._entries, self._start = passes, passes.n_kernel_evaluations, time.perf_counter()

    def read(self) -> dict[str, float]:
        """Return the kernel entries and seconds spent since then."""
        return {
            "kernel_entries": self._passes.n_kernel_evaluations - self._entries,
            "seconds": time.perf_counter() - self._start,
        }


@dataclass(frozen=True, eq=False)
class FittedRows:
    """The rows of a fit with its residuals.

    Exact kernel ridge regression minimises `sum_i w_i (y_i - f(x_i) - c)^2 + s |f|^2`, s the scaled ridge. For any dual
    vector `alpha` (of sum zero where there is an intercept c) and any function f, with c the best for f,

        primal(f) - dual(alpha) = sum_i w_i (u_i - s alpha_i/w_i)^2 + s |sum_i alpha_i k(., x_i) - f|^2,

    with the residual `u = y - f - c`. For `alpha = w u/s` the first term is zero and the second is the duality gap G.
    With d the difference of f from the exact solution on the rows and `e = u - s alpha/w`, for any alpha,

        sum_i w_i (d_i - e_i/2)^2 <= (primal(f) - dual(alpha))/4,   so   |d| <= (|e| + sqrt(primal - dual))/2.
    """

    weights: Floats  # (n,)
    diagonal: Floats  # (n,): w_i k(x_i, x_i)
    values: Floats  # (n, t): f(x_i), without the constant
    residual: Floats  # (n, t): y - f minus its weighted mean where there is an intercept
    offset: Floats  # (t,): that mean, zero up to rounding; zero without an intercept
    dual: Floats  # (n, t): alpha
    unsolved: Floats  # (p, t): C' alpha - W c, zero up to rounding where the fit solves the landmark problem
    sizes: Floats  # (n, t): |alpha_i| |k(., x_i)|, to which rounding errors are relative
    function_size: Floats  # (t,): sum_j |c_j| |k(., z_j)|
    share: Floats  # (n,): error of a sum over the landmarks at each row, relative to the sizes
    unsolved_rounding: Floats  # (t,): rounding error of `unsolved` at landmark j, relative to |k(., z_j)|
    value_rounding: Floats  # (t,): root mean square of the rounding error of f, and of the residual as a dual vector
    fit_intercept: bool

    @property
    def total_weight(self) -> float:
        """The sum of the weights."""
        return float(self.weights.sum())

    @property
    def rms_residual(self) -> Floats:
        """The root mean square of the residual, per target."""
        return np.sqrt(self.weights @ self.residual**2 / self.total_weight)

    @property
    def lengths(self) -> Floats:
        """`sqrt(w_i k(x_i, x_i))` for every row."""
        return np.sqrt(self.diagonal)

    @property
    def size(self) -> Floats:
        """A bound on the norm of `sum_i alpha_i k(., x_i) - f`, per target."""
        return self.sizes.sum(axis=0) + self.function_size

    def scaled_primal(self, scaled_ridge: Floats) -> Floats:
        """Return an upper bound on `primal(f)` per unit of weight, for f that solves the landmark problem."""
        norm = (self.dual * self.values).sum(axis=0) + sum_rounding(len(self.dual)) * self.size**2
        return self.rms_residual**2 + scaled_ridge * norm / self.total_weight

    def rms(self, weighted: Floats) -> Floats:
        """Return the root mean square over the rows of values that are already multiplied by `sqrt(w_i)`."""
        return np.sqrt((weighted**2).sum(axis=0) / self.total_weight)

    def centred(self, values: Floats) -> Floats:
        """Return values minus their weighted mean; without an intercept, the values."""
        return values - self.weights @ values / self.total_weight if self.fit_intercept else values


@dataclass(frozen=True, eq=False)
class ValuesAndTargets(CrossTask):
    """`C c`, the targets, and the error of kernel values, shape (rows, 2 targets + 1)."""

    what: ClassVar[str] = "fitted values"
    dual_coef: Floats

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        assert block.targets is not None
        values = cross_block(self.cross_kernel, block, workspace) @ self.dual_coef
        return np.hstack([values, block.targets, self.cross_kernel.entry_error(block.features)[:, None]])


def fitted_rows(passes: RowPasses, fit: LandmarkFit) -> FittedRows:
    """Return the rows with their residuals, in two passes; refuse rows the model was not fitted on."""
    _check_shape(passes, fit)
    weights = passes.row_counts()
    _check_count(weights, fit)
    n_targets = len(fit.scaled_ridge)
    cross_kernel, dual_coef = fit.factor.cross_kernel, fit.dual_coef
    of_rows = passes.map(ValuesAndTargets(cross_kernel, dual_coef))
    values, targets, errors = np.hsplit(of_rows, [n_targets, 2 * n_targets])
    residual = targets - values - fit.intercept
    offset = weights @ residual / weights.sum() if fit.fit_intercept else np.zeros(n_targets)
    residual = residual - offset
    dual = weights[:, None] * residual / fit.scaled_ridge
    diagonal = kernel_diagonal(passes, cross_kernel.kernel)
    # sqrt(w_i k_ii) sqrt(w_i) |u_i|/s is |alpha_i| sqrt(k_ii) without a division by w_i, which may be zero.
    roots = np.sqrt(weights)[:, None]
    sizes = np.sqrt(diagonal)[:, None] * roots * np.abs(residual) / fit.scaled_ridge
    size, share = function_size(fit, dual_coef), landmark_rounding(fit.factor) + errors[:, 0]
    own = (landmark_rounding(fit.factor) + cross_kernel.landmark_error) * size
    cancelled = 4 * EPS * roots * (np.abs(targets) + np.abs(values) + np.abs(fit.intercept))
    value_rounding = np.sqrt(diagonal @ share**2) * size + np.sqrt((cancelled**2).sum(axis=0))
    rows = FittedRows(
        weights,
        diagonal,
        values,
        residual,
        offset,
        dual,
        Cross(passes, cross_kernel).T @ dual - fit.factor.landmark_kernel @ dual_coef,
        sizes,
        size,
        share,
        (sum_rounding(len(dual)) + share) @ sizes + own,
        value_rounding / np.sqrt(weights.sum()),
        fit.fit_intercept,
    )
    _check_premise(rows, targets, fit)
    return rows


def best_mixture(part: Floats, one: Floats, other: Floats, overlap: float | Floats = 0.0) -> Floats:
    """Return `((1 - t) p + sqrt((1 - t)^2 A + t^2 B + 2 t (1 - t) overlap))/2` at the best t in [0, 1] for overlap 0.

    Without overlap it is at most `sqrt(B)/2` and `(p + sqrt(A))/2`. p^2 must not exceed A.
    """
    both = one + other
    spread = both * np.sqrt(np.maximum(both - part**2, 0.0))
    share = np.divide(one, both, out=np.ones_like(both), where=both > 0)
    share += np.divide(part * np.sqrt(one * other), spread, out=np.zeros_like(both), where=spread > 0)
    t = np.clip(share, 0.0, 1.0)
    square = (1 - t) ** 2 * one + t**2 * other + 2 * t * (1 - t) * overlap
    return ((1 - t) * part + np.sqrt(np.maximum(square, 0.0))) / 2


def _check_shape(passes: RowPasses, fit: LandmarkFit) -> None:
    if passes.source.n_targets != len(fit.scaled_ridge):
        msg = f"the model was fitted on {len(fit.scaled_ridge)} targets, got rows with {passes.source.n_targets}"
        raise DataError(msg)


def _check_count(weights: Floats, fit: LandmarkFit) -> None:
    n_rows, total = int(np.count_nonzero(weights)), float(weights.sum())
    fitted = fit.moments
    if n_rows != fitted.n_rows or abs(total - fitted.total_weight) > 1e-9 * fitted.total_weight:
        msg = (
            f"these are not the rows the model was fitted on: it was fitted on {fitted.n_rows} rows of total weight "
            f"{fitted.total_weight:.12g}, got {n_rows} of {total:.12g}; a certificate holds only for the training "
            "rows, all of them and with their weights"
        )
        raise DataError(msg)


def _check_premise(rows: FittedRows, targets: Floats, fit: LandmarkFit) -> None:
    """Check that the landmark problem of these rows is solved: `B' alpha = coefficients`, to rounding."""
    unsolved = np.abs(fit.factor.whitener.T @ rows.unsolved)
    allowed = _solve_rounding(rows, fit) + np.outer(
        feature_sizes(fit.factor), rows.unsolved_rounding + _cancelled(rows, targets, fit)
    )
    if not (unsolved <= allowed).all():
        worst = float((unsolved / np.maximum(allowed, np.finfo(np.float64).tiny)).max())
        msg = (
            "these are not the rows the model was fitted on, or not with these targets and weights: its coefficients "
            f"do not solve their problem (the error is {worst:.3g} times the allowed rounding error); a certificate "
            "holds only for the training rows"
        )
        raise DataError(msg)


def _solve_rounding(rows: FittedRows, fit: LandmarkFit) -> Floats:
    """Return the error of `B' alpha = coefficients` due to rounding, of the solver and of the sums B'WB and B'Wy.

    Deferred whitening adds at most 1e-9, which the first term covers.
    """
    moments, coefficients = fit.moments, np.abs(fit.solution.coefficients)
    length = np.sqrt((coefficients**2).sum(axis=0))
    sizes = feature_sizes(fit.factor)
    at_rows = float(np.sqrt(rows.diagonal @ (rows.share + sum_rounding(moments.n_rows)) ** 2))
    features = np.sqrt(moments.trace_kernel) * length + np.sqrt(moments.target_square)
    others = np.outer(np.sqrt(np.diagonal(moments.gram)), sizes @ coefficients)
    summed = at_rows * (np.outer(sizes, features) + others) / fit.scaled_ridge
    return (1e-8 + 1e3 * EPS * condition(fit)) * length + summed


def _cancelled(rows: FittedRows, targets: Floats, fit: LandmarkFit) -> Floats:
    """Return the size, as a dual vector, of the rounding error of y - f; it matters where y and f nearly agree."""
    scale = np.abs(targets).max(axis=0) + np.abs(rows.values).max(axis=0) + np.abs(fit.intercept)
    return 8 * EPS * scale * (rows.lengths @ np.sqrt(rows.weights)) / fit.scaled_ridge
