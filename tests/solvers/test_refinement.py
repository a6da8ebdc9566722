"""Refinement ends within its bounds of the dense solution."""

import numpy as np
import pytest

from ridgemark import exact
from ridgemark.kernels import Gaussian
from ridgemark.losses import loss_sums
from ridgemark.operators import nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.solvers import refine, solve_landmarks
from ridgemark.tuning import median_distance
from tests.helpers import real_data, standardised

KERNEL = Gaussian(1.0)


def landmark_fit(X, Y, landmarks, ridge, kernel=KERNEL, weights=None, fit_intercept=True, memory_budget=None):
    passes = RowPasses(ArrayRows(X, Y, weights), memory_budget)
    factor = nystrom_factor(kernel, X[landmarks], landmarks)
    origin = Y.mean(axis=0) if fit_intercept else np.zeros(Y.shape[1])
    moments = loss_sums(passes, factor, origin)
    ridges = np.broadcast_to(np.asarray(ridge) * moments.total_weight, Y.shape[1]).astype(float)
    return passes, solve_landmarks(factor, moments, fit_intercept, ridges, origin)


def dense(X, Y, ridges, kernel=KERNEL, weights=None, fit_intercept=True):
    K = exact.kernel_matrix(X, kernel)
    fits = [exact.kernel_ridge(K, y, s, weights, fit_intercept) for y, s in zip(Y.T, ridges, strict=True)]
    return K, np.stack([f.fitted for f in fits], axis=1), np.stack([f.dual_coef for f in fits], axis=1)


def values_of(refined, fit, X, kernel=KERNEL):
    """The function returned, at the rows X it was fitted on."""
    of_rows = kernel(X, X[refined.rows.numbers]) @ refined.dual_coef
    return of_rows + fit.factor.cross_kernel(X) @ refined.landmark_coef + refined.intercept


def rms(values, weights=None):
    return np.sqrt(np.average(values**2, axis=0, weights=weights))


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    signal = np.sin(2 * X[:, 0]) + X[:, 1]
    return X, np.c_[signal + 0.1 * rng.normal(size=300), 50 + 10 * signal], rng.integers(0, 4, 300).astype(float)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("memory_budget", [None, 500_000, 150_000], ids=["all held", "B held", "none held"])
def test_refinement_reaches_the_dense_solution_within_its_bounds(data, fit_intercept, weighted, memory_budget):
    X, Y, w = data
    weights = w if weighted else None
    landmarks = np.flatnonzero(w)[:80]
    passes, fit = landmark_fit(
        X, Y, landmarks, [1e-2, 1e-4], weights=weights, fit_intercept=fit_intercept, memory_budget=memory_budget
    )
    refined = refine(passes, KERNEL, fit, 1e-7, 300)
    _, fitted, _ = dense(X, Y, fit.scaled_ridge, weights=weights, fit_intercept=fit_intercept)
    distance = rms(values_of(refined, fit, X) - fitted, weights)
    assert refined.outcomes == ("converged", "converged")
    assert (refined.reached.returned <= 1e-7).all()
    assert (distance <= refined.reached.returned + 1e-10).all()
    if weighted:
        assert refined.rows.numbers.tolist() == np.flatnonzero(w).tolist()


def test_every_step_of_the_history_holds_bounds(data):
    X, Y, w = data
    passes, fit = landmark_fit(X, Y, np.flatnonzero(w)[:30], [1e-3, 1e-6], weights=w)
    K, fitted, dual = dense(X, Y, fit.scaled_ridge, weights=w)
    new = np.random.default_rng(5).normal(size=(50, 3))
    for n_products in (1, 2, 5, 20, 60):
        refined = refine(passes, KERNEL, fit, 1e-12, n_products)
        step = refined.reached
        assert step.n_products == n_products
        assert (rms(values_of(refined, fit, X) - fitted, w) <= step.returned * (1 + 1e-6) + 1e-9).all()
        # y - s x, with the means of both removed: s times the difference of the dual coefficients.
        present = w > 0
        gap = -dual
        gap[present] += refined.dual_coef
        from_dual = fit.scaled_ridge * gap[present] / w[present, None]
        assert (rms(from_dual, w[present]) <= step.fitted * (1 + 1e-6) + 1e-9).all()
        norm = np.sqrt(np.maximum(np.einsum("ij,ik,kj->j", gap, K, gap), 0.0))
        assert (norm <= step.norm * (1 + 1e-6) + 1e-7).all()
        assert (np.abs(KERNEL(new, X) @ gap) <= step.norm * (1 + 1e-6) + 1e-7).all()


