"""Which rows drive a fit by a smooth loss: each left out in one Newton step, of classes and of numbers."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Floats, Indices
from ridgemark.diagnostics import by_either
from ridgemark.errors import DataError, NumericalError
from ridgemark.losses import ClassLoss, Loss
from ridgemark.parameters import positive_count
from ridgemark.passes import RowPasses
from ridgemark.path import leave_out, left_out_predictor
from ridgemark.rows.places import as_written
from ridgemark.solvers import CurvatureSystem, LandmarkFit, Newton, NewtonFit, systems_of_moments


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
    order = by_either(leverage, -(shares * logs).sum(axis=1))
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
    loss_name : str
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
    loss_name: str

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
            f"{'row':>10} {'leverage':>9} {'target':>10} {'predicted':>10} {self.loss_name:>13} {'cook':>9}  why",
        ]
        for entry in self.top():
            mark = " (a landmark)" if entry.landmark else ""
            lines.append(
                f"{entry.row:>10} {entry.leverage:>9.3f} {as_written(entry.target):>10} "
                f"{as_written(entry.predicted):>10} {as_written(entry.loss):>13} "
                f"{entry.cook_distance:>9.2e}  {entry.why}{mark}"
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
    order = by_either(left_out.leverage, losses)
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
