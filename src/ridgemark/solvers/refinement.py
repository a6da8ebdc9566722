"""From a landmark fit to exact kernel ridge regression, with a bound on the distance after every step."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from ridgemark.backends import Flags, Floats
from ridgemark.kernels import Kernel
from ridgemark.linalg import sum_rounding
from ridgemark.operators import Cross
from ridgemark.passes import RowPasses
from ridgemark.solvers.conjugate_gradient import GradientSolution, GradientStep, Operator, Outcome, conjugate_gradient
from ridgemark.solvers.kernel_system import (
    DirectPreconditioner,
    KernelSystem,
    MergedRows,
    landmark_preconditioner,
    merge_equal_rows,
)
from ridgemark.solvers.landmark_fit import LandmarkFit

# Largest number of rows for which K is factorised where the landmark preconditioner does not converge.
_FEW_ROWS = 2500
# Rounding errors of both signs add up to less than this share of their worst case; the largest share seen is 1/500.
_SHARE_REACHED = 0.05


@dataclass(frozen=True, eq=False)
class RefinementStep:
    """Bounds after some products with K; arrays have one entry for each target.

    The bounds hold for the floating-point numbers that `predict` returns in double precision.

    Attributes
    ----------
    n_products : int
        Products with K so far; before the first the function is a constant.
    returned : array
        Bound on the RMS distance, over the training rows and in units of the targets, of what `predict` returns from
        exact kernel ridge regression: `|r|` plus the field `rounding`.
    fitted : array
        The same for the fitted values `y - scaled_ridge x`; where the landmark model is returned, `returned` itself.
    norm : array
        Bound on `|f - f_K|_H`, and on the rounding of a prediction over `sqrt(k(x, x))`. At any point x the two
        functions, without their constants, differ by at most `sqrt(k(x, x))` times it; their constants by at most the
        root of the mean of `k(x_i, x_i)` times it. Kernel values at x are taken to be as accurate as at the training
        row where they are least accurate.
    rounding : array
        The part of `returned` that allows for rounding.
    """

    n_products: int
    returned: Annotated[Floats, "(t)", "any"]
    fitted: Annotated[Floats, "(t)", "any"]
    norm: Annotated[Floats, "(t)", "any"]
    rounding: Annotated[Floats, "(t)", "any"]


@dataclass(frozen=True, eq=False)
class Refinement:
    """`f(x) = k(x, X) dual_coef + k(x, Z) landmark_coef + intercept`, X the merged rows and Z the landmarks.

    A target has coefficients of one kind only; those of the other kind are zero.
    """

    rows: MergedRows
    dual_coef: Floats  # (m, targets)
    landmark_coef: Floats  # (p, targets)
    intercept: Floats  # (targets,)
    history: tuple[RefinementStep, ...]
    outcomes: tuple[Outcome, ...]  # one for each target
    void: Flags  # (targets,): whether the targets or the training error alone imply as small a bound

    @property
    def reached(self) -> RefinementStep:
        """The bounds of this function."""
        return self.history[-1]


def refine(passes: RowPasses, kernel: Kernel, fit: LandmarkFit, tol: float | Floats, max_products: int) -> Refinement:
    """Solve `(W^1/2 K W^1/2 + s) x = W^1/2 y` by conjugate gradients, s the scaled ridge, from a landmark fit.

    Equal rows are merged. With an intercept kernel and targets are centred. The preconditioner is `L + s`, the landmark
    fit's own matrix, so that the first direction is its solution `(y - f_L)/s`. Where all rows are landmarks, and
    for few rows where this preconditioner does not converge, it is the Cholesky factor of the system itself, and the
    iteration refines the direct solution. With r the residual of x, e its error and A the weighted, centred kernel
    matrix:

    - `|A e| = |A (A + s)^-1 r| <= |r|`: the distance, on the rows, of what `predict` returns;
    - `s |e| = s |(A + s)^-1 r| <= |r|`: that of `y - s x`;
    - `e'A e <= |r|^2/(4 s)`: that of the functions, in the norm of the kernel's space.

    To these the rounding of products, of the intercept and of predictions is added (see `KernelSystem`). `tol` is the
    largest value of the first, as root mean square over the rows, for all targets or for each. A target that does not
    reach `tol` gets the landmark model, unless the refined one is closer to the exact solution.

    K is held where it fits into the memory budget together with the features B, and otherwise evaluated again for every
    product; likewise B.
    """
    merged = merge_equal_rows(passes, kernel, passes.distinct_rows(), fit.target_origin)
    n_bytes = 8 * len(merged.numbers) * fit.factor.rank
    reserved = n_bytes if n_bytes <= passes.budget else 0  # for the features B
    system = KernelSystem(merged, kernel, fit, reserved)
    history, solved = _solve(system, fit, reserved, tol, max_products)
    dual_coef, intercept = system.coefficients(solved.solution)
    landmark_coef = np.zeros((fit.factor.cross_kernel.n_landmarks, len(intercept)))
    constant, void = intercept + fit.target_origin, np.zeros(len(intercept), dtype=bool)
    refined = Refinement(merged, dual_coef, landmark_coef, constant, history, solved.outcomes, void)
    if set(solved.outcomes) == {"converged"}:
        return refined
    if refined.reached.n_products < max_products:
        values = system.kernel_matrix @ dual_coef + intercept
        refined = replace(refined, history=(*history, replace(history[-1], n_products=history[-1].n_products + 1)))
    else:
        values = system.values(solved.solution, solved.residual)
    return _keep_closer_model(refined, values, system, fit, tol)


def _solve(
    system: KernelSystem, fit: LandmarkFit, reserved: int, tol: float | Floats, max_products: int
) -> tuple[tuple[RefinementStep, ...], GradientSolution]:
    """Run conjugate gradients with one preconditioner after the other until all targets converge.

    In exact arithmetic m rows take at most m products: after twice as many, rounding prevents convergence.
    """
    history: list[RefinementStep] = []
    goal = (tol - system.floor) * system.length / system.units
    for preconditioner in _preconditioners(system, fit, reserved):
        done = history[-1].n_products if history else 0
        most = min(max_products - done, 2 * len(system.weights))
        solved = conjugate_gradient(system.product, preconditioner, system.right, goal, most, system.rounding)
        steps = [_bounds(system, step) for step in solved.history]
        history += [replace(step, n_products=done + step.n_products) for step in steps[bool(history) :]]
        if set(solved.outcomes) == {"converged"} or history[-1].n_products >= max_products:
            return tuple(history), solved
    # The limit of two products per row was reached before `max_products`.
    ended = tuple("stagnated" if outcome == "out of products" else outcome for outcome in solved.outcomes)
    return tuple(history), replace(solved, outcomes=ended)


def _preconditioners(system: KernelSystem, fit: LandmarkFit, reserved: int) -> Iterator[Operator]:
    """Yield the preconditioners to try, in order."""
    n_rows = int(np.count_nonzero(system.weights))
    if system.matrix is None or fit.factor.cross_kernel.n_landmarks < n_rows:
        yield landmark_preconditioner(system, fit, reserved)
    if system.matrix is not None and (fit.factor.cross_kernel.n_landmarks >= n_rows or n_rows <= _FEW_ROWS):
        yield DirectPreconditioner(system)


def _bounds(system: KernelSystem, step: GradientStep) -> RefinementStep:
    residual, rounding = system.units * step.residual / system.length, system.units * step.rounding / system.length
    of_product = rounding / system.n_roundings
    anywhere = of_product * system.largest_roundoff / system.roundoff
    ridge = np.sqrt(system.scaled_ridge) / system.length
    unit = np.sqrt(system.mean_diagonal) or 1.0
    return _step(
        step.n_products,
        residual + rounding + system.floor,
        residual + of_product + system.floor,
        (residual + of_product) / (2.0 * ridge) + (anywhere + system.floor) / unit,
        rounding + system.floor,
    )


def _step(n_products: int, *bounds: Floats) -> RefinementStep:
    """Return the step with infinite bounds in place of NaN, which ranges beyond floating point can produce."""
    return RefinementStep(n_products, *(np.where(np.isnan(bound), np.inf, bound) for bound in bounds))


def _add_rounding(step: RefinementStep, system: KernelSystem, share: float) -> RefinementStep:
    """Return the step with its rounding raised by this share, for predictions that use landmarks besides rows."""
    more = share * step.rounding
    return replace(
        step,
        returned=step.returned + more,
        norm=step.norm + more * system.largest_roundoff / system.roundoff / (np.sqrt(system.mean_diagonal) or 1.0),
        rounding=step.rounding + more,
    )


def _keep_closer_model(
    refined: Refinement, values: Floats, system: KernelSystem, fit: LandmarkFit, tol: float | Floats
) -> Refinement:
    """For targets that have not converged return the landmark model, unless the refined model is closer to exact.

    With D the distance of the two models on the rows, the refined model is closer where it is within `D/2` of exact.
    Here only the share `_SHARE_REACHED` of the worst-case rounding error is counted, which actual rounding errors do
    not reach. Where `D <= tol` the model with the smaller bound is taken.
    """
    landmark = _LandmarkModel(system, fit)
    reached = refined.reached
    distance = system.rms(landmark.values - values)
    measured = reached.returned + reached.rounding + distance + landmark.rounding
    returned = np.minimum(measured, landmark.primal + landmark.rounding)
    kept = np.array([outcome == "converged" for outcome in refined.outcomes])
    kept |= reached.returned - (1.0 - _SHARE_REACHED) * reached.rounding <= distance / 2.0
    kept |= (distance <= tol) & (reached.returned <= returned)
    if kept.any() and not kept.all():
        reached = _add_rounding(reached, system, landmark.further_rounding)
    by_product = np.where(measured < landmark.primal, 2.0 * reached.rounding, 0.0)
    step = _step(
        reached.n_products,
        np.where(kept, reached.returned, returned),
        np.where(kept, reached.fitted, returned),
        np.where(kept, reached.norm, landmark.norm),
        np.where(kept, reached.rounding, by_product + landmark.rounding),
    )
    stagnated = np.array([outcome == "stagnated" for outcome in refined.outcomes])
    return Refinement(
        refined.rows,
        np.where(kept, refined.dual_coef, 0.0),
        np.where(kept, 0.0, fit.dual_coef),
        np.where(kept, refined.intercept, landmark.constant + fit.target_origin),
        (*refined.history[:-1], step),
        refined.outcomes,
        (reached.rounding >= landmark.primal) | (stagnated & (step.returned >= refined.history[0].returned)),
    )


class _LandmarkModel:
    """The landmark model on the merged rows, with its constant recomputed, and bounds on its distance from exact.

    `primal` is the root of `|y - f|^2 + s |f|_H^2` over the total weight. Its square exceeds that of the exact solution
    f_K by `|f - f_K|^2 + s |f - f_K|_H^2`, so it bounds the distance without a product with K.
    """

    def __init__(self, system: KernelSystem, fit: LandmarkFit) -> None:
        factor, coef, unit = fit.factor, fit.dual_coef, np.sqrt(system.mean_diagonal) or 1.0
        size = factor.function_size(coef)
        all_rows = system.passes.take(np.arange(len(system.weights)))
        # Predictions may use rows and landmarks together. Their kernel values have at most the sum of both errors, as
        # the median of all these points lies between the medians of the two kinds.
        errors = system.entry_errors + factor.cross_kernel.entry_error(all_rows.features)
        roundoff = sum_rounding(len(coef)) + system.diagonal_mean(errors)
        largest = sum_rounding(len(coef)) + float(errors.max())
        self.further_rounding = roundoff / system.roundoff
        self.rounding = 2.0 * roundoff * size * unit + system.floor
        values = Cross(system.passes, factor.cross_kernel) @ coef
        residual = system.targets - values
        weights = system.weights / system.length**2
        self.constant = weights @ residual if fit.fit_intercept else np.zeros(len(size))
        self.values = values + self.constant
        norm = np.maximum((coef * (factor.landmark_kernel @ coef)).sum(axis=0), 0.0) + 2.0 * largest * size**2
        ridge = fit.scaled_ridge / system.length**2
        residual_rms = system.rms(residual - self.constant) + self.rounding
        self.primal = np.hypot(residual_rms, np.sqrt(ridge * norm))
        self.norm = self.primal / np.sqrt(ridge) + self.rounding / unit * largest / roundoff
