"""The audit of a fit of classes: its distance from exact kernel logistic regression, by the duality gap."""

import math
from typing import Any

import numpy as np

from ridgemark.backends import Floats
from ridgemark.certificates.audit import KERNEL_ENTRIES
from ridgemark.certificates.record import Certificate, check_failure_probability, in_words, rounded_up, stated
from ridgemark.certificates.slopes import SlopeRows, squared_distance
from ridgemark.errors import DataError, NumericalError
from ridgemark.linalg import EPS, sum_rounding
from ridgemark.losses import Loss
from ridgemark.passes import RowPasses
from ridgemark.solvers import CurvatureSystem, LandmarkFit

_UNSOLVED = 1e-4  # largest relative decrease of the objective that a step may promise on the rows of the fit
_MOST_STEPS = 50  # that balance the constants


class ClassRows(SlopeRows):
    """The rows of a fit of classes, with its slopes as dual point.

    Exact kernel logistic regression minimises `sum_i w_i l(y_i, f(x_i) + c) + (s/2) |f|^2`. The dual vector
    `alpha = -w l'/s` of any f is feasible; with an intercept alpha must sum to zero, and c is moved until it does.
    With `f_a = sum_i alpha_i k(., x_i)`, f* the exact solution, u the largest second derivative of the loss (1/4 for
    two classes, 1/2 for more) and the duality gap `G = (s/2) |f - f_a|^2`,

        (s/2) (|f - f*|^2 + |f_a - f*|^2) + sum_i w_i (p_i - p*_i)'(eta_i - eta*_i) = G,

    where the last sum is `-s <f_a - f*, f - f*>`, at most the first two terms. So it is at most G/2; as it is at least
    `sum_i w_i |p_i - p*_i|^2/u`, the mean square of `p - p*` is at most `u G/(2 sum w)`.

    Attributes
    ----------
    targets, predictor : arrays of shape (n, t)
        The indicators, and the log-odds with balanced constants.
    moved : float
        Root mean square of the change of the probabilities by the balance.
    shift : array of shape (t,)
        The change of the constants by the balance.
    """

    def _residuals(self, targets: Floats) -> tuple[Floats, Floats]:
        log_odds = self.values + self.fit.intercept
        self.targets, self.shift = targets, np.zeros(targets.shape[1])
        if self.fit.fit_intercept:
            self.shift = self._balance(log_odds)
        self.predictor = log_odds + self.shift
        slopes = self.loss.slopes(targets, self.predictor)
        change = slopes - self.loss.slopes(targets, log_odds)
        self.moved = math.sqrt(float(self.weights @ (change**2).sum(axis=1)) / self.total_weight)
        return -slopes, np.zeros(targets.shape[1])

    def _balance(self, predictor: Floats) -> Floats:
        """Return the change of the constants for which the slopes sum to zero, by Newton's method."""
        shift, least = np.zeros(predictor.shape[1]), math.inf
        best = shift
        for _ in range(_MOST_STEPS):
            at = predictor + shift
            slopes = self.weights @ self.loss.slopes(self.targets, at)
            size = float(np.abs(slopes).max())
            if size < least:
                least, best = size, shift
            else:
                break
            step = np.linalg.lstsq(self._curvature_of_constants(at), slopes, rcond=None)[0]
            shift = shift - np.clip(step, -1.0, 1.0)
        return best

    def _curvature_of_constants(self, predictor: Floats) -> Floats:
        """Return the second derivative of the loss by the constants, shape (t, t)."""
        units = (np.broadcast_to(unit, predictor.shape) for unit in np.eye(predictor.shape[1]))
        return np.stack([self.weights @ self.loss.curvature_product(self.targets, predictor, unit) for unit in units])

    def _slope_rounding(self) -> Floats:
        """Return the rounding errors of `w l'`, shape (n, t)."""
        return self.weights[:, None] * (self.loss.steepest * self.value_errors() + 8 * EPS)

    def dual_rounding(self) -> Floats:
        """Return a bound, per target, on the norm of f_a due to the rounding of alpha: of eta, of p and of the balance.

        `sum_i |d alpha_i| sqrt(k(x_i, x_i))`.
        """
        lengths, of_slopes = self.row_lengths, self._slope_rounding()
        unbalanced = np.abs(self.weights @ self.residual) + of_slopes.sum(axis=0)
        if not self.fit.fit_intercept:
            unbalanced = np.zeros_like(unbalanced)
        return ((lengths * of_slopes).sum(axis=0) + 4.0 * unbalanced * float(lengths.max())) / self.fit.scaled_ridge

    def log_odds_rounding(self) -> float:
        """Bound the distance, at any row, of the log-odds given from those of f with constants that are balanced.

        The constants were moved until rounding left slopes that sum to a vector of length at most d. Over a distance t
        the curvature h along a change of the constants falls by the factor exp(-v t) at most, v the largest difference
        of two entries of a change of length one, so `h (1 - exp(-v t))/v <= d`. Infinite where h is below v d.
        """
        of_slopes = self._slope_rounding()
        rounding = float(np.sqrt((self.value_errors() ** 2).sum(axis=1)).max())
        if not self.fit.fit_intercept:
            return rounding
        unbalanced = np.linalg.norm(np.abs(self.weights @ self.residual) + of_slopes.sum(axis=0))
        curvature, widest = self._curvature_of_constants(self.predictor), 1.0 if self.loss.scalar else math.sqrt(2.0)
        least = float(np.linalg.eigvalsh(curvature)[0 if self.loss.scalar else 1])  # equal constants change nothing
        least -= sum_rounding(len(self.weights)) * float(np.trace(curvature))
        share = widest * float(unbalanced) / least if least > 0 else math.inf
        left = -math.log1p(-share) / widest if share < 1 else math.inf
        return rounding + float(np.linalg.norm(self.shift)) + left

    def _check_count(self) -> None:
        n_rows, fitted = int(np.count_nonzero(self.weights)), self.fit.moments.n_rows
        if n_rows != fitted:
            raise DataError(
                f"these are not the rows the model was fitted on: it was fitted on {fitted} rows, got {n_rows}; a "
                "certificate holds only for the training rows, all of them and with their weights"
            )

    def _check_solved(self, targets: Floats) -> None:
        """Check that a Newton step would hardly lower the objective of these rows, for a gradient beyond rounding."""
        fit, ridge = self.fit, float(self.fit.scaled_ridge[0])
        unsolved = fit.factor.whitener.T @ self.unsolved
        allowed = np.outer(fit.factor.feature_sizes, self.unsolved_rounding)
        gradient = ridge * (unsolved - np.clip(unsolved, -allowed, allowed))
        gradient = np.vstack([gradient, np.zeros(gradient.shape[1])])
        step = CurvatureSystem(fit.moments, fit.fit_intercept, ridge).solve(gradient)
        if not float((step * gradient).sum()) <= _UNSOLVED * self.objective:
            raise DataError(
                "these are not the rows the model was fitted on, or not with these labels and weights: its "
                "coefficients do not solve their problem; a certificate holds only for the training rows"
            )


