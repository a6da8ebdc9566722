"""What a fit knows: frozen records of read-only arrays.

An estimator holds one of them and its parameters. A method that changes the fit makes a new record and assigns it in
one statement, so that a model is never half of one fit and half of another.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Literal, dataclass_transform

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Floats, Indices, Rows, one_blas_thread
from ridgemark.certificates import Certificate, trace_certificate
from ridgemark.effects import derivative_shares
from ridgemark.errors import NumericalError
from ridgemark.explaining import Background, Importance, total_indices
from ridgemark.intervals import Calibration, CalibrationRows, NoiseLevel
from ridgemark.kernels import CrossKernel, Kernel
from ridgemark.leverage import Bracket, ScoreBracket
from ridgemark.losses import SQUARED, Loss, Moments, SquaredLoss
from ridgemark.measured import BoostingRecord, Label, Measured, ThresholdRecord
from ridgemark.operators import Cross
from ridgemark.passes import Cost, RowPasses
from ridgemark.path import KeptRows, LeaveOneOut, LossPath, RidgePath
from ridgemark.rows import ArrayRows
from ridgemark.selection import LandmarkCount
from ridgemark.solvers import CompactFit, LandmarkFit, RefinementStep
from ridgemark.tables.schema import Schema, column_names
from ridgemark.transforms import TargetTransform
from ridgemark.tuning import TuningResult


def read_only(value: Any) -> Any:
    """Return an array as a view that cannot be written to, and a record or tuple with such views of its arrays.

    What is read-only already is returned itself. Sparse matrices stay as they are: their methods sort in place.
    """
    if isinstance(value, np.ndarray):
        if not value.flags.writeable:
            return value
        view = value.view()
        view.flags.writeable = False
        return view
    if type(value) is tuple:
        parts = tuple(map(read_only, value))
        return value if all(new is old for new, old in zip(parts, value, strict=True)) else parts
    if is_dataclass(value) and not isinstance(value, type | CrossKernel):
        parts_of = {one.name: getattr(value, one.name) for one in fields(value)}
        changed = {name: new for name, old in parts_of.items() if (new := read_only(old)) is not old}
        return replace(value, **changed) if changed else value
    return value


def _not_saved() -> Any:
    """Return a field that files do not hold, such as times: two fits with one seed are two files of the same bytes."""
    return field(default=None, compare=False)


_Library = Literal["numpy", "torch", "cupy", "array_api_strict"]
_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))


@dataclass_transform(eq_default=False, frozen_default=True)
class _Frozen:
    """A frozen dataclass whose arrays are read-only, also those of the records in it, and after copying or pickling."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False)(cls)

    def __post_init__(self) -> None:
        for one in fields(self):  # type: ignore[arg-type]
            object.__setattr__(self, one.name, read_only(getattr(self, one.name)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, one.name) for one in fields(self))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Targets:
    """The form in which targets were given."""

    count: Annotated[int, "(t)", "> 0"]
    flat: bool  # an array of shape (n,)
    single: bool  # rows and targets in single precision

    def __post_init__(self) -> None:
        if self.flat and self.count > 1:
            raise ValueError("several targets cannot be in one column")


class Form(_Frozen):
    """The form of the rows and targets of a fit, in the user's columns."""

    n_features: Annotated[int, "(d)", "> 0"]
    feature_names: Annotated[NDArray[Any] | None, "(d)"]
    targets: Targets
    n_encoded: Annotated[int, "(e)", "> 0"]  # features that the kernel sees
    table: Schema | None  # how columns become features; None where they are features as they are
    arrays: Annotated[str, _Library] = "numpy"  # the library of the rows: "torch" where they were tensors

    def __post_init__(self) -> None:
        super().__post_init__()
        columns, features = (len(self.table.fields), len(self.table.encoded_names)) if self.table else (None, None)
        if (columns or self.n_features, features or self.n_features) != (self.n_features, self.n_encoded):
            raise ValueError("the schema does not have the numbers of columns and features of the fit")

    @property
    def used(self) -> list[int]:
        """Positions of the columns that are features; a fit leaves out those of one value, for example."""
        parts = [True] * self.n_features if self.table is None else [field.parts for field in self.table.fields]
        return [j for j, known in enumerate(parts) if known]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the user's columns."""
        return column_names(self.feature_names, self.n_features)

    @property
    def owners(self) -> NDArray[np.intp]:
        """Position of the user's column that each feature comes from."""
        return np.arange(self.n_features) if self.table is None else self.table.owners

    @property
    def encoded_names(self) -> tuple[str, ...]:
        """Names of the features that the kernel sees."""
        return column_names(self.feature_names, self.n_features) if self.table is None else self.table.encoded_names


