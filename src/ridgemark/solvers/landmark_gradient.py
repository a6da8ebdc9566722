"""Coefficients of very many landmarks by conjugate gradients, without forming B'WB."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ridgemark import linalg
from ridgemark.backends import NUMPY, Floats, Indices, backend_of
from ridgemark.backends.threads import one_blas_thread
from ridgemark.kernels import CrossKernel, Kernel
from ridgemark.operators import Cross
from ridgemark.operators.factor import block_of_landmarks
from ridgemark.operators.held import hold_on_device
from ridgemark.passes import RowPasses
from ridgemark.rows import Block
from ridgemark.solvers.conjugate_gradient import Columns, GradientSolution, GradientStep, Outcome, conjugate_gradient

# Steps of which one measures the residual, where `_NormalEquations.solve` measures it in double precision at the end.
_MEASURED_EVERY = 4
_HELD_PART = 4  # C is held where it takes at most this part, 1/4, of the memory budget


@dataclass(frozen=True, eq=False)
class LandmarkGradientFit:
    """`f(x) = k(x, Z) dual_coef + intercept` for landmarks Z, with bounds on its distance from the direct solution.

    Attributes
    ----------
    dual_coef : array of shape (p, targets)
        Zero for landmarks that the others explain up to rounding.
    intercept : array of shape (targets,)
        In the targets' own units.
    bound : array of shape (targets,)
        Bound on the RMS distance of the fitted values from those of the direct solution.
    n_products : array of shape (targets,)
        Products with `B'WB`, each one pass.
    outcomes : tuple of str
        The outcome of each target.
    """

    dual_coef: Floats
    intercept: Floats
    bound: Floats
    n_products: Indices
    outcomes: tuple[Outcome, ...]


@one_blas_thread()
def landmark_gradient(
    passes: RowPasses,
    kernel: Kernel,
    landmarks: Block,
    landmark_weights: Floats,
    scaled_ridge: Floats,
    target_origin: Floats,
    fit_intercept: bool,
    tol: float,
    max_products: int,
) -> LandmarkGradientFit:
    """Solve `(B'WB + s I) c = B'W y` by conjugate gradients, s the scaled ridge; centred with an intercept.

    The features are `B = C R^-1` with `R'R` the pivoted Cholesky factor of the landmark kernel, without landmarks that
    others explain up to rounding. The preconditioner is the same matrix with the landmarks in place of the rows,
    `R D R' + s I`: the features of landmark j are column j of R, and `sum_j D_j b_j b_j'` estimates `B'WB`.
    A residual r means an error `e = (B'WB + s)^-1 r` of the coefficients, and of the fitted values

    `|W^1/2 B e| = |W^1/2 B (B'WB + s)^-1 r| <= |r| max_t sqrt(t)/(t + s) = |r|/(2 sqrt(s))`,

    which over all rows must be at most `tol` as root mean square. Two p x p arrays are held, and C where it takes at
    most a quarter of the memory budget.

    Parameters
    ----------
    passes : RowPasses
        The rows, with their targets.
    kernel : Kernel
        The kernel.
    landmarks : Block
        The landmarks; `indices` are needed by a precomputed kernel only.
    landmark_weights : array of shape (p,)
        D: the weight of the rows that each landmark represents, the inverse of its inclusion probability; for uniform
        landmarks the total weight over p.
    scaled_ridge : array of shape (targets,)
        n lambda for each target.
    target_origin : array of shape (targets,)
        Subtracted from the targets; zero without an intercept.
    fit_intercept : bool
        Whether there is an unpenalised constant.
    tol : float
        Largest RMS distance from the direct solution, in units of the targets.
    max_products : int
        Largest number of products with `B'WB` for one ridge.
    """
    block = block_of_landmarks(kernel.bind(landmarks.features, landmarks.indices), landmarks.features)
    backend = backend_of(block)
    landmark_kernel = linalg.check_range(backend.double(block))
    triangle, kept = linalg.pivoted_cholesky(landmark_kernel, backend.precision(block), overwrite=True)
    del block, landmark_kernel
    cross_kernel = kernel.bind(landmarks.features[kept], landmarks.indices[kept])
    ridges = np.unique(scaled_ridge)
    # Before C is held, which may leave no memory for it on a device.
    factor = _preconditioner(triangle, landmark_weights[kept], float(ridges[0]))
    solving = linalg.for_solving(triangle)
    if len(ridges) == 1:
        del triangle
    system = _NormalEquations(passes, cross_kernel, solving, target_origin, fit_intercept)
    p, t = landmarks.n_rows, len(scaled_ridge)
    coefficients = np.zeros((len(kept), t))
    bound, n_products = np.zeros(t), np.zeros(t, dtype=np.intp)
    outcomes: list[Outcome] = ["converged"] * t
    length = np.sqrt(system.total_weight)
    for ridge in ridges:
        if ridge > ridges[0]:
            factor = _preconditioner(triangle, landmark_weights[kept], ridge)
        of_ridge = np.flatnonzero(scaled_ridge == ridge)
        solved = system.solve(of_ridge, ridge, factor, 2.0 * np.sqrt(ridge) * length * tol, max_products)
        coefficients[:, of_ridge] = solved.solution
        bound[of_ridge] = solved.reached.residual / (2.0 * np.sqrt(ridge) * length)
        n_products[of_ridge] = solved.reached.n_products
        for column, outcome in zip(of_ridge, solved.outcomes, strict=True):
            outcomes[column] = outcome
    dual_coef = np.zeros((p, t))
    dual_coef[kept] = linalg.solve_triangle(solving, coefficients)
    intercept = target_origin + system.target_mean - system.cross_mean @ dual_coef[kept]
    return LandmarkGradientFit(dual_coef, intercept, bound, n_products, tuple(outcomes))


class _NormalEquations:
    """`B'WB c = B'W y` with `B = C R^-1`, products in one pass over the rows."""

    def __init__(
        self, passes: RowPasses, cross_kernel: CrossKernel, triangle: Any, target_origin: Floats, fit_intercept: bool
    ) -> None:
        self.triangle = triangle
        self.cross = self.exact = Cross(passes, cross_kernel)
        if passes.backend is NUMPY:
            self.cross.hold(passes.budget // _HELD_PART)
        else:
            hold_on_device(self.cross, single=True)
            if getattr(self.cross.held, "single", False):
                self.exact = Cross(passes, cross_kernel)
        weights, targets = passes.row_counts(), passes.targets() - target_origin
        self.total_weight = float(weights.sum())
        sums = self.exact.T @ (weights[:, None] * np.c_[np.ones(len(targets)), targets])
        self.cross_mean, self.target_mean = np.zeros(len(sums)), np.zeros(targets.shape[1])
        if fit_intercept:
            self.cross_mean, self.target_mean = sums[:, 0] / self.total_weight, weights @ targets / self.total_weight
        self.right = linalg.solve_triangle(
            triangle, sums[:, 1:] - np.outer(sums[:, 0], self.target_mean), transposed=True
        )

    def gram_product(self, vectors: Floats, cross: Cross) -> Floats:
        """Return `B'W B V`, B centred where there is an intercept."""
        inner = linalg.solve_triangle(self.triangle, vectors)
        return linalg.solve_triangle(self.triangle, cross.normal(inner, self.cross_mean @ inner), transposed=True)

    def solve(self, targets: Columns, ridge: float, factor: Any, tol: float, max_products: int) -> GradientSolution:
        """Solve for some targets with one ridge.

        Where C is held in single precision, the solution for the residual in double precision is added until that is
        small enough, or does not fall to a half any more.
        """
        right = self.right[:, targets]
        solved = self._solve(right, ridge, factor, tol, max_products)
        if self.cross is self.exact:
            return solved
        size = np.linalg.norm(right, axis=0)
        while True:
            residual = right - self.gram_product(solved.solution, self.exact) - ridge * solved.solution
            solved = _with_residual(solved, residual, tol)
            norms, before = solved.reached.residual, size
            if (norms <= tol).all() or not (norms < before / 2).all() or solved.reached.n_products >= max_products:
                return solved
            size = norms
            more = self._solve(residual, ridge, factor, tol, max_products - solved.reached.n_products)
            done = solved.reached.n_products
            steps = tuple(replace(step, n_products=done + step.n_products) for step in more.history[1:])
            solved = replace(more, solution=solved.solution + more.solution, history=(*solved.history, *steps))

    def _solve(self, right: Floats, ridge: float, factor: Any, tol: float, max_products: int) -> GradientSolution:
        return conjugate_gradient(
            lambda vectors, _: self.gram_product(vectors, self.cross) + ridge * vectors,
            lambda vectors, _: linalg.solve_cholesky(factor, vectors),
            right,
            np.full(right.shape[1], tol),
            max_products,
            recompute_every=1 if self.cross is self.exact else _MEASURED_EVERY,
        )


def _with_residual(solved: GradientSolution, residual: Floats, tol: float) -> GradientSolution:
    """Return the solution with its residual in double precision as one more step."""
    norms, last = np.linalg.norm(residual, axis=0), solved.reached
    step = GradientStep(last.n_products + 1, norms, np.zeros_like(norms))
    outcomes: tuple[Outcome, ...] = tuple("converged" if norm <= tol else "stagnated" for norm in norms)
    return replace(solved, residual=residual, history=(*solved.history, step), outcomes=outcomes)


def _preconditioner(triangle: Any, landmark_weights: Floats, ridge: float) -> Any:
    """Return the Cholesky factor of `R D R' + s' I`, s' at least the ridge.

    p landmarks estimate the smaller half of p eigenvalues badly, so s' is at least the median of `D_j R_jj^2`, about
    the middle eigenvalue; and at least the rounding error of `R D R'`. A larger s' changes the speed of convergence,
    not the solution.
    """
    if not len(triangle):
        return triangle
    backend = backend_of(triangle)
    raised = max(ridge, float(np.median(landmark_weights * backend.to_host(backend.diagonal(triangle)) ** 2)))
    roots = np.sqrt(landmark_weights)

    def make() -> Any:
        on_host = isinstance(triangle, np.ndarray)
        scaled = np.multiply(triangle, roots, order="F") if on_host else triangle * backend.from_host(roots)
        return linalg.times_own_transpose_(scaled)

    return linalg.for_solving(linalg.raised_cholesky(make, raised))
