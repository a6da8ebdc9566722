"""The interface of a loss, the squared loss, and the functions at which losses are expanded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np

from ridgemark.backends import Array, Flags, Floats, backend_of
from ridgemark.errors import DataError, ParameterError

_FLATTEST = 1e-100  # smallest curvature by which a slope is divided; the product of the two is exact


@dataclass(frozen=True)
class RidgeSolution:
    """The function `b(x)'c + intercept`, for every target."""

    coefficients: Annotated[Floats, "(r, t)"]
    intercept: Annotated[Floats, "(t)"]


class LossWords(NamedTuple):
    """What a loss is called where people read it."""

    regression: str  # "regression with the Huber loss"
    predicts: str  # what a prediction is: "the mean count"
    loss: str  # what is averaged over rows: "Huber loss"
    score: str  # what `score` returns: "share of the Huber loss explained"


class Loss(ABC):
    """A convex and smooth loss `l(y, eta)` of targets y and a predictor eta, both of shape (n, t).

    A Newton step for `sum_i w_i l(y_i, b_i'c) + (n lambda/2) |c|^2` is a ridge problem with the weights `w l''` and
    the targets `eta - l'/l''`, so all sums, factors and solvers can be used. Where the second derivative of a row is a
    matrix, `l''` stands for its mean eigenvalue, and `curvature_product` has the matrix itself.

    A loss is one file: a frozen dataclass whose fields are the user's parameters, and None for those that the targets
    decide. `values`, `slopes` and `curvature` are enough to fit it; `conjugate` gives certificates.

    Attributes
    ----------
    name : str
        The name that `loss=` takes and that a model file holds.
    scalar : bool
        Whether the second derivative of every row is a number times the identity, so that the ridge problem is exact.
    steepest : float
        The largest eigenvalue that a second derivative can have; infinite where there is none.
    linear_in_targets : bool
        Whether `l` is a function of eta plus y times another one. Rows with equal features are then one row, with
        their total weight and mean target.
    trims : bool
        Whether targets far from a first fit are drawn nearer before the kernel is tuned by squared errors.
    positive : bool
        Whether predictions are positive.
    weighs_exposure : bool
        Whether rows of more exposure count more.
    required : str
        What targets inside the domain must do, such as "be positive".
    nats : bool
        Whether the loss is the negative logarithm of a probability.
    """

    name: ClassVar[str] = ""
    words: ClassVar[LossWords]
    scalar: ClassVar[bool] = True
    steepest: ClassVar[float] = np.inf
    linear_in_targets: ClassVar[bool] = False
    trims: ClassVar[bool] = False
    positive: ClassVar[bool] = False
    weighs_exposure: ClassVar[bool] = False
    required: ClassVar[str] = "be finite"
    nats: ClassVar[bool] = False

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels of the quantiles that are predicted; none where something else is."""
        return ()

    @abstractmethod
    def values(self, targets: Array, predictor: Array) -> Array:
        """Return `l(y, eta)` of every row, shape (n,), never negative."""

    @abstractmethod
    def slopes(self, targets: Array, predictor: Array) -> Array:
        """Return `l'`, shape (n, t)."""

    @abstractmethod
    def curvature(self, targets: Array, predictor: Array) -> Array:
        """Return `l''` of every row, shape (n,)."""

    def curvature_diagonal(self, targets: Array, predictor: Array) -> Array:
        """Return the second derivative along each target, shape (n, t)."""
        return backend_of(predictor).xp.broadcast_to(self.curvature(targets, predictor)[:, None], predictor.shape)

    def curvature_parts(self, targets: Array, predictor: Array) -> Array:
        """Return the numbers from which `curvature_times` forms products with l'', shape (n, 1) or (n, t)."""
        return self.curvature(targets, predictor)[:, None]

    def curvature_times(self, parts: Array, vectors: Array) -> Array:
        """Return the second derivative of every row times its row of V, shape (n, t), from `curvature_parts`."""
        return parts * vectors

    def curvature_product(self, targets: Array, predictor: Array, vectors: Array) -> Array:
        """Return the second derivative of every row times its row of V, shape (n, t)."""
        return self.curvature_times(self.curvature_parts(targets, predictor), vectors)

    def ridge_problem(self, targets: Array, weights: Array, predictor: Array) -> tuple[Array, Array]:
        """Return targets `eta - l'/l''`, shape (n, t), and weights `w l''`, shape (n,), of the Newton step at eta."""
        curvature = backend_of(predictor).at_least(self.curvature(targets, predictor), _FLATTEST)
        return predictor - self.slopes(targets, predictor) / curvature[:, None], weights * curvature

    def outside(self, targets: Floats) -> Flags:
        """Return which targets, shape (n, 1), lie outside the domain."""
        return np.zeros(targets.shape, dtype=bool)

    def check(self, targets: Floats, weights: Floats) -> None:
        """Refuse targets of positive weight that lie outside the domain."""
        rows = np.flatnonzero(self.outside(targets)[:, 0] & (weights > 0))
        if len(rows):
            others = "" if len(rows) == 1 else f" and in {len(rows) - 1:,} more"
            raise DataError(
                f"the targets of loss={self.name!r} must {self.required}, got {targets[rows[0], 0]:g} in row "
                f'{rows[0]}{others}; correct or drop these rows, or choose another loss, such as "huber"'
            )

    def bound(self, targets: Floats, weights: Floats) -> Self:
        """Return the loss for these targets, shape (n, 1); refuse those outside its domain."""
        self.check(targets, weights)
        return self

    def settled(self, residuals: Floats, weights: Floats) -> Self:
        """Return the loss with what residuals of a first fit decide, such as the size of an outlier."""
        return self

    def parts(self) -> tuple[Loss, ...]:
        """Return losses of one function each, where several functions are fitted beside each other."""
        return (self,)

    def outcomes(self, targets: Floats) -> Floats | None:
        """Return indicators (n, k) of outcomes whose rows limit the dimensions of a fit; None where all rows do."""
        return None

    def leaving_out(self) -> Loss:
        """Return the loss whose curvature says how far the fit moves when a row is left out."""
        return self

    def judged(self, targets: Floats, predictor: Floats) -> Floats:
        """Return the loss of every row by which fits are compared, shape (n,); zero where y is predicted exactly."""
        return self.values(targets, predictor)

    def constant(self, targets: Floats, weights: Floats) -> float:
        """Return the best constant predictor."""
        return balanced(self, targets, weights, np.zeros_like(targets))

    def shift(self, targets: Floats, weights: Floats, predictor: Floats) -> Floats:
        """Return what is added to the constants, shape (t,), from predictors of rows left out; by default zero."""
        return np.zeros(predictor.shape[1])

    def response(self, targets: Array) -> Array:
        """Return targets on the scale of eta, whose squared error tunes the kernel and begins Newton's method."""
        return targets

    def in_order(self, predictor: Floats) -> Floats:
        """Return eta, with functions that must not cross sorted at each row."""
        return predictor

    def predicted(self, predictor: Floats) -> Floats:
        """Return the predictions, shape (n, t), from eta."""
        return self.in_order(predictor)

    def predicted_slope(self, predictor: Floats) -> Floats:
        """Return the derivative of `predicted`."""
        return np.ones_like(predictor)

    def spread(self, predictor: Floats) -> Floats:
        """Return the size of the noise that the loss implies at each row, up to a factor."""
        return np.ones_like(predictor)

    def with_exposure(self, targets: Floats, weights: Floats, exposure: Floats) -> tuple[Floats, Floats]:
        """Return the targets and weights of rates, for rows that were exposed differently."""
        raise ParameterError(f"exposure is for counts and amounts (poisson, gamma); loss={self.name!r} has no rate")

    def conjugate(self, targets: Floats, slopes: Floats) -> Floats:
        """Return `l*(u) = max over eta of u eta - l(eta)`, shape (n,), for slopes u in its domain."""
        raise ParameterError(
            f"the loss {self.name!r} gives no certificate: it has no method conjugate(targets, slopes), which returns "
            "the largest value of slopes * eta - values(targets, eta) over eta"
        )

    def distances(self, gap: float, total_weight: float) -> dict[str, float]:
        """Return bounds on distances of predictions from those of the exact fit, by name, from the duality gap."""
        return {}


