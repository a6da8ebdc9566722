"""Score brackets on real data and the synthetic design, and Theorem 4 by repetition."""

import numpy as np
import pytest

from ridgemark import bounds, exact, leverage_scores
from ridgemark.kernels import Bernoulli, Gaussian, Matern32
from ridgemark.paper.synthetic import synthetic_points
from ridgemark.tuning import median_distance
from tests.helpers import most_failures, real_data, standardised

RIDGES = 10.0 ** -np.arange(3, 9)


def _rows(name, n):
    X = real_data(name)["X"]
    return standardised(X[np.random.default_rng(0).permutation(len(X))[:n]].astype(np.float64))


def _check_every_row(X, kernel, n_landmarks):
    n = len(X)
    spectrum = exact.kernel_spectrum(X, kernel)
    for ridge in RIDGES:
        truth = exact.leverage_scores(spectrum, n * ridge)
        slack = 1e-8 + 4 * np.finfo(float).eps * spectrum.eigenvalues[0] / (n * ridge)
        for refine in (0, 1):
            scores = leverage_scores(
                X, kernel=kernel, ridge=ridge, n_landmarks=n_landmarks, refine=refine, random_state=1
            )
            assert (scores.lower <= truth + slack).all()
            assert (truth <= scores.upper + slack).all()
            assert scores.effective_dimension.lower <= truth.sum() + n * slack
            assert truth.sum() <= scores.effective_dimension.upper + n * slack


@pytest.mark.parametrize("name", ["gas-batch2", pytest.param("protein", marks=pytest.mark.slow)])
def test_the_bracket_holds_for_every_row_of_real_data(name):
    X = _rows(name, 800)
    _check_every_row(X, Gaussian(median_distance(X)), 200)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gas-batch2", "elevators", "protein", "kin40k"])
@pytest.mark.parametrize("n_landmarks", [100, 500, 1000])
def test_the_bracket_holds_for_every_row_of_more_real_data(name, n_landmarks):
    X = _rows(name, 5000)
    _check_every_row(X, Gaussian(median_distance(X[:1000])), n_landmarks)


def test_the_bracket_holds_for_every_row_with_a_matrix_as_metric():
    X = _rows("protein", 600)
    metric = np.random.default_rng(0).normal(size=(X.shape[1], 4)) / X.shape[1]
    for family in (Gaussian, Matern32):
        _check_every_row(X, family(metric=metric), 150)


def test_the_bracket_holds_for_every_row_of_the_synthetic_design():
    for p in (20, 60, 200):
        _check_every_row(synthetic_points()[:, None], Bernoulli(2), p)


@pytest.mark.parametrize(("n", "repeats"), [(1000, 3), pytest.param(2000, 20, marks=pytest.mark.slow)])
def test_theorem_4_holds_where_its_count_is_below_n(n, repeats):
    """lambda 0.5, epsilon 0.45: the approximate scores of all rows from about 360 draws, repeated."""
    ridge, epsilon, rho = 0.5, 0.45, 0.1
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(n - 50, 3)), 8 * rng.normal(size=(50, 3))])
    p = bounds.theorem_4_count(n, float(n), ridge, epsilon, rho)
    assert p < n
    truth = exact.leverage_scores(exact.kernel_matrix(X, Gaussian(0.5)), n * ridge)
    failures = 0
    for seed in range(repeats):
        scores = leverage_scores(X, bandwidth=0.5, ridge=ridge, n_landmarks=p, random_state=seed)
        failures += bool((scores.lower < truth - bounds.theorem_4_additive_error(epsilon)).any())
    assert failures <= most_failures(repeats, rho)
