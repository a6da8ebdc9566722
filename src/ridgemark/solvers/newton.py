"""Newton's method for a smooth loss on the features: damped, and begun with the solution at another ridge."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ridgemark.backends import Array, Floats
from ridgemark.linalg import largest_entry
from ridgemark.losses import CurvatureSums, Loss, Moments, RidgeSolution, loss_sums
from ridgemark.operators import NystromFactor
from ridgemark.passes import RowPasses
from ridgemark.solvers.curvature import CurvatureSystem, JointSystem, System, TargetSystems, systems_of_moments
from ridgemark.solvers.drawn_rows import DrawnRows
from ridgemark.solvers.feature_rows import FeatureRows, features_of
from ridgemark.solvers.second_derivative import SecondDerivative, centred

_MOST_STEPS = 100
_MOST_HALVINGS, _MOST_UNBOUNDED = 10, 60  # the second where no largest curvature gives a step that lowers the loss
_SUFFICIENT = 1e-4  # share of the predicted decrease that a step must reach
ROUNDED = 1e-13  # relative change of the objective that is rounding
_STALLED = 1e-6  # where rounding hides any decrease, a fit has converged if a step promises at most this share
_SMALL = 1e-6  # relative change of the coefficients after which the error is negligible
_LOOSE, _TIGHT = 0.1, 1e-4  # conjugate gradients end at this share of g'F F'g: in the first step, and in the last
_FINE = 1e-3  # or at this share of the decrease at which Newton's method ends
_MOST_PRODUCTS = 100  # of one step
_SHARE_ERROR = 0.01  # relative error of `Newton.joint_share`
# A preconditioner is replaced after as many products as take the time of summing a new one, and not before 20 products.
# Summing a system takes as long as rank/9 products with the same rows.
_FEWEST_PRODUCTS, _RANK_PER_PRODUCT = 20, 9
# The second derivative of all targets jointly is summed for at most this many unknowns and targets. With more targets,
# leaving rows out would take too long: for each row a system of this size is solved.
_FEW_UNKNOWNS, _FEW_TARGETS = 1000, 64
_FEW_FEATURES = 500  # of one target: with fewer, summing the second derivative is faster than conjugate gradients
_HELD_SIZES = 1e-50, 1e50  # kernel values whose features, and sums of them, stay in the range of single precision


@dataclass(frozen=True, eq=False)
class NewtonFit:
    """The minimum of `sum_i w_i l(y_i, b_i'c + constant) + (s/2) |c|^2`, s the scaled ridge."""

    solution: RidgeSolution
    system: System  # of a point near the solution
    loss: float  # the sum of the losses, at the last point summed
    n_steps: int
    converged: bool

    def extrapolated(self, scaled_ridge: float) -> RidgeSolution:
        """Return the solution at another ridge r to first order, `x - (r - s) H_r^-1 (c, 0)` with H_r the system at r.

        The gradient of the objective at s is zero at x, so this is a Newton step of the objective at r.
        """
        system = self.system.with_ridge(scaled_ridge)
        c = self.solution.coefficients
        change = (scaled_ridge - self.system.scaled_ridge) * np.vstack([c, np.zeros(c.shape[1])])
        return _as_solution(_as_vectors(self.solution) - system.solve(change))


@dataclass(frozen=True, eq=False)
class _Point:
    """A point of the descent: objective, gradient, sum of the losses; and its predictor or its system."""

    at: Floats  # (rank + 1, t)
    objective: float
    gradient: Floats
    loss: float
    predictor: Array | None  # (n, t), where the rows are computed
    system: System | None


@dataclass(frozen=True, eq=False)
class Newton:
    """The objective of a loss for given landmarks.

    `held` are the features of all rows in single precision, from which products with the second derivative are then
    computed. With `rough`, slopes are computed from them too, and the solution is that of rounded features.
    """

    passes: RowPasses
    factor: NystromFactor
    loss: Loss
    fit_intercept: bool
    moments: Moments | None = None  # of the squared loss, where they are known
    held: FeatureRows | None = None
    rough: bool = False

    def with_loss(self, loss: Loss, passes: RowPasses | None = None) -> Newton:
        """Return the objective of another loss of the same rows, or of passes over them with other targets.

        The features of the sample are shared.
        """
        other = replace(self, loss=loss, passes=passes or self.passes)
        other.__dict__["drawn"] = self.drawn.with_loss(loss, other.passes)
        return other

    @property
    def whole(self) -> bool:
        """Whether one pass sums slopes and second derivative: one target or few unknowns, and features not held."""
        t = self.passes.source.n_targets
        is_small = t <= _FEW_TARGETS and t * (self.factor.rank + 1) <= _FEW_UNKNOWNS
        return self.held is None and (self.loss.scalar or is_small)

    def hold(self) -> Newton:
        """Return the same objective with features in memory, where the memory budget holds them and that saves time."""
        n, rank = self.passes.source.n_rows, self.factor.rank
        least, most = _HELD_SIZES
        if not least < largest_entry(self.factor.landmark_kernel) < most:
            return self
        if (self.whole and not (self.loss.scalar and rank >= _FEW_FEATURES)) or 4 * n * rank > self.rows.room:
            return self
        return replace(self, held=self.rows.held(), rough=True)

    @cached_property
    def rows(self) -> FeatureRows:
        """The rows whose slopes are summed."""
        return self.held if self.held and self.rough else features_of(self.passes, self.factor)

    @cached_property
    def drawn(self) -> DrawnRows:
        """The rows that are left out, and those of systems of each target alone."""
        return DrawnRows(self.passes, self.factor, self.loss, self.fit_intercept, self.held)

    @property
    def _most_spent(self) -> float:
        """The number of products with one system as preconditioner after which a new one is summed."""
        sampled = min(self.drawn.sample.source.n_rows / self.passes.source.n_rows, 1.0)
        return max(_FEWEST_PRODUCTS, sampled * self.factor.rank / _RANK_PER_PRODUCT)

    def sums(self, at: RidgeSolution, scaled_ridge: float) -> Moments:
        """Return the sums of the ridge problem of a Newton step."""
        return loss_sums(self.passes, self.factor, None, scaled_ridge, self.loss, at)

    def system(self, at: RidgeSolution, scaled_ridge: float, nearby: System) -> System:
        """Return the system of a point.

        It is that of all targets jointly where there are few unknowns. For one target it is summed over all rows held.
        Otherwise there is one for each target, from rows drawn by their leverage in the systems of a point nearby.
        """
        if self.whole and not self.loss.scalar:
            return JointSystem(self._joint(at), self.fit_intercept, scaled_ridge)
        if self.loss.scalar and self.held:
            block = self.held.gram(
                self._weights * self.loss.curvature(self._targets, self.held.values(_as_vectors(at)))
            )
            return CurvatureSystem(_curvature_moments(block), self.fit_intercept, scaled_ridge)
        assert isinstance(nearby, TargetSystems)
        return self.drawn.systems(_as_vectors(at), scaled_ridge, nearby)

    def with_own_system(self, fit: NewtonFit) -> NewtonFit:
        """Return the fit with the system of its solution, by the curvature that leaving rows out needs."""
        ridge, loss = fit.system.scaled_ridge, self.loss.leaving_out()
        newton = self if loss is self.loss else replace(self, loss=loss)
        if not self.whole:
            return replace(fit, system=newton.system(fit.solution, ridge, fit.system))
        if newton is self:
            return fit
        return replace(fit, system=CurvatureSystem(newton.sums(fit.solution, ridge), self.fit_intercept, ridge))

    def _begin_with(self, point: _Point, scaled_ridge: float, earlier: System | None) -> System:
        """Return the first system of a descent: that of the point, an earlier one, or one with the mean curvature.

        The last, `c_k [B 1]'W[B 1] + s` for each target k with its mean curvature c_k, takes no pass.
        """
        if point.predictor is None:
            assert point.system is not None
            return point.system
        if earlier is not None:
            return earlier.with_ridge(scaled_ridge)
        curvature = self.drawn.curvature(self._targets, point.predictor)
        totals = self.rows.backend.to_host(self._weights @ curvature)
        means = totals / self.plain.total_weight
        return systems_of_moments(self.plain, means, self.fit_intercept, scaled_ridge)

    def joint_share(self, at: RidgeSolution, system: TargetSystems) -> float:
        """Return `v'H^-1 v / v'F F'v`: the leverages of rows where all targets change, over those of single targets.

        H is the second derivative for all targets jointly. F F' is the inverse of the systems of each target alone,
        with which targets would change too much. `v = sum_i e_i z_i s_i` has the slopes s_i of the sampled rows and
        random signs e_i. The expected values of both products are sums of `s_i'(leverage) s_i`; their errors nearly
        cancel in the ratio.
        """
        vectors, counts = _as_vectors(at), self.drawn.sample.row_counts()
        signs = np.random.default_rng(0).choice([-1.0, 1.0], len(counts))
        backend, targets = self.drawn.sampled.backend, self.drawn.sample.targets()
        slopes = self.loss.slopes(backend.from_host(targets), self.drawn.sampled.values(vectors))
        v = self.drawn.sampled.sums(backend.from_host(signs * counts)[:, None] * slopes)
        v[-1] *= self.fit_intercept
        begin = float((v * centred(system.solve(v))).sum())
        if not begin > 0.0:
            return 1.0
        rows, of_rows, weight = self.held, self._targets, 1.0
        if rows is None:
            rows, of_rows = self.drawn.sampled, backend.from_host(targets)
            weight = float(self.passes.row_counts().sum() / counts.sum())
        parts = self.loss.curvature_parts(of_rows, rows.values(vectors))
        second = SecondDerivative(rows, self.loss, parts, system.scaled_ridge, self.fit_intercept, weight)
        x, _ = second.solve(v, system, _SHARE_ERROR * begin, _MOST_PRODUCTS)
        return float((v * x).sum()) / begin

    def solve(
        self, scaled_ridge: float, start: RidgeSolution, tol: float = ROUNDED, system: System | None = None
    ) -> NewtonFit:
        """Minimise from `start` until a step would lower the objective by less than the share `tol`, or by rounding.

        Where predictors are logarithms, a step is also the last one if it changes no coefficient by more than 1e-6 of
        the largest, and no constant by more than 1e-6. A step is halved until the objective falls by a ten thousandth
        of what its slope promises; where that fails, the largest possible curvature gives a step that lowers it. Where
        the second derivative is summed whole, a step is `-H^-1 g` and takes one pass. Otherwise conjugate gradients
        solve `H x = -g`, one pass for each product, with the system of an earlier point as preconditioner: the one
        given, one of the mean curvature at the start, or that of a point on the way.
        """
        point = self._point(centred(_as_vectors(start)), scaled_ridge)
        system = self._begin_with(point, scaled_ridge, system)
        first, spent, slope, before = 0.0, 0, np.inf, np.inf
        for steps in range(1, _MOST_STEPS + 1):
            # If steps go on shrinking alike, the next one promises slope^2 / before. The last step needs no new system.
            worn = spent > 0 and spent > self._most_spent and slope * (slope / before) > tol * abs(point.objective)
            if point.system or worn:
                system, spent = point.system or self.system(_as_solution(point.at), scaled_ridge, system), 0
            step, first, products = self._step(point, system, first, _FINE * tol * abs(point.objective))
            spent += products
            slope, before = -float((step * point.gradient).sum()), slope
            if slope <= tol * abs(point.objective) or (self._has_unit and _is_small(step, point.at + step)):
                return NewtonFit(_as_solution(point.at + step), system, point.loss, steps, True)
            lower = self._lower(point, step, slope, scaled_ridge)
            if lower is None and self.loss.steepest < np.inf:
                step = -self._steepest(scaled_ridge).solve(point.gradient)
                lower = self._lower(point, step, -float((step * point.gradient).sum()), scaled_ridge)
            if lower is None:  # rounding hides any decrease
                return NewtonFit(
                    _as_solution(point.at), system, point.loss, steps, slope <= _STALLED * abs(point.objective)
                )
            point = lower
        return NewtonFit(_as_solution(point.at), system, point.loss, _MOST_STEPS, False)

    @cached_property
    def plain(self) -> Moments:
        """The sums of the squared loss."""
        return self.moments or loss_sums(self.passes, self.factor)

    def at_rows(self, solution: RidgeSolution) -> tuple[float, float]:
        """Return the sum of the losses, and the largest second derivative at the rows."""
        predictor = self.rows.values(_as_vectors(solution))
        curvature = self.rows.backend.to_host(self.loss.curvature(self._targets, predictor))
        return self._losses(predictor), float(curvature[self.passes.row_counts() > 0].max())

    def _joint(self, at: RidgeSolution) -> CurvatureSums:
        return features_of(self.passes, self.factor).curvature(self.loss, at)

    def _steepest(self, scaled_ridge: float) -> CurvatureSystem:
        """Return the system of the largest possible curvature: its steps always lower the objective."""
        return CurvatureSystem(self.plain.times(self.loss.steepest), self.fit_intercept, scaled_ridge)

    def _lower(self, point: _Point, step: Floats, slope: float, scaled_ridge: float) -> _Point | None:
        """Return the first point on the halved steps whose objective is sufficiently lower; None where none is."""
        before = point.predictor
        change = None if before is None else self.rows.values(step)
        for halving in range(_MOST_HALVINGS if self.loss.steepest < np.inf else _MOST_UNBOUNDED):
            share = 0.5**halving
            at, allowed = point.at + share * step, _SUFFICIENT * share * slope - ROUNDED * abs(point.objective)
            predictor = None if before is None or change is None else before + share * change
            if predictor is not None and not self._objective(at, predictor, scaled_ridge) <= point.objective - allowed:
                continue
            trial = self._point(at, scaled_ridge, predictor)
            if trial.objective <= point.objective - allowed:
                return trial
        return None

    def _losses(self, predictor: Array) -> float:
        return float(self._weights @ self.loss.values(self._targets, predictor))

    def _objective(self, at: Floats, predictor: Array, scaled_ridge: float) -> float:
        return self._losses(predictor) + scaled_ridge / 2 * float((at[:-1] ** 2).sum())

    @property
    def _has_unit(self) -> bool:
        """Whether predictors are logarithms, of which a small change changes no prediction."""
        return self.loss.nats or self.loss.positive

    @cached_property
    def _targets(self) -> Array:
        return self.rows.backend.from_host(self.passes.targets())

    @cached_property
    def _weights(self) -> Array:
        return self.rows.backend.from_host(self.passes.row_counts())

    def _point(self, at: Floats, scaled_ridge: float, predictor: Array | None = None) -> _Point:
        """Return a point of the descent, in one pass, or in two where the predictor is not given."""
        system: System | None = None
        c, solution = at[:-1], _as_solution(at)
        if self.whole and not self.loss.scalar:
            joint = self._joint(solution)
            system, loss, slopes = JointSystem(joint, self.fit_intercept, scaled_ridge), joint.loss, joint.slopes
        elif self.whole:
            moments = self.sums(solution, scaled_ridge)
            system, loss = CurvatureSystem(moments, self.fit_intercept, scaled_ridge), moments.loss
            # The targets of the ridge problem are eta - l'/l'', so the sums of l' are differences.
            of_features = moments.gram @ c + np.outer(moments.feature_sum, at[-1]) - moments.cross
            of_constant = moments.feature_sum @ c + moments.total_weight * at[-1] - moments.target_sum
            slopes = np.vstack([of_features, of_constant])
        else:
            predictor = self.rows.values(at) if predictor is None else predictor
            slopes = self.rows.sums(self._weights[:, None] * self.loss.slopes(self._targets, predictor))
            loss = self._losses(predictor)
        gradient = slopes + scaled_ridge * np.vstack([c, np.zeros(c.shape[1])])
        gradient[-1] *= self.fit_intercept
        return _Point(at, loss + scaled_ridge / 2 * float((c**2).sum()), gradient, loss, predictor, system)

    def _step(self, point: _Point, system: System, first: float, least: float) -> tuple[Floats, float, int]:
        """Return the Newton step, the largest `g'F F'g` so far, and the number of products.

        F F' is the inverse of the system. Conjugate gradients end at a share of `g'F F'g`, or at `least`. The share is
        a tenth where features are held for slopes too: the next step then gains more than further products. It is
        smaller where only products use held features, since slopes take a pass; and where nothing is held, in later
        steps.
        """
        residual = -point.gradient
        step = centred(system.solve(residual))
        if point.predictor is None:
            return step, first, 0
        begin = float((residual * step).sum())
        first = max(first, begin)
        if self.held:
            tol = _LOOSE if self.rough else _TIGHT
        else:
            tol = max(_TIGHT, min(_LOOSE, begin / first if first > 0 else _LOOSE))
        most = self._most_spent if self.rough else _MOST_PRODUCTS
        parts = self.loss.curvature_parts(self._targets, point.predictor)
        second = SecondDerivative(self.held or self.rows, self.loss, parts, system.scaled_ridge, self.fit_intercept)
        step, products = second.solve(residual, system, max(tol * begin, least), most)
        step = centred(step)
        if not float((step * point.gradient).sum()) < 0.0:  # no descent, by rounding: the system alone gives one
            step = centred(system.solve(-point.gradient))
        return step, first, products


def _is_small(step: Floats, at: Floats) -> bool:
    """Return whether a step changes the coefficients by 1e-6 of the largest at most, and the constants by 1e-6.

    Constants are logarithms; the size of coefficients depends on that of kernel values.
    """
    moved, size = np.abs(step), np.abs(at)
    coefficients = moved[:-1].max(initial=0.0) <= _SMALL * size[:-1].max(initial=0.0)
    return bool(coefficients and moved[-1].max() <= _SMALL * (1.0 + size[-1].max()))


def _as_vectors(solution: RidgeSolution) -> Floats:
    return np.vstack([solution.coefficients, solution.intercept])


def _as_solution(vectors: Floats) -> RidgeSolution:
    return RidgeSolution(vectors[:-1], vectors[-1])


def _curvature_moments(block: Floats) -> Moments:
    """Return the sums `B'D B`, `B'D 1` and `1'D 1` of a block of `[B 1]'D[B 1]` as moments without targets."""
    gram, none = block[:-1, :-1], np.zeros((len(block) - 1, 0))
    return Moments(0, float(block[-1, -1]), gram, none, block[:-1, -1], none[0], none[0], 0.0, 0.0)
