"""What a model file holds of each estimator, beyond what the types of its records say: shapes and ranges.

Sides of arrays: d columns of the user, e features that they become, t targets, p landmarks (or the points of
`ExactKernelRidge`), r of them kept, in u pairs, n rows with leave-one-out residuals, m of them for intervals, k kept
for later batches, s rows with scores, g ridges searched, c classes.

A new field or record of a fit is saved and loaded by its annotation. It needs an entry here only where it is an array,
which has sides, where its numbers have a range, or where they may be infinite.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict

from ridgemark.backends import Floats, Indices
from ridgemark.certificates import Certificate
from ridgemark.fitted import (
    Choice,
    Classes,
    ClassScores,
    FittedExact,
    FittedModel,
    Form,
    LeftOutRows,
    RowFacts,
    RunRecord,
    Solution,
    Targets,
    Tolerance,
)
from ridgemark.intervals import Calibration, NoiseLevel
from ridgemark.leverage import Bracket, ScoreBracket
from ridgemark.losses import Moments
from ridgemark.path import KeptRows, LeaveOneOut, LossPath, RidgePath
from ridgemark.persistence.decoding import POSITIVE, Rule
from ridgemark.solvers import CompactFit, RefinementStep, RidgeSolution
from ridgemark.tables.schema import Field
from ridgemark.tuning import Descended, Level


class SavedFit(NamedTuple):
    """A `LandmarkFit` without the kernels, which are bound to the landmarks again."""

    landmark_kernel: Floats
    kept: Indices
    triangle: Floats
    moments: Moments
    fit_intercept: bool
    scaled_ridge: Floats
    target_origin: Floats
    weight_unit: float
    solution: RidgeSolution
    training_error: Floats
    effective_dimension: Bracket


# Annotations here must stay types (no `from __future__ import annotations`): they say which keys are required.
class _Inputs(TypedDict):
    """The inputs of a certificate that are read again."""

    n_rows: int
    n_landmarks: int
    fit: list[float]
    scaled_ridge: list[float]
    effective_dimension: list[float]
    target_rms: list[float]
    unmeasured: list[float]
    theorem_3: str | None
    duality_gap: NotRequired[list[float]]


class _Cost(TypedDict):
    kernel_entries: float


class _Shown(TypedDict):
    """Rows observed and predicted, for a page."""

    rows: list[int]
    observed: list[list[float]]
    predicted: list[list[float]]
    lower: NotRequired[list[list[float]]]
    upper: NotRequired[list[list[float]]]
    data: NotRequired[str]
    n_rows: NotRequired[int]
    rms: NotRequired[list[float]]
    r2: NotRequired[list[float | None]]
    coverage: NotRequired[list[float] | None]
    repeated: NotRequired[int]


class _Influence(TypedDict):
    """One row that drives a fit of classes."""

    row: int
    label: object
    probability: float
    leverage: float
    cook_distance: float
    landmark: bool
    why: str


class _Average(TypedDict):
    """The average effect of a column on the log-odds of a class."""

    column: str
    unit: str
    target: str
    average: float
    quartiles: tuple[float, float, float]


class _LabelErrors(TypedDict):
    """Errors of probabilities of classes, for a page."""

    n_rows: int
    accuracy: float
    log_loss: float
    by_class: list[float]
    rms: float
    sets: tuple[float, float, float]
    confusion: list[list[float]]
    calibration: list[tuple[float, float, float]]
    data: NotRequired[str]
    repeated: NotRequired[int]
    top: NotRequired[list[_Influence]]
    effects: NotRequired[list[_Average]]


_SIDES: dict[Any, dict[str, str]] = {
    Form: {"n_features": "d", "feature_names": "d", "n_encoded": "e"},
    Targets: {"count": "t"},
    FittedModel: {"importances": "d"},
    Choice: {"landmarks": "pe", "indices": "p"},
    Solution: {"dual_coef": "pt", **dict.fromkeys(("intercept", "ridge", "scaled_ridge", "solver_bound"), "t")},
    RidgePath: {"ridges": "g", "effective_dimension": "g", "chosen": "t", "sample": "g"}
    | dict.fromkeys(("loo_error", "gcv", "training_error"), "gt"),
    LossPath: dict.fromkeys(("ridges", "loo_loss", "training_loss"), "g"),
    ClassScores: dict.fromkeys(("scores", "weights"), "m"),
    Classes: dict.fromkeys(("values", "weights"), "c"),
    Field: dict.fromkeys(("levels", "shares"), "_"),
    Descended: {"loo_errors": "_", "looks": "_2"},
    RowFacts: {"hashes": "_"},
    ScoreBracket: dict.fromkeys(("lower", "upper", "weights"), "s"),
    LeftOutRows: {"landmark_rows": "p"},
    LeaveOneOut: {"residuals": "nt", "potential": "nt", "weights": "n", "size_sums": "_t"},
    KeptRows: {"hashes": "k", "rows": "ke", "weights": "k", "targets": "kt"},
    Calibration: {"rows": "me", "indices": "m", "weights": "m"}
    | dict.fromkeys(("residuals", "shifts", "scores", "reaches"), "mt"),
    NoiseLevel: {"floor": "t", "variance": "t"},
    SavedFit: {"landmark_kernel": "pp", "kept": "r", "triangle": "rr"}
    | dict.fromkeys(("scaled_ridge", "target_origin", "training_error"), "t"),
    CompactFit: {"kept": "r", "diagonal": "r", "sizes": "r", "root": "u"}
    | dict.fromkeys(("scaled_ridge", "target_origin", "training_error"), "t"),
    Moments: {"gram": "__", "cross": "rt", "feature_sum": "r", "target_sum": "t", "target_square": "t"},
    RidgeSolution: {"coefficients": "rt", "intercept": "t"},
    Certificate: {"bound": "t"},
    FittedExact: {"points": "pe", "dual_coef": "pt", "intercept": "t", "landmark_indices": "l"},
    RefinementStep: dict.fromkeys(("returned", "fitted", "norm", "rounding"), "t"),
    RunRecord: {"target_names": "t"},
    _Inputs: dict.fromkeys(("scaled_ridge", "target_rms", "unmeasured", "duality_gap"), "t"),
    _Shown: dict.fromkeys(("observed", "predicted", "lower", "upper", "rms", "r2", "coverage"), "t"),
}
_LOWEST = {
    **dict.fromkeys(("target", "weight", "columns"), -math.inf),  # positions, -1 the last
    **dict.fromkeys(("ridge", "scaled_ridge", "ridges", "smallest", "largest"), POSITIVE),
    **dict.fromkeys(("total_weight", "weight_unit"), POSITIVE),
    **dict.fromkeys(("n_features", "n_encoded", "count", "n_rows", "n_landmarks", "n_distinct", "most"), 1),
    **dict.fromkeys(("weights", "target_square", "trace_kernel", "trace_residual", "entry_error", "training_error"), 0),
    **dict.fromkeys(("scores", "reaches", "floor", "variance"), 0),
    **dict.fromkeys(("bound", "bounds", "solver_bound", "loo_error", "rms", "target_rms", "unmeasured"), 0),
}
_BELOW = {"kept": "p", "chosen": "g", "landmark_rows": "n", "constant_columns": "e", "points": "e"}
_MAY_BE_INFINITE = {RidgePath, RefinementStep, Tolerance, Certificate, Descended, Level, _Inputs, _Shown}
_WHOLE = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_HINTS = {
    (Form, "arrays"): Literal["numpy", "torch", "cupy", "array_api_strict"],
    (Solution, "solver"): Literal["direct", "gradient"],
    (RidgePath, "criterion"): Literal["loo", "gcv"],
    (LossPath, "criterion"): Literal["loo"],
    (Classes, "dtype"): Literal["str", "object", "bool", *_WHOLE, "float32", "float64"],
    (FittedModel, "sums"): SavedFit | CompactFit | None,
    (Certificate, "inputs"): _Inputs,
    (Certificate, "cost"): _Cost,
    (RunRecord, "sample"): _Shown | _LabelErrors | None,
    (RunRecord, "held_out"): _Shown | _LabelErrors | None,
}
MODELS = {"NystromRidge": FittedModel, "NystromClassifier": FittedModel, "ExactKernelRidge": FittedExact}
# Parameters that nothing else checks before a model is used; of the others a file may hold any value.
PARAMETERS = {
    "device": str,
    "progress": bool,
    "memory_budget": int | None,
    "random_state": int | None,
    "categorical_features": str | Sequence[object] | None,
}


def rule(kind: type, name: str) -> Rule:
    """Return the rule of a record's field."""
    return Rule(
        sides=_SIDES.get(kind, {}).get(name),
        lowest=_LOWEST.get(name),
        below=_BELOW.get(name),
        finite=kind not in _MAY_BE_INFINITE,
        ascending=name == "hashes",
        hint=_HINTS.get((kind, name)),
    )
