"""Warnings about a fit: too many landmarks asked for, columns of different scales, the edge of a search, rounding."""

import numpy as np

from ridgemark.errors import (
    ColumnScaleWarning,
    ColumnWarning,
    ConditioningWarning,
    ConvergenceWarning,
    LandmarkCountWarning,
    RidgeEdgeWarning,
    warn_user,
)
from ridgemark.estimators.rounding import what_rounding_spoilt
from ridgemark.kernels.stationary import StationaryKernel
from ridgemark.rows.places import as_written, shown

_NEARLY_ALL = 0.99  # of the squared distance between rows
_ROUNDING = 1e-15  # of a target's mean, relative
_LEAST = 1e-130  # of a target, of which deviations as small as rounding have squares that floats hold


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
