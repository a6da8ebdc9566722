"""The interface of a loss, the squared loss, and the functions at which losses are expanded."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar

from ridgemark.backends import Array, Floats, backend_of

_FLATTEST = 1e-100  # smallest curvature by which a slope is divided; the product of the two is exact


@dataclass(frozen=True)
class RidgeSolution:
    """The function `b(x)'c + intercept`, for every target."""

    coefficients: Annotated[Floats, "(r, t)"]
    intercept: Annotated[Floats, "(t)"]


class Loss(ABC):
    """A convex and smooth loss `l(y, eta)` of targets y and a predictor eta, both of shape (n, t).

    A Newton step for `sum_i w_i l(y_i, b_i'c) + (n lambda/2) |c|^2` is a ridge problem with the weights `w l''` and
    the targets `eta - l'/l''`, so all sums, factors and solvers can be used. Where the second derivative of a row is a
    matrix, `l''` stands for its mean eigenvalue, and `curvature_product` has the matrix itself.
    To add a loss, copy `Logistic`.

    Attributes
    ----------
    scalar : bool
        Whether the second derivative of every row is a number times the identity, so that the ridge problem is exact.
    steepest : float
        The largest eigenvalue that a second derivative can have.
    """

    scalar: ClassVar[bool] = True
    steepest: ClassVar[float] = 1.0

    @abstractmethod
    def values(self, targets: Array, predictor: Array) -> Array:
        """Return `l(y, eta)` of every row, shape (n,)."""

    @abstractmethod
    def slopes(self, targets: Array, predictor: Array) -> Array:
        """Return `l'`, shape (n, t)."""

    @abstractmethod
    def curvature(self, predictor: Array) -> Array:
        """Return `l''` of every row, shape (n,)."""

    def curvature_diagonal(self, predictor: Array) -> Array:
        """Return the second derivative along each target, shape (n, t)."""
        return backend_of(predictor).xp.broadcast_to(self.curvature(predictor)[:, None], predictor.shape)

    def curvature_parts(self, predictor: Array) -> Array:
        """Return the numbers from which `curvature_times` forms products with l'', shape (n, 1) or (n, t)."""
        return self.curvature(predictor)[:, None]

    def curvature_times(self, parts: Array, vectors: Array) -> Array:
        """Return the second derivative of every row times its row of V, shape (n, t), from `curvature_parts`."""
        return parts * vectors

    def curvature_product(self, predictor: Array, vectors: Array) -> Array:
        """Return the second derivative of every row times its row of V, shape (n, t)."""
        return self.curvature_times(self.curvature_parts(predictor), vectors)

    def ridge_problem(self, targets: Array, weights: Array, predictor: Array) -> tuple[Array, Array]:
        """Return targets `eta - l'/l''`, shape (n, t), and weights `w l''`, shape (n,), of the Newton step at eta."""
        curvature = backend_of(predictor).at_least(self.curvature(predictor), _FLATTEST)
        return predictor - self.slopes(targets, predictor) / curvature[:, None], weights * curvature


class SquaredLoss(Loss):
    """`|y - eta|^2 / 2`: `l' = eta - y` and `l'' = 1`, so the Newton step is the solution.

    Its ridge problem always has the targets and weights of the data. So one pass gives the solution for every ridge,
    leave-one-out residuals have a closed form, and certificates measure the distance to exact kernel ridge regression.
    """

    def values(self, targets: Array, predictor: Array) -> Array:
        return ((targets - predictor) ** 2).sum(axis=1) / 2

    def slopes(self, targets: Array, predictor: Array) -> Array:
        return predictor - targets

    def curvature(self, predictor: Array) -> Array:
        return backend_of(predictor).zeros((len(predictor),)) + 1.0


SQUARED = SquaredLoss()
