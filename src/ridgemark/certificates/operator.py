"""The operator certificate: the largest eigenvalue of K - L, which holds for every signal at once."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ridgemark.certificates.dual import FittedRows, Meter, fitted_rows
from ridgemark.certificates.record import Certificate, check_failure_probability, issue
from ridgemark.certificates.rounding import residual_rounding, solution_rounding
from ridgemark.certificates.trace import distance, gap_inputs, risk_factor, trace_residual
from ridgemark.linalg import sum_rounding
from ridgemark.passes import RowPasses
from ridgemark.solvers import LandmarkFit

Floats = NDArray[np.float64]
Operator = Callable[[Floats], Floats]


def operator_certificate(
    passes: RowPasses, fit: LandmarkFit, *, rng: np.random.Generator, failure_probability: float = 0.05
) -> Certificate:
    """Bound the distance and the risk by `delta >= |K - L|`, found by Lanczos from a random start.

    As for `trace_certificate`, with a delta that is close. The risk factor is `(1 + delta/(n lambda))^2` or, sharper
    where all targets have one ridge, the worst case over all signals itself, `|(L + n lambda)^-1 (K + n lambda)|^2`;
    the smaller, as the variance does not grow. Each is found with half the failure probability. One product with K for
    each step of the first, two for each of the second; about log(n/rho)/2 + log 2 steps.

    Raises
    ------
    DataError
        When these are not the rows the model was fitted on.
    """
    check_failure_probability(failure_probability)
    meter = Meter(passes)
    rows = fitted_rows(passes, fit)
    products = _Products(passes, fit, rows)
    steps, share = lanczos_steps(len(rows.weights), failure_probability / 2)
    largest = lanczos(products.residual, len(rows.weights), steps, rng)
    trace = trace_residual(fit)
    lost = residual_rounding(fit) + products.kernel_rounding()
    delta = min(trace, largest / share + lost)
    factor = risk_factor(delta, fit)
    ridges = np.unique(fit.scaled_ridge)
    if len(ridges) == 1:
        worst = lanczos(lambda v: products.bias(v, float(ridges[0])), len(rows.weights), steps, rng)
        factor = min(factor, (math.sqrt(max(worst, 1.0) / share) + lost / float(ridges[0])) ** 2)
    bound = (
        distance(delta, fit.scaled_ridge, rows.rms_left, rows.scaled_primal(fit.scaled_ridge))
        + 2.0 * rows.value_rounding
        + solution_rounding(fit)
        + np.abs(rows.offset)
    )
    inputs = {**gap_inputs(delta, fit), "lanczos_steps": steps, "ritz_value": largest, "trace_residual": trace}
    return issue(
        "operator",
        fit,
        bound,
        meter.read(),
        inputs,
        failure_probability=failure_probability,
        risk_factor=factor,
    )


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


def lanczos(apply: Operator, n: int, steps: int, rng: np.random.Generator) -> float:
    """Return the largest Ritz value after some steps from a Gaussian start, with full reorthogonalisation.

    What the products' rounding may have taken from it is added: twice what should vanish by symmetry, and does not, of
    the operator in the basis found.
    """
    basis, seen = np.zeros((n, steps)), np.zeros((steps, steps))
    vector = rng.standard_normal(n)
    vector /= np.linalg.norm(vector)
    for k in range(steps):
        basis[:, k] = vector
        image = apply(vector)
        for _ in range(2):  # once leaves what rounding brings back
            part = basis[:, : k + 1].T @ image
            image = image - basis[:, : k + 1] @ part
            seen[: k + 1, k] += part
        length = float(np.linalg.norm(image))
        if k + 1 == steps or not length > 1e-12 * np.abs(seen).max():  # the space is exhausted: the value is exact
            seen = seen[: k + 1, : k + 1]
            break
        seen[k + 1, k] = length
        vector = image / length
    values, asymmetry = np.linalg.eigvalsh((seen + seen.T) / 2), float(np.linalg.norm(seen - seen.T))
    return max(0.0, float(values[-1])) + 2.0 * asymmetry


class _Products:
    """Products with K and L, weighted and centred: `P W^1/2 K W^1/2 P`."""

    def __init__(self, passes: RowPasses, fit: LandmarkFit, rows: FittedRows) -> None:
        self._passes, self._fit = passes, fit
        self._root = np.sqrt(rows.weights)
        self._mean = self._root / np.linalg.norm(self._root)
        self._kernel = fit.factor.cross_kernel.kernel
        self._lengths, self._errors = rows.lengths, np.zeros_like(rows.lengths)

    def kernel_rounding(self) -> float:
        """Return a bound on the rounding of products with K, the largest sum of a row's errors."""
        total = float(self._lengths @ self._lengths)
        return float((self._lengths * self._errors).max()) + sum_rounding(len(self._lengths)) * total

    def residual(self, vector: Floats) -> Floats:
        """Return `(K - L) v`."""
        inner = self._root * self._centred(vector)
        onto = self._fit.factor.whitener.T @ self._onto_landmarks(inner)
        values = self._times_kernel(inner) - self._from_landmarks(self._fit.factor.whitener @ onto)
        return self._centred(self._root * values)

    def bias(self, vector: Floats, scaled_ridge: float) -> Floats:
        """Return `(K + s)(L + s)^-2 (K + s) v`."""
        image = self._shifted(vector, scaled_ridge)
        image = self._unshift(self._unshift(image, scaled_ridge), scaled_ridge)
        return self._shifted(image, scaled_ridge)

    def _shifted(self, vector: Floats, scaled_ridge: float) -> Floats:
        """Return `(K + s) v` for the centred part of v: what rounding leaves of a mean would grow from step to step."""
        vector = self._centred(vector)
        return self._centred(self._root * self._times_kernel(self._root * vector)) + scaled_ridge * vector

    def _unshift(self, vector: Floats, scaled_ridge: float) -> Floats:
        """Return `(L + s)^-1 v = (v - B (B'B + s)^-1 B'v)/s`, again for the centred part."""
        vector = self._centred(vector)
        solver, whitener = self._fit.solver, self._fit.factor.whitener
        rotated = solver.rotation.T @ (whitener.T @ self._onto_landmarks(self._root * vector))
        explained = whitener @ (solver.rotation @ (rotated / (solver.spectrum + scaled_ridge)))
        return (vector - self._centred(self._root * self._from_landmarks(explained))) / scaled_ridge

    def _times_kernel(self, vector: Floats) -> Floats:
        if self._errors.any():
            return self._passes.kernel_product(self._kernel, vector[:, None])[:, 0]
        product, errors = self._passes.kernel_product_and_error(self._kernel, vector[:, None], self._lengths[:, None])
        self._errors = errors[:, 0]
        return product[:, 0]

    def _onto_landmarks(self, vector: Floats) -> Floats:
        return self._passes.cross_product(self._fit.factor.cross_kernel, vector[:, None])[:, 0]

    def _from_landmarks(self, vector: Floats) -> Floats:
        return self._passes.cross_values(self._fit.factor.cross_kernel, vector[:, None])[:, 0]

    def _centred(self, vector: Floats) -> Floats:
        return vector - self._mean * (self._mean @ vector) if self._fit.fit_intercept else vector
