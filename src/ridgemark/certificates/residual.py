"""Trace and operator certificates: from the trace or the largest eigenvalue of K - L, for every signal at once."""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ridgemark.backends import Floats
from ridgemark.certificates.dual import FittedRows, best_mixture
from ridgemark.certificates.record import Certificate, check_failure_probability, issue
from ridgemark.certificates.rounding import primal_value, residual_rounding, rms_residual, solution_rounding
from ridgemark.linalg import sum_rounding
from ridgemark.operators import Features, KernelMatrix, ShiftedInverse, Weighting
from ridgemark.passes import RowPasses
from ridgemark.solvers import LandmarkFit


def trace_certificate(fit: LandmarkFit) -> Certificate:
    """Bound the distance to exact by `delta = tr(K - L)`, an upper bound on the largest eigenvalue of K - L.

    With `t = delta/(n lambda)`, `|f_K - f_L| <= t/(1 + t) |y - f_L|` where t is at most 1 and `sqrt(t)/2 |y - f_L|`
    where it is larger (see `distance`), and
    `risk(f_L) <= (1 + delta/(n lambda))^2 risk(f_K)`. Deterministic and free. The risk factor is nearly always far too
    large; it is useful to compare sets of landmarks.
    """
    start = time.perf_counter()
    delta = trace_residual(fit)
    bound = distance(delta, fit.scaled_ridge, rms_residual(fit), primal_value(fit)) + solution_rounding(fit)
    cost = {"kernel_entries": 0, "seconds": time.perf_counter() - start}
    return issue("trace", fit, bound, cost, gap_inputs(delta, fit), risk_factor(delta, fit))


def distance(delta: float, scaled_ridge: Floats, residual: Floats, primal: Floats) -> Floats:
    """Return the bound on the distance for any `delta >= |K - L|`.

    With E = K - L, `a = (y - f_L)/(n lambda)` and r = E a, take multiples of h for v in the bound of `audit`: as
    `|r|^2 <= delta a'E a` and the duality gap is `G = n lambda a'E a <= n lambda delta |a|^2`, the best multiple gives
    `t/(1 + t) |y - f_L|` for `t = delta/(n lambda) <= 1`, and `sqrt(t)/2 |y - f_L|` beyond. Multiples of a as dual
    points give `((1 - s) |y - f_L| + sqrt((1 - s)^2 P + s^2 G))/2`, P the primal value, for any s in [0, 1].
    """
    ratio = delta / scaled_ridge
    by_multiple = np.where(ratio < 1.0, ratio / (1.0 + ratio), np.sqrt(ratio) / 2) * residual
    return np.minimum(by_multiple, best_mixture(residual, primal, ratio * residual**2))


def risk_factor(delta: float, fit: LandmarkFit) -> float:
    """Return `(1 + delta/(n lambda))^2` at the smallest ridge."""
    return float((1.0 + delta / fit.scaled_ridge.min()) ** 2)


def gap_inputs(delta: float, fit: LandmarkFit) -> dict[str, Any]:
    """Return the inputs that trace and operator certificates record."""
    return {"delta": delta, "delta_over_scaled_ridge": (delta / fit.scaled_ridge).tolist()}


def trace_residual(fit: LandmarkFit) -> float:
    """Return tr(K - L) with an allowance for rounding."""
    return fit.moments.trace_residual + residual_rounding(fit)


def operator_certificate(
    passes: RowPasses, fit: LandmarkFit, *, rng: np.random.Generator, failure_probability: float = 0.05
) -> Certificate:
    """Bound the distance and the risk by `delta >= |K - L|`, found by Lanczos from a random start.

    The bounds are those of `trace_certificate`, with a delta close to `|K - L|`. The risk factor is
    `(1 + delta/(n lambda))^2` or, where all targets have one ridge, the worst case over all signals itself,
    `|(L + n lambda)^-1 (K + n lambda)|^2`; the smaller of the two, since the variance does not grow. Each takes half
    the failure probability. A Lanczos step takes one product with K for the first and two for the second; about
    log(n/rho)/2 + log 2 steps.

    Raises
    ------
    DataError
        When these are not the rows the model was fitted on.
    """
    check_failure_probability(failure_probability)
    rows = FittedRows(passes, fit)
    products = _Products(rows)
    steps, share = lanczos_steps(len(rows.weights), failure_probability / 2)
    largest = lanczos(products.residual, len(rows.weights), steps, rng)
    trace = trace_residual(fit)
    rounding = residual_rounding(fit) + products.kernel_rounding()
    delta = min(trace, largest / share + rounding)
    factor = risk_factor(delta, fit)
    ridges = np.unique(fit.scaled_ridge)
    if len(ridges) == 1:
        worst = lanczos(lambda v: products.bias(v, float(ridges[0])), len(rows.weights), steps, rng)
        sharper = math.sqrt(max(worst, 1.0) / share) + rounding / float(ridges[0])
        factor = min(factor, sharper * sharper)  # not `**`, which raises OverflowError where the result is infinite
    bound = (
        distance(delta, fit.scaled_ridge, rows.rms_residual, rows.primal)
        + 2.0 * rows.value_rounding
        + solution_rounding(fit)
        + np.abs(rows.offset)
    )
    inputs = {**gap_inputs(delta, fit), "lanczos_steps": steps, "ritz_value": largest, "trace_residual": trace}
    inputs |= {"failure_probability": failure_probability}
    return issue("operator", fit, bound, rows.cost, inputs, factor)


