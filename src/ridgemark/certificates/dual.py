"""A fit on its own rows, as a pair of points: primal (a function) and dual (one coefficient for each row)."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ridgemark.certificates.rounding import EPS, condition, feature_sizes, function_size, landmark_rounding
from ridgemark.errors import DataError
from ridgemark.linalg import sum_rounding
from ridgemark.passes import RowPasses
from ridgemark.rows import Block
from ridgemark.solvers import LandmarkFit

Floats = NDArray[np.float64]


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
    With d the distance of f to exact on the rows and e the vector `left - s alpha/w`, for any alpha,

        sum_i w_i (d_i - e_i/2)^2 <= (primal(f) - dual(alpha))/4,   so   |d| <= (|e| + sqrt(primal - dual))/2.
    """

    weights: Floats  # (n,)
    diagonal: Floats  # (n,): w_i k(x_i, x_i)
    values: Floats  # (n, t): f(x_i), without the constant
    left: Floats  # (n, t): y - f less its weighted mean where there is an intercept
    offset: Floats  # (t,): that mean, which is zero but for rounding; zero without an intercept
    dual: Floats  # (n, t): alpha
    unsolved: Floats  # (p, t): C' alpha - W c, zero but for rounding where the fit solves the landmark problem
    sizes: Floats  # (n, t): |alpha_i| |k(., x_i)|, what rounding is measured by
    function_size: Floats  # (t,): sum_j |c_j| |k(., z_j)|
    share: Floats  # (n,): by which a sum over the landmarks errs at each row, of the sizes
    unsolved_rounding: Floats  # (t,): of `unsolved` at landmark j, as a share of |k(., z_j)|
    value_rounding: Floats  # (t,): root mean square of the rounding of f, and of left as a dual vector
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
    def lengths(self) -> Floats:
        """`sqrt(w_i k(x_i, x_i))` for every row."""
        return np.sqrt(self.diagonal)

    @property
    def size(self) -> Floats:
        """A bound on the norm of `sum_i alpha_i k(., x_i) - f`, per target."""
        return self.sizes.sum(axis=0) + self.function_size

    def scaled_primal(self, scaled_ridge: Floats) -> Floats:
        """Return `primal(f)` per unit of weight, at least, for a function that solves the landmark problem."""
        norm = (self.dual * self.values).sum(axis=0) + sum_rounding(len(self.dual)) * self.size**2
        return self.rms_left**2 + scaled_ridge * norm / self.total_weight

    def rms(self, weighted: Floats) -> Floats:
        """Return the root mean square over the rows of numbers that were multiplied by the roots of their weights."""
        return np.sqrt((weighted**2).sum(axis=0) / self.total_weight)

    def centred(self, values: Floats) -> Floats:
        """Return values less their weighted mean, where there is an intercept to take it up."""
        return values - self.weights @ values / self.total_weight if self.fit_intercept else values


def fitted_rows(passes: RowPasses, fit: LandmarkFit) -> FittedRows:
    """Return the rows with what the fit leaves of them, in two passes; refuse rows it was not fitted on."""
    _check_shape(passes, fit)
    weights = passes.row_counts()
    _check_count(weights, fit)
    n_targets = len(fit.scaled_ridge)
    cross_kernel, dual_coef = fit.factor.cross_kernel, fit.dual_coef

    def of_block(block: Block) -> Floats:
        assert block.targets is not None
        values = passes.cross_block(cross_kernel, block) @ dual_coef
        return np.hstack([values, block.targets, cross_kernel.entry_error(block.features)[:, None]])

    width = cross_kernel.n_landmarks
    of_rows = passes.map("fitted values", of_block, width, width)
    values, targets, errors = np.hsplit(of_rows, [n_targets, 2 * n_targets])
    left = targets - values - fit.intercept
    offset = weights @ left / weights.sum() if fit.fit_intercept else np.zeros(n_targets)
    left = left - offset
    dual = weights[:, None] * left / fit.scaled_ridge
    diagonal = passes.diagonal(cross_kernel.kernel)
    # w_i k_ii times (alpha_i/w_i)^2 keeps rows of weight zero out without a division.
    roots = np.sqrt(weights)[:, None]
    sizes = np.sqrt(diagonal)[:, None] * roots * np.abs(left) / fit.scaled_ridge
    size, share = function_size(fit, dual_coef), landmark_rounding(fit.factor) + errors[:, 0]
    own = (landmark_rounding(fit.factor) + cross_kernel.landmark_error) * size
    cancelled = 4 * EPS * roots * (np.abs(targets) + np.abs(values) + np.abs(fit.intercept))
    value_rounding = np.sqrt(diagonal @ share**2) * size + np.sqrt((cancelled**2).sum(axis=0))
    rows = FittedRows(
        weights,
        diagonal,
        values,
        left,
        offset,
        dual,
        passes.cross_product(cross_kernel, dual) - fit.factor.landmark_kernel @ dual_coef,
        sizes,
        size,
        share,
        (sum_rounding(len(dual)) + share) @ sizes + own,
        value_rounding / np.sqrt(weights.sum()),
        fit.fit_intercept,
    )
    _check_premise(rows, targets, fit)
    return rows


def closest(part: Floats, one: Floats, other: Floats, aslant: float | Floats = 0.0) -> Floats:
    """Return the least over t in [0, 1] of `((1 - t) p + sqrt((1 - t)^2 A + t^2 B + 2 t (1 - t) aslant))/2`.

    At most `sqrt(B)/2` and `(p + sqrt(A))/2`. t is the best without the last term; p^2 is at most A.
    """
    both = one + other
    left = np.maximum(both - part**2, 0.0)
    spread = both * np.sqrt(left)
    share = np.divide(one, both, out=np.ones_like(both), where=both > 0)
    share += np.divide(part * np.sqrt(one * other), spread, out=np.zeros_like(both), where=spread > 0)
    t = np.clip(share, 0.0, 1.0)
    square = (1 - t) ** 2 * one + t**2 * other + 2 * t * (1 - t) * aslant
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
            f"{fitted.total_weight:.12g}, got {n_rows} of {total:.12g}; a certificate speaks only of the training "
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
            f"do not solve their problem (off by {worst:.3g} times what rounding explains); a certificate speaks only "
            "of the training rows"
        )
        raise DataError(msg)


def _solve_rounding(rows: FittedRows, fit: LandmarkFit) -> Floats:
    """Return how far from solved rounding may leave each feature: of the decomposition, and of the sums B'WB and B'Wy.

    Late whitening adds the 1e-9 it is allowed.
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
    """Return the size of the rounding of y - f, which matters where the two nearly agree, as a dual vector's."""
    scale = np.abs(targets).max(axis=0) + np.abs(rows.values).max(axis=0) + np.abs(fit.intercept)
    return 8 * EPS * scale * (rows.lengths @ np.sqrt(rows.weights)) / fit.scaled_ridge
