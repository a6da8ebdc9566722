"""The certificate that costs nothing: from the trace of K - L, summed while fitting."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.certificates.dual import ROUNDING, between, feature_sizes, primal_value, rms_left, solution_rounding
from ridgemark.certificates.record import Certificate, issue
from ridgemark.operators import NystromFactor
from ridgemark.solvers import LandmarkFit

Floats = NDArray[np.float64]


def trace_certificate(fit: LandmarkFit) -> Certificate:
    """Bound the distance to exact by `delta = tr(K - L)`, an upper bound on the largest eigenvalue of K - L.

    `|f_K - f_L| <= delta/sqrt(n lambda (n lambda + delta)) |y - f_L|` (see `distance`), and
    `risk(f_L) <= (1 + delta/(n lambda))^2 risk(f_K)`. Deterministic and free; the risk factor is nearly always far too
    large, and serves to compare sets of landmarks.
    """
    start = time.perf_counter()
    delta = trace_residual(fit)
    bound = distance(delta, fit.scaled_ridge, rms_left(fit), primal_value(fit)) + solution_rounding(fit)
    cost = {"kernel_entries": 0, "seconds": time.perf_counter() - start}
    return issue("trace", fit, bound, cost, gap_inputs(delta, fit), risk_factor=risk_factor(delta, fit))


def distance(delta: float, scaled_ridge: Floats, left: Floats, primal: Floats) -> Floats:
    """Return the bound on the distance that any `delta >= |K - L|` gives.

    With E = K - L and `a = (y - f_L)/(n lambda)`: `f_K - f_L = n lambda (K + n lambda)^-1 E a`, so
    `|f_K - f_L|^2 <= n lambda a'E (K + n lambda)^-1 E a <= n lambda a'E (E + n lambda)^-1 E a` as E <= K, at most
    `n lambda delta^2/(delta + n lambda) |a|^2`; and the duality gap `n lambda a'E a` is at most `n lambda delta |a|^2`,
    which is closed as in `FittedRows`.
    """
    ratio = delta / scaled_ridge
    return np.sqrt(np.minimum(ratio**2 / (1.0 + ratio) * left**2, between(ratio * left**2, primal)))


def risk_factor(delta: float, fit: LandmarkFit) -> float:
    """Return `(1 + delta/(n lambda))^2` at the smallest ridge."""
    return float((1.0 + delta / fit.scaled_ridge.min()) ** 2)


def gap_inputs(delta: float, fit: LandmarkFit) -> dict[str, Any]:
    """Return what trace and operator certificates are made from."""
    return {"delta": delta, "delta_over_scaled_ridge": (delta / fit.scaled_ridge).tolist()}


def trace_residual(fit: LandmarkFit) -> float:
    """Return tr(K - L) with an allowance for rounding."""
    return fit.moments.trace_residual + residual_rounding(fit)


def residual_rounding(fit: LandmarkFit) -> float:
    """Return how much rounding may have taken from tr(K - L): that of features grows with the condition of W.

    A feature of which rounding may be all is left out of L, which makes K - L larger, never smaller.
    """
    moments = fit.moments
    lengths = np.diagonal(moments.gram)
    first, second = feature_rounding(fit.factor)
    rounded = ROUNDING * (2.0 * first * np.sqrt(lengths * moments.trace_kernel) + second * lengths)
    return float(np.minimum(rounded, lengths).sum() + ROUNDING * moments.trace_kernel)


def feature_rounding(factor: NystromFactor) -> tuple[Floats, Floats]:
    """Return u and v with which `|b|^2` is rounded by `ROUNDING (2 sqrt(k(x, x)) u'|b| + v'b^2 + k(x, x))` at most.

    The product of kernel values with the whitener T errs by `sum_m |T_mj| |k(., z_m)|` in feature j, and the factor
    of W behind T by `|W| |T_j|^2` of its square.
    """
    lengths = np.einsum("ij,ij->j", factor.triangle, factor.triangle)
    return feature_sizes(factor), lengths * float(np.linalg.norm(factor.landmark_kernel))
