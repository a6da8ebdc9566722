"""Each function of a theorem against its formula computed by hand, and its errors."""

import math
import random

import pytest

from ridgemark import bounds
from ridgemark.errors import ParameterError


def test_theorem_1_factor_and_condition_are_the_printed_ones():
    assert bounds.theorem_1_bias_factor(lambda_=0.1, gamma=0.05, t=0.5) == pytest.approx(2.0)
    assert bounds.theorem_1_minimum_lambda(n=10, t=0.5, largest_eigenvalue=4.0, sketch_norm=3.0) == pytest.approx(7.2)


def test_theorem_2_bound_is_the_printed_one_and_never_above_one():
    got = bounds.theorem_2_failure_probability(100, 400, 0.5, 0.9, 5.0, beta=0.5)
    assert got == pytest.approx(100 * math.exp(-(400 * 0.125) / (0.9 * (10 + 0.5 / 3))))
    assert bounds.theorem_2_failure_probability(100, 1, 0.5, 0.9, 5.0) == 1.0


def test_theorem_3_count_is_the_least_that_makes_theorem_2_small_enough():
    n, d_eff, rho, beta = 1000, 37.5, 0.05, 0.7
    p = bounds.theorem_3_count(n, d_eff, rho, beta)
    assert p == math.ceil(8 * (d_eff / beta + 1 / 6) * math.log(n / rho))
    assert bounds.theorem_2_failure_probability(n, p, 0.5, 1.0, d_eff, beta) <= rho
    assert bounds.theorem_2_failure_probability(n, p - 1, 0.5, 1.0, d_eff, beta) > rho


def test_uniform_sampling_needs_d_mof_where_leverage_needs_d_eff():
    n, d_eff, d_mof, rho = 500, 24.0, 379.0, 0.1
    assert bounds.theorem_3_uniform_count(n, d_mof, rho) == bounds.theorem_3_count(n, d_eff, rho, beta=d_eff / d_mof)


def test_theorem_3_factor_condition_and_probability_are_the_printed_ones():
    assert bounds.theorem_3_risk_factor(0.1) == pytest.approx(1.44)
    assert bounds.theorem_3_minimum_lambda(n=50, largest_eigenvalue=10.0, smallest_score=0.5) == pytest.approx(1.2)
    assert bounds.theorem_3_probability(0.05) == pytest.approx(0.9)


def test_condition_on_lambda_never_holds_where_a_fit_is_useful():
    largest = 300.0
    assert bounds.theorem_3_minimum_lambda(1000, largest, smallest_score=1.0) >= 4 * largest / 1000


def test_condition_free_form_gives_theorem_3s_factor_with_more_probability():
    n, lambda_, epsilon = 200, 1e-3, 0.2
    gap = bounds.condition_free_gap(n, lambda_, epsilon)
    assert gap == pytest.approx(2 * n * lambda_ * epsilon)
    assert bounds.condition_free_risk_factor(n, lambda_, gap) == pytest.approx(bounds.theorem_3_risk_factor(epsilon))
    assert bounds.condition_free_bias_factor(n, lambda_, 0.0) == 1.0
    assert bounds.condition_free_probability(0.05) > bounds.theorem_3_probability(0.05)


def test_theorem_4_count_and_errors_are_the_printed_ones():
    assert bounds.theorem_4_count(2000, 2000.0, 0.5, 0.45, 0.1) == math.ceil(
        8 * (1 / (0.5 * 0.45) + 1 / 6) * math.log(2000 / 0.1)
    )
    assert bounds.theorem_4_additive_error(0.2) == pytest.approx(0.4)
    assert bounds.theorem_4_multiplicative_factor(10, 3.0, 0.5, 0.2) == pytest.approx(0.5)


def test_theorem_4_multiplicative_bound_is_void_for_small_eigenvalues():
    assert bounds.theorem_4_multiplicative_factor(10, 0.9, 0.5, 0.2) == 0.0