_DOUBLINGS, _HALVINGS = 60, 200


def balanced(loss: Loss, targets: Floats, weights: Floats, predictor: Floats) -> float:
    """Return the change b of a constant for which `sum_i w_i l'(y_i, eta_i + b)` is zero, by bisection to rounding.

    The sum never falls with b.
    """

    def slope(b: float) -> float:
        with np.errstate(over="ignore"):
            return float(weights @ loss.slopes(targets, predictor + b)[:, 0])

    far = 1.0 if loss.positive else float(np.abs(targets - predictor).max(initial=0.0))
    low, high = bracket(slope, 1e-3 * far or 1.0)
    for _ in range(_HALVINGS):
        middle = low + (high - low) / 2
        if not low < middle < high:
            break
        if slope(middle) > 0:
            high = middle
        else:
            low = middle
    return min((low, high), key=lambda b: abs(slope(b)))


def bracket(slope: Any, step: float) -> tuple[float, float]:
    """Return two constants between which a sum that never falls has its zero."""
    low = high = 0.0
    begin = slope(0.0)
    for _ in range(_DOUBLINGS):
        if begin > 0:
            high, low = low, low - step
            if slope(low) <= 0:
                break
        else:
            low, high = high, high + step
            if slope(high) >= 0:
                break
        step *= 2
    return low, high


@dataclass(frozen=True)
class SquaredLoss(Loss):
    """`|y - eta|^2 / 2`: `l' = eta - y` and `l'' = 1`, so the Newton step is the solution.

    Its ridge problem always has the targets and weights of the data. So one pass gives the solution for every ridge,
    leave-one-out residuals have a closed form, and certificates measure the distance to exact kernel ridge regression.
    """

    name: ClassVar[str] = "squared"
    words: ClassVar[LossWords] = LossWords(
        "regression with the squared loss", "the mean", "squared error", "share of the variance explained (R^2)"
    )
    steepest: ClassVar[float] = 1.0
    linear_in_targets: ClassVar[bool] = True

    def values(self, targets: Array, predictor: Array) -> Array:
        return ((targets - predictor) ** 2).sum(axis=1) / 2

    def slopes(self, targets: Array, predictor: Array) -> Array:
        return predictor - targets

    def curvature(self, targets: Array, predictor: Array) -> Array:
        return backend_of(predictor).zeros((len(predictor),)) + 1.0


SQUARED = SquaredLoss()
