"""The averaging estimator against its definition."""

import numpy as np
import pytest

from ridgemark import exact
from ridgemark.errors import ParameterError
from ridgemark.kernels import Gaussian
from ridgemark.paper.divide_and_conquer import averaging_risk, averaging_smoother, kernel_evaluations, random_parts


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    return exact.kernel_matrix(X, Gaussian(1.0)), rng.normal(size=60), random_parts(60, 4, rng)


def test_parts_are_a_division_into_equal_sizes():
    parts = random_parts(61, 4, np.random.default_rng(0))
    assert sorted(np.concatenate(parts)) == list(range(61))
    assert {len(part) for part in parts} == {15, 16}
    assert kernel_evaluations(parts) == 3 * 15**2 + 16**2


@pytest.mark.parametrize("n_parts", [0, 61])
def test_an_impossible_number_of_parts_is_refused(n_parts):
    with pytest.raises(ParameterError, match="between 1 and the number of rows, 60"):
        random_parts(60, n_parts, np.random.default_rng(0))


def test_fitted_values_are_the_mean_of_the_parts_own_fits(problem):
    K, y, parts = problem
    fits = [exact.kernel_ridge(K[np.ix_(J, J)], y[J], len(J) * 1e-2).predict(K[:, J]) for J in parts]
    assert averaging_smoother(K, parts, 1e-2) @ y == pytest.approx(np.mean(fits, axis=0), abs=1e-10)


def test_one_part_is_exact_kernel_ridge_regression(problem):
    K, signal, _ = problem
    ours = averaging_risk(K, [np.arange(60)], signal, 0.3, 1e-2)
    full = exact.risk(K, signal, 0.3, 60 * 1e-2)
    assert (ours.squared_bias, ours.variance) == pytest.approx((full.squared_bias, full.variance))


def test_the_risk_is_the_mean_of_simulated_losses(problem):
    K, signal, parts = problem
    rng = np.random.default_rng(1)
    targets = signal[:, None] + np.sqrt(0.3) * rng.normal(size=(60, 4000))
    losses = ((averaging_smoother(K, parts, 1e-2) @ targets - signal[:, None]) ** 2).mean(axis=0)
    risk = averaging_risk(K, parts, signal, 0.3, 1e-2).total
    assert abs(losses.mean() - risk) <= 4.5 * losses.std() / np.sqrt(4000)
