"""Theorems 2, 3 and 4: repeat the draw and count failures."""

import numpy as np
import pytest

from ridgemark import bounds, exact
from ridgemark.kernels import Gaussian
from tests.helpers import most_failures
from tests.statements.designs import draw_columns, kernel_designs

DESIGNS = kernel_designs()


def _mixed(scores, share):
    """Probabilities proportional to the scores, mixed with uniform ones, and their quality beta."""
    probabilities = (1 - share) * scores / scores.sum() + share / len(scores)
    return probabilities, float((probabilities * scores.sum() / scores).min())


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0], ids=["leverage", "half uniform", "uniform"])
@pytest.mark.parametrize("repeats", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_theorem_2_tail_is_never_above_its_bound(design, share, repeats):
    rng = np.random.default_rng(0)
    columns = exact.psi(DESIGNS[design], 80 * 0.05)
    product = columns @ columns.T
    largest = float(np.linalg.eigvalsh(product)[-1])
    scores = (columns**2).sum(axis=0)
    probabilities, beta = _mixed(scores, share)
    for p in (40, 160, 640):
        errors = []
        for _ in range(repeats):
            sketched = columns @ draw_columns(probabilities, p, rng)
            errors.append(np.linalg.eigvalsh(product - sketched @ sketched.T)[-1])
        for t in (0.1, 0.25, 0.5, 0.75):
            bound = bounds.theorem_2_failure_probability(len(product), p, t, largest, scores.sum(), beta)
            assert np.count_nonzero(np.array(errors) >= t) <= most_failures(repeats, bound)


def test_the_event_of_theorem_2_occurs_and_becomes_rarer_with_more_draws():
    """Otherwise counting it would test nothing."""
    rng = np.random.default_rng(1)
    columns = exact.psi(DESIGNS["outliers"], 80 * 0.002)
    product = columns @ columns.T
    counts = []
    for p in (80, 320, 1280):
        sketched = [columns @ draw_columns(np.full(80, 1 / 80), p, rng) for _ in range(100)]
        counts.append(sum(np.linalg.eigvalsh(product - s @ s.T)[-1] >= 0.5 for s in sketched))
    assert counts[0] > counts[1] > counts[2]


def test_sampling_by_the_scores_minimises_the_expected_frobenius_error():
    """Remark 2 after Theorem 2, by repetition: leverage draws have a smaller error than uniform and diagonal draws."""
    rng = np.random.default_rng(2)
    columns = exact.psi(DESIGNS["outliers"], 80 * 0.3)
    product = columns @ columns.T
    scores = (columns**2).sum(axis=0)

    def mean_error(weights):
        probabilities = weights / weights.sum()
        draws = (columns @ draw_columns(probabilities, 60, rng) for _ in range(400))
        return np.mean([np.linalg.norm(product - s @ s.T) ** 2 for s in draws])

    assert mean_error(scores) < mean_error(np.ones(80))
    assert mean_error(scores) < mean_error(scores**2)


@pytest.mark.parametrize("design", ["outliers", "rare middle", "clusters"])
def test_theorem_3_bounds_the_risk_with_its_probability(design):
    """The risk factor holds in at least 1 - rho of the draws, although lambda does not meet the paper's condition."""
    K, n, repeats, rho, epsilon = DESIGNS[design], 80, 60, 0.2, 0.3
    rng = np.random.default_rng(3)
    lambda_ = float(np.linalg.eigvalsh(K)[-1]) / n / 4
    scores = exact.leverage_scores(K, n * lambda_ * epsilon)
    p = bounds.theorem_3_count(n, float(scores.sum()), rho)
    assert lambda_ < bounds.theorem_3_minimum_lambda(n, float(np.linalg.eigvalsh(K)[-1]), float(scores.min()))
    factor = bounds.theorem_3_risk_factor(epsilon)
    signal = rng.normal(size=n)
    exact_risk = exact.risk(K, signal, 0.1, n * lambda_).total
    failures = 0
    for _ in range(repeats):
        L = exact.nystrom_approximation(K, draw_columns(scores / scores.sum(), p, rng))
        failures += exact.risk(L, signal, 0.1, n * lambda_).total > factor * exact_risk
    assert failures <= most_failures(repeats, 1 - bounds.condition_free_probability(rho))


def test_theorem_4_scores_from_diagonal_draws_are_at_most_two_epsilon_too_low():
    n, repeats, lambda_, epsilon, rho = 400, 30, 0.9, 0.49, 0.2
    rng = np.random.default_rng(4)
    X = np.concatenate([rng.normal(size=(n - 20, 2)), 5 * rng.normal(size=(20, 2))])
    K = (
        exact.kernel_matrix(X, Gaussian(1.0))
        * np.linspace(0.5, 2.0, n) ** 0.5
        * np.linspace(0.5, 2.0, n)[:, None] ** 0.5
    )
    p = bounds.theorem_4_count(n, float(np.trace(K)), lambda_, epsilon, rho)
    assert p < n
    scores = exact.leverage_scores(K, n * lambda_)
    probabilities = np.diagonal(K) / np.trace(K)
    failures = 0
    for _ in range(repeats):
        approximate = exact.leverage_scores(
            exact.nystrom_approximation(K, draw_columns(probabilities, p, rng)), n * lambda_
        )
        assert (approximate <= scores + 1e-10).all()
        failures += bool((approximate < scores - bounds.theorem_4_additive_error(epsilon)).any())
    assert failures <= most_failures(repeats, rho)