def audit_classes(
    passes: RowPasses,
    fit: LandmarkFit,
    loss: Loss,
    *,
    rng: np.random.Generator,
    kernel_entries: int = KERNEL_ENTRIES,
    failure_probability: float = 0.05,
) -> Certificate:
    """Bound the distance of the probabilities to exact kernel logistic regression with the same kernel and ridge.

    By the duality gap G of `ClassRows`: deterministic, by one product with K, where half of K has at most
    `kernel_entries` entries; otherwise from a sample of rows, with probability `1 - failure_probability`. There
    `|f - f_a|^2 = a'E a + |B'a - c|^2 <= |a| |E a| + |B'a - c|^2` with E = K - L. The rounding errors of all sums and
    kernel values are added.

    Raises
    ------
    DataError
        When these are not the rows the model was fitted on.
    """
    check_failure_probability(failure_probability)
    rows, ridge = ClassRows(passes, fit, loss), float(fit.scaled_ridge[0])
    total = rows.total_weight
    squares, inputs = squared_distance(rows, kernel_entries, failure_probability, rng)
    norm = float(np.linalg.norm(np.sqrt(squares) + rows.dual_rounding()))
    gap = ridge / 2 * norm**2
    rounding = loss.steepest * float(np.linalg.norm(rows.value_rounding))
    bound = math.sqrt(loss.steepest * gap / (2.0 * total)) + rows.moved + rounding
    if not math.isfinite(bound):
        raise NumericalError("the distance to exact exceeds the floating-point range; choose a larger ridge")
    return _issue(rows, bound, inputs | _log_odds(rows, gap) | {"rounding": rounding})


def _log_odds(rows: ClassRows, gap: float) -> dict[str, Any]:
    """Return bounds on the log-odds: at most m at any row, and their mean square weighted by the curvature.

    `|f - f*| <= N = sqrt(2 G/s)`, so log-odds at x are within `N sqrt(k(x, x))`, but for the constants. With an
    intercept both fits give any set of classes the same total probability. So the changes of the K constants, sorted,
    have no gap above `sqrt(2) N L`, `L = max_i sqrt(k(x_i, x_i))`: else the classes beyond it would be more probable at
    all rows. The length of such changes, which sum to zero, is at most `N L sqrt(K (K^2 - 1)/6)`; of two classes N L.
    For two classes `sum_i w_i p_i (1 - p_i) (eta_i - eta*_i)^2 <= (G/2) m/(1 - exp(-m))`. A change of the log-odds by
    r, as by rounding, changes `p (1 - p)` by the factor exp(r) at most.
    """
    norm, n_classes = math.sqrt(2.0 * gap / float(rows.fit.scaled_ridge[0])), max(2, rows.targets.shape[1])
    constants = math.sqrt(n_classes * (n_classes**2 - 1) / 6) if rows.fit.fit_intercept else 0.0
    most, rounding = norm * rows.longest * (1.0 + constants), rows.log_odds_rounding()
    bounds = {"gap": gap, "log_odds_norm": norm, "log_odds": most + rounding}
    if rows.loss.scalar:
        factor = most / -math.expm1(-most) if most > 0 else 1.0
        weighted = math.sqrt(gap / 2.0 * factor / rows.total_weight)
        bounds["curvature_weighted"] = weighted * math.exp(rounding / 2) + rounding / 2 if rounding < 1 else math.inf
    return bounds


def _issue(rows: ClassRows, bound: float, inputs: dict[str, Any]) -> Certificate:
    """Return the certificate with its claim put into words."""
    rho = inputs.get("failure_probability")
    said = f"fitted probabilities are within {rounded_up(bound)} (RMS) of exact kernel logistic regression"
    implied = math.sqrt(rows.loss.steepest * rows.objective / rows.total_weight)
    own = np.sqrt(rows.weights @ rows.targets**2 / rows.total_weight)
    # Theorem 3 is about squared errors.
    facts = {"target_rms": own.tolist(), "unmeasured": [implied] * len(own), "theorem_3": None, **inputs}
    without = np.array([implied]), "the loss"
    claim = in_words(f"{said} on these rows", rho)
    return stated("audit", rows.fit, np.array([bound]), claim, without, facts, rows.cost)
