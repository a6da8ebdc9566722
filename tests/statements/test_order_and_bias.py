"""Appendix A: the order of the approximations, Theorem 1, Lemma 3, and the bound that needs no condition."""

import itertools

import numpy as np
import pytest

from ridgemark import bounds, exact
from tests.helpers import slowly
from tests.statements.designs import SKETCHES, kernel_designs

DESIGNS = kernel_designs()
# Every design and every kind of sketch once; all pairs in the slow tests.
EACH_DESIGN_AND_KIND = pytest.mark.parametrize(
    ("design", "kind"),
    [*zip(DESIGNS, SKETCHES, strict=True)]
    + [pytest.param(*pair, marks=pytest.mark.slow) for pair in itertools.product(DESIGNS, SKETCHES)],
)


def _largest_eigenvalue(matrix):
    return float(np.linalg.eigvalsh(matrix)[-1])


def _bias(K, signal, scaled_ridge):
    return np.sqrt(exact.risk(K, signal, 0.0, scaled_ridge).squared_bias)


def _worst_signal(L, K, scaled_ridge):
    """The signal with the largest bias(L)/bias(K): a singular vector of (L + r)^-1 (K + r)."""
    n = len(K)
    ratio = np.linalg.solve(L + scaled_ridge * np.eye(n), K + scaled_ridge * np.eye(n))
    return (K + scaled_ridge * np.eye(n)) @ np.linalg.svd(ratio)[2][0]


@EACH_DESIGN_AND_KIND
def test_the_regularised_approximation_lies_below_nystrom_and_nystrom_below_the_kernel(design, kind):
    K = DESIGNS[design]
    rounding = 1e-11 * _largest_eigenvalue(K)
    rng = np.random.default_rng(0)
    for p in (1, 10, 40):
        S = SKETCHES[kind](len(K), p, rng)
        L = exact.nystrom_approximation(K, S)
        below = exact.nystrom_approximation(K, S, 1e-3 * len(K))
        assert _largest_eigenvalue(L - K) <= rounding
        assert _largest_eigenvalue(below - L) <= rounding
        assert _largest_eigenvalue(-below) <= rounding


@EACH_DESIGN_AND_KIND
def test_theorem_1_holds_for_the_regularised_approximation_without_a_condition(design, kind):
    K, n, lambda_, gamma = DESIGNS[design], 80, 1e-3, 1e-2
    rng = np.random.default_rng(1)
    spoke = 0
    for p in (20, 60, 78):
        S = SKETCHES[kind](n, p, rng)
        t = exact.spectral_error(K, S, n * gamma)
        L = exact.nystrom_approximation(K, S, n * gamma)
        if t >= 1:
            continue
        spoke += 1
        factor = bounds.theorem_1_bias_factor(lambda_, gamma, max(t, 0.0))
        signals = [*rng.normal(size=(20, n)), _worst_signal(L, K, n * lambda_)]
        of_K, of_L = exact.spectrum(K), exact.spectrum(L)
        for signal in signals:
            assert _bias(of_L, signal, n * lambda_) <= factor * _bias(of_K, signal, n * lambda_) * (1 + 1e-9)
    assert spoke > 0


@EACH_DESIGN_AND_KIND
@pytest.mark.parametrize("lambda_", [1e-4, *slowly(1e-1, 1e-7)])
def test_the_bias_grows_at_most_by_the_gap_over_n_lambda_for_every_signal(design, kind, lambda_):
    K, n = DESIGNS[design], 80
    rng = np.random.default_rng(2)
    for p in (2, 15, 50):
        L = exact.nystrom_approximation(K, SKETCHES[kind](n, p, rng))
        factor = bounds.condition_free_bias_factor(n, lambda_, max(0.0, _largest_eigenvalue(K - L)))
        of_K, of_L = exact.spectrum(K), exact.spectrum(L)
        for signal in [*rng.normal(size=(10, n)), _worst_signal(L, K, n * lambda_)]:
            assert _bias(of_L, signal, n * lambda_) <= factor * _bias(of_K, signal, n * lambda_) * (1 + 1e-6)


@pytest.mark.parametrize("design", DESIGNS)
def test_the_worst_signal_comes_close_to_the_bound(design):
    """A much smaller factor would be false: the worst signal reaches at least a third of the allowed growth."""
    K, n, lambda_ = DESIGNS[design], 80, 1e-2
    L = exact.nystrom_approximation(K, SKETCHES["uniform columns"](n, 2, np.random.default_rng(3)))
    signal = _worst_signal(L, K, n * lambda_)
    growth = _bias(L, signal, n * lambda_) / _bias(K, signal, n * lambda_) - 1
    allowed = bounds.condition_free_bias_factor(n, lambda_, _largest_eigenvalue(K - L)) - 1
    assert allowed / 3 <= growth <= allowed


@pytest.mark.parametrize("design", DESIGNS)
def test_lemma_3_bias_increases_with_the_sketch_ridge_under_its_condition(design):
    K, n, t = DESIGNS[design], 80, 0.5
    rng = np.random.default_rng(4)
    gammas = np.geomspace(1e-6, 10.0, 12) * _largest_eigenvalue(K) / n
    for kind, make in SKETCHES.items():
        S = make(n, 60, rng)
        lambda_ = bounds.theorem_1_minimum_lambda(n, t, _largest_eigenvalue(K), np.linalg.norm(S, 2))
        signal = rng.normal(size=n)
        # The lemma's other premise, 0 <= K - L_gamma <= n gamma/(1 - t), holds wherever the spectral error is below t.
        allowed = [g for g in gammas if exact.spectral_error(K, S, n * g) <= t]
        path = [_bias(exact.nystrom_approximation(K, S, n * g), signal, n * lambda_) for g in [0.0, *allowed]]
        assert len(path) > 2, kind
        assert (np.diff(path) >= -1e-12 * path[0]).all(), kind


def test_lemma_3_fails_without_its_condition():
    """Three rows, the first two sketched: a larger sketch ridge lowers the bias by one percent."""
    K = np.array([[2.0, -4.0, -5.0], [-4.0, 9.0, 8.0], [-5.0, 8.0, 17.0]])
    S = np.eye(3)[:, :2]
    signal, scaled_ridge = np.array([1.0, -2.0, -2.0]), 0.1
    path = [
        exact.risk(exact.nystrom_approximation(K, S, g), signal, 0.0, scaled_ridge).squared_bias
        for g in (0.0, 0.01, 0.1, 1.0)
    ]
    assert path[0] > path[1] > path[2] > path[3]
    assert path[0] > 1.01 * path[3]
    t = 0.0
    assert scaled_ridge / 3 < bounds.theorem_1_minimum_lambda(3, t, _largest_eigenvalue(K), 1.0)


@EACH_DESIGN_AND_KIND
def test_the_variance_never_grows_when_the_kernel_shrinks(design, kind):
    K, n = DESIGNS[design], 80
    rng = np.random.default_rng(5)
    zero = np.zeros(n)
    for p in (3, 30):
        S = SKETCHES[kind](n, p, rng)
        for scaled_ridge in (1e-6, 1e-2, 10.0):
            variances = [
                exact.risk(matrix, zero, 1.0, scaled_ridge).variance
                for matrix in (
                    exact.nystrom_approximation(K, S, 5.0),
                    exact.nystrom_approximation(K, S, 0.1),
                    exact.nystrom_approximation(K, S),
                    K,
                )
            ]
            assert (np.diff(variances) >= -1e-10).all()
