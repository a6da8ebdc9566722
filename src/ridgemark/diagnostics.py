"""Which rows drive a fit: leverage and leave-one-out residuals, the classical outlier diagnostics in kernel form."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Floats, Indices
from ridgemark.errors import DataError, NumericalError
from ridgemark.intervals import noise_variance
from ridgemark.leverage import Bracket, ScoreBracket
from ridgemark.linalg import largest_eigenvalue
from ridgemark.losses import ClassLoss, Loss
from ridgemark.operators import NystromFactor
from ridgemark.parameters import positive_count
from ridgemark.passes import RowPasses
from ridgemark.path import LeaveOneOut, leave_out, left_out_predictor
from ridgemark.solvers import CurvatureSystem, LandmarkFit, Newton, NewtonFit, systems_of_moments


@dataclass(frozen=True)
class RowDiagnosis:
    """The influence of one row on the fit."""

    row: int
    leverage: float
    loo_residual: float  # of the target with the largest studentised residual
    studentised: float
    cook_distance: float
    landmark: bool
    why: str


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Regression diagnostics of a fit; `top(k)` returns the most influential rows.

    Attributes
    ----------
    leverage : array of shape (n,)
        `v/(1 + v)` with v the row's potential (see `ridgemark.path.LeaveOneOut`): the share of its own fitted value
        that a row determines. The largest over targets.
    loo_residuals : array of shape (n, n_targets)
        Leave-one-out residuals.
    studentised : array of shape (n, n_targets)
        Leave-one-out residuals over their standard deviation, `s sqrt((1 + v)/w)`, w the row's weight in units of the
        mean.
    cook_distance : array of shape (n,)
        `studentised^2 v/d_eff`, the largest over targets: how far leaving the row out moves the fit, in units of its
        own uncertainty.
    order : array of shape (n,)
        Rows by influence, the most influential first: a row's rank is the better of its ranks by leverage and by
        studentised residual, so that a row extreme in either comes first.
    landmarks : array of shape (n,), bool
        Whether a row is a landmark; equal rows count once.
    noise : array of shape (n_targets,)
        Estimated standard deviation s of the noise, of a row of mean weight.
    effective_dimension : Bracket
        d_eff of exact kernel ridge regression.
    scores : ScoreBracket or None
        The scores by which the landmarks were drawn.
    n_duplicates : int
        Number of rows equal to an earlier row.
    constant_columns : tuple of str
        Columns with the same value in all rows.
    condition : float
        Largest over smallest eigenvalue of the kernel of the landmarks kept.
    n_dropped : int
        Directions of the landmark kernel dropped as rounding error.
    """

    leverage: Floats
    loo_residuals: Floats
    studentised: Floats
    cook_distance: Floats
    order: Indices
    landmarks: NDArray[np.bool_]
    noise: Floats
    effective_dimension: Bracket
    scores: ScoreBracket | None
    n_duplicates: int
    constant_columns: tuple[str, ...]
    condition: float
    n_dropped: int

    @property
    def verdict(self) -> str:
        """Whether landmarks drawn by scores can beat uniform ones on these rows, in one line."""
        return "landmarks were not drawn by scores" if self.scores is None else self.scores.verdict()

    def top(self, count: int = 10) -> list[RowDiagnosis]:
        """Return the most influential rows, the most influential first."""
        return [self._row(int(row)) for row in self.order[: positive_count(count, "count")]]

    def to_record(self, count: int = 10) -> dict[str, Any]:
        """Return the numbers as a dictionary for reports and JSON, with the first `count` rows."""
        return {
            "n_rows": len(self.leverage),
            "noise": self.noise.tolist(),
            "effective_dimension": list(self.effective_dimension),
            "coherence": None if self.scores is None else list(self.scores.coherence),
            "verdict": self.verdict,
            "n_duplicates": self.n_duplicates,
            "constant_columns": list(self.constant_columns),
            "condition": self.condition,
            "n_dropped": self.n_dropped,
            "top": [vars(row).copy() for row in self.top(count)],
        }

    def __str__(self) -> str:
        lower, upper = self.effective_dimension
        noise = ", ".join(f"{value:.4g}" for value in self.noise)
        lines = [
            f"rows                 {len(self.leverage):,} ({self.n_duplicates:,} equal to an earlier one)",
            f"noise (sd)           {noise}",
            f"effective dimension  {lower:.4g} to {upper:.4g}",
        ]
        if self.scores is not None:
            lines.append("coherence            {:.3g} to {:.3g}".format(*self.scores.coherence))
        lines += [
            f"landmarks            {self.verdict}",
            f"landmark kernel      condition {self.condition:.2e}, {self.n_dropped} directions dropped",
            f"constant columns     {', '.join(self.constant_columns) or 'none'}",
            "",
            "The rows that drive the fit",
            f"{'row':>10} {'leverage':>9} {'loo residual':>13} {'studentised':>12} {'cook':>9}  why",
        ]
        for entry in self.top():
            mark = " (a landmark)" if entry.landmark else ""
            lines.append(
                f"{entry.row:>10} {entry.leverage:>9.3f} {entry.loo_residual:>13.4g} {entry.studentised:>12.2f} "
                f"{entry.cook_distance:>9.2e}  {entry.why}{mark}"
            )
        return "\n".join(lines)

    def _row(self, row: int) -> RowDiagnosis:
        target = int(np.abs(self.studentised[row]).argmax())
        leverage_rank = int((self.leverage > self.leverage[row]).sum())
        size = np.abs(self.studentised).max(axis=1)
        residual_rank = int((size > size[row]).sum())
        reasons = [(leverage_rank, "far from other rows"), (residual_rank, "unexpected target")]
        return RowDiagnosis(
            row,
            float(self.leverage[row]),
            float(self.loo_residuals[row, target]),
            float(self.studentised[row, target]),
            float(self.cook_distance[row]),
            bool(self.landmarks[row]),
            min(reasons)[1],
        )