class Function(_Frozen):
    """`f(x) = k(x) dual_coef + intercept`: all that a prediction needs, of every estimator."""

    kernel: Kernel
    points: Annotated[Any, Annotated[Rows, "(p, e)"] | None]  # None where the kernel is known between rows by number
    numbers: Annotated[Indices | None, "(p)", "< s", "< n"]  # of the points; None if they are not training rows
    dual_coef: Annotated[Floats, "(p, t)"]
    intercept: Annotated[Floats, "(t)"]

    @property
    def n_points(self) -> int:
        """Number of points, p."""
        return len(self.dual_coef)

    @cached_property
    def cross_kernel(self) -> CrossKernel:
        """The kernel bound to the points."""
        return self.kernel.bind(self.points, self.numbers)

    def values(self, passes: RowPasses) -> Floats:
        """Return f at the rows of some passes, shape (n, t)."""
        return Cross(passes, self.cross_kernel) @ self.dual_coef + self.intercept

    def at(self, rows: Any) -> Floats:
        """Return f at rows of features in memory, shape (n, t)."""
        return self.values(RowPasses(ArrayRows(rows)))


class Choice(_Frozen):
    """How the landmarks were chosen."""

    count: LandmarkCount
    scores: ScoreBracket | None  # that drew them
    sums: Moments  # of the rows that chose them, without the Gram matrix
    scored: bool  # whether they were drawn by leverage scores
    blind: bool  # whether they were drawn uniformly, and neither their number nor the bandwidth looked at the rows

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sums.gram.size:
            raise ValueError("the sums of the rows that chose the landmarks must be without the Gram matrix")


@dataclass(frozen=True, eq=False)
class Tolerance:
    """Whether a fit was certified as close to exact as `risk_tolerance` asks, and the rounds it took.

    Attributes
    ----------
    met : bool
        Whether the certificate proves it.
    reason : str
        Why the fit ended here.
    n_landmarks : tuple of int
        Landmarks of every round.
    bounds : tuple of float
        The certificate's bound after every round, the largest over targets.
    """

    met: bool
    reason: str
    n_landmarks: tuple[int, ...]
    bounds: Annotated[tuple[float, ...], "any"]


class Solution(_Frozen):
    """The ridge at which the coefficients were solved, and what chose it."""

    ridge: Annotated[Floats, "(t)", "> 0"]  # lambda
    scaled_ridge: Annotated[Floats, "(t)", "> 0"]  # lambda times the sum of weights
    effective_dimension: Bracket
    path: RidgePath | LossPath | None  # the ridges searched; None where one was given
    ridge_per_target: bool = False
    solver: Annotated[str, Literal["direct", "gradient"]] = "direct"
    # Of a gradient, the RMS distance from the direct solution at most.
    solver_bound: Annotated[Floats | None, "(t)", ">= 0"] = None
    certificate: Certificate | None = None  # as measured; see `FittedModel.certificate`
    tolerance: Tolerance | None = None


