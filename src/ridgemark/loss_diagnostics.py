"""Which rows drive a fit by a smooth loss: each left out in one Newton step, of classes and of numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Floats, Indices
from ridgemark.diagnostics import Influences, by_either
from ridgemark.errors import DataError, NumericalError
from ridgemark.losses import ClassLoss, Loss
from ridgemark.passes import RowPasses
from ridgemark.path import leave_out, left_out_predictor
from ridgemark.path.loss_search import LeftOut
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
class ClassDiagnosis(Influences[LabelDiagnosis]):
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

    _reasons = "label, why"

    def _reason(self, entry: LabelDiagnosis) -> str:
        return f"{entry.label!r}, {entry.why}"

    def _lines(self) -> list[str]:
        return [
            f"rows             {len(self.rows):,} looked at",
            f"log loss         {np.average(self.surprise, weights=self.weights):.4g}, each row left out",
        ]

    def _columns(self) -> Sequence[tuple[str, str, int, str]]:
        return (("probability", "probability", 12, ".3g"),)

    def _row(self, place: int) -> LabelDiagnosis:
        label = int(self.shares[place].argmax())
        return LabelDiagnosis(
            int(self.rows[place]),
            self.labels.tolist()[label],
            float(np.exp(self.log_probabilities[place, label])),
            float(self.leverage[place]),
            float(self.cook_distance[place]),
            bool(self.landmarks[place]),
            self._why(place, self.surprise, "unexpected label"),
        )


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
class LossDiagnosis(Influences[TargetDiagnosis]):
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

    def _lines(self) -> list[str]:
        return [f"rows             {len(self.rows):,} looked at, each left out"]

    def _columns(self) -> Sequence[tuple[str, str, int, str]]:
        compared = ("target", "target", 10, ""), ("predicted", "predicted", 10, "")
        return *compared, (self.loss_name, "loss", 13, "")

    def _row(self, place: int) -> TargetDiagnosis:
        return TargetDiagnosis(
            int(self.rows[place]),
            float(self.targets[place]),
            float(self.predicted[place]),
            float(self.loss[place]),
            float(self.leverage[place]),
            float(self.cook_distance[place]),
            bool(self.landmarks[place]),
            self._why(place, self.loss),
        )


def diagnose_loss(
    passes: RowPasses,
    fit: LandmarkFit,
    loss: Loss,
    landmark_indices: Indices | None,
    labels: NDArray[Any] | None = None,
) -> ClassDiagnosis | LossDiagnosis:
    """Return the diagnosis of a fit by a loss on its rows, which are left out in one Newton step each."""
    n_rows, fitted = int(np.count_nonzero(passes.row_counts())), fit.moments.n_rows
    if n_rows != fitted:
        raise DataError(
            f"these are not the rows the model was fitted on: it was fitted on {fitted} rows, got {n_rows}; "
            "a diagnosis needs all of them, with their targets and weights"
        )
    if isinstance(loss, ClassLoss):
        assert labels is not None
        return _diagnose_classes(passes, fit, loss, landmark_indices, labels)
    return _diagnose_numbers(passes, fit, loss, landmark_indices)


def _diagnose_classes(
    passes: RowPasses, fit: LandmarkFit, loss: ClassLoss, landmark_indices: Indices | None, labels: NDArray[Any]
) -> ClassDiagnosis:
    newton, ridge = Newton(passes, fit.factor, loss, fit.fit_intercept), float(fit.scaled_ridge[0])
    newton = newton if loss.scalar else newton.hold()
    sample, system = newton.drawn.sample, CurvatureSystem(fit.moments, fit.fit_intercept, ridge)
    left_out = leave_out(newton, fit.solution, system)
    predictor = left_out.predictor
    if not loss.scalar:  # left out with the systems by which the ridge was chosen
        mean = systems_of_moments(fit.moments, np.ones(newton.drawn.n_systems), fit.fit_intercept, ridge)
        of_targets = NewtonFit(fit.solution, newton.system(fit.solution, ridge, mean), 0.0, 0, True)
        predictor = left_out_predictor(newton, of_targets)
    shares, logs = loss.indicators(sample.targets()), loss.log_probabilities(predictor)
    weights = passes.weight_unit * sample.row_counts()  # those of a diagnosis are the user's
    rows, influence = _influence(passes, fit, left_out, -(shares * logs).sum(axis=1), landmark_indices)
    return ClassDiagnosis(rows, labels, shares, weights, logs, *influence)


def _diagnose_numbers(
    passes: RowPasses, fit: LandmarkFit, loss: Loss, landmark_indices: Indices | None
) -> LossDiagnosis:
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
    predicted, observed = part.predicted(left_out.predictor)[:, 0], drawn.sample.targets()[:, 0]
    rows, influence = _influence(passes, fit, left_out, losses, landmark_indices)
    return LossDiagnosis(rows, observed, predicted, passes.weight_unit * losses, *influence, loss.words.loss)


def _influence(
    passes: RowPasses, fit: LandmarkFit, left_out: LeftOut, surprise: Floats, landmark_indices: Indices | None
) -> tuple[Indices, tuple[Floats, Floats, Indices, NDArray[np.bool_]]]:
    """Return the numbers of the rows; and their leverage, Cook's distance and order, and which are landmarks."""
    rows = passes.units_left_out()[0][: len(left_out.predictor)]
    leverage, dimension = left_out.leverage, max(fit.effective_dimension[0], 1.0)
    cook_distance = passes.weight_unit * left_out.influence / dimension
    if not (np.isfinite(leverage).all() and np.isfinite(cook_distance).all()):
        raise NumericalError("the influence of a row exceeds the floating-point range; choose a larger ridge")
    landmarks = np.isin(rows, [] if landmark_indices is None else landmark_indices)
    return rows, (leverage, cook_distance, by_either(leverage, surprise), landmarks)
