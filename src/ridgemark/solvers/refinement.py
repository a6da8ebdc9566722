"""From a landmark fit to exact kernel ridge regression, with a certified distance after every step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ridgemark.kernels import Kernel
from ridgemark.operators import Features, KernelMatrix, ShiftedInverse, Weighting
from ridgemark.passes import RowPasses
from ridgemark.solvers.conjugate_gradient import Columns, GradientStep, Outcome, conjugate_gradient
from ridgemark.solvers.landmark_fit import LandmarkFit

Floats = NDArray[np.float64]

# A ridge below this share of L's largest eigenvalue drowns in the rounding of a product with L.
_ROUNDING_RIDGE = 100 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class RefinementStep:
    """What was known after some products with K; arrays have one entry for each target.

    Attributes
    ----------
    n_products : int
        Products with K so far; before the first the function is a constant.
    returned : array
        Bound on the RMS distance, over the training rows and in units of the targets, of what `predict` returns from
        exact kernel ridge regression: `|r|`.
    fitted : array
        The same for the fitted values `y - scaled_ridge x`: `sqrt(scaled_ridge r'(L + scaled_ridge)^-1 r)`.
    norm : array
        Bound on `|f - f_K|_H`. At any point x the two functions, without their constants, differ by at most
        `sqrt(k(x, x))` times it; their constants by at most the root of the mean of `k(x_i, x_i)` times it.
    """

    n_products: int
    returned: Floats
    fitted: Floats
    norm: Floats


@dataclass(frozen=True, eq=False)
class Refinement:
    """`f(x) = k(x, X) dual_coef + intercept` and how far it is from the exact solution."""

    dual_coef: Floats  # (n, targets)
    intercept: Floats  # (targets,)
    history: tuple[RefinementStep, ...]
    outcomes: tuple[Outcome, ...]  # one for each target

    @property
    def reached(self) -> RefinementStep:
        """The bounds of this function."""
        return self.history[-1]


def refine(passes: RowPasses, kernel: Kernel, fit: LandmarkFit, tol: float, max_products: int) -> Refinement:
    """Solve `(W^1/2 K W^1/2 + s) x = W^1/2 y` by conjugate gradients, s the scaled ridge, from a landmark fit.

    With an intercept for the centred kernel and targets. The preconditioner is `L + s`, the landmark fit's own matrix,
    so that the first direction is its solution `(y - f_L)/s`. The coefficients are `W^1/2 x`. With r the residual of x,
    e its error and A the weighted, centred kernel matrix:

    - `|A e| = |A (A + s)^-1 r| <= |r|`: the distance of what `predict` returns, on the rows;
    - `s |e| <= sqrt(s r'(A + s)^-1 r) <= sqrt(s r'(L + s)^-1 r)`: of `y - s x`, as L <= A;
    - `e'A e <= min(r'(L + s)^-1 r, |r|^2/(4 s))`: of the functions, in the norm of the kernel's space.

    `tol` is what the first must reach, as root mean square over the rows. K is held where it fits the memory budget
    beside the features B, and evaluated anew for every product where it does not; likewise B.
    """
    rows = Weighting(passes.row_counts(), fit.fit_intercept)
    targets = passes.targets() - fit.target_origin
    preconditioner = _preconditioner(passes, fit, rows)
    kernel_matrix = _WeightedKernel(
        KernelMatrix(passes, kernel).hold(passes.budget - preconditioner.features.bytes_held), rows
    )

    def product(vectors: Floats, columns: Columns) -> Floats:
        return kernel_matrix(vectors) + fit.scaled_ridge[columns] * vectors

    right = rows(targets)
    # In units of the largest target, so that no square leaves the range.
    units = np.abs(right).max(axis=0)
    units[units == 0] = 1.0
    solved = conjugate_gradient(product, preconditioner, right / units, tol * rows.length / units, max_products)
    dual_coef = rows.roots * solved.solution * units
    row_sums = np.zeros(len(targets)) if kernel_matrix.row_sums is None else kernel_matrix.row_sums
    mean = (rows.roots[:, 0] ** 2 @ targets - row_sums @ dual_coef) / rows.length**2
    intercept = (mean if fit.fit_intercept else 0.0) + fit.target_origin
    history = tuple(
        _bounds(step, fit.scaled_ridge, preconditioner.ridges, units, rows.length) for step in solved.history
    )
    return Refinement(dual_coef, intercept, history, solved.outcomes)


def _bounds(step: GradientStep, ridges: Floats, raised: Floats, units: Floats, length: float) -> RefinementStep:
    # Of a raised ridge s' the energy is smaller by up to s'/s: (A + s)^-1 <= (s'/s) (L + s')^-1.
    energy, residual = units * np.sqrt(raised * step.energy), units * step.residual
    norm = np.minimum(energy, residual / 2.0) / np.sqrt(ridges)
    return RefinementStep(step.n_products, residual / length, np.minimum(energy, residual) / length, norm)


class _WeightedKernel:
    """Products with `A = P W^1/2 K W^1/2 P`, of vectors in the range of P."""

    def __init__(self, kernel_matrix: KernelMatrix, rows: Weighting) -> None:
        self.kernel_matrix, self.rows = kernel_matrix, rows
        self.row_sums: Floats | None = None  # K w, of which the intercept is made; known with the first product

    def __call__(self, vectors: Floats) -> Floats:
        roots = self.rows.roots
        if self.row_sums is not None:
            return self.rows(self.kernel_matrix @ (roots * vectors))
        images = self.kernel_matrix @ np.hstack([roots * vectors, roots**2])
        self.row_sums = images[:, -1]
        return self.rows(images[:, :-1])


def _preconditioner(passes: RowPasses, fit: LandmarkFit, rows: Weighting) -> ShiftedInverse:
    """Return `(L + s)^-1`; s is raised to the rounding of a product with L, below which it is not positive definite."""
    spectrum = fit.solver.spectrum
    ridges = np.maximum(fit.scaled_ridge, _ROUNDING_RIDGE * spectrum.max(initial=0.0))
    return ShiftedInverse(Features(passes, fit.factor).hold(passes.budget), rows, spectrum, fit.solver.rotation, ridges)
