"""The audit of a fit by a loss: the share of the achievable gain that it loses at most, by the duality gap."""

import math
from typing import Any

import numpy as np

from ridgemark.backends import Floats
from ridgemark.certificates.audit import KERNEL_ENTRIES
from ridgemark.certificates.classes import audit_classes
from ridgemark.certificates.record import Certificate, check_failure_probability, in_words, rounded_up, stated
from ridgemark.certificates.slopes import SlopeRows, squared_distance
from ridgemark.errors import DataError, NumericalError
from ridgemark.linalg import EPS, sum_rounding
from ridgemark.losses import ClassLoss, Loss, balanced
from ridgemark.passes import RowPasses
from ridgemark.solvers import LandmarkFit

_CANCELLED = 1e3 * EPS  # error of the predictor, as a share of the size of the targets
_SAME = 1e-2  # largest difference of the losses of the same rows, as a share of the objective


class LossRows(SlopeRows):
    """The rows of a fit of one function, with its slopes as dual point.

    The exact fit minimises `P(f) = sum_i w_i l(y_i, f(x_i) + c) + (s/2) |f|^2`. Any slopes u in the domain of the
    conjugate `l*` bound its minimum P* from below; with an intercept, `sum_i w_i u_i` must be zero. With
    `alpha = -w u/s` and `f_a = sum_i alpha_i k(., x_i)`,

        P(f) - P* <= G = sum_i w_i (l + l*(u) - u eta) + (s/2) |f - f_a|^2.

    Here u are the slopes `l'` at the fitted f. First the constant c is moved until `sum_i w_i u_i` is zero. Rounding
    leaves a small sum: it is made zero by scaling all slopes of one sign, those with the larger sum. The first sum of
    G is then zero up to rounding.

    Attributes
    ----------
    targets, predictor : arrays of shape (n, 1)
        The targets, and eta with the balanced constant.
    shift : float
        The change of the constant by the balance.
    """

    def _residuals(self, targets: Floats) -> tuple[Floats, Floats]:
        predictor, self.targets, self.shift = self.values + self.fit.intercept, targets, 0.0
        if self.fit.fit_intercept:
            self.shift = balanced(self.loss, targets, self.weights, predictor)
        self.predictor = predictor + self.shift
        slopes = self.loss.slopes(targets, self.predictor)
        if self.fit.fit_intercept:
            slopes = self._balanced_slopes(slopes)
        return -slopes, np.zeros(1)

    def _balanced_slopes(self, slopes: Floats) -> Floats:
        """Return slopes that sum to zero: those of the larger sign are multiplied by the ratio of the two sums."""
        rising, falling = (float(self.weights @ np.maximum(sign * slopes[:, 0], 0.0)) for sign in (1.0, -1.0))
        larger, smaller = max(rising, falling), min(rising, falling)
        scaled = slopes > 0 if rising > falling else slopes < 0
        return np.where(scaled, slopes * (smaller / larger), slopes) if larger > 0 else slopes

    @property
    def null_objective(self) -> float:
        """The sum of the losses of the best constant; without an intercept, of zero."""
        constant = np.zeros_like(self.targets)
        if self.fit.fit_intercept:
            constant += balanced(self.loss, self.targets, self.weights, constant)
        return float(self.weights @ self.loss.values(self.targets, constant))

    def conjugate_excess(self) -> float:
        """Return `sum_i w_i (l + l*(u) - u eta)`, which is never negative, with its rounding error added.

        Rounding changes eta by e at most, and a term by the curvature times `e^2`. Where the slopes do not sum to zero
        exactly, their sum times the largest |eta| is added.
        """
        slopes, eta = -self.residual, self.predictor
        terms = self.loss.values(self.targets, eta), self.loss.conjugate(self.targets, slopes), -(slopes * eta)[:, 0]
        total = float(self.weights @ sum(terms))
        sizes = float(self.weights @ sum(np.abs(term) for term in terms))
        errors = self.value_errors()[:, 0]
        curved = float(self.weights @ (self._steepest_nearby(errors) * errors**2))
        rest = abs(float(self.weights @ slopes[:, 0])) * float(np.abs(eta).max()) * self.fit.fit_intercept
        return max(total, 0.0) + (sum_rounding(len(eta)) + 16 * EPS) * sizes + curved + rest

    def unbalanced_norm(self) -> float:
        """Return how far slopes that sum to zero exactly would move f_a at most."""
        if not self.fit.fit_intercept:
            return 0.0
        summed = abs(float(self.weights @ self.residual[:, 0]))
        summed += sum_rounding(len(self.weights)) * float(self.weights @ np.abs(self.residual[:, 0]))
        return summed / float(self.fit.scaled_ridge[0]) * self.longest

    def predictor_rounding(self) -> float:
        """Return the largest rounding error of eta at the rows, with the change of the constant."""
        return float(self.value_errors().max()) + abs(self.shift)

    def _steepest_nearby(self, errors: Floats) -> Floats:
        """Return the largest curvature within the rounding errors of eta; with a log link it is at one of the ends."""
        if self.loss.steepest < np.inf:
            return np.full(len(errors), self.loss.steepest)
        moved = (self.predictor + sign * errors[:, None] for sign in (-1.0, 1.0))
        return np.maximum(*(self.loss.curvature(self.targets, eta) for eta in moved))

    def _check_solved(self, targets: Floats) -> None:
        """Check that the loss on these rows is that of the fit. G counts what the fit has not solved."""
        fitted, predictor = float(self.fit.training_error[0]) * self.total_weight, self.values + self.fit.intercept
        losses, slopes = self.loss.values(targets, predictor), self.loss.slopes(targets, predictor)
        total = float(self.weights @ losses)
        cancelled = float(self.weights @ np.abs(slopes * (np.abs(targets) + np.abs(predictor)))[:, 0])
        if not abs(total - fitted) <= _SAME * self.objective + _CANCELLED * cancelled:
            raise DataError(
                "these are not the rows the model was fitted on, or not with these targets and weights: their loss is "
                f"{total / self.total_weight:.6g}, that of the fit {fitted / self.total_weight:.6g}; a certificate "
                "holds only for the training rows"
            )