def test_bounds_never_rise_and_never_exceed_the_targets(data):
    X, Y, _ = data
    passes, fit = landmark_fit(X, Y, np.arange(10), 1e-9)
    refined = refine(passes, KERNEL, fit, 1e-9, 60)
    returned = np.array([step.returned for step in refined.history])
    assert (np.diff(returned[:-1], axis=0) <= 1e-9).all()
    assert refined.landmark_coef.any()  # the last bound is that of the landmark model
    assert (returned[-1] <= returned[0]).all()
    assert returned[0] == pytest.approx(Y.std(axis=0))


@pytest.mark.parametrize("ridge", [1e-4, 1e-8, 1e-12, 1e-14])
@pytest.mark.parametrize("repeated", [True, False])
@pytest.mark.parametrize("n_landmarks", [5, 100])
def test_refinement_is_finite_for_every_ridge(data, ridge, repeated, n_landmarks):
    X, Y, _ = data
    if repeated:
        X = X[np.random.default_rng(1).integers(0, 100, 300)]
    landmarks = np.unique(X, axis=0, return_index=True)[1][:n_landmarks]
    passes, fit = landmark_fit(X, Y, landmarks, ridge)
    refined = refine(passes, KERNEL, fit, 1e-6, 400)
    assert np.isfinite(values_of(refined, fit, X)).all()
    assert (refined.reached.returned <= Y.std(axis=0) * (1 + 1e-9)).all()
    for outcome, reached in zip(refined.outcomes, refined.reached.returned, strict=True):
        assert (outcome == "converged") == (reached <= 1e-6)


def test_all_rows_as_landmarks_take_one_product(data):
    X, Y, _ = data
    passes, fit = landmark_fit(X, Y, np.arange(300), 1e-4)
    assert refine(passes, KERNEL, fit, 1e-6, 100).reached.n_products == 1


def test_one_row_or_a_constant_target_needs_no_product(data):
    X, Y, _ = data
    for rows, targets in ((X[:1], Y[:1]), (X, np.full((300, 1), 7.0))):
        passes, fit = landmark_fit(rows, targets, np.arange(1), 1e-4)
        refined = refine(passes, KERNEL, fit, 1e-6, 100)
        assert refined.reached.n_products == 0
        assert refined.intercept == pytest.approx(targets.mean(axis=0))


def test_targets_near_overflow_are_refined_like_others(data):
    X, Y, _ = data
    passes, fit = landmark_fit(X, Y[:, :1], np.arange(80), 1e-3)
    plain = refine(passes, KERNEL, fit, 1e-6, 100)
    passes, fit = landmark_fit(X, Y[:, :1] * 1e140, np.arange(80), 1e-3)
    large = refine(passes, KERNEL, fit, 1e134, 100)
    assert large.outcomes == ("converged",)
    assert large.dual_coef / 1e140 == pytest.approx(plain.dual_coef, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "share", "ridge", "p", "by_scores", "most"),
    [
        ("kin40k", 0.5, 1.8e-6, 2000, True, 30),
        ("elevators", 1.0, 4.2e-6, 1000, True, 10),
        ("elevators", 1.0, 4.2e-6, 1000, False, 20),
    ],
)
def test_products_to_a_millionth_of_the_dense_solution(name, share, ridge, p, by_scores, most):
    """5,000 rows, targets in units of their standard deviation, ridges by leave-one-out."""
    data = real_data(name)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(data["X"]))[:5000]
    X, y = standardised(data["X"][rows].astype(float)), data["y"][rows].astype(float)
    Y = ((y - y.mean()) / y.std())[:, None]
    kernel = Gaussian(share * median_distance(X[:1000]))
    spectrum = exact.spectrum(exact.kernel_matrix(X, kernel))
    scores = exact.leverage_scores(spectrum, 5000 * ridge) if by_scores else np.ones(5000)
    landmarks = np.sort(rng.choice(5000, p, replace=False, p=scores / scores.sum()))
    passes, fit = landmark_fit(X, Y, landmarks, ridge, kernel)
    refined = refine(passes, kernel, fit, 1e-6, 100)
    _, fitted, _ = dense(X, Y, fit.scaled_ridge, kernel)
    assert refined.reached.n_products <= most
    assert rms(values_of(refined, fit, X, kernel) - fitted)[0] <= 1e-6
