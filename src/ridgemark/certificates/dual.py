"""A fit on its own rows, as a pair of points: primal (a function) and dual (one coefficient for each row)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ridgemark.errors import DataError
from ridgemark.operators import Cross, NystromFactor, cross_block, kernel_diagonal
from ridgemark.operators.cross import CrossTask
from ridgemark.passes import RowPasses, Workspace
from ridgemark.rows import Block
from ridgemark.solvers import LandmarkFit

Floats = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# A sum of products `sum_j u_j v_j` in floating point is taken to lie within this share of `sum_j |u_j| |v_j|`, the
# rounding of kernel values included. By Cauchy and Schwarz |k(x, z)| is at most sqrt(k(x, x) k(z, z)), which turns it
# into allowances that cost no kernel entries.
ROUNDING = 64 * _EPS


class Meter:
    """Counts what a certificate costs, from its making on."""

    def __init__(self, passes: RowPasses) -> None:
        self._passes, self._entries, self._start = passes, passes.n_kernel_evaluations, time.perf_counter()

    def read(self) -> dict[str, float]:
        """Return the kernel entries and seconds since."""
        return {
            "kernel_entries": self._passes.n_kernel_evaluations - self._entries,
            "seconds": time.perf_counter() - self._start,
        }


@dataclass(frozen=True, eq=False)
class FittedRows:
    """The rows of a fit with what it leaves of them.

    Exact kernel ridge regression minimises `sum_i w_i (y_i - f(x_i) - c)^2 + s |f|^2`, s the scaled ridge. For any dual
    vector `alpha` (of sum zero where there is an intercept c) and any function f, with c the best for f,

        primal(f) - dual(alpha) = sum_i w_i (left_i - s alpha_i/w_i)^2 + s |sum_i alpha_i k(., x_i) - f|^2,

    left being `y - f - c`. The choice `alpha = w left / s` makes the first term vanish and leaves the duality gap G.
    The best multiple of alpha closes it to `G B/(G + B)` with `B = s sum_i alpha_i y_i`, primal(f) where f is solved.
    """

    weights: Floats  # (n,)
    diagonal: Floats  # (n,): w_i k(x_i, x_i)
    values: Floats  # (n, t): f(x_i), without the constant
    left: Floats  # (n, t): y - f less its weighted mean where there is an intercept
    offset: Floats  # (t,): that mean, which is zero but for rounding; zero without an intercept
    dual: Floats  # (n, t): alpha
    unsolved: Floats  # (p, t): C' alpha - W c, zero but for rounding where the fit solves the landmark problem
    size: Floats  # (t,): sum_i |alpha_i| |k(., x_i)| + sum_j |c_j| |k(., z_j)|, what rounding is measured by
    fit_intercept: bool

    @property
    def total_weight(self) -> float:
        """The sum of the weights."""
        return float(self.weights.sum())

    @property
    def rms_left(self) -> Floats:
        """The root mean square of what the fit leaves, per target."""
        return np.sqrt(self.weights @ self.left**2 / self.total_weight)

    @property
    def mean_diagonal(self) -> float:
        """The weighted mean of k(x, x)."""
        return float(self.diagonal.sum()) / self.total_weight

    def scaled_primal(self, scaled_ridge: Floats) -> Floats:
        """Return the B above, per unit of weight."""
        return self.rms_left**2 + scaled_ridge * (self.dual * self.values).sum(axis=0) / self.total_weight

    def centred(self, values: Floats) -> Floats:
        """Return values less their weighted mean, where there is an intercept to take it up."""
        return values - self.weights @ values / self.total_weight if self.fit_intercept else values


@dataclass(frozen=True, eq=False)
class ValuesAndTargets(CrossTask):
    """`C c` beside the targets, shape (rows, 2 targets)."""

    what: ClassVar[str] = "fitted values"
    dual_coef: Floats

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        assert block.targets is not None
        return np.hstack([cross_block(self.cross_kernel, block, workspace) @ self.dual_coef, block.targets])


def fitted_rows(passes: RowPasses, fit: LandmarkFit) -> FittedRows:
    """Return the rows with what the fit leaves of them, in two passes; refuse rows it was not fitted on."""
    _check_shape(passes, fit)
    weights = passes.row_counts()
    _check_count(weights, fit)
    n_targets = len(fit.scaled_ridge)
    cross_kernel, dual_coef = fit.factor.cross_kernel, fit.dual_coef
    values, targets = np.hsplit(passes.map(ValuesAndTargets(cross_kernel, dual_coef)), [n_targets])
    left = targets - values - fit.intercept
    offset = weights @ left / weights.sum() if fit.fit_intercept else np.zeros(n_targets)
    left = left - offset
    dual = weights[:, None] * left / fit.scaled_ridge
    diagonal = kernel_diagonal(passes, cross_kernel.kernel)
    # w_i k_ii times (alpha_i/w_i)^2 keeps rows of weight zero out without a division.
    lengths = np.sqrt(diagonal) @ (np.sqrt(weights)[:, None] * np.abs(left)) / fit.scaled_ridge
    rows = FittedRows(
        weights,
        diagonal,
        values,
        left,
        offset,
        dual,
        Cross(passes, cross_kernel).T @ dual - fit.factor.landmark_kernel @ dual_coef,
        lengths + function_size(fit, dual_coef),
        fit.fit_intercept,
    )
    _check_premise(rows, targets, fit)
    return rows


def function_size(fit: LandmarkFit, dual_coef: Floats) -> Floats:
    """Return `sum_j |c_j| |k(., z_j)|`, a bound on the norm of a function of the landmarks, per target."""
    return np.sqrt(np.diagonal(fit.factor.landmark_kernel)) @ np.abs(dual_coef)


def feature_sizes(factor: NystromFactor) -> Floats:
    """Return `sum_m |T_mj| |k(., z_m)|` for every feature `b_j = sum_m T_mj k(., z_m)`: its rounding grows with it."""
    return np.abs(factor.triangle).T @ np.sqrt(np.diagonal(factor.landmark_kernel)[factor.kept])


def solution_rounding(fit: LandmarkFit) -> Floats:
    """Return how far rounding may leave predictions from the landmark problem's solution, RMS per target."""
    mean_diagonal = fit.moments.trace_kernel / fit.moments.total_weight
    predicted = np.sqrt(mean_diagonal) * function_size(fit, fit.dual_coef) + np.abs(fit.intercept)
    return ROUNDING * predicted + 8 * _EPS * _condition(fit) * np.sqrt(fit.centred.target_variance)


