"""The interface of a loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from ridgemark.backends import Floats


class Loss(ABC):
    """A convex and smooth loss `l(y, eta)` of a target y and a predictor eta.

    A Newton step for `sum_i w_i l(y_i, b_i'c) + (n lambda/2) |c|^2` is a ridge problem with the weights `w l''` and
    the targets `eta - l'/l''`. So a loss provides only these two, and all sums, factors and solvers can be used.
    To add a loss, copy `squared.py`.

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