def lanczos_steps(n: int, failure_probability: float) -> tuple[int, float]:
    """Return the number of Lanczos steps, and the share of the largest eigenvalue they find.

    After k steps from a random start the largest Ritz value of a positive semidefinite n x n matrix is below `1 - e`
    times its largest eigenvalue with probability at most `1.648 sqrt(n) exp(-sqrt(e) (2k - 1))` (Kuczynski and
    Wozniakowski, SIAM J. Matrix Anal. Appl. 13, 1992, Theorem 4.2). k is the least for which e is at most 1/4.
    """
    logarithm = math.log(1.648 * math.sqrt(n) / failure_probability)
    steps = math.ceil(logarithm + 0.5)
    if steps >= n:  # the whole space
        return n, 1.0
    return steps, 1.0 - (logarithm / (2 * steps - 1)) ** 2


def lanczos(apply: Callable[[Floats], Floats], n: int, steps: int, rng: np.random.Generator) -> float:
    """Return the largest Ritz value after some steps from a Gaussian start, with full reorthogonalisation.

    An allowance for the rounding of products is added: twice the norm of the asymmetry of the projected operator, which
    is zero in exact arithmetic.
    """
    basis, projected = np.zeros((n, steps)), np.zeros((steps, steps))
    vector = rng.standard_normal(n)
    vector /= np.linalg.norm(vector)
    for k in range(steps):
        basis[:, k] = vector
        image = apply(vector)
        for _ in range(2):  # twice: the first leaves components of the size of rounding
            part = basis[:, : k + 1].T @ image
            image = image - basis[:, : k + 1] @ part
            projected[: k + 1, k] += part
        length = float(np.linalg.norm(image))
        if k + 1 == steps or not length > 1e-12 * np.abs(projected).max():  # an invariant subspace: the value is exact
            projected = projected[: k + 1, : k + 1]
            break
        projected[k + 1, k] = length
        vector = image / length
    values = np.linalg.eigvalsh((projected + projected.T) / 2)
    asymmetry = float(np.linalg.norm(projected - projected.T))
    return max(0.0, float(values[-1])) + 2.0 * asymmetry


class _Products:
    """Products with K and L, weighted and centred: `P W^1/2 K W^1/2 P`."""

    def __init__(self, rows: FittedRows) -> None:
        passes, fit = rows.passes, rows.fit
        self._weighting = Weighting(rows.weights, fit.fit_intercept)
        self._kernel_matrix = KernelMatrix(passes, fit.factor.cross_kernel.kernel)
        self._features = Features(passes, fit.factor)
        self._solver = fit.solver
        self._lengths, self._errors = rows.lengths, np.zeros_like(rows.lengths)

    def kernel_rounding(self) -> float:
        """Return a bound on the rounding error of products with K: the largest row sum of the errors."""
        total = float(self._lengths @ self._lengths)
        return float((self._lengths * self._errors).max()) + sum_rounding(len(self._lengths)) * total

    def residual(self, vector: Floats) -> Floats:
        """Return `(K - L) v`."""
        inner = self._weighting.transpose(vector[:, None])
        explained = self._features @ (self._features.T @ inner)
        return self._weighting(self._times_kernel(inner) - explained)[:, 0]

    def bias(self, vector: Floats, scaled_ridge: float) -> Floats:
        """Return `(K + s)(L + s)^-2 (K + s) v`."""
        spectrum, rotation = self._solver.spectrum, self._solver.rotation
        inverse = ShiftedInverse(self._features, self._weighting, spectrum, rotation, np.array([scaled_ridge]))
        image = self._shifted(vector[:, None], scaled_ridge)
        # Projected again, since a mean caused by rounding would grow from step to step.
        image = inverse(self._weighting.project(inverse(self._weighting.project(image))))
        return self._shifted(image, scaled_ridge)[:, 0]

    def _shifted(self, vectors: Floats, scaled_ridge: float) -> Floats:
        """Return `(K + s) V` for the centred part of V."""
        vectors = self._weighting.project(vectors)
        return self._weighting(self._times_kernel(self._weighting.roots * vectors)) + scaled_ridge * vectors

    def _times_kernel(self, vectors: Floats) -> Floats:
        if self._errors.any():
            return self._kernel_matrix @ vectors
        product, errors = self._kernel_matrix.product_and_error(vectors, self._lengths[:, None])
        self._errors = errors[:, 0]
        return product
