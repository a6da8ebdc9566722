"""The gradient solver is within its bound of the direct solution, and its factorisations never fail."""

import gc
import sys
import weakref
from fractions import Fraction

import numpy as np
import pytest

from ridgemark import NystromRidge
from ridgemark.errors import ParameterError
from ridgemark.fitting.gradient import solve_by_gradient
from ridgemark.kernels import Gaussian, Linear, Precomputed
from ridgemark.losses import loss_sums
from ridgemark.operators import Cross, nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.sampling import draw_distinct
from ridgemark.solvers import choose_solver, landmark_gradient, solve_landmarks, solver_cost

KERNEL = Gaussian(1.0)
_solver = sys.modules[landmark_gradient.__module__]


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
    rows = passes.take(landmarks)
    factor = nystrom_factor(kernel, rows.features, landmarks)
    direct = solve_landmarks(factor, loss_sums(passes, factor, origin), fit_intercept, ridges, origin)
    fit = landmark_gradient(passes, kernel, rows, direct, tol, 500)
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


def test_the_bound_holds_for_unfinished_solutions(data, monkeypatch):
    X, Y, _ = data
    monkeypatch.setattr("ridgemark.solvers.choice._MOST_ROWS", 1)  # with all rows the first step is the solution
    for tol in (1.0, 1e-1, 1e-3):
        gradient, direct, fit = _both(X, Y, np.arange(100), 1e-4, tol=tol)
        assert (fit.bound > 1e-9).all()
        assert (_rms(gradient - direct) <= fit.bound).all()


def _exact_linear(X, y, scaled_ridge, fit_intercept):
    """Return the fitted values of ridge regression on two columns in rational arithmetic."""
    rows, targets, mean = [[Fraction(x) for x in row] for row in X.tolist()], [Fraction(t) for t in y.tolist()], 0
    if fit_intercept:
        centre = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        rows, mean = [[x - m for x, m in zip(row, centre, strict=True)] for row in rows], sum(targets) / len(rows)
    s = Fraction(scaled_ridge)
    a, b, d = (sum(row[i] * row[j] for row in rows) + s * (i == j) for i, j in ((0, 0), (0, 1), (1, 1)))
    u, v = (sum(row[i] * (t - mean) for row, t in zip(rows, targets, strict=True)) for i in (0, 1))
    one, two = (d * u - b * v) / (a * d - b * b), (a * v - b * u) / (a * d - b * b)
    return np.array([float(one * row[0] + two * row[1] + mean) for row in rows])


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("gap", [1e5, 1e7, 3e8, 1e9])
def test_the_bound_counts_what_rounding_hides_from_the_solver(gap, fit_intercept):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 2))
        X[:30, 0] += gap
        y = X[:, 1] + 0.1 * rng.normal(size=60)
        gradient, _, fit = _both(
            X, y[:, None], np.arange(20, 30 + 5 * seed, 5), 4e-5, None, fit_intercept, kernel=Linear()
        )
        assert _rms(gradient[:, 0] - _exact_linear(X, y, 4e-5 * 60, fit_intercept)) <= fit.bound[0] <= 2 * y.std()


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
        assert outcome == "converged" or bound > 1e-5


def test_a_precomputed_kernel_and_a_constant_target(data):
    X, Y, _ = data
    gradient, direct, fit = _both(KERNEL(X[:200]), Y[:200], np.arange(40), 1e-3, kernel=Precomputed())
    assert (_rms(gradient - direct) <= fit.bound + 1e-8).all()
    gradient, _, fit = _both(X, np.full((800, 1), 3.0), np.arange(40), 1e-3)
    assert gradient == pytest.approx(np.full((800, 1), 3.0))
    assert fit.n_products.tolist() == [0]


@pytest.mark.parametrize("tails", [2.0, 30.0])
@pytest.mark.parametrize("uneven", [True, False])
def test_a_sample_of_the_rows_saves_products(monkeypatch, tails, uneven):
    """Also where landmarks are unlike other rows: long tails, and landmarks drawn mostly from the outer rows."""
    rng = np.random.default_rng(3)
    X = rng.standard_t(tails, size=(4000, 3))
    y = np.sin(X).sum(axis=1, keepdims=True)
    draw = draw_distinct(np.linalg.norm(X, axis=1) ** 2 if uneven else np.ones(4000), 150, rng)
    counts = []
    for rows_each in (8, 0):
        monkeypatch.setattr("ridgemark.solvers.choice._MOST_ROWS", rows_each)
        *_, fit = _both(X, y, draw.indices, 1e-7, tol=1e-3)
        counts.append(fit.n_products[0])
    assert 3 * counts[0] < counts[1]


def test_the_solver_chosen_is_the_cheaper_one():
    assert choose_solver(36_000, 1_000, 8) == "direct"
    assert choose_solver(36_000, 10_000, 8) == "gradient"
    few, many = solver_cost(10_000, 1_000, 5), solver_cost(20_000, 1_000, 5)
    assert few.direct < many.direct and few.gradient < many.gradient


@pytest.mark.parametrize(
    ("counts", "name"), [((0, 1, 1), "n_rows"), ((9, 0, 1), "n_landmarks"), ((9, 9, "x"), "n_features")]
)
def test_a_cost_of_no_rows_or_landmarks_is_refused(counts, name):
    with pytest.raises(ParameterError, match=f"{name} must be a number of at least 1, got "):
        solver_cost(*counts)


def test_the_kernel_of_the_landmarks_is_given_up_before_the_products(data, monkeypatch):
    X, Y, _ = data
    kept, products = [], _solver._NormalEquations.gram_product
    factor_of = _solver.nystrom_factor

    def factor(*given, **more):
        made = factor_of(*given, **more)
        kept.append(weakref.ref(made.landmark_kernel))
        return made

    def product(*given):
        gc.collect()
        assert kept[0]() is None
        return products(*given)

    monkeypatch.setattr(_solver, "nystrom_factor", factor)
    monkeypatch.setattr(_solver._NormalEquations, "gram_product", product)
    assert _both(X, Y, np.arange(100), 1e-4)[2].n_products.any()


def test_no_features_are_held_beside_the_gradient(monkeypatch):
    X = np.random.default_rng(0).normal(size=(600, 3))
    held, solve = [], solve_by_gradient

    def noted(rows, kernel, landmarks, solved):
        held.append((rows.choosing.held, landmarks.pivots))
        return solve(rows, kernel, landmarks, solved)

    monkeypatch.setattr("ridgemark.fitting.fit.solve_by_gradient", noted)
    y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=600)
    NystromRidge(bandwidth=2.0, n_landmarks=80, solver="gradient", random_state=0).fit(X, y)
    assert held == [(None, None)]