def audit_loss(
    passes: RowPasses,
    fit: LandmarkFit,
    loss: Loss,
    *,
    rng: np.random.Generator,
    kernel_entries: int = KERNEL_ENTRIES,
    failure_probability: float = 0.05,
) -> Certificate:
    """Bound how much of the achievable gain a fit loses to exact kernel regression by the same loss, kernel and ridge.

    With P the objective of the fit, P* that of the exact solution and P0 that of the best constant (of zero without an
    intercept), the gain that can be achieved is `P0 - P*`, and the share of it that is lost

        (P - P*)/(P0 - P*) <= G/(P0 - P + G),

    G the duality gap of `LossRows`: deterministic, or from a sample of rows with probability
    `1 - failure_probability`, as for classes. One bound for each function.

    Raises
    ------
    DataError
        When these are not the rows the model was fitted on.
    """
    check_failure_probability(failure_probability)
    if isinstance(loss, ClassLoss):
        return audit_classes(
            passes, fit, loss, rng=rng, kernel_entries=kernel_entries, failure_probability=failure_probability
        )
    parts = loss.parts()
    share_of_failure = failure_probability / len(parts)
    audited = [
        _audit_part(LossRows(passes, fit.of_target(k), part), kernel_entries, share_of_failure, rng)
        for k, part in enumerate(parts)
    ]
    bounds, facts, costs = zip(*audited, strict=True)
    inputs: dict[str, Any] = {name: [fact[name] for fact in facts] for name in facts[0]}
    if "failure_probability" in inputs:
        inputs |= {"failure_probability": failure_probability, "sampled_rows": inputs["sampled_rows"][0]}
    cost = {name: sum(spent[name] for spent in costs) for name in costs[0]}
    said = ", ".join(f"{rounded_up(100 * bound)}%" for bound in bounds)
    claim = in_words(
        f"the fit loses at most {said}{'' if len(bounds) == 1 else ' (one for each function)'} of what exact kernel "
        f"regression by this loss would gain over the best constant on these rows",
        inputs.get("failure_probability"),
    )
    nothing = np.ones(len(bounds)), "that no share exceeds 1"
    return stated("audit", fit, np.array(bounds), claim, nothing, {"theorem_3": None, **inputs}, cost)


def _audit_part(
    rows: LossRows, kernel_entries: int, failure_probability: float, rng: np.random.Generator
) -> tuple[float, dict[str, Any], dict[str, float]]:
    """Return the share of the gain that one function loses at most, the numbers behind it, and their cost."""
    ridge, total = float(rows.fit.scaled_ridge[0]), rows.total_weight
    squares, inputs = squared_distance(rows, kernel_entries, failure_probability, rng)
    norm = math.sqrt(float(squares[0])) + rows.unbalanced_norm()
    gap = ridge / 2 * norm**2 + rows.conjugate_excess()
    if not math.isfinite(gap):
        raise NumericalError("the distance to exact exceeds the floating-point range; choose a larger ridge")
    objective, null = rows.objective, rows.null_objective
    achieved = null - objective
    share = gap / (achieved + gap) if achieved > 0 else 1.0
    function_norm = math.sqrt(2.0 * gap / ridge)
    facts = {
        "gap": gap,
        "objective": objective,
        "null_objective": null,
        "function_norm": function_norm,
        "predictor": function_norm * rows.longest * (1 + rows.fit.fit_intercept) + rows.predictor_rounding(),
        "target_rms": float(np.sqrt(rows.weights @ rows.targets[:, 0] ** 2 / total)),
        **rows.loss.distances(gap, total),
        **inputs,
    }
    return min(share, 1.0), facts, rows.cost
