"""What was measured of a fit on its own rows or on others, as plain values for a page; a model file holds it.

The annotations say what a file must hold (`persistence/checking.py`).
"""

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired, TypeAlias, TypedDict

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


class _Influence(TypedDict):
    """One row that drives a fit of classes."""

    row: int
    label: Annotated[Label, "any"]
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
    sets: Annotated[list[float], "(3)"]
    confusion: list[list[float]]
    calibration: list[Annotated[list[float], "(3)"]]
    data: NotRequired[str]
    repeated: NotRequired[int]
    top: NotRequired[list[_Influence]]
    effects: NotRequired[list[_Average]]


Measured: TypeAlias = Annotated[Mapping[str, Any] | None, _Shown | _LabelErrors | None]


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
