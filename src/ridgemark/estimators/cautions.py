"""Warnings about a fit: too many landmarks, scales of columns, the edge of a search, rounding that spoils it."""

import numpy as np

from ridgemark.backends import Floats
from ridgemark.errors import (
    ColumnScaleWarning,
    ColumnWarning,
    ConditioningWarning,
    ConvergenceWarning,
    LandmarkCountWarning,
    RidgeEdgeWarning,
    warn_user,
)
from ridgemark.fitted import Function
from ridgemark.kernels.stationary import StationaryKernel
from ridgemark.linalg import EPS
from ridgemark.operators import Cross
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.rows.places import as_written, shown
from ridgemark.solvers import LandmarkFit

_NEARLY_ALL = 0.99  # of the squared distance between rows
_ROUNDING = 1e-15  # of a target's mean, relative
_LEAST = 1e-130  # of a target, of which deviations as small as rounding have squares that floats hold
_FEW_DIGITS = 64  # machine epsilons: below this share of the kernel less than two digits of a difference are known
_RUNS, _ROWS = 8, 128  # runs of neighbouring rows that are predicted first, and rows in each
_ROUNDED = 1e3 * EPS  # of a target: what rounding may leave of it in the best of fits
_SENSITIVE = 5e-3  # standard deviations of a target: largest change of predictions by rounding of the rows
_MORE = 1.05  # by which factor the training error must exceed that of a constant; iterations stop within a hundredth


def warn_of_few_rows(n_landmarks, count):
    """Say that more landmarks were asked for than there are different rows."""
    available = count.n_landmarks
    if count.rule == "given" and n_landmarks > available:
        msg = f"n_landmarks={n_landmarks} exceeds the {available} distinct rows; all of them are used"
        warn_user(msg, LandmarkCountWarning)


def warn_of_scales(kernel, passes):
    """Say that one column decides all distances, where one bandwidth serves columns of different scales."""
    with_metric = getattr(kernel, "metric", None) is not None
    if not isinstance(kernel, StationaryKernel) or np.ndim(kernel.bandwidth) or with_metric:
        return
    squares = passes.columns().squares
    total = float(squares.sum())
    if not 0.0 < total < np.inf or np.count_nonzero(squares) < 2 or squares.max() < _NEARLY_ALL * total:
        return
    names, largest = passes.source.feature_names, int(np.argmax(squares))
    msg = (
        f"all columns share one bandwidth, and column {largest if names is None else repr(names[largest])} holds "
        f"{squares[largest] / total:.1%} of the squared distance between rows; standardise the columns, or give "
        'one bandwidth per feature, or bandwidth="auto"'
    )
    warn_user(msg, ColumnScaleWarning)


def warn_of_constant(fit, names):
    """Say that a target has one value in all rows, up to rounding."""
    spread, value = np.sqrt(fit.centred.target_variance), fit.target_origin
    known = (value == 0) | (np.abs(value) > _LEAST)
    for k in np.flatnonzero(known & (spread <= _ROUNDING * np.abs(value))):
        which = "the target" if len(value) == 1 else f"target {k}"
        which = which if names is None else f"the target {shown(names[k])}"
        said = f"{which} is {as_written(value[k], 6)} in all rows, and so is every prediction; check the target"
        warn_user(said, ColumnWarning)


def warn_of_edge(path):
    """Say that the best of the ridges searched is the first or last of them."""
    if path is not None and path.on_edge:
        largest = np.isin(path.largest, path.ridges[path.chosen])
        reason = "the columns may not predict the targets" if largest else "the targets may be free of noise"
        msg = (
            f"the best ridge is the {'largest' if largest else 'smallest'} of those searched, "
            f"{path.smallest:.3g} to {path.largest:.3g}: {reason}; else give a wider list of ridges"
        )
        warn_user(msg, RidgeEdgeWarning)


def warn_of_gradient(gradient):
    """Say that the gradient solver ended short of its goal."""
    if any(outcome != "converged" for outcome in gradient.outcomes):
        msg = (
            f"the gradient ended after {int(gradient.n_products.max())} products, its fitted values within "
            f"{gradient.bound.max():.3g} (RMS) of the direct solution; take a larger ridge, or solver='direct'"
        )
        warn_user(msg, ConvergenceWarning)


