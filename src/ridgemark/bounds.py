"""The paper's theorems as scalar functions: conditions, counts, factors and probabilities.

Plain numbers in and out, in the paper's notation: `lambda_` is the ridge before it is multiplied by n, `gamma` the
ridge of the sketch, `epsilon` the tolerance, `rho` the failure probability, `beta` the sampling quality (how close
probabilities are to the scores), `t` the spectral error of the sketch. All statements are about the fixed training
rows (in-sample), for a lambda chosen independently of the targets.
"""

import math
import sys
from collections.abc import Callable
from typing import NamedTuple

from ridgemark.errors import ParameterError

# --- Theorem 1: the bias of a sketch -------------------------------------------------------------------------


def theorem_1_minimum_lambda(n: int, t: float, largest_eigenvalue: float, sketch_norm: float) -> float:
    """Return the smallest lambda of Theorem 1's condition, `|S|_op^2 lambda_max(K) / ((1 - t) n)`.

    The paper's proof needs the condition for L, not for L_gamma; see `condition_free_bias_factor`.
    """
    _check(n=n, t=t, largest_eigenvalue=largest_eigenvalue, sketch_norm=sketch_norm)
    return sketch_norm * (sketch_norm * largest_eigenvalue) / ((1.0 - t) * n)


def theorem_1_bias_factor(lambda_: float, gamma: float, t: float) -> float:
    """Return the factor of eq. (5): `bias(L) <= (1 + (gamma/lambda)/(1 - t)) bias(K)`."""
    _check(lambda_=lambda_, gamma=gamma, t=t)
    return 1.0 + (gamma / lambda_) / (1.0 - t)


# --- Theorem 2: matrix products from sampled columns ---------------------------------------------------------


def theorem_2_failure_probability(
    n: int, p: int, t: float, largest_eigenvalue: float, squared_frobenius_norm: float, beta: float = 1.0
) -> float:
    """Return eq. (7)'s bound on `P(lambda_max(Psi Psi' - Psi S S' Psi') >= t)`, at most 1.

    `n exp(-(p t^2/2) / (lambda_max(Psi Psi') (|Psi|_F^2/beta + t/3)))` for p draws with replacement and
    `p_i >= beta |psi_i|^2 / |Psi|_F^2`; n is the number of rows of Psi.
    """
    _check(n=n, p=p, beta=beta)
    _check(_POSITIVE, t=t, largest_eigenvalue=largest_eigenvalue, squared_frobenius_norm=squared_frobenius_norm)
    # Ratios first: t^2 and products of small numbers may leave the floating-point range.
    exponent = p / 2.0 * (t / largest_eigenvalue) * (t / (squared_frobenius_norm / beta + t / 3.0))
    return min(1.0, n * math.exp(-exponent))


# --- Theorem 3: how many columns keep the risk ---------------------------------------------------------------


def theorem_3_count(n: int, effective_dimension: float, rho: float, beta: float = 1.0) -> int:
    """Return Theorem 3's number of draws, `8 (d_eff(lambda epsilon)/beta + 1/6) log(n/rho)`, rounded up."""
    _check(n=n, effective_dimension=effective_dimension, beta=beta)
    _check(_BELOW_HALF, rho=rho)
    return _ceil(8.0 * (effective_dimension / beta + 1.0 / 6.0) * math.log(n / rho))


def theorem_3_epsilon(n: int, p: int, effective_dimension: float, rho: float) -> float:
    """Return an epsilon for which p draws by exact scores satisfy Theorem 3, given d_eff at lambda.

    `d_eff(lambda epsilon) <= d_eff(lambda)/epsilon` for epsilon up to 1, so `d_eff/(p/(8 log(n/rho)) - 1/6)` is enough,
    rounded up until `theorem_3_count(n, d_eff/epsilon, rho) <= p`. Infinite if that exceeds 1: there the inequality
    need not hold, and p draws are not known to be enough for any epsilon.
    """
    _check(n=n, p=p, effective_dimension=effective_dimension)
    _check(_BELOW_HALF, rho=rho)
    least = _least_epsilon(effective_dimension, n, p, rho)
    return _rounded_up(least, 1.0, lambda epsilon: theorem_3_count(n, effective_dimension / epsilon, rho) <= p)