def test_kernel_evaluations_order_as_the_introduction_says():
    n, d_eff, d_mof = 10_000, 30.0, 500.0
    leverage = bounds.leverage_kernel_evaluations(n, d_eff)
    assert leverage == 300_000
    assert leverage < bounds.uniform_kernel_evaluations(n, d_mof) == 5_000_000
    assert leverage < bounds.divide_and_conquer_kernel_evaluations(n, d_eff) == 9_000_000


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bounds.theorem_3_count(0, 3.0, 0.1), "n must be a positive integer, got 0"),
        (lambda: bounds.theorem_3_count(10, math.nan, 0.1), "effective_dimension must be at least 0"),
        (lambda: bounds.theorem_3_count(10, 3.0, 0.5), "rho must lie between 0 and 0.5, got 0.5"),
        (lambda: bounds.theorem_3_count(10, 3.0, 0.1, beta=0.0), r"beta must lie in \(0, 1\], got 0.0"),
        (lambda: bounds.theorem_3_risk_factor(-1.0), "epsilon must be positive and finite, got -1.0"),
        (lambda: bounds.theorem_1_bias_factor(1.0, 1.0, 1.0), "t must be at least 0 and below 1"),
        (lambda: bounds.theorem_4_count(10, 1.0, 0.1, 0.5, 0.1), "epsilon must lie between 0 and 0.5, got 0.5"),
        (lambda: bounds.theorem_4_count(10, 1.0, 0.0, 0.4, 0.1), "lambda_ must be positive and finite, got 0.0"),
    ],
)
def test_a_number_outside_its_range_is_refused_by_name(call, words):
    with pytest.raises(ParameterError, match=words):
        call()


def _random_counts(seed, repeats=300):
    rng = random.Random(seed)
    for _ in range(repeats):
        n, p = rng.randint(2, 10**7), rng.randint(1, 10**5)
        yield n, p, 10 ** rng.uniform(-3, 3), 10 ** rng.uniform(-6, -0.4)


def test_at_theorem_3s_epsilon_its_own_count_of_draws_is_enough():
    for n, p, d_eff, rho in _random_counts(0):
        epsilon = bounds.theorem_3_epsilon(n, p, d_eff, rho)
        if epsilon < math.inf:
            assert bounds.theorem_3_count(n, d_eff / epsilon, rho) <= p
            assert bounds.theorem_3_count(n, d_eff / (0.999 * epsilon), rho) >= p
    assert bounds.theorem_3_epsilon(10_000, 10, 20.0, 0.05) == math.inf
    assert 0 < bounds.theorem_3_epsilon(10_000, 5000, 0.0, 0.05) < 1e-300


def test_theorem_3s_epsilon_never_exceeds_one_where_the_dimension_need_not_fall():
    """With 40 eigenvalues far above n lambda, d_eff(lambda epsilon) is 40 for every epsilon."""
    n, lambda_, rho = 1000, 1e-6, 0.05
    for p in (200, 1000, 3000, 4000, 10_000):
        epsilon = bounds.theorem_3_epsilon(n, p, 40.0, rho)
        at_epsilon = 40 * 1e6 / (1e6 + n * lambda_ * min(epsilon, 1e6))
        assert epsilon == math.inf or bounds.theorem_3_count(n, at_epsilon, rho) <= p


def test_at_theorem_4s_epsilon_its_own_count_of_draws_is_enough():
    for n, p, trace, rho in _random_counts(1):
        epsilon = bounds.theorem_4_epsilon(n, p, n * trace, 0.5, rho)
        if epsilon < 0.5:
            assert bounds.theorem_4_count(n, n * trace, 0.5, epsilon, rho) <= p
    assert bounds.theorem_4_epsilon(100, 20, 100.0, 1e-3, 0.1) >= 0.5


def test_numbers_at_the_ends_of_the_floating_point_range_give_numbers_or_refusals():
    smallest = 5e-324
    assert bounds.theorem_2_failure_probability(10, 5, t=1e200, largest_eigenvalue=1.0, squared_frobenius_norm=1.0) == 0
    assert bounds.theorem_2_failure_probability(10, 5, 0.1, smallest, smallest) == 0
    assert bounds.theorem_3_minimum_lambda(2, largest_eigenvalue=0.0, smallest_score=smallest) == 0
    assert bounds.theorem_4_multiplicative_factor(1, 0.0, lambda_=smallest, epsilon=0.1) == 0
    assert bounds.theorem_4_epsilon(1, 10**9, trace=0.0, lambda_=1e-16, rho=0.1) < 1e-300
    with pytest.raises(ParameterError, match="exceeds the floating-point range"):
        bounds.theorem_4_count(10, 0.9, lambda_=smallest, epsilon=smallest, rho=0.25)
