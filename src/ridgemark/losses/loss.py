"""The interface of a loss, the squared loss, and the functions at which losses are expanded."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from ridgemark.backends import Floats


@dataclass(frozen=True)
class RidgeSolution:
    """The function `b(x)'c + intercept`, for every target."""

    coefficients: Floats  # (rank, targets)
    intercept: Floats  # (targets,)


class Loss(ABC):
    """A convex and smooth loss `l(y, eta)` of a target y and a predictor eta.

    A Newton step for `sum_i w_i l(y_i, b_i'c) + (n lambda/2) |c|^2` is a ridge problem with the weights `w l''` and
    the targets `eta - l'/l''`. So a loss provides only these two, and all sums, factors and solvers can be used.
    To add a loss, copy `SquaredLoss`.

    Attributes
    ----------
    quadratic : bool
        Whether weights and targets of the ridge problem are the same for every eta. Then one pass gives the solution
        for every ridge, leave-one-out residuals have a closed form, and certificates measure the distance to exact
        kernel ridge regression.
    """

    quadratic: ClassVar[bool] = False

    @abstractmethod
    def ridge_problem(self, targets: Floats, weights: Floats, predictor: Floats) -> tuple[Floats, Floats]:
        """Return targets `eta - l'/l''`, shape (n, t), and weights `w l''`, shape (n,), of the Newton step at eta."""


class SquaredLoss(Loss):
    """`(y - eta)^2 / 2`: `l' = eta - y` and `l'' = 1`, so the Newton step is the solution.

    Its ridge problem always has the targets and weights of the data: closed forms for every ridge at once.
    """

    quadratic: ClassVar[bool] = True

    def ridge_problem(self, targets: Floats, weights: Floats, predictor: Floats) -> tuple[Floats, Floats]:
        return targets, weights


SQUARED = SquaredLoss()