def theorem_3_uniform_count(n: int, max_degrees_of_freedom: float, rho: float) -> int:
    """Return Theorem 3's number of uniform draws: `beta = d_eff/d_mof`, so d_mof(lambda epsilon) replaces d_eff."""
    return theorem_3_count(n, max_degrees_of_freedom, rho)


def theorem_3_minimum_lambda(n: int, largest_eigenvalue: float, smallest_score: float) -> float:
    """Return the smallest lambda of Theorem 3's condition, `2 (1 + 1/min_i l_i(lambda epsilon)) lambda_max(K)/n`.

    It exceeds `4 lambda_max(K)/n`, at which the fit is nearly zero: no useful lambda satisfies it. The guarantee
    holds without it (see `condition_free_risk_factor`).
    """
    _check(n=n, largest_eigenvalue=largest_eigenvalue, smallest_score=smallest_score)
    return 2.0 * (largest_eigenvalue + largest_eigenvalue / smallest_score) / n


def theorem_3_risk_factor(epsilon: float) -> float:
    """Return Theorem 3's factor: `risk(f_L) <= (1 + 2 epsilon)^2 risk(f_K)`."""
    _check(epsilon=epsilon)
    return _squared(1.0 + 2.0 * epsilon)


def theorem_3_probability(rho: float) -> float:
    """Return the probability with which Theorem 3 holds under its condition on lambda, `1 - 2 rho`."""
    _check(_BELOW_HALF, rho=rho)
    return 1.0 - 2.0 * rho


# --- The same without the condition on lambda (beyond the paper) ---------------------------------------------


def condition_free_bias_factor(n: int, lambda_: float, delta: float) -> float:
    """Return the factor of `bias(L) <= (1 + delta/(n lambda)) bias(K)` for any `0 <= K - L <= delta I`.

    From `(L + n lambda)^-1 - (K + n lambda)^-1 = (L + n lambda)^-1 (K - L) (K + n lambda)^-1`: no condition on
    lambda, any signal, any L.
    """
    _check(n=n, lambda_=lambda_, delta=delta)
    return 1.0 + delta / (n * lambda_)


def condition_free_risk_factor(n: int, lambda_: float, delta: float) -> float:
    """Return the factor of `risk(f_L) <= (1 + delta/(n lambda))^2 risk(f_K)`; the variance never grows."""
    return _squared(condition_free_bias_factor(n, lambda_, delta))


def condition_free_gap(n: int, lambda_: float, epsilon: float, t: float = 0.5) -> float:
    """Return the delta of the draws of Theorem 3, `n gamma/(1 - t)` with gamma = lambda epsilon: 2 n lambda epsilon."""
    _check(n=n, lambda_=lambda_, epsilon=epsilon, t=t)
    return n * lambda_ * epsilon / (1.0 - t)


def condition_free_probability(rho: float) -> float:
    """Return the probability of the condition-free statement for `theorem_3_count` draws, `1 - rho`."""
    _check(rho=rho)
    return 1.0 - rho


# --- Theorem 4: how many columns give the scores -------------------------------------------------------------


def theorem_4_count(n: int, trace: float, lambda_: float, epsilon: float, rho: float) -> int:
    """Return Theorem 4's number of draws with `p_i = K_ii/tr K`: `8 (tr K/(n lambda epsilon) + 1/6) log(n/rho)`."""
    _check(n=n, trace=trace, lambda_=lambda_, rho=rho)
    _check(_BELOW_HALF, epsilon=epsilon)
    return _ceil(8.0 * (trace / (n * lambda_) / epsilon + 1.0 / 6.0) * math.log(n / rho))


def theorem_4_epsilon(n: int, p: int, trace: float, lambda_: float, rho: float) -> float:
    """Return the epsilon for which p draws are Theorem 4's count; infinite if there is none.

    The theorem requires an epsilon below 1/2.
    """
    _check(n=n, p=p, trace=trace, lambda_=lambda_, rho=rho)
    least = _least_epsilon(trace / (n * lambda_), n, p, rho)
    below = math.nextafter(0.5, 0.0)
    enough = _rounded_up(least, below, lambda epsilon: theorem_4_count(n, trace, lambda_, epsilon, rho) <= p)
    return enough if enough < 0.5 else max(least, 0.5)


def theorem_4_additive_error(epsilon: float) -> float:
    """Return the largest distance of the approximate score below the exact one: `l_i - 2 epsilon <= l~_i <= l_i`."""
    _check(_BELOW_HALF, epsilon=epsilon)
    return 2.0 * epsilon