class RowFacts(_Frozen):
    """What is kept of the rows of all batches."""

    n_duplicates: int
    constant_columns: Annotated[tuple[int, ...], "< e"]
    two_valued: tuple[tuple[int, float, float], ...]  # column, low and high of each column of two values
    hashes: Annotated[NDArray[np.uint64], "(_)", "ascending"]  # the smallest: they count distinct rows
    sample: KeptRows | None  # for leave-one-out when the rows are gone
    n_groups: Annotated[int | None, "> 0"] = None  # that left together; None where rows had no labels of groups


class LeftOutRows(_Frozen):
    """Leave-one-out residuals of all rows of the fit."""

    values: LeaveOneOut
    landmark_rows: Annotated[Indices | None, "(p)", "< n"]  # which rows are landmarks; None where that is not known
    own_units: Annotated[Floats | None, "(n, t)"] = None  # residuals in units of a target that was transformed

    @property
    def residuals(self) -> Floats:
        """Residuals in units of the target."""
        return self.values.residuals if self.own_units is None else self.own_units


class LeftOutTargets(_Frozen):
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


class ClassScores(_Frozen):
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


class Classes(_Frozen):
    """The classes of a fit, ascending: their labels, and what sets of them are made from."""

    values: Annotated[tuple[Label, ...], "(c)", "any"]
    dtype: Annotated[str, Literal["str", "object", "bool", "float32", "float64", *_INTEGERS]]
    weights: Annotated[Floats | None, "(c)", ">= 0"]  # factors of the rows' weights
    calibration: ClassScores | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.labels.tolist() != list(self.values) or len(set(self.values)) != len(self.values):
            raise ValueError(f"the labels must be different values of type {self.dtype}")

    @cached_property
    def labels(self) -> NDArray[Any]:
        """The labels as an array."""
        return np.array(self.values, dtype=self.dtype)


class _Fitted(_Frozen):
    """What every fit that predicts knows."""

    schema: Form
    function: Function

    def __post_init__(self) -> None:
        super().__post_init__()
        kernel, numbers = self.function.kernel, self.function.numbers
        by_number = isinstance(kernel, Kernel) and kernel.pairwise
        if by_number and (numbers is None or not (numbers < self.schema.n_encoded).all()):
            raise ValueError("the points of a precomputed kernel must be rows of its matrix")


class FittedModel(_Fitted):
    """All that a fit from landmarks knows.

    `sums` answers later questions (further rows, certificates, intervals, standard deviations) from some 3 p^2
    numbers. A fit by gradients has none; a model from a file may have them in the compact form, which answers fewer
    questions, or go without.
    """

    choice: Choice
    solution: Solution
    rows: RowFacts
    left_out: LeftOutRows | None = None
    calibration: Calibration | None = None
    cost: Cost = Cost()
    sums: LandmarkFit | CompactFit | None = None
    tuning: TuningResult | None = None  # how the kernel was tuned
    background: Background | None = None  # rows that explanations compare with; None for a precomputed kernel
    noise: NoiseLevel | None = None  # of the rows that chose the landmarks, where others were added
    classes: Classes | None = None  # of a fit of labels
    loss: Loss = SQUARED
    judged: LeftOutTargets | None = None  # of a fit of numbers by another loss
    transform: TargetTransform | None = None  # of the target
    drawn: CalibrationRows | None = _not_saved()  # for `calibrated`, where the ridge was given

    @property
    def is_squared(self) -> bool:
        """Whether the fit is by squared errors."""
        return isinstance(self.loss, SquaredLoss)

    @cached_property
    def expanded(self) -> LandmarkFit | None:
        """The sums, where they are compact for all questions but those that need every digit."""
        if not isinstance(self.sums, CompactFit):
            return self.sums
        function = self.function
        return self.sums.expanded(function.kernel, function.points, function.numbers, function.dual_coef)

    @cached_property
    def certificate(self) -> Certificate | None:
        """How far the fit is from exact: as it was measured, or else by the trace of K - L, computed when asked for."""
        measured = self.solution.certificate
        if measured is not None or not self.is_squared or not isinstance(self.sums, LandmarkFit):
            return measured
        # Distances of targets that are very large exceed the floating-point range.
        with np.errstate(over="ignore", invalid="ignore"), suppress(NumericalError):
            return trace_certificate(self.sums)
        return None

    @cached_property
    def calibrated(self) -> Calibration | None:
        """The calibration; where the ridge was given it is computed when asked for, as it takes as long as a fit."""
        if self.drawn is None or self.expanded is None:
            return self.calibration
        with np.errstate(over="ignore", invalid="ignore"):
            return read_only(self.drawn.calibrated(self.expanded))

    @cached_property
    def importance(self) -> Importance | None:
        """What each column matters, computed when asked for; None where that would take too long."""
        if self.background is None:
            return None
        form, function = self.schema, self.function
        with np.errstate(over="ignore", invalid="ignore"), one_blas_thread():
            return total_indices(function.at, function.n_points, self.background.rows, form.owners, form.columns)

    @cached_property
    def derivative_shares(self) -> Floats | None:
        """Each column's share of the mean squared derivative, computed when asked for; None where it is not known."""
        if self.background is None:
            return None
        function = self.function
        with np.errstate(over="ignore", invalid="ignore"), one_blas_thread():
            return derivative_shares(
                self.background.rows, self.schema.table, function.kernel, function.points, function.dual_coef
            )

    def __post_init__(self) -> None:
        super().__post_init__()
        count = self.schema.targets.count
        if self.transform is not None and (count > 1 or self.classes is not None):
            raise ValueError("a transformed target must be one number for each row")
        if self.classes is not None and len(self.classes.values) != (count if count > 1 else 2):
            raise ValueError(f"{len(self.classes.values)} classes do not have {count} functions")
        if self.classes is None and not self.is_squared and len(self.loss.parts()) != count:
            raise ValueError(f"a loss of {len(self.loss.parts())} functions does not have {count} targets")


