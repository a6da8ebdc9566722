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
from ridgemark.fitted import Choice, Cost, LeftOutRows, RowFacts, RunRecord, Schema, Solution, Targets, Tolerance
from ridgemark.intervals import Calibration
from ridgemark.kernels import Kernel
from ridgemark.leverage import Bracket, ScoreBracket
from ridgemark.losses import Moments
from ridgemark.path import KeptRows, LeaveOneOut, RidgePath
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
from ridgemark.solvers import RefinementStep, RidgeSolution

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
    solution: RidgeSolution
    training_error: NDArray[np.float64]
    effective_dimension: Bracket


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
    solution=record(RidgeSolution, coefficients=array("r", "t"), intercept=array("t")),
    training_error=array("t", lowest=0),
    effective_dimension=_BRACKET,
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
_RUN = record(  # what the command line keeps beside a model
    RunRecord,
    data=optional(text()),
    n_rows=optional(whole(1)),
    target=_KEYS,
    weight=numbers,
    columns=_KEYS,
    target_names=optional(each(text(), "t")),
    levels=optional(mapping(each(text()))),
    sample=optional(_SHOWN),
    held_out=optional(_SHOWN),
)
RUN = optional(_RUN)

_SCHEMA = record(
    Schema,
    n_features=whole(1, size="d"),
    feature_names=optional(words("d")),
    targets=record(Targets, count=whole(1, size="t"), flat=flag, single=flag),
)
_CHOICE = record(
    Choice,
    kernel=_kernel,
    landmarks=rows("p", "d"),
    indices=optional(array("p", below=_ROW_NUMBERS)),
    count=_COUNT,
    scores=optional(_SCORES),
    sums=_moments(array(0, 0)),
    blind=flag,
)
_SOLUTION = record(
    Solution,
    dual_coef=array("p", "t"),
    intercept=array("t"),
    ridge=array("t", above=0),
    scaled_ridge=array("t", above=0),
    ridge_per_target=flag,
    path=optional(_PATH),
    solver=text("direct", "gradient"),
    solver_bound=optional(array("t", lowest=0)),
    effective_dimension=_BRACKET,
    certificate=optional(_CERTIFICATE),
    tolerance=optional(_TOLERANCE),
)
_ROWS = record(
    RowFacts,
    n_duplicates=whole(),
    constant_columns=each(whole(0, "d")),
    hashes=hashes("h"),
    sample=optional(_KEPT),
)
_COST = record(Cost, n_passes=whole(), n_kernel_evaluations=whole())


def _points(node: Any, place: str, source: Source) -> Any:
    """Read rows, or of a precomputed kernel their numbers."""
    are_rows = np.ndim(source.arrays.get(place, np.empty((0, 0)))) == 2
    return (rows("p", "d") if are_rows else array("p", below="d"))(node, place, source)


# Of every estimator, the record of its fit: what `saving` completes to `FittedModel` and `FittedExact`.
MODELS = {
    "NystromRidge": record(
        dict,
        schema=_SCHEMA,
        choice=_CHOICE,
        solution=_SOLUTION,
        rows=_ROWS,
        left_out=optional(
            record(LeftOutRows, values=_LEFT_OUT, landmark_rows=optional(array("p", below="n"))),
        ),
        calibration=optional(_CALIBRATION),
        cost=_COST,
        sums=optional(_FIT),
    ),
    "ExactKernelRidge": record(
        dict,
        schema=_SCHEMA,
        kernel=_kernel,
        points=_points,
        dual_coef=array("p", "t"),
        intercept=array("t"),
        ridge=number(above=0),
        scaled_ridge=number(above=0),
        path=optional(_PATH),
        landmark_indices=optional(array("l", below=_ROW_NUMBERS)),
        n_landmarks=whole(1),
        history=each(_STEP),
        n_iter=whole(),
        cost=_COST,
    ),
}

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