def theorem_4_multiplicative_factor(n: int, smallest_eigenvalue: float, lambda_: float, epsilon: float) -> float:
    """Return the factor of `l~_i >= (s - n lambda epsilon)/(s + n lambda epsilon) l_i`, s the smallest eigenvalue of K.

    Zero (no statement) unless s exceeds n lambda epsilon.
    """
    _check(n=n, smallest_eigenvalue=smallest_eigenvalue, lambda_=lambda_)
    _check(_BELOW_HALF, epsilon=epsilon)
    shift = n * lambda_ * epsilon
    return (smallest_eigenvalue - shift) / (smallest_eigenvalue + shift) if smallest_eigenvalue > shift else 0.0


# --- The introduction's comparison: orders of kernel evaluations ---------------------------------------------


def leverage_kernel_evaluations(n: int, effective_dimension: float) -> float:
    """Return the order of kernel evaluations of Nystrom with leverage scores, `n d_eff`."""
    _check(n=n, effective_dimension=effective_dimension)
    return n * effective_dimension


def uniform_kernel_evaluations(n: int, max_degrees_of_freedom: float) -> float:
    """Return the order of kernel evaluations of Nystrom with uniform columns (Bach), `n d_mof`."""
    return leverage_kernel_evaluations(n, max_degrees_of_freedom)


def divide_and_conquer_kernel_evaluations(n: int, effective_dimension: float) -> float:
    """Return the order for divide and conquer (Zhang et al.): m = n/d_eff^2 parts of (n/m)^2 each, `n d_eff^2`."""
    return leverage_kernel_evaluations(n, effective_dimension) * effective_dimension


# --- Rounding ---------------------------------------------------------------------------------------------------


def _least_epsilon(dimension: float, n: int, p: int, rho: float) -> float:
    """Return the epsilon with `8 (dimension/epsilon + 1/6) log(n/rho) = p`; infinite if there is none."""
    spare = p / (8.0 * math.log(n / rho)) - 1.0 / 6.0
    return dimension / spare if spare > 0 else math.inf


def _rounded_up(least: float, most: float, enough: Callable[[float], bool]) -> float:
    """Return `least`, increased in growing steps of rounding until it is enough; infinite beyond `most`."""
    value, step = max(least, sys.float_info.min), sys.float_info.epsilon
    while value <= most:
        if enough(value):
            return value
        value, step = value * (1.0 + step), 2.0 * step
    return math.inf


# --- Checks --------------------------------------------------------------------------------------------------


def _squared(value: float) -> float:
    """Return the square, infinite beyond the floating-point range, where `**` would raise an OverflowError."""
    return value * value


def _ceil(value: float) -> int:
    if not value < math.inf:
        raise ParameterError("the number of draws exceeds the floating-point range; choose a larger lambda or epsilon")
    return math.ceil(value)


class _Requirement(NamedTuple):
    words: str
    holds: Callable[[float], bool]


_COUNT = _Requirement("be a positive integer", lambda value: 1 <= value < 2**63 and value == int(value))
_POSITIVE = _Requirement("be positive and finite", lambda value: 0 < value < math.inf)
_NONNEGATIVE = _Requirement("be at least 0 and finite", lambda value: 0 <= value < math.inf)
_BELOW_HALF = _Requirement("lie between 0 and 0.5", lambda value: 0 < value < 0.5)
_REQUIRED = {
    **dict.fromkeys(("n", "p"), _COUNT),
    **dict.fromkeys(("lambda_", "gamma", "epsilon", "smallest_score"), _POSITIVE),
    "rho": _Requirement("lie between 0 and 1", lambda value: 0 < value < 1),
    "beta": _Requirement("lie in (0, 1]", lambda value: 0 < value <= 1),
    "t": _Requirement("be at least 0 and below 1 for the theorem to hold", lambda value: 0 <= value < 1),
}


def _check(requirement: _Requirement | None = None, **values: float) -> None:
    """Check arguments against this requirement, or that of their names; by default they are at least 0."""
    for name, value in values.items():
        required = requirement or _REQUIRED.get(name, _NONNEGATIVE)
        if isinstance(value, bool) or not required.holds(value):
            raise ParameterError(f"{name} must {required.words}, got {value!r}")