def rms_left(fit: LandmarkFit) -> Floats:
    """Return the root mean square of y - f from the fit's sums alone, with an allowance for their cancelling."""
    square = fit.moments.target_square / fit.moments.total_weight
    return np.sqrt(fit.training_error + ROUNDING * _condition(fit) * square)


def primal_value(fit: LandmarkFit) -> Floats:
    """Return what the fit minimised, `|y - f|^2 + n lambda |f|^2`, per unit of weight and target.

    Its root bounds the distance to exact before any measurement.
    """
    norm = (fit.solution.coefficients**2).sum(axis=0)
    return rms_left(fit) ** 2 + fit.scaled_ridge * norm / fit.moments.total_weight


def _condition(fit: LandmarkFit) -> Floats:
    return 1.0 + fit.centred.size / fit.scaled_ridge


def between(one: Floats, other: Floats, aslant: float | Floats = 0.0) -> Floats:
    """Return `(1 - t)^2 one + t^2 other + 2 t (1 - t) aslant` at `t = one/(one + other)`.

    Without the last term, `one other/(one + other)`: the least square length between two orthogonal points.
    """
    both = one + other
    share = np.divide(one, both, out=np.zeros_like(both), where=both > 0)
    return (1 - share) ** 2 * one + share**2 * other + 2 * share * (1 - share) * aslant


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
            f"{fitted.total_weight:.12g}, got {n_rows} of {total:.12g}; a certificate speaks only of the training "
            "rows, all of them and with their weights"
        )
        raise DataError(msg)


def _check_premise(rows: FittedRows, targets: Floats, fit: LandmarkFit) -> None:
    """Check that the landmark problem of these rows is solved: `B' alpha = coefficients`, to rounding."""
    unsolved = np.abs(fit.factor.whitener.T @ rows.unsolved)
    allowed = _solve_rounding(fit) + np.outer(
        feature_sizes(fit.factor), ROUNDING * rows.size + _cancelled(rows, targets, fit)
    )
    if not (unsolved <= allowed).all():
        worst = float((unsolved / np.maximum(allowed, np.finfo(np.float64).tiny)).max())
        msg = (
            "these are not the rows the model was fitted on, or not with these targets and weights: its coefficients "
            f"do not solve their problem (off by {worst:.3g} times what rounding explains); a certificate speaks only "
            "of the training rows"
        )
        raise DataError(msg)


def _solve_rounding(fit: LandmarkFit) -> Floats:
    """Return how far from solved rounding may leave each feature: of the decomposition, and of the sums B'WB and B'Wy.

    Late whitening adds the 1e-9 it is allowed.
    """
    moments, coefficients = fit.moments, np.abs(fit.solution.coefficients)
    length = np.sqrt((coefficients**2).sum(axis=0))
    sizes, trace = feature_sizes(fit.factor), moments.trace_kernel
    features = trace * length + np.sqrt(trace * moments.target_square)
    others = np.outer(np.sqrt(np.diagonal(moments.gram) * trace), sizes @ coefficients)
    summed = ROUNDING * (np.outer(sizes, features) + others) / fit.scaled_ridge
    return (1e-8 + 1e3 * _EPS * _condition(fit)) * length + summed


def _cancelled(rows: FittedRows, targets: Floats, fit: LandmarkFit) -> Floats:
    """Return the size of the rounding of y - f, which matters where the two nearly agree, as a dual vector's."""
    scale = np.abs(targets).max(axis=0) + np.abs(rows.values).max(axis=0) + np.abs(fit.intercept)
    return 8 * _EPS * scale * (np.sqrt(rows.diagonal) @ np.sqrt(rows.weights)) / fit.scaled_ridge
