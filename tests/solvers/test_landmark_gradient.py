"""The gradient solver is within its bound of the direct solution, and its factorisations never fail."""

import numpy as np
import pytest

from ridgemark.kernels import Gaussian, Precomputed
from ridgemark.losses import loss_sums
from ridgemark.operators import Cross, nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.sampling import draw_distinct, inclusion_probabilities
from ridgemark.solvers import choose_solver, landmark_gradient, solve_landmarks, solver_cost

KERNEL = Gaussian(1.0)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3))
    signal = np.sin(2 * X[:, 0]) + X[:, 1]
    return X, np.c_[signal + 0.1 * rng.normal(size=800), 50 + 10 * signal], rng.integers(0, 4, 800).astype(float)


def _both(X, Y, landmarks, ridge, weights=None, fit_intercept=True, tol=1e-5, memory_budget=None, kernel=KERNEL):
    """Fitted values of the gradient and of the direct solver, and the gradient's record."""
    passes = RowPasses(ArrayRows(X, Y, weights), memory_budget)
    total = passes.row_counts().sum()
    ridges = np.broadcast_to(np.asarray(ridge) * total, Y.shape[1]).astype(float)
    origin = Y.mean(axis=0) if fit_intercept else np.zeros(Y.shape[1])
    rows, share = passes.take(landmarks), np.full(len(landmarks), total / len(landmarks))
    fit = landmark_gradient(passes, kernel, rows, share, ridges, origin, fit_intercept, tol, 500)
    factor = nystrom_factor(kernel, rows.features, landmarks)
    direct = solve_landmarks(factor, loss_sums(passes, factor, origin), fit_intercept, ridges, origin)
    values = (Cross(passes, factor.cross_kernel) @ f.dual_coef + f.intercept for f in (fit, direct))
    return *values, fit


def _rms(values, weights=None):
    return np.sqrt(np.average(values**2, axis=0, weights=weights))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("memory_budget", [None, 2_000_000], ids=["held", "streamed"])
def test_the_gradient_is_within_its_bound_of_the_direct_solution(data, fit_intercept, weighted, memory_budget):
    X, Y, w = data
    weights = w if weighted else None
    landmarks = np.flatnonzero(w)[:100]
    gradient, direct, fit = _both(X, Y, landmarks, [1e-3, 1e-5], weights, fit_intercept, memory_budget=memory_budget)
    assert fit.outcomes == ("converged", "converged")
    assert (fit.bound <= 1e-5).all()
    assert (_rms(gradient - direct, weights) <= fit.bound + 1e-8).all()


def test_the_bound_holds_for_unfinished_solutions(data):
    X, Y, _ = data
    for tol in (1.0, 1e-1, 1e-3):
        gradient, direct, fit = _both(X, Y, np.arange(100), 1e-4, tol=tol)
        assert (_rms(gradient - direct) <= fit.bound).all()


def test_equal_and_nearly_equal_landmarks_do_no_harm(data):
    X, Y, _ = data
    near = X[:60] + 1e-12 * np.random.default_rng(2).normal(size=(60, 3))
    X = np.concatenate([X[:60], X[:60], near, X])
    Y = np.concatenate([Y[:60], Y[:60], Y[:60], Y])
    gradient, direct, fit = _both(X, Y, np.arange(240), 1e-4)
    assert np.count_nonzero(~fit.dual_coef.any(axis=1)) >= 110
    assert (_rms(gradient - direct) <= fit.bound + 1e-4).all()


@pytest.mark.parametrize("ridge", [1e-6, 1e-10, 1e-14])
@pytest.mark.parametrize("bandwidth", [0.3, 1.0, 30.0])
def test_the_gradient_solution_is_finite_for_every_ridge(data, ridge, bandwidth):
    X, Y, _ = data
    gradient, _, fit = _both(X, Y, np.arange(60), ridge, kernel=Gaussian(bandwidth))
    assert np.isfinite(gradient).all()
    for outcome, bound in zip(fit.outcomes, fit.bound, strict=True):
        assert (outcome == "converged") == (bound <= 1e-5)


def test_a_precomputed_kernel_and_a_constant_target(data):
    X, Y, _ = data
    gradient, direct, fit = _both(KERNEL(X[:200]), Y[:200], np.arange(40), 1e-3, kernel=Precomputed())
    assert (_rms(gradient - direct) <= fit.bound + 1e-8).all()
    gradient, _, fit = _both(X, np.full((800, 1), 3.0), np.arange(40), 1e-3)
    assert gradient == pytest.approx(np.full((800, 1), 3.0))
    assert fit.n_products.tolist() == [0]


def test_weights_of_uneven_landmarks_save_products():
    """Most landmarks are drawn from a few distant rows: treating them as a uniform sample costs products."""
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(size=(1900, 2)), 6 + rng.normal(size=(100, 2))])
    y = np.sin(X).sum(axis=1, keepdims=True)
    draw = draw_distinct(np.r_[np.ones(1900), np.full(100, 30.0)], 150, rng)
    passes = RowPasses(ArrayRows(X, y))
    rows, ridge, origin = passes.take(draw.indices), np.array([2000 * 1e-4]), y.mean(axis=0)
    counts = [
        landmark_gradient(passes, KERNEL, rows, weights, ridge, origin, True, 1e-5, 500).n_products[0]
        for weights in (1.0 / inclusion_probabilities(draw), np.full(150, 2000 / 150))
    ]
    assert counts[0] < counts[1]


def test_inclusion_probabilities_are_the_frequencies_of_repeated_draws():
    weights = np.r_[np.ones(20), np.full(5, 8.0)]
    rng = np.random.default_rng(0)
    drawn = np.zeros(25)
    for _ in range(4000):
        drawn[draw_distinct(weights, 10, rng).indices] += 1 / 4000
    draw = draw_distinct(weights, 10, rng)
    expected = inclusion_probabilities(draw)
    assert expected == pytest.approx(drawn[draw.indices], abs=0.03)
    everything = draw_distinct(weights, 25, rng)
    assert inclusion_probabilities(everything).tolist() == [1.0] * 25


def test_the_solver_chosen_is_the_cheaper_one():
    assert choose_solver(36_000, 1_000, 8) == "direct"
    assert choose_solver(36_000, 10_000, 8) == "gradient"
    assert choose_solver(36_000, 10_000, 8, n_ridges=41) == "direct"
    few, many = solver_cost(10_000, 1_000, 5), solver_cost(20_000, 1_000, 5)
    assert few.direct < many.direct and few.gradient < many.gradient
