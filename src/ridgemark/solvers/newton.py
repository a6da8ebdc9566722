"""Newton's method for a smooth loss on the features: damped, one pass a step, warm from one ridge to the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ridgemark.backends import Floats
from ridgemark.losses import Loss, Moments, RidgeSolution, loss_sums
from ridgemark.losses.slopes import CurvatureBlocks, CurvatureProducts, Form, SlopeSums
from ridgemark.operators import NystromFactor
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.solvers.conjugate_gradient import conjugate_gradient
from ridgemark.solvers.curvature import CurvatureSystem, JointSystem, System, TargetSystems

_MOST_STEPS = 100
_MOST_HALVINGS = 10
_SUFFICIENT = 1e-4  # share of the predicted decrease that a step must reach
ROUNDED = 1e-13  # relative change of the objective that is rounding
_STALLED = 1e-6  # relative decrease that a step may promise where no step lowers the objective, for rounding
_SMALL = 1e-6  # relative change of the coefficients after which the error is negligible
_LOOSE, _TIGHT = 0.1, 1e-3  # tolerance of conjugate gradients, relative to the gradient: of the first step and the last
_MOST_PRODUCTS = 100  # of one step
_FEW_UNKNOWNS = 1000  # for which the second derivative is summed whole
_SAMPLED = 8192  # distinct rows whose curvature is summed for each target alone, and left out


@dataclass(frozen=True, eq=False)
class NewtonFit:
    """The minimum of `sum_i w_i l(y_i, b_i'c + constant) + (s/2) |c|^2`, s the scaled ridge."""

    solution: RidgeSolution
    system: System  # of a point near the solution
    loss: float  # the sum of the losses, at the last point summed
    n_steps: int
    converged: bool

    def towards(self, scaled_ridge: float) -> RidgeSolution:
        """Return the solution at another ridge r to first order, `x - (r - s) H_r^-1 (c, 0)` with H_r the system at r.

        As `H x + gradient of the rest` is zero at x, this is the Newton step there for the curvature of the system.
        """
        system = self.system.with_ridge(scaled_ridge)
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
    system: System | None


@dataclass(frozen=True, eq=False)
class Newton:
    """The objective of a loss for given landmarks."""

    passes: RowPasses
    factor: NystromFactor
    loss: Loss
    fit_intercept: bool

    @property
    def exact(self) -> bool:
        """Whether the second derivative is summed whole: where it is one number for each row, or a small matrix."""
        return self.loss.scalar or self.passes.source.n_targets * (self.factor.rank + 1) <= _FEW_UNKNOWNS

    @cached_property
    def sample(self) -> RowPasses:
        """At most 8,192 distinct rows, each with the weight and the mean target of its equals."""
        chosen, groups = self.passes.distinct_rows().indices[:_SAMPLED], self.passes.row_groups()  # in order of hashes
        taken = self.passes.take(chosen)
        assert taken.targets is not None
        targets = taken.targets if groups.gaps is None else taken.targets + groups.gaps[chosen]
        return RowPasses(ArrayRows(taken.features, targets, groups.weights[chosen]), self.passes.memory_budget)

    @cached_property
    def on_sample(self) -> Newton:
        """The same objective on the sample, whose weights are raised to the total of all rows."""
        rows = self.sample.take(np.arange(self.sample.source.n_rows))
        weights = self.share * self.sample.row_counts()
        return replace(
            self, passes=RowPasses(ArrayRows(rows.features, rows.targets, weights), self.passes.memory_budget)
        )

    @cached_property
    def share(self) -> float:
        """The total weight of all rows over that of the sample."""
        return float(self.passes.row_counts().sum() / self.sample.row_counts().sum())

    def sums(self, at: RidgeSolution, scaled_ridge: float) -> Moments:
        """Return the sums of the ridge problem of a Newton step."""
        return loss_sums(self.passes, self.factor, None, scaled_ridge, self.loss, at)

    def _system(self, at: RidgeSolution, scaled_ridge: float) -> TargetSystems:
        """Return the systems of each target alone, or one for all where that exceeds a quarter of the memory budget."""
        entries = self.passes.source.n_targets * (self.factor.rank + 1) ** 2
        form: Form = "each" if 8 * entries <= self.passes.budget // 4 else "mean"
        task = CurvatureBlocks(self.factor, self.loss, at, form)
        return TargetSystems(self.on_sample.passes.reduce(task), self.fit_intercept, scaled_ridge, self.share)

    def solve(self, scaled_ridge: float, start: RidgeSolution, tol: float = ROUNDED) -> NewtonFit:
        """Minimise from `start` until a step would lower the objective by less than the share `tol`, or by rounding.

        A step that changes no coefficient by more than 1e-6 of the largest is the last one too: the error that it
        leaves is of second order. A step is halved until the objective falls by a ten thousandth of what its slope
        promises; where that fails, the largest possible curvature gives a step that lowers it. With a curvature of
        numbers, or of few unknowns, a step is `-H^-1 g` and takes one pass. Otherwise conjugate gradients solve
        `F'H F x = -F'g`, one pass for each product, with the systems F of each target at this point, from a sample.
        """
        point = self._point(_as_vectors(start), scaled_ridge)
        first, steps, converged = 0.0, 0, False
        while steps < _MOST_STEPS and not converged:
            system = point.system or self._system(_as_solution(point.at), scaled_ridge)
            step, first = self._step(point, system, first)
            steps += 1
            slope = -float((step * point.gradient).sum())
            size = float(np.abs(point.at + step).max(initial=0.0))
            converged = slope <= tol * abs(point.objective) or float(np.abs(step).max(initial=0.0)) <= _SMALL * size
            if converged:
                return NewtonFit(_as_solution(point.at + step), system, point.loss, steps, converged)
            lower = self._lower(point, step, slope, scaled_ridge)
            if lower is None:
                step = -self._steepest(scaled_ridge).solve(point.gradient)
                lower = self._lower(point, step, -float((step * point.gradient).sum()), scaled_ridge)
            if lower is None:  # rounding hides any decrease
                converged = slope <= _STALLED * abs(point.objective)
                break
            point = lower
        return NewtonFit(_as_solution(point.at), system, point.loss, steps, converged)

    def _steepest(self, scaled_ridge: float) -> CurvatureSystem:
        """Return the system of the largest possible curvature: its steps always lower the objective."""
        sums, most = loss_sums(self.passes, self.factor), self.loss.steepest
        scaled = {name: most * getattr(sums, name) for name in ("gram", "feature_sum", "total_weight")}
        return CurvatureSystem(replace(sums, **scaled), self.fit_intercept, scaled_ridge)

    def _lower(self, point: _Point, step: Floats, slope: float, scaled_ridge: float) -> _Point | None:
        """Return the first point on the halved steps whose objective is sufficiently lower; None where none is."""
        for halving in range(_MOST_HALVINGS):
            share = 0.5**halving
            trial = self._point(point.at + share * step, scaled_ridge)
            allowed = _SUFFICIENT * share * slope - ROUNDED * abs(point.objective)
            if trial.objective <= point.objective - allowed:
                return trial
        return None

    def _point(self, at: Floats, scaled_ridge: float) -> _Point:
        """Return a point of the descent, in one pass."""
        system: System | None = None
        c, solution = at[:-1], _as_solution(at)
        if self.exact and not self.loss.scalar:
            joint = self.passes.reduce(CurvatureBlocks(self.factor, self.loss, solution, "joint"))
            system, loss, slopes = JointSystem(joint, self.fit_intercept, scaled_ridge), joint.loss, joint.slopes
        elif self.exact:
            moments = self.sums(solution, scaled_ridge)
            system, loss = CurvatureSystem(moments, self.fit_intercept, scaled_ridge), moments.loss
            # The targets of the ridge problem are eta - l'/l'', so the sums of l' are differences.
            of_features = moments.gram @ c + np.outer(moments.feature_sum, at[-1]) - moments.cross
            of_constant = moments.feature_sum @ c + moments.total_weight * at[-1] - moments.target_sum
            slopes = np.vstack([of_features, of_constant])
        else:
            sums = self.passes.reduce(SlopeSums(self.factor.cross_kernel, self.loss, *self._in_kernel(at)))
            slopes, loss = np.vstack([self.factor.whitener.T @ sums[:-2], sums[-2]]), float(sums[-1, 0])
        gradient = slopes + scaled_ridge * np.vstack([c, np.zeros(c.shape[1])])
        gradient[-1] *= self.fit_intercept
        return _Point(at, loss + scaled_ridge / 2 * float((c**2).sum()), gradient, loss, system)

    def _step(self, point: _Point, system: System, first: float) -> tuple[Floats, float]:
        """Return the Newton step, and the largest size of the gradients F'g so far."""
        if not isinstance(system, TargetSystems):
            return -system.solve(point.gradient), first
        right = -system.half(point.gradient, transposed=True)
        length = float(np.linalg.norm(right))
        first = max(first, length)
        tol = length * max(_TIGHT, min(_LOOSE, length / first if first > 0 else _LOOSE))
        solved = conjugate_gradient(
            self._products(point.at, system),
            lambda vectors, _: vectors,
            right.reshape(-1, 1),
            np.array([tol]),
            _MOST_PRODUCTS,
        )
        step = _centred(system.half(solved.solution.reshape(right.shape)))
        if not float((step * point.gradient).sum()) < 0.0:  # no descent: the systems alone give one
            step = _centred(system.half(right))
        return step, first

    def _products(self, at: Floats, system: TargetSystems) -> Callable[[Floats, object], Floats]:
        """Return the function `V -> F'H F V` of flat vectors, H the second derivative of the objective at a point."""

        def product(flat: Floats, _: object) -> Floats:
            vectors = [system.half(column.reshape(at.shape)) for column in flat.T]
            coefficients, constants = self._in_kernel(np.hstack([at, *vectors]))
            sums = self.passes.reduce(CurvatureProducts(self.factor.cross_kernel, self.loss, coefficients, constants))
            images = np.vstack([self.factor.whitener.T @ sums[:-1], sums[-1:] * self.fit_intercept])
            images[:-1] += system.scaled_ridge * np.hstack(vectors)[:-1]
            parts = np.hsplit(images, len(vectors))
            return np.stack([system.half(part, transposed=True).ravel() for part in parts], axis=1)

        return product

    def _in_kernel(self, vectors: Floats) -> tuple[Floats, Floats]:
        """Return coefficients of kernel values for those of features, and the constants."""
        return self.factor.whitener @ vectors[:-1], vectors[-1]


def _as_vectors(solution: RidgeSolution) -> Floats:
    return np.vstack([solution.coefficients, solution.intercept])


def _as_solution(vectors: Floats) -> RidgeSolution:
    return RidgeSolution(vectors[:-1], vectors[-1])


def _centred(vectors: Floats) -> Floats:
    """Return functions that sum to zero over the targets: they have the same probabilities, and a smaller norm."""
    return vectors - vectors.mean(axis=1, keepdims=True)