class FittedExact(_Fitted):
    """All that a fit of exact kernel ridge regression knows."""

    ridge: Annotated[float, "> 0"]
    scaled_ridge: Annotated[float, "> 0"]
    path: RidgePath | None
    landmark_indices: Annotated[Indices | None, "(_)"]
    n_landmarks: Annotated[int, "> 0"]
    history: tuple[RefinementStep, ...]
    n_iter: int
    cost: Cost
    tuning: TuningResult | None = None

    @property
    def points(self) -> Any:
        """The rows that have coefficients; of a precomputed kernel their numbers."""
        return self.function.numbers if self.function.points is None else self.function.points


class FittedFeatures(_Frozen):
    """All that a fit of features knows."""

    schema: Form
    cross_kernel: CrossKernel
    components: Any
    component_indices: NDArray[np.intp] | None
    normalization: Floats
    cost: Cost


@dataclass(frozen=True)
class RunRecord:
    """What the command line knows of a fit beside the model: where the rows came from and what was measured."""

    data: str | None = None  # name of the file
    n_rows: Annotated[int | None, "> 0"] = None
    target: Annotated[Sequence[str | int] | None, "any"] = None  # columns as asked for; so are the next three
    weight: Annotated[str | int | None, "any"] = None
    exposure: Annotated[str | int | None, "any"] = None
    group: Annotated[str | int | None, "any"] = None
    columns: Annotated[Sequence[str | int] | None, "any"] = None
    target_names: Annotated[Sequence[str] | None, "(t)"] = None
    csv_form: Mapping[str, str] | None = None  # delimiter, decimal mark and labels; None where no CSV file was read
    sample: Measured = None  # training rows, observed and predicted
    held_out: Measured = None  # other rows, observed and predicted, with their errors
    threshold: ThresholdRecord = None  # chosen for a cost or a rate
    boosting: BoostingRecord = None  # errors of boosting by cross-validation
    findings: Mapping[str, str] | None = None  # of `check` about the rows of the fit: what it is about, and a sentence
    seconds: float | None = _not_saved()
    peak_bytes: int | None = _not_saved()
    waiting_share: float | None = _not_saved()
