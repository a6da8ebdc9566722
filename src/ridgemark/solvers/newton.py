"""Newton's method for a smooth loss on the features: damped, one pass a step, warm from one ridge to the next."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ridgemark.backends import Floats
from ridgemark.linalg import inverse_triangle_, raised_cholesky, solve_triangle
from ridgemark.losses import Loss, Moments, RidgeSolution, loss_sums
from ridgemark.losses.slopes import CurvatureProducts, SlopeSums
from ridgemark.operators import NystromFactor
from ridgemark.passes import RowPasses
from ridgemark.solvers.conjugate_gradient import conjugate_gradient
from ridgemark.solvers.landmark_fit import CentredMoments

_MOST_STEPS = 100
_MOST_HALVINGS = 30
_SUFFICIENT = 1e-4  # share of the predicted decrease that a step must reach
_ROUNDED = 1e-13  # relative change of the objective that is rounding
_LOOSE, _TIGHT = 0.1, 1e-3  # tolerance of conjugate gradients, relative to the gradient: of the first step and the last
_MOST_PRODUCTS = 100  # of one step
_MANY_PRODUCTS = 15  # after which the curvature is summed again


class CurvatureSystem:
    """`[B 1]'D[B 1] + s diag(1, .., 1, 0)` as `(F F')^-1`, D the curvature; the last row is that of the intercept.

    With m the mean of B by the weights D, `U'U = (B - 1m')'D(B - 1m') + s I` and v the columns of the coefficients and
    the intercept, `F v = [u, v_0/sqrt(sum D) - m'u]` with `u = U^-1 v`. For a loss of scalar curvature this is the
    second derivative of the objective; for others it approximates that of every target.
    """

    def __init__(self, moments: Moments, fit_intercept: bool, scaled_ridge: float) -> None:
        self.moments, self.fit_intercept, self.scaled_ridge = moments, fit_intercept, scaled_ridge
        centred = CentredMoments(moments, fit_intercept)
        self.feature_mean = centred.feature_mean
        self.triangle = raised_cholesky(lambda: np.array(centred.gram, order="F"), scaled_ridge)
        self.share_of_constant = 1.0 / moments.total_weight if fit_intercept else 0.0

    def half(self, vectors: Floats) -> Floats:
        """Return `F V`, V of shape (rank + 1, columns)."""
        u = solve_triangle(self.triangle, vectors[:-1])
        constant = np.sqrt(self.share_of_constant) * vectors[-1] - self.feature_mean @ u
        return np.vstack([u, constant * self.fit_intercept])

    def half_transposed(self, vectors: Floats) -> Floats:
        """Return `F'V`."""
        inner = vectors[:-1] - np.outer(self.feature_mean, vectors[-1])
        u = solve_triangle(self.triangle, inner, transposed=True)
        return np.vstack([u, np.sqrt(self.share_of_constant) * vectors[-1]])

    def solve(self, vectors: Floats) -> Floats:
        """Return `F F'V`, the solution of the system."""
        return self.half(self.half_transposed(vectors))

    @property
    def effective_dimension(self) -> float:
        """`tr D^1/2 L D^1/2 (D^1/2 L D^1/2 + s)^-1 = rank - s |U^-1|^2`, without the intercept."""
        inverse = inverse_triangle_(self.triangle.copy(order="F"))
        return max(0.0, len(inverse) - self.scaled_ridge * float(np.linalg.norm(inverse)) ** 2)

    def leverage(self, features: Floats) -> tuple[Floats, Floats]:
        """Return `1/sum D + bc'(Bc'DBc + s)^-1 bc` and `|bc|^2` of every row, c for centred by the weights D."""
        centred = features - self.feature_mean
        rotated = solve_triangle(self.triangle, centred.T, transposed=True)
        lengths = np.einsum("ij,ij->i", centred, centred)
        return self.share_of_constant + np.einsum("ij,ij->j", rotated, rotated), lengths


@dataclass(frozen=True, eq=False)
class NewtonFit:
    """The minimum of `sum_i w_i l(y_i, b_i'c + constant) + (s/2) |c|^2`, s the scaled ridge."""

    solution: RidgeSolution
    system: CurvatureSystem  # of a point near the solution
    loss: float  # the sum of the losses, at the last point summed
    n_steps: int
    converged: bool

    def towards(self, scaled_ridge: float) -> RidgeSolution:
        """Return the solution at another ridge r to first order, `x - (r - s) H_r^-1 (c, 0)` with H_r the system at r.

        As `H x + gradient of the rest` is zero at x, this is the Newton step there for the curvature of the system.
        """
        system = CurvatureSystem(self.system.moments, self.system.fit_intercept, scaled_ridge)
        c = self.solution.coefficients
        change = (scaled_ridge - self.system.scaled_ridge) * np.vstack([c, np.zeros(c.shape[1])])
        return _as_solution(_as_vectors(self.solution) - system.solve(change))


@dataclass(frozen=True, eq=False)
class _Point:
    """A point of the descent: objective, gradient, sum of the losses, and the system where curvature was summed."""

    at: Floats  # (rank + 1, t)
    objective: float
    gradient: Floats
    loss: float
    system: CurvatureSystem | None


@dataclass(frozen=True, eq=False)
class Newton:
    """The objective of a loss for given landmarks."""

    passes: RowPasses
    factor: NystromFactor
    loss: Loss
    fit_intercept: bool

    def solve(
        self, scaled_ridge: float, start: RidgeSolution, tol: float = 1e-6, near: Moments | None = None
    ) -> NewtonFit:
        """Minimise from `start` until a step changes no coefficient by more than `tol` of the largest.

        The error that such a step leaves is of second order. A step is halved until the objective falls by a ten
        thousandth of what its slope promises. With a scalar curvature a step is `-H^-1 g`, and every step takes one
        pass. Otherwise conjugate gradients solve `F'H F x = -F'g`, one pass for each product, with the system F of the
        first point, or of sums `near` it; it is summed anew after a step that took many products, and at the end.
        """
        point = self._point(_as_vectors(start), scaled_ridge, self.loss.scalar or near is None)
        system, first, steps = point.system, 0.0, 0
        if system is None:
            assert near is not None
            system = CurvatureSystem(near, self.fit_intercept, scaled_ridge)
        while steps < _MOST_STEPS:
            first = max(first, float(np.linalg.norm(system.half_transposed(point.gradient))))
            step, many = self._step(point, system, first)
            steps += 1
            slope = -float((step * point.gradient).sum())
            size = float(np.abs(point.at + step).max(initial=0.0))
            if slope <= _ROUNDED * abs(point.objective) or float(np.abs(step).max(initial=0.0)) <= tol * size:
                if point.system is None:
                    point = self._point(point.at + step, scaled_ridge, with_curvature=True)
                    system, step = point.system or system, 0.0 * step
                return NewtonFit(_as_solution(point.at + step), system, point.loss, steps, converged=True)
            lower = self._lower(point, step, slope, scaled_ridge, many or self.loss.scalar)
            if lower is None:
                break
            point, system = lower, lower.system or system
        return NewtonFit(_as_solution(point.at), system, point.loss, steps, converged=False)

    def _lower(
        self, point: _Point, step: Floats, slope: float, scaled_ridge: float, with_curvature: bool
    ) -> _Point | None:
        """Return the first point on the halved steps whose objective is sufficiently lower; None where none is."""
        for halving in range(_MOST_HALVINGS):
            share = 0.5**halving
            trial = self._point(point.at + share * step, scaled_ridge, with_curvature)
            allowed = _SUFFICIENT * share * slope - _ROUNDED * abs(point.objective)
            if trial.objective <= point.objective - allowed:
                return trial
        return None

    def _point(self, at: Floats, scaled_ridge: float, with_curvature: bool) -> _Point:
        """Return a point of the descent, in one pass."""
        system, c = None, at[:-1]
        if with_curvature:
            moments = loss_sums(self.passes, self.factor, None, scaled_ridge, self.loss, _as_solution(at))
            system, loss = CurvatureSystem(moments, self.fit_intercept, scaled_ridge), moments.loss
            # The targets of the ridge problem are eta - l'/l'', so the sums of l' are differences.
            slopes = moments.gram @ c + np.outer(moments.feature_sum, at[-1]) - moments.cross
            constant = moments.feature_sum @ c + moments.total_weight * at[-1] - moments.target_sum
        else:
            sums = self.passes.reduce(SlopeSums(self.factor.cross_kernel, self.loss, *self._in_kernel(at)))
            slopes, constant, loss = self.factor.whitener.T @ sums[:-2], sums[-2], float(sums[-1, 0])
        gradient = np.vstack([slopes + scaled_ridge * c, constant * self.fit_intercept])
        return _Point(at, loss + scaled_ridge / 2 * float((c**2).sum()), gradient, loss, system)

    def _step(self, point: _Point, system: CurvatureSystem, first: float) -> tuple[Floats, bool]:
        """Return the Newton step, and whether it took many products."""
        if self.loss.scalar:
            return -system.solve(point.gradient), False
        right = -system.half_transposed(point.gradient)
        length = float(np.linalg.norm(right))
        tol = length * max(_TIGHT, min(_LOOSE, length / first if first > 0 else _LOOSE))
        solved = conjugate_gradient(
            self._products(point.at, system),
            lambda vectors, _: vectors,
            right.reshape(-1, 1),
            np.array([tol]),
            _MOST_PRODUCTS,
        )
        step = system.half(solved.solution.reshape(right.shape))
        if not float((step * point.gradient).sum()) < 0.0:  # no descent: the system alone gives one
            step = system.half(right)
        return step, solved.reached.n_products > _MANY_PRODUCTS

    def _products(self, at: Floats, system: CurvatureSystem) -> Callable[[Floats, object], Floats]:
        """Return the function `V -> F'H F V` of flat vectors, H the second derivative of the objective at a point."""

        def product(flat: Floats, _: object) -> Floats:
            vectors = [system.half(column.reshape(at.shape)) for column in flat.T]
            coefficients, constants = self._in_kernel(np.hstack([at, *vectors]))
            sums = self.passes.reduce(CurvatureProducts(self.factor.cross_kernel, self.loss, coefficients, constants))
            images = np.vstack([self.factor.whitener.T @ sums[:-1], sums[-1:] * self.fit_intercept])
            images[:-1] += system.scaled_ridge * np.hstack(vectors)[:-1]
            parts = np.hsplit(images, len(vectors))
            return np.stack([system.half_transposed(part).ravel() for part in parts], axis=1)

        return product

    def _in_kernel(self, vectors: Floats) -> tuple[Floats, Floats]:
        """Return coefficients of kernel values for those of features, and the constants."""
        return self.factor.whitener @ vectors[:-1], vectors[-1]


def _as_vectors(solution: RidgeSolution) -> Floats:
    return np.vstack([solution.coefficients, solution.intercept])


def _as_solution(vectors: Floats) -> RidgeSolution:
    return RidgeSolution(vectors[:-1], vectors[-1])
