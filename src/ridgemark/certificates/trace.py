"""The trace certificate: free, as the fit has already summed the trace of K - L."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ridgemark.backends import Floats
from ridgemark.certificates.dual import best_mixture
from ridgemark.certificates.record import Certificate, issue
from ridgemark.certificates.rounding import primal_value, residual_rounding, rms_residual, solution_rounding
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
    return issue("trace", fit, bound, cost, gap_inputs(delta, fit), risk_factor=risk_factor(delta, fit))


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
