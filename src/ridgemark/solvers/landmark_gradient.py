"""Coefficients of very many landmarks by conjugate gradients, without forming B'WB."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ridgemark import linalg
from ridgemark.backends import NUMPY, Floats, Indices, backend_of, one_blas_thread
from ridgemark.kernels import Kernel
from ridgemark.losses import loss_sums
from ridgemark.operators import Cross, NystromFactor, hold_on_device, nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows, Block
from ridgemark.solvers.choice import rows_of_preconditioner
from ridgemark.solvers.conjugate_gradient import GradientSolution, GradientStep, Outcome, conjugate_gradient
from ridgemark.solvers.landmark_fit import CentredMoments, LandmarkFit
from ridgemark.solvers.rounding import landmark_rounding, mean_entry_error, prediction_rounding, solved_rounding

# One step of this many measures the residual in single precision; it is measured in double precision at the end.
_MEASURED_EVERY = 4
# C is held, and rows of the preconditioner are copied, where each takes at most this part, 1/4, of the memory budget.
_PART_OF_BUDGET = 4
# Tolerance in single precision, relative to the one in double precision: the residuals of the two differ.
_STRICTER = 0.5


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
        Bound on the RMS distance of the fitted values from those of the direct solution, with rounding.
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
    passes: RowPasses, kernel: Kernel, landmarks: Block, fit: LandmarkFit, tol: float, max_products: int
) -> LandmarkGradientFit:
    """Solve `(B'WB + s I) c = B'W y` by conjugate gradients, s the scaled ridge; centred with an intercept.

    The features are `B = C T` with T the inverse of the pivoted Cholesky factor of the landmark kernel, without
    landmarks that others explain up to rounding. The preconditioner is the same matrix over a part of the rows: the
    landmarks, and a uniform sample of the other rows, whose weights are raised to the total weight of these. A residual
    r means an error `e = (B'WB + s)^-1 r` of the coefficients, and of the fitted values

    `|W^1/2 B e| = |W^1/2 B (B'WB + s)^-1 r| <= |r| max_t sqrt(t)/(t + s) = |r|/(2 sqrt(s))`,

    which over all rows must be at most `tol` as root mean square. Two p x p arrays are held, three for several
    ridges, and C where it takes at most a quarter of the memory budget.

    The bound of the result adds a generous estimate of the rounding of kernel values, features and their sums,
    `solved_rounding`, and the rounding of predictions. As `|W^1/2 (f - f*)|^2 <= J(f) - J(f*)` for the objective J, it
    is at most the root of J plus the rounding of predictions, even if landmarks differ by less than rounding.

    Parameters
    ----------
    passes : RowPasses
        The rows, with their targets.
    kernel : Kernel
        The kernel.
    landmarks : Block
        The landmarks, with their `indices` where they are rows; a precomputed kernel needs these.
    fit : LandmarkFit
        A fit from other landmarks, of which n lambda for each target, the origin of the targets and whether there is an
        unpenalised constant are taken.
    tol : float
        Largest RMS distance from the direct solution, in units of the targets.
    max_products : int
        Largest number of products with `B'WB` for one ridge.
    """
    factor = nystrom_factor(kernel, landmarks.features, landmarks.taken, stays=True)
    backend = backend_of(factor.landmark_kernel)
    lengths = np.sqrt(np.array(backend.to_host(backend.diagonal(factor.landmark_kernel))))
    # From here on only its root is used, and the kernel of the landmarks is freed: a slice would keep all of it.
    factor = replace(factor, landmark_kernel=backend.zeros((0, landmarks.n_rows)))
    ridges, t = np.unique(fit.scaled_ridge), len(fit.scaled_ridge)
    # Before C is held, which may leave no memory for it on a device.
    gram, size, entry_error = _gram_of_sample(passes, factor, landmarks.taken, fit.fit_intercept)
    preconditioner = _preconditioner(gram, float(ridges[0]))
    if len(ridges) == 1:
        del gram
    system = _NormalEquations(passes, factor, fit.target_origin, fit.fit_intercept)
    coefficients, bound, n_products = np.zeros((factor.rank, t)), np.zeros(t), np.zeros(t, dtype=np.intp)
    outcomes: list[Outcome] = ["converged"] * t
    length = np.sqrt(system.total_weight)
    for ridge in ridges:
        if ridge > ridges[0]:
            preconditioner = _preconditioner(gram, float(ridge))
        of_ridge = np.flatnonzero(fit.scaled_ridge == ridge)
        solved = system.solve(of_ridge, ridge, preconditioner, 2.0 * np.sqrt(ridge) * length * tol, max_products)
        coefficients[:, of_ridge] = solved.solution
        bound[of_ridge] = solved.reached.residual / (2.0 * np.sqrt(ridge) * length)
        n_products[of_ridge] = solved.reached.n_products
        for column, outcome in zip(of_ridge, solved.outcomes, strict=True):
            outcomes[column] = outcome
    kept_coef = linalg.solve_triangle(system.root, coefficients)
    dual_coef = np.zeros((landmarks.n_rows, t))
    dual_coef[factor.kept] = kept_coef
    intercept = fit.target_origin + system.target_mean - system.cross_mean @ kept_coef
    errors = passes.targets() - (system.exact @ kept_coef + intercept)
    objective = passes.row_counts() @ errors**2 + fit.scaled_ridge * (coefficients**2).sum(axis=0)
    moments = replace(fit.moments, entry_error=entry_error**2 * fit.moments.trace_kernel)
    unsolved = solved_rounding(moments, 1.0 + size / fit.scaled_ridge) * np.sqrt(fit.centred.target_variance)
    reach, constants = lengths @ abs(dual_coef), abs(intercept) + abs(fit.target_origin)
    predicted = prediction_rounding(factor, moments, reach, constants)
    share = 2.0 * (landmark_rounding(factor) + factor.kept_kernel.landmark_error)  # of the squared norm of f
    largest = np.sqrt((objective + fit.scaled_ridge * share * reach**2) / moments.total_weight) + predicted
    bound = np.add(predicted, np.minimum(bound + unsolved, largest))
    return LandmarkGradientFit(dual_coef, intercept, bound, n_products, tuple(outcomes))


class _NormalEquations:
    """`B'WB c = B'W y` with `B = C T`, products in one pass over the rows."""

    def __init__(self, passes: RowPasses, factor: NystromFactor, target_origin: Floats, fit_intercept: bool) -> None:
        self.root = linalg.InvertedTriangle(factor.triangle)
        self.cross = self.exact = Cross(passes, factor.kept_kernel)
        if passes.backend is NUMPY:
            self.cross.hold(passes.budget // _PART_OF_BUDGET)
        else:
            hold_on_device(self.cross, single=True)
            if getattr(self.cross.held, "single", False):
                self.exact = Cross(passes, factor.kept_kernel)
        weights, targets = passes.row_counts(), passes.targets() - target_origin
        self.total_weight = float(weights.sum())
        sums = self.exact.T @ (weights[:, None] * np.c_[np.ones(len(targets)), targets])
        self.cross_mean, self.target_mean = np.zeros(len(sums)), np.zeros(targets.shape[1])
        if fit_intercept:
            self.cross_mean, self.target_mean = sums[:, 0] / self.total_weight, weights @ targets / self.total_weight
        centred = sums[:, 1:] - np.outer(sums[:, 0], self.target_mean)
        self.right = linalg.solve_triangle(self.root, centred, transposed=True)

    def gram_product(self, vectors: Floats, cross: Cross) -> Floats:
        """Return `B'W B V`, B centred where there is an intercept."""
        inner = linalg.solve_triangle(self.root, vectors)
        return linalg.solve_triangle(self.root, cross.normal(inner, self.cross_mean @ inner), transposed=True)

    def solve(self, targets: Indices, ridge: float, factor: Any, tol: float, max_products: int) -> GradientSolution:
        """Solve for some targets with one ridge.

        Where C is held in single precision, the solution for the residual in double precision is added until that is
        small enough, or does not fall to a half any more.
        """
        right = self.right[:, targets]
        if self.cross is self.exact:
            return self._solve(right, ridge, factor, tol, max_products)
        solved = self._solve(right, ridge, factor, _STRICTER * tol, max_products)
        size = np.linalg.norm(right, axis=0)
        while True:
            residual = right - self.gram_product(solved.solution, self.exact) - ridge * solved.solution
            solved = _with_residual(solved, residual, tol)
            norms, before = solved.reached.residual, size
            if (norms <= tol).all() or not (norms < before / 2).all() or solved.reached.n_products >= max_products:
                return solved
            size = norms
            more = self._solve(residual, ridge, factor, _STRICTER * tol, max_products - solved.reached.n_products)
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


def _gram_of_sample(
    passes: RowPasses, factor: NystromFactor, landmarks: Indices | None, fit_intercept: bool
) -> tuple[Any, float, float]:
    """Return an estimate of `B'WB`, centred with an intercept: from the landmarks and a sample of the other rows.

    Second is its norm before centring, third the mean relative error of the kernel values.

    Landmarks keep their own weights, since many are unlike all other rows and do not stand for them. The sample changes
    only the speed of convergence, and is the same for every seed.
    """
    if not factor.rank:
        return np.zeros((0, 0)), 0.0, 0.0
    weights = passes.row_counts()
    chosen = np.zeros(0, dtype=np.intp) if landmarks is None else np.unique(landmarks)
    others = np.delete(np.arange(len(weights)), chosen)
    room = passes.budget // _PART_OF_BUDGET // (8 * passes.source.n_features) - len(chosen)
    size = min(rows_of_preconditioner(len(weights), factor.rank), max(room, factor.rank))
    sampled = np.sort(np.random.default_rng(0).permutation(others)[:size])
    share = weights[sampled].sum() / max(weights[others].sum(), np.finfo(np.float64).tiny)
    raised = weights[sampled] / (share or 1.0)
    rows = passes.take(np.concatenate([chosen, sampled]))
    weights = np.concatenate([weights[chosen], raised])
    sample = RowPasses(ArrayRows(rows.features, None, weights), passes.memory_budget, passes.progress)
    sums = loss_sums(sample, factor, stays=True)
    passes.count_entries(sample.n_kernel_evaluations)
    norm = float(backend_of(sums.gram).xp.linalg.norm(sums.gram))
    return CentredMoments(sums, fit_intercept).gram, norm, mean_entry_error(sums)


def _preconditioner(gram: Any, ridge: float) -> Any:
    """Return the Cholesky factor of `G + s I`, with s at least the ridge and the rounding error of G."""
    if not len(gram):
        return gram
    return linalg.for_solving(linalg.raised_cholesky(gram, ridge))