def warn_of_rounding(passes, fit, function):
    """Say what rounding does to a fit, where it spoils it."""
    why = what_rounding_spoilt(passes, fit, function)
    if why:
        msg = (
            f"{why}; centre the columns and divide them by their standard deviations first (StandardScaler does), "
            "or choose a larger ridge or a smaller bandwidth"
        )
        warn_user(msg, ConditioningWarning)


def what_rounding_spoilt(passes: RowPasses, fit: LandmarkFit, function: Function) -> str:
    """Say what rounding does to the fit f; nothing where it does not spoil it.

    Exact ridge regression is never farther from its targets than the best constant, or than zero without an intercept:
    `sum_i w_i (y_i - f(x_i))^2 <= sum_i w_i (y_i - mean)^2`, also where the left sum is over some of the rows only. A
    few rows are predicted first, and all of them where these are farther from their targets than the mean is. Inner
    products are also computed for the few rows moved by their rounding.
    """
    variance = fit.centred.target_variance
    if not (variance > 0).any():
        return ""
    mean = fit.target_origin + fit.centred.target_mean

    def squares(rows: RowPasses) -> tuple[Floats, Floats, Floats]:
        """Return, for every target, the weighted sums of squares left by the fit and by the mean, and rounding's."""
        targets, weights = rows.targets(), rows.row_counts()
        return (
            weights @ (targets - function.values(rows)) ** 2,
            weights @ (targets - mean) ** 2,
            weights @ (_ROUNDED * targets) ** 2,
        )

    few = _few_rows(passes)
    error, of_mean, _ = squares(few)
    change = _change(few, function)
    passes.count_entries(few.n_kernel_evaluations)
    if (error > of_mean).any():
        error, _, rounded = squares(passes)
        of_mean = variance * fit.moments.total_weight
        if (error > _MORE * of_mean + rounded).any():
            ratio = float(np.max(error / np.maximum(of_mean, np.finfo(np.float64).tiny)))
            return (
                f"rounding decides this fit, whose error on its training rows is {ratio:.3g} times the variance of the "
                "targets"
            )
    if (change > _SENSITIVE * np.sqrt(variance) + _ROUNDED * abs(mean)).any():
        share = float(np.max(change / np.maximum(np.sqrt(variance), np.finfo(np.float64).tiny)))
        return (
            f"rounding decides this fit: a change of the rows by one unit in the last place changes its predictions by "
            f"{share:.2g} standard deviations of the targets"
        )
    # The features' variance, `tr K/n - |mean feature|^2`.
    trace, mean = fit.moments.trace_kernel, fit.moments.feature_sum
    spread = trace - float(mean @ mean) / fit.moments.total_weight
    if spread <= _FEW_DIGITS * EPS * trace and len(few.distinct_rows()) > 1:
        return "the kernel is the same for all rows up to rounding, so the fit cannot distinguish them"
    return ""


def _few_rows(passes: RowPasses) -> RowPasses:
    """Return rows of positive weight in a few runs, spread evenly: files are read in pieces."""
    weights = passes.weights()
    present = np.arange(passes.source.n_rows) if weights is None else np.flatnonzero(weights)
    starts = np.linspace(0, max(0, len(present) - _ROWS), _RUNS).astype(np.intp)
    chosen = np.unique(np.minimum(starts[:, None] + np.arange(_ROWS), len(present) - 1))
    rows = passes.take(present[chosen])
    return RowPasses(ArrayRows(rows.features, rows.targets, rows.weights), passes.memory_budget)


def _change(rows: RowPasses, function: Function) -> Floats:
    """Return by how much predictions of rows multiplied by `1 + eps` change, root of the mean square, per target.

    Only inner products grow with the rows, and so do their rounding errors: for other kernels it is 0.
    """
    kernel = function.kernel
    if kernel.constant_diagonal is not None or kernel.stays_on_host:
        return np.zeros(len(function.intercept))
    features = rows.take(np.arange(rows.source.n_rows)).features
    moved = RowPasses(ArrayRows(features * (1.0 + EPS)), rows.memory_budget)
    cross_kernel, dual_coef = function.cross_kernel, function.dual_coef
    change = Cross(moved, cross_kernel) @ dual_coef - Cross(rows, cross_kernel) @ dual_coef
    rows.count_entries(moved.n_kernel_evaluations)
    return np.sqrt((change**2).mean(axis=0))