def diagnose(
    fit: LandmarkFit,
    left_out: LeaveOneOut,
    landmark_indices: Indices | None,
    scores: ScoreBracket | None,
    n_duplicates: int,
    constant_columns: tuple[str, ...],
) -> Diagnosis:
    """Return the diagnosis of a fit from its leave-one-out residuals."""
    potential, residuals = left_out.potential, left_out.residuals
    variance = noise_variance(fit)
    spread = np.sqrt(np.where(variance > 0, variance, 1.0) * (1.0 + potential))
    studentised = residuals * np.sqrt(left_out.weights)[:, None] / spread  # zero for a row of weight zero
    leverage = (potential / (1.0 + potential)).max(axis=1)
    cook_distance = (studentised**2 * potential / np.maximum(fit.dimensions, 1.0)).max(axis=1)
    if not all(np.isfinite(values).all() for values in (leverage, studentised, cook_distance)):
        raise NumericalError(
            "the influence of a row exceeds the floating-point range; rescale the targets or choose a larger ridge"
        )
    landmarks = np.isin(np.arange(len(residuals)), [] if landmark_indices is None else landmark_indices)
    return Diagnosis(
        leverage,
        residuals,
        studentised,
        cook_distance,
        _by_either(leverage, np.abs(studentised).max(axis=1)),
        landmarks,
        np.sqrt(variance),
        fit.effective_dimension,
        scores,
        n_duplicates,
        constant_columns,
        _condition(fit.factor),
        fit.factor.cross_kernel.n_landmarks - fit.factor.rank,
    )


def _condition(factor: NystromFactor) -> float:
    """Return the largest over the smallest eigenvalue of the kernel of the landmarks kept."""
    scale = float(np.abs(factor.landmark_kernel).max(initial=0.0))
    if not 0 < scale < np.inf:
        return 1.0
    largest = math.sqrt(largest_eigenvalue(factor.landmark_kernel / scale))
    return max(1.0, largest * largest_eigenvalue(factor.whitener * math.sqrt(scale)))


def _by_either(first: Floats, second: Floats) -> Indices:
    """Return the rows ordered by the better of their ranks in two lists; ties by the sum of both."""
    places = np.stack([np.argsort(np.argsort(-values, kind="stable")) for values in (first, second)])
    return np.lexsort((places.sum(axis=0), places.min(axis=0)))


@dataclass(frozen=True)
class LabelDiagnosis:
    """The influence of one row on a fit of classes."""

    row: int
    label: object
    probability: float  # of its label, from the other rows
    leverage: float
    cook_distance: float
    landmark: bool
    why: str


