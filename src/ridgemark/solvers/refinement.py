"""From a landmark fit to exact kernel ridge regression, with a certified distance after every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends.threads import all_blas_threads
from ridgemark.kernels import Kernel
from ridgemark.nystrom import NystromFactor
from ridgemark.passes import RowPasses
from ridgemark.rows import DEFAULT_MEMORY_BUDGET
from ridgemark.solvers.conjugate_gradient import Columns, Outcome, conjugate_gradient
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
        Products with K so far, that of the landmark fit's own residual included.
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
    reached: RefinementStep  # the bounds of this function
    history: tuple[RefinementStep, ...]
    outcomes: tuple[Outcome, ...]  # one for each target

    @property
    def n_products(self) -> int:
        """Products with K."""
        return self.history[-1].n_products


def refine(passes: RowPasses, kernel: Kernel, fit: LandmarkFit, tol: float, max_products: int) -> Refinement:
    """Solve `(W^1/2 K W^1/2 + scaled_ridge) x = W^1/2 y` by conjugate gradients from a landmark fit.

    With an intercept for the centred kernel and targets. The preconditioner is `L + scaled_ridge`, the landmark fit's
    own matrix; the start is its solution, `x = (y - f_L)/scaled_ridge`, so that the first residual is an audit of that
    fit. The coefficients are `W^1/2 x`. With r the residual of x, e its error and `A` the weighted, centred kernel:

    - `|A e| = |A (A + s)^-1 r| <= |r|`: the distance of what `predict` returns, on the rows;
    - `s |e| <= sqrt(s r'(A + s)^-1 r) <= sqrt(s r'(L + s)^-1 r)`: of `y - s x`, as L <= A;
    - `e'A e <= min(r'(L + s)^-1 r, |r|^2/(4 s))`: of the functions, in the norm of the kernel's space.

    `tol` is what the first must reach as root mean square over the rows. K is held where it fits the memory budget
    beside the features B, and evaluated anew for every product where it does not; likewise B.
    """
    roots = np.sqrt(passes.row_counts())[:, None]
    total_weight, ridges = fit.moments.total_weight, fit.scaled_ridge
    right = roots * (passes.targets() - fit.target_origin)
    constant = roots / np.sqrt(total_weight) if fit.fit_intercept else np.zeros_like(roots)
    preconditioner = _Preconditioner(passes, fit, roots, constant)
    kernel_product = _kernel_product(passes, kernel, preconditioner.bytes_held)

    def product(vectors: Floats, columns: Columns) -> Floats:
        return roots * kernel_product(roots * vectors) + ridges[columns] * vectors

    def bound(residual: Floats, preconditioned: Floats, columns: Columns) -> Floats:
        energy = np.maximum(np.sum(residual * preconditioned, axis=0), 0.0)
        size = _norms(residual - constant * (constant.T @ residual))
        ridge, floored = ridges[columns], preconditioner.ridges[columns]
        fitted = np.minimum(size, np.sqrt(floored * energy))
        norm = np.minimum(np.sqrt(floored / ridge * energy), size / (2.0 * np.sqrt(ridge)))
        return np.stack([size / np.sqrt(total_weight), fitted / np.sqrt(total_weight), norm])

    everyone = np.arange(right.shape[1])
    solved = conjugate_gradient(
        product,
        preconditioner,
        bound,
        right,
        preconditioner(right, everyone),
        np.full(right.shape[1], tol),
        max_products,
    )
    # The iterates are centred; what the residual has along the constant is the mean that the kernel leaves.
    intercept = (constant.T @ solved.residual)[0] / np.sqrt(total_weight)
    return Refinement(
        roots * solved.solution,
        intercept + fit.target_origin,
        RefinementStep(solved.n_products, *solved.bounds),
        tuple(RefinementStep(step.n_products, *step.bounds) for step in solved.history),
        solved.outcomes,
    )


class _Preconditioner:
    """`(L + s)^-1 v = (v - B (B'B + s)^-1 B'v)/s`, B weighted and centred, for the ridge s of each column.

    The ridge is raised to the rounding of a product with L, below which this would not be positive definite; a raised
    ridge s' has `(A + s)^-1 <= (s'/s) (L + s')^-1`, which the bounds use.
    """

    def __init__(self, passes: RowPasses, fit: LandmarkFit, roots: Floats, constant: Floats) -> None:
        self.spectrum, self.rotation = fit.solver.spectrum, fit.solver.rotation
        self.ridges = np.maximum(fit.scaled_ridge, _ROUNDING_RIDGE * self.spectrum.max(initial=0.0))
        self.roots, self.constant = roots, constant
        n_bytes = 8 * passes.source.n_rows * fit.factor.rank
        self.bytes_held = n_bytes if n_bytes <= _budget(passes) else 0
        self.values, self.sums = _features(passes, fit.factor, bool(self.bytes_held))

    def __call__(self, vectors: Floats, columns: Columns) -> Floats:
        ridges = self.ridges[columns]
        centred = self._centred(vectors)
        rotated = self.rotation.T @ self.sums(self.roots * centred)
        inside = self.rotation @ (rotated / (self.spectrum[:, None] + ridges))
        return (centred - self._centred(self.roots * self.values(inside))) / ridges

    def _centred(self, vectors: Floats) -> Floats:
        return vectors - self.constant * (self.constant.T @ vectors)


Product = Callable[[Floats], Floats]


def _features(passes: RowPasses, factor: NystromFactor, held: bool) -> tuple[Product, Product]:
    """Return the products with B and with B'."""
    if not held:
        return (lambda c: passes.feature_values(factor, c)), (lambda v: passes.feature_sums(factor, v))
    features = passes.features(factor)
    return (lambda c: features @ c), (lambda v: features.T @ v)


def _kernel_product(passes: RowPasses, kernel: Kernel, bytes_held: int) -> Product:
    """Return the product with K."""
    n = passes.source.n_rows
    if 8 * n * n > _budget(passes) - bytes_held:
        return lambda vectors: passes.kernel_product(kernel, vectors)
    matrix = passes.kernel_matrix(kernel)

    def product(vectors: Floats) -> Floats:
        with all_blas_threads():
            return matrix @ vectors

    return product


def _budget(passes: RowPasses) -> int:
    return DEFAULT_MEMORY_BUDGET if passes.memory_budget is None else passes.memory_budget


def _norms(vectors: Floats) -> Floats:
    return np.sqrt(np.einsum("ij,ij->j", vectors, vectors))
