"""What a model file holds of each estimator: names, types and shapes, everything else being refused.

Sides of arrays: d features, t targets, p landmarks (or the points of `ExactKernelRidge`), r of them kept, n rows with
leave-one-out residuals, m of them for intervals, s rows with scores, g ridges searched.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ridgemark.certificates import Certificate
from ridgemark.fitting import Tolerance
from ridgemark.intervals import Calibration
from ridgemark.kernels import Kernel
from ridgemark.leverage import Bracket, ScoreBracket
from ridgemark.losses import Moments
from ridgemark.persistence.schema import (
    Reader,
    Source,
    array,
    each,
    either,
    flag,
    free,
    hashes,
    mapping,
    number,
    numbers,
    optional,
    record,
    refusal,
    rows,
    text,
    whole,
    words,
)
from ridgemark.rows.places import shown
from ridgemark.selection import LandmarkCount
from ridgemark.solvers import RefinementStep
from ridgemark.tuning import KeptRows, LeaveOneOut, RidgePath

_ROW_NUMBERS = np.iinfo(np.intp).max


class SavedFit(NamedTuple):
    """A `LandmarkFit` without the kernels, which are bound to the landmarks again."""

    landmark_kernel: NDArray[np.float64]
    kept: NDArray[np.intp]
    triangle: NDArray[np.float64]
    moments: Moments
    fit_intercept: bool
    scaled_ridge: NDArray[np.float64]
    target_origin: NDArray[np.float64]
    weight_unit: float


def _kernel(node: Any, place: str, source: Source) -> Kernel:
    found = free(node, place, source)
    if not isinstance(found, Kernel):
        raise refusal(place, f"must be a kernel, got {shown(found)}")
    return found


def _moments(gram: Reader) -> Reader:
    return record(
        Moments,
        n_rows=whole(1),
        total_weight=number(above=0),
        gram=gram,
        cross=array("r", "t"),
        feature_sum=array("r"),
        target_sum=array("t"),
        target_square=array("t", lowest=0),
        trace_kernel=number(lowest=0),
        trace_residual=number(lowest=0),
        entry_error=number(lowest=0),
    )


_BRACKET = record(Bracket, lower=number(), upper=number())
_FIT = record(
    SavedFit,
    landmark_kernel=array("p", "p"),
    kept=array("r", below="p"),
    triangle=array("r", "r"),
    moments=_moments(array("r", "r")),
    fit_intercept=flag,
    scaled_ridge=array("t", above=0),
    target_origin=array("t"),
    weight_unit=number(above=0),
)
_COUNT = record(
    LandmarkCount,
    n_landmarks=whole(1),
    rule=text(),
    effective_dimension=optional(_BRACKET),
    theorem_3=optional(whole()),
)
_PATH = record(
    RidgePath,
    ridges=array("g", above=0),
    loo_error=optional(array("g", "t", lowest=0, finite=False)),
    gcv=array("g", "t", finite=False),
    training_error=array("g", "t", finite=False),
    effective_dimension=array("g", finite=False),
    criterion=text("loo", "gcv"),
    chosen=array("t", below="g"),
)
_SCORES = record(
    ScoreBracket,
    lower=array("s"),
    upper=array("s"),
    scaled_ridge=number(above=0),
    effective_dimension=_BRACKET,
    weights=optional(array("s", lowest=0)),
    trace=number(),
    n_draws=whole(),
    n_passes=whole(),
    n_kernel_evaluations=whole(),
    refined=flag,
)
_LEFT_OUT = record(LeaveOneOut, residuals=array("n", "t"), potential=array("n", "t"), weights=array("n", lowest=0))
_KEPT = record(
    KeptRows,
    hashes=hashes("k"),
    rows=rows("k", "d"),
    weights=array("k", above=0),
    targets=array("k", "t"),
    most=whole(1),
)
_CALIBRATION = record(
    Calibration,
    rows=rows("m", "d"),
    indices=array("m", below=_ROW_NUMBERS),
    residuals=array("m", "t"),
    weights=array("m", lowest=0),
    shifts=array("m", "t"),
    n_distinct=whole(1),
    guaranteed=flag,
    reason=text(),
)
_TOLERANCE = record(
    Tolerance, met=flag, reason=text(), n_landmarks=each(whole(1)), bounds=each(number(lowest=0, finite=False))
)
_CERTIFICATE = record(
    Certificate,
    kind=text("audit", "operator", "trace"),
    claim=text(),
    bound=either(number(lowest=0), array("t", lowest=0)),
    certainty=text("deterministic", "probability", "estimate"),
    risk_factor=optional(number(finite=False)),
    inputs=mapping(
        numbers,
        ("duality_gap",),
        n_rows=whole(1),
        n_landmarks=whole(1),
        fit=each(number()),
        scaled_ridge=each(number(above=0), "t"),
        effective_dimension=each(number(), 2),
        target_rms=each(number(lowest=0), "t"),
        unmeasured=each(number(lowest=0, finite=False), "t"),
        theorem_3=text(),
        duality_gap=each(number(finite=False), "t"),
    ),
    cost=mapping(number(), kernel_entries=number(lowest=0)),
)
_STEP = record(
    RefinementStep,
    **{one.name: array("t", finite=False) for one in fields(RefinementStep)} | {"n_products": whole()},
)
_VALUES = each(each(number(finite=False)), "t")
_SHOWN = mapping(  # rows observed and predicted, for a page
    numbers,
    ("data", "n_rows", "rms", "r2", "coverage", "lower", "upper"),
    data=text(),
    n_rows=whole(1),
    rms=each(number(lowest=0, finite=False), "t"),
    r2=each(optional(number(finite=False)), "t"),
    coverage=optional(each(number(), "t")),
    rows=each(whole()),
    **dict.fromkeys(("observed", "predicted", "lower", "upper"), _VALUES),
)
_KEYS = optional(each(numbers))
_RUN = mapping(  # what the command line keeps beside a fit; every key may be absent
    numbers,
    ("data", "n_rows", "target_names", "target", "weight", "columns", "levels", "sample", "held_out"),
    data=text(),
    n_rows=whole(1),
    target_names=each(text(), "t"),
    target=_KEYS,
    weight=numbers,
    columns=_KEYS,
    levels=mapping(each(text())),
    sample=optional(_SHOWN),
    held_out=_SHOWN,
)


def _common(flat: bool) -> dict[str, Reader]:
    """Return the attributes of every model; `flat` says whether the targets were an array of shape (n,)."""
    targets = () if flat else ("t",)
    one = number() if flat else array("t")
    positive = either(number(above=0), array("t", above=0))
    return {
        "n_features_in_": whole(1, size="d"),
        "feature_names_in_": words("d"),
        "_n_targets": whole(1, 2 if flat else None, size="t"),
        "_flat_targets": flag,
        "_single": flag,
        "kernel_": _kernel,
        "dual_coef_": array("p", *targets),
        "intercept_": one,
        "ridge_": positive,
        "scaled_ridge_": positive,
        "ridge_path_": _PATH,
        "n_passes_": whole(),
        "n_kernel_evaluations_": whole(),
    }


def _landmark_model(flat: bool) -> Reader:
    own = {
        "landmarks_": rows("p", "d"),
        "landmark_indices_": optional(array("p", below=_ROW_NUMBERS)),
        "landmark_count_": _COUNT,
        "solver_": text("direct", "gradient"),
        "effective_dimension_": _BRACKET,
        "certificate_": optional(_CERTIFICATE),
        "_choosing": _moments(array(0, 0)),
        "_chosen_blindly": flag,
        "_ridge_given": flag,
        "_n_duplicates": whole(),
        "_constant_columns": each(whole(0, "d")),
        "_fit": _FIT,
        "_kept": optional(_KEPT),
        "_hashes": hashes("h"),
        "leverage_scores_": _SCORES,
        "solver_bound_": number(lowest=0) if flat else array("t", lowest=0),
        "_left_out": _LEFT_OUT,
        "_landmark_rows": optional(array("p", below="n")),
        "calibration_": _CALIBRATION,
        "tolerance_": _TOLERANCE,
        "run_": _RUN,
    }
    absent = (
        *("feature_names_in_", "ridge_path_", "_fit", "leverage_scores_", "solver_bound_"),
        *("_left_out", "_landmark_rows", "calibration_", "tolerance_", "run_"),
    )
    return record(dict, absent, **_common(flat) | own)


def _exact_model(flat: bool) -> Reader:
    points = rows("p", "d")
    own = {
        "X_fit_": lambda node, place, source: _points(points, node, place, source),
        "landmark_indices_": optional(array("l", below=_ROW_NUMBERS)),
        "n_landmarks_": whole(1),
        "history_": each(_STEP),
        "n_iter_": whole(),
    }
    return record(dict, ("feature_names_in_", "ridge_path_"), **_common(flat) | own)


def _points(points: Reader, node: Any, place: str, source: Source) -> Any:
    """Read rows, or of a precomputed kernel their numbers."""
    are_rows = np.ndim(source.arrays.get(place, np.empty((0, 0)))) == 2
    return (points if are_rows else array("p", below="d"))(node, place, source)


MODELS = {"NystromRidge": _landmark_model, "ExactKernelRidge": _exact_model}

PARAMETERS = {
    **dict.fromkeys(("kernel", "bandwidth", "ridge", "n_landmarks", "selection"), free),
    **dict.fromkeys(("risk_tolerance", "failure_probability", "tol"), number(above=0)),
    **dict.fromkeys(("ridge_per_target", "fit_intercept", "progress"), flag),
    "certify_with": optional(text()),
    "solver": text(),
    "max_iter": whole(1),
    "memory_budget": optional(whole(1)),
    "random_state": optional(whole()),
}
