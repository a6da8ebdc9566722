"""From a landmark fit to exact kernel ridge regression, with a certified distance after every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ridgemark.kernels import Kernel
from ridgemark.nystrom import NystromFactor
from ridgemark.passes import RowPasses
from ridgemark.rows import DEFAULT_MEMORY_BUDGET
from ridgemark.solvers.conjugate_gradient import Columns, GradientStep, Outcome, conjugate_gradient
from ridgemark.solvers.landmark_fit import LandmarkFit

Floats = NDArray[np.float64]
Product = Callable[[Floats], Floats]

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
    rows = _Rows(np.sqrt(passes.row_counts())[:, None], fit.fit_intercept)
    targets = passes.targets() - fit.target_origin
    preconditioner = _Preconditioner(passes, fit, rows)
    kernel_matrix = _KernelMatrix(passes, kernel, rows, preconditioner.bytes_held)

    def product(vectors: Floats, columns: Columns) -> Floats:
        return kernel_matrix(vectors) + fit.scaled_ridge[columns] * vectors

    right = rows.centred(rows.roots * targets)
    # In units of the largest target, so that no square leaves the range.
    units = np.abs(right).max(axis=0)
    units[units == 0] = 1.0
    solved = conjugate_gradient(product, preconditioner, right / units, tol * rows.length / units, max_products)
    dual_coef = rows.roots * solved.solution * units
    mean = (rows.roots[:, 0] ** 2 @ targets - kernel_matrix.row_sums @ dual_coef) / rows.length**2
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


class _Rows:
    """The square roots of the rows' weights, and the projection onto what is orthogonal to the weighted constant."""

    def __init__(self, roots: Floats, centre: bool) -> None:
        self.roots = roots  # (n, 1)
        self.length = float(np.linalg.norm(roots))  # the root of the total weight
        self.constant = roots / self.length if centre else np.zeros_like(roots)

    def centred(self, vectors: Floats) -> Floats:
        """Return `P v`; with no intercept P is the identity."""
        return vectors - self.constant * (self.constant.T @ vectors)


class _KernelMatrix:
    """Products with `A = P W^1/2 K W^1/2 P`, of vectors in the range of P."""

    def __init__(self, passes: RowPasses, kernel: Kernel, rows: _Rows, bytes_held: int) -> None:
        self.rows = rows
        self.row_sums = np.zeros(len(rows.roots))  # K w, of which the intercept is made; known with the first product
        self._first = True
        n = passes.source.n_rows
        if 8 * n * n <= _budget(passes) - bytes_held:
            matrix = passes.kernel_matrix(kernel)
            self._product: Product = lambda vectors: matrix @ vectors
        else:
            self._product = lambda vectors: passes.kernel_product(kernel, vectors)

    def __call__(self, vectors: Floats) -> Floats:
        roots = self.rows.roots
        scaled = roots * vectors
        if self._first:
            images = self._product(np.hstack([scaled, roots**2]))
            images, self.row_sums, self._first = images[:, :-1], images[:, -1], False
        else:
            images = self._product(scaled)
        return self.rows.centred(roots * images)


class _Preconditioner:
    """`(L + s)^-1 v = (v - B (B'B + s)^-1 B'v)/s`, B weighted and centred, for the ridge s of each column.

    The ridge is raised to the rounding of a product with L, below which this would not be positive definite.
    """

    def __init__(self, passes: RowPasses, fit: LandmarkFit, rows: _Rows) -> None:
        self.spectrum, self.rotation, self.rows = fit.solver.spectrum, fit.solver.rotation, rows
        self.ridges = np.maximum(fit.scaled_ridge, _ROUNDING_RIDGE * self.spectrum.max(initial=0.0))
        n_bytes = 8 * passes.source.n_rows * fit.factor.rank
        self.bytes_held = n_bytes if n_bytes <= _budget(passes) else 0
        self._values, self._sums = _features(passes, fit.factor, bool(self.bytes_held))

    def __call__(self, vectors: Floats, columns: Columns) -> Floats:
        ridges, rows = self.ridges[columns], self.rows
        rotated = self.rotation.T @ self._sums(rows.roots * vectors)
        inside = self.rotation @ (rotated / (self.spectrum[:, None] + ridges))
        return (vectors - rows.centred(rows.roots * self._values(inside))) / ridges


def _features(passes: RowPasses, factor: NystromFactor, held: bool) -> tuple[Product, Product]:
    """Return the products with B and with B'."""
    if not held:
        return (lambda c: passes.feature_values(factor, c)), (lambda v: passes.feature_sums(factor, v))
    features = passes.features(factor.cross_kernel, factor.whitener)
    return (lambda c: features @ c), (lambda v: features.T @ v)


def _budget(passes: RowPasses) -> int:
    return DEFAULT_MEMORY_BUDGET if passes.memory_budget is None else passes.memory_budget
