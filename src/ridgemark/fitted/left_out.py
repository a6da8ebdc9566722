"""What a fit keeps of rows predicted without them: residuals, and scores for intervals and sets of labels."""

from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Floats, Indices
from ridgemark.fitted.frozen import Frozen
from ridgemark.measured import Label
from ridgemark.path import LeaveOneOut

_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))


class LeftOutRows(Frozen):
    """Leave-one-out residuals of all rows of the fit."""

    values: LeaveOneOut
    landmark_rows: Annotated[Indices | None, "(p)", "< n"]  # which rows are landmarks; None where that is not known
    own_units: Annotated[Floats | None, "(n, t)"] = None  # residuals in units of a target that was transformed

    @property
    def residuals(self) -> Floats:
        """Residuals in units of the target."""
        return self.values.residuals if self.own_units is None else self.own_units


class LeftOutTargets(Frozen):
    """Rows with their prediction by a loss from rows other than their own, from which intervals are made.

    Attributes
    ----------
    targets, weights : arrays of shape (m,)
        The targets, and relative weights. At most 4,096 rows.
    predictors : array of shape (m, t)
        What predicts each row without it, on the scale of the loss, for every function.
    loss, null_loss : arrays of shape (t,)
        The mean loss of all rows left out (of at most 8,192 distinct ones), and that of the best constant.
    below : array of shape (t,)
        The share of these rows whose target lies below its prediction.
    of_rates : bool
        Whether targets are rates, and weights count exposures.
    guaranteed : bool
        Whether the rows had no part in the fit. Then an interval asked to cover with probability c holds a new
        observation with probability at least c, for every distribution, if rows are exchangeable.
    reason : str
        Why it is guaranteed, or why not.
    """

    targets: Annotated[Floats, "(m)"]
    weights: Annotated[Floats, "(m)", ">= 0"]
    predictors: Annotated[Floats, "(m, t)"]
    loss: Annotated[Floats, "(t)", ">= 0"]
    null_loss: Annotated[Floats, "(t)", ">= 0"]
    below: Annotated[Floats, "(t)", ">= 0"]
    guaranteed: bool
    reason: str
    of_rates: bool
    n_groups: Annotated[int | None, "> 0"] = None  # of rows that left together; each counts equally


class ClassScores(Frozen):
    """Rows with the probability of their own label, from which `predict_set` takes its threshold.

    Attributes
    ----------
    scores : array of shape (m,)
        `1 - p`, p the probability of the row's label from a fit without it.
    weights : array of shape (m,)
        Relative weights.
    guaranteed : bool
        Whether the rows had no part in the fit. Then a set asked to cover with probability c holds the label of a new
        row with probability at least c, for every distribution, if rows are exchangeable.
    reason : str
        Why it is guaranteed, or why not.
    """

    scores: Annotated[Floats, "(m)", ">= 0"]
    weights: Annotated[Floats, "(m)", ">= 0"]
    guaranteed: bool
    reason: str
    n_groups: Annotated[int | None, "> 0"] = None  # of rows that left together; each counts equally


class Classes(Frozen):
    """The classes of a fit, ascending: their labels, and what sets of them are made from."""

    values: Annotated[tuple[Label, ...], "(c)", "any"]
    dtype: Annotated[str, Literal["str", "object", "bool", "float32", "float64", *_INTEGERS]]
    weights: Annotated[Floats | None, "(c)", ">= 0"]  # factors of the rows' weights
    calibration: ClassScores | None = None

    def check_record(self) -> None:
        """Refuse what a fit does not make: a file may hold it."""
        if self.labels.tolist() != list(self.values) or len(set(self.values)) != len(self.values):
            raise ValueError(f"the labels must be different values of type {self.dtype}")

    @cached_property
    def labels(self) -> NDArray[Any]:
        """The labels as an array."""
        return np.array(self.values, dtype=self.dtype)