@dataclass(frozen=True, eq=False)
class ClassDiagnosis:
    """Diagnostics of a fit of classes, of at most 8,192 distinct rows; `top(k)` returns the most influential ones.

    Rows with equal features are one row, which may have shares of several labels.

    Attributes
    ----------
    rows : array of shape (m,)
        Numbers of the rows.
    labels : array of shape (K,)
        The classes.
    shares : array of shape (m, K)
        Shares of the labels among the row and its equals.
    weights : array of shape (m,)
        Weights of the row and its equals, as given, times those of their classes.
    log_probabilities : array of shape (m, K)
        Of every class, from a fit without the row, in one Newton step.
    leverage : array of shape (m,)
        `D t`, D the curvature of the loss times the weight: the share of its own log-odds that a row determines.
    cook_distance : array of shape (m,)
        How far leaving the row out moves the fit: `|w l'|^2 t/(1 - D t)^2/d_eff`.
    order : array of shape (m,)
        Positions by influence: a row extreme in leverage or in the surprise of its label comes first.
    landmarks : array of shape (m,), bool
        Whether a row is a landmark.
    """

    rows: Indices
    labels: NDArray[Any]
    shares: Floats
    weights: Floats
    log_probabilities: Floats
    leverage: Floats
    cook_distance: Floats
    order: Indices
    landmarks: NDArray[np.bool_]

    @property
    def surprise(self) -> Floats:
        """The log loss of every row left out, shape (m,)."""
        return -(self.shares * self.log_probabilities).sum(axis=1)

    def top(self, count: int = 10) -> list[LabelDiagnosis]:
        """Return the most influential rows, the most influential first."""
        return [self._row(int(place)) for place in self.order[: positive_count(count, "count")]]

    def to_record(self, count: int = 10) -> dict[str, Any]:
        """Return the number of rows and the first `count` of them as a dictionary for reports and JSON."""
        return {"n_rows": len(self.rows), "top": [vars(row).copy() for row in self.top(count)]}

    def __str__(self) -> str:
        lines = [
            f"rows             {len(self.rows):,} looked at",
            f"log loss         {np.average(self.surprise, weights=self.weights):.4g}, each row left out",
            "",
            "The rows that drive the fit",
            f"{'row':>10} {'leverage':>9} {'probability':>12} {'cook':>9}  label, why",
        ]
        for entry in self.top():
            mark = " (a landmark)" if entry.landmark else ""
            lines.append(
                f"{entry.row:>10} {entry.leverage:>9.3f} {entry.probability:>12.3g} {entry.cook_distance:>9.2e}  "
                f"{entry.label!r}, {entry.why}{mark}"
            )
        return "\n".join(lines)

    def _row(self, place: int) -> LabelDiagnosis:
        label = int(self.shares[place].argmax())
        far, unexpected = (int((values > values[place]).sum()) for values in (self.leverage, self.surprise))
        return LabelDiagnosis(
            int(self.rows[place]),
            self.labels.tolist()[label],
            float(np.exp(self.log_probabilities[place, label])),
            float(self.leverage[place]),
            float(self.cook_distance[place]),
            bool(self.landmarks[place]),
            "far from other rows" if far <= unexpected else "unexpected label",
        )


def diagnose_classes(
    passes: RowPasses, fit: LandmarkFit, loss: ClassLoss, labels: NDArray[Any], landmark_indices: Indices | None
) -> ClassDiagnosis:
    """Return the diagnosis of a fit of classes on its rows, which are left out in one Newton step each."""
    _check_rows(passes, fit)
    newton, ridge = Newton(passes, fit.factor, loss, fit.fit_intercept), float(fit.scaled_ridge[0])
    newton = newton if loss.scalar else newton.hold()
    sample, system = newton.drawn.sample, CurvatureSystem(fit.moments, fit.fit_intercept, ridge)
    measured = leave_out(newton, fit.solution, system)
    predictor = measured.predictor
    if not loss.scalar:  # left out with the systems by which the ridge was chosen
        mean = systems_of_moments(fit.moments, np.ones(newton.drawn.n_systems), fit.fit_intercept, ridge)
        of_targets = NewtonFit(fit.solution, newton.system(fit.solution, ridge, mean), 0.0, 0, True)
        predictor = left_out_predictor(newton, of_targets)
    rows, dimension = passes.units_left_out()[0][: len(predictor)], max(fit.effective_dimension[0], 1.0)
    shares, logs = loss.indicators(sample.targets()), loss.log_probabilities(predictor)
    unit = passes.weight_unit  # of the weights in the sums; those of a diagnosis are the user's
    leverage, cook_distance = measured.leverage, unit * measured.influence / dimension
    weights = unit * sample.row_counts()
    if not (np.isfinite(leverage).all() and np.isfinite(cook_distance).all()):
        raise NumericalError("the influence of a row exceeds the floating-point range; choose a larger ridge")
    order = _by_either(leverage, -(shares * logs).sum(axis=1))
    landmarks = np.isin(rows, [] if landmark_indices is None else landmark_indices)
    return ClassDiagnosis(rows, labels, shares, weights, logs, leverage, cook_distance, order, landmarks)


@dataclass(frozen=True)
class TargetDiagnosis:
    """The influence of one row on a fit by a loss."""

    row: int
    target: float
    predicted: float  # from the other rows
    loss: float
    leverage: float
    cook_distance: float
    landmark: bool
    why: str


