"""What was measured of a fit on its own rows or on others, as plain values for a page; a model file holds it.

The annotations say what a file must hold (`persistence/checking.py`).
"""

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired, TypeAlias, TypedDict

AUDITED = 10_000  # up to this many rows an audit (one product with the kernel matrix) takes seconds

Label: TypeAlias = str | bool | int | float


class _Shown(TypedDict):
    """Rows observed and predicted, for a page."""

    rows: list[int]
    observed: Annotated[list[list[float]], "(t)", "any"]
    predicted: Annotated[list[list[float]], "(t)", "any"]
    lower: NotRequired[Annotated[list[list[float]], "(t)", "any"]]
    upper: NotRequired[Annotated[list[list[float]], "(t)", "any"]]
    data: NotRequired[str]
    n_rows: NotRequired[Annotated[int, "> 0"]]
    rms: NotRequired[Annotated[list[float], "(t)", ">= 0", "any"]]
    r2: NotRequired[Annotated[list[float | None], "(t)", "any"]]
    coverage: NotRequired[Annotated[list[float] | None, "(t)", "any"]]
    repeated: NotRequired[int]
    far: NotRequired[float]  # share of rows farther from the data than 95% of the rows of the fit
    far_errors: NotRequired[list[Annotated[list[float], "(3)", "any"]]]  # largest share, RMS error, rows of a group


class _Influence(TypedDict):
    """One row that drives a fit: of classes with its label, of numbers with its target."""

    row: int
    label: NotRequired[Annotated[Label, "any"]]
    probability: NotRequired[float]
    target: NotRequired[Annotated[float, "any"]]
    predicted: NotRequired[Annotated[float, "any"]]
    loss: NotRequired[float]
    leverage: float
    cook_distance: float
    landmark: bool
    why: str


class _Average(TypedDict):
    """The average effect of a column on the log-odds of a class, or on what a loss predicts."""

    column: str
    unit: str
    target: str
    average: float
    quartiles: Annotated[list[float], "(3)", "any"]


class _LabelErrors(TypedDict):
    """Errors of probabilities of classes, for a page."""

    n_rows: Annotated[int, "> 0"]
    accuracy: float
    majority: NotRequired[float]
    auc: NotRequired[float | None]
    average_precision: NotRequired[float | None]
    log_loss: float
    by_class: list[float]
    rms: Annotated[float, ">= 0"]
    far: NotRequired[float]
    far_errors: NotRequired[list[Annotated[list[float], "(3)", "any"]]]
    sets: Annotated[list[float], "(3)"]
    confusion: list[list[float]]
    calibration: list[Annotated[list[float], "(3)"]]
    data: NotRequired[str]
    repeated: NotRequired[int]
    top: NotRequired[list[_Influence]]
    effects: NotRequired[list[_Average]]


class _LossErrors(TypedDict):
    """Errors of numbers by a loss, for a page; one entry for each function."""

    n_rows: Annotated[int, "> 0"]
    loss: Annotated[list[float], "(t)", ">= 0"]
    null_loss: Annotated[list[float], "(t)", ">= 0"]
    below: Annotated[list[float], "(t)", ">= 0"]
    below_error: Annotated[list[float], "(t)", ">= 0"]
    coverage: float | None
    far: NotRequired[float]
    far_errors: NotRequired[list[Annotated[list[float], "(3)", "any"]]]
    observed: Annotated[list[list[float]], "any"]
    predicted: Annotated[list[list[float]], "(t)", "any"]
    lower: NotRequired[Annotated[list[list[float]], "any"]]
    upper: NotRequired[Annotated[list[list[float]], "any"]]
    calibration: list[Annotated[list[float], "any"]]
    data: NotRequired[str]
    repeated: NotRequired[int]
    top: NotRequired[list[_Influence]]
    effects: NotRequired[list[_Average]]


Measured: TypeAlias = Annotated[Mapping[str, Any] | None, _Shown | _LabelErrors | _LossErrors | None]


class _Threshold(TypedDict):
    """A threshold for the probability of the second of two classes, and what follows from it on rows left out."""

    threshold: float
    reason: str
    rate: Annotated[float, ">= 0"]
    precision: Annotated[float, ">= 0"]
    recall: Annotated[float, ">= 0"]
    confusion: list[list[float]]


class _Boosting(TypedDict):
    """Errors of gradient boosting by cross-validation."""

    n_rows: Annotated[int, "> 0"]
    n_splits: Annotated[int, "> 0"]
    rms: float | None
    explained: float | None
    log_loss: float | None
    accuracy: float | None


ThresholdRecord: TypeAlias = Annotated[Mapping[str, Any] | None, _Threshold | None]
BoostingRecord: TypeAlias = Annotated[Mapping[str, Any] | None, _Boosting | None]