@dataclass(frozen=True, eq=False)
class LossDiagnosis:
    """Diagnostics of a fit by a loss, of at most 8,192 distinct rows; `top(k)` returns the most influential ones.

    Rows with equal features are one row: its target is their mean and its loss their sum.

    Attributes
    ----------
    rows : array of shape (m,)
        Numbers of the rows.
    targets, predicted, loss : arrays of shape (m,)
        The targets, the predictions from a fit without the row in one Newton step, and their losses, with weights. Of
        several quantiles those of the middle level.
    leverage : array of shape (m,)
        `D t`, D the curvature of the loss times the weight: the share of its own prediction that a row determines.
    cook_distance : array of shape (m,)
        How far leaving the row out moves the fit: `|w l'|^2 t/(1 - D t)^2/d_eff`.
    order : array of shape (m,)
        Positions by influence: a row extreme in leverage or in its loss comes first.
    landmarks : array of shape (m,), bool
        Whether a row is a landmark.
    name : str
        What the loss is called.
    """

    rows: Indices
    targets: Floats
    predicted: Floats
    loss: Floats
    leverage: Floats
    cook_distance: Floats
    order: Indices
    landmarks: NDArray[np.bool_]
    name: str

    def top(self, count: int = 10) -> list[TargetDiagnosis]:
        """Return the most influential rows, the most influential first."""
        return [self._row(int(place)) for place in self.order[: positive_count(count, "count")]]

    def to_record(self, count: int = 10) -> dict[str, Any]:
        """Return the number of rows and the first `count` of them as a dictionary for reports and JSON."""
        return {"n_rows": len(self.rows), "top": [vars(row).copy() for row in self.top(count)]}

    def __str__(self) -> str:
        lines = [
            f"rows             {len(self.rows):,} looked at, each left out",
            "",
            "The rows that drive the fit",
            f"{'row':>10} {'leverage':>9} {'target':>10} {'predicted':>10} {self.name:>13} {'cook':>9}  why",
        ]
        for entry in self.top():
            mark = " (a landmark)" if entry.landmark else ""
            lines.append(
                f"{entry.row:>10} {entry.leverage:>9.3f} {entry.target:>10.4g} {entry.predicted:>10.4g} "
                f"{entry.loss:>13.4g} {entry.cook_distance:>9.2e}  {entry.why}{mark}"
            )
        return "\n".join(lines)

    def _row(self, place: int) -> TargetDiagnosis:
        far, unexpected = (int((values > values[place]).sum()) for values in (self.leverage, self.loss))
        return TargetDiagnosis(
            int(self.rows[place]),
            float(self.targets[place]),
            float(self.predicted[place]),
            float(self.loss[place]),
            float(self.leverage[place]),
            float(self.cook_distance[place]),
            bool(self.landmarks[place]),
            "far from other rows" if far <= unexpected else "unexpected target",
        )


def diagnose_loss(passes: RowPasses, fit: LandmarkFit, loss: Loss, landmark_indices: Indices | None) -> LossDiagnosis:
    """Return the diagnosis of a fit by a loss on its rows, which are left out in one Newton step each."""
    _check_rows(passes, fit)
    middle = len(loss.parts()) // 2
    part, own = loss.parts()[middle], fit.of_target(middle)
    newton = Newton(passes, own.factor, part, own.fit_intercept)
    moments = replace(newton, loss=part.leaving_out()).sums(own.solution, float(own.scaled_ridge[0]))
    system = CurvatureSystem(moments, own.fit_intercept, float(own.scaled_ridge[0]))
    left_out, drawn = leave_out(newton, own.solution, system), newton.drawn
    targets, weights, group = drawn.members
    predictor = left_out.predictor if group is None else left_out.predictor[group]
    losses = weights * part.judged(targets, predictor)
    if group is not None:
        losses = np.bincount(group, losses, len(left_out.predictor)).astype(float)
    rows, unit = passes.units_left_out()[0][: len(left_out.predictor)], passes.weight_unit
    cook_distance = unit * left_out.influence / max(fit.effective_dimension[0], 1.0)
    if not (np.isfinite(left_out.leverage).all() and np.isfinite(cook_distance).all()):
        raise NumericalError("the influence of a row exceeds the floating-point range; choose a larger ridge")
    order = _by_either(left_out.leverage, losses)
    landmarks = np.isin(rows, [] if landmark_indices is None else landmark_indices)
    predicted = part.predicted(left_out.predictor)[:, 0]
    observed = drawn.sample.targets()[:, 0]
    return LossDiagnosis(
        rows, observed, predicted, unit * losses, left_out.leverage, cook_distance, order, landmarks, loss.words.loss
    )


def _check_rows(passes: RowPasses, fit: LandmarkFit) -> None:
    """Refuse rows that cannot be those of the fit."""
    n_rows, fitted = int(np.count_nonzero(passes.row_counts())), fit.moments.n_rows
    if n_rows != fitted:
        raise DataError(
            f"these are not the rows the model was fitted on: it was fitted on {fitted} rows, got {n_rows}; "
            "a diagnosis needs all of them, with their targets and weights"
        )
