"""Newton's method finds the coefficients of logistic regression on the features."""

import functools
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from ridgemark import NystromClassifier, linalg
from ridgemark.backends import threads
from ridgemark.errors import RidgeEdgeWarning
from ridgemark.kernels import Gaussian, Scaled
from ridgemark.losses import RidgeSolution, class_loss
from ridgemark.losses.logistic import Softmax
from ridgemark.operators import nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.solvers import Newton, TargetSystems, feature_rows
from ridgemark.solvers.drawn_rows import DrawnRows
from ridgemark.solvers.feature_rows import features_of
from ridgemark.solvers.newton import _as_vectors
from ridgemark.solvers.second_derivative import SecondDerivative
from tests.classes.problems import indicators, labelled
from tests.helpers import slowly


def zero(factor, t):
    return RidgeSolution(np.zeros((factor.rank, t)), np.zeros(t))


def solve(X, labels, weights, ridge, n_classes, fit_intercept=True, memory_budget=None):
    Y = indicators(labels, n_classes)
    factor = nystrom_factor(Gaussian(1.0), X[:40], np.arange(40))
    passes = RowPasses(ArrayRows(X, Y, weights), memory_budget)
    newton = Newton(passes, factor, class_loss(n_classes), fit_intercept)
    return newton, newton.solve(ridge * weights.sum(), zero(factor, Y.shape[1]))


@functools.cache
def probabilities_by_scale(scale):
    """Return probabilities of a fit whose kernel and ridge are multiplied by the scale."""
    X, labels = labelled(400, 3)
    kernel = Scaled(Gaussian(0.5), scale)
    model = NystromClassifier(kernel, ridge=1e-4 * scale, n_landmarks=340, selection="uniform", random_state=0)
    return model.fit(X, labels).predict_proba(X)


@pytest.mark.parametrize("scale", [2.0**-120, *slowly(2.0**120), 2.0**270])
def test_probabilities_do_not_depend_on_the_size_of_kernel_values(scale):
    assert probabilities_by_scale(scale) == pytest.approx(probabilities_by_scale(1.0), abs=1e-8)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("ridge", [1e-2, 1e-5])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_coefficients_equal_those_of_scikit_learn(n_classes, ridge, fit_intercept):
    X, labels = labelled(800, n_classes)
    weights = np.random.default_rng(1).uniform(0.1, 2.0, 800)
    newton, fit = solve(X, labels, weights, ridge, n_classes, fit_intercept)
    assert fit.converged
    reference = LogisticRegression(
        C=1 / (ridge * weights.sum()), solver="newton-cholesky", tol=1e-10, max_iter=500, fit_intercept=fit_intercept
    ).fit(newton.factor.features(X), labels, sample_weight=weights)
    intercept = reference.intercept_ - (reference.intercept_.mean() if n_classes > 2 else 0.0)
    size = np.abs(reference.coef_).max()
    assert fit.solution.coefficients.T == pytest.approx(reference.coef_, abs=1e-6 * size)
    assert fit.solution.intercept == pytest.approx(intercept, abs=1e-6 * size)


@pytest.mark.parametrize("memory_budget", [None, 100_000])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_conjugate_gradients_find_what_the_whole_second_derivative_finds(monkeypatch, fit_intercept, memory_budget):
    """Also where memory holds one system for all classes."""
    X, labels = labelled(300, 4)
    weights = np.random.default_rng(1).uniform(0.1, 2.0, 300)
    _, jointly = solve(X, labels, weights, 1e-3, 4, fit_intercept)
    monkeypatch.setattr("ridgemark.solvers.newton._FEW_UNKNOWNS", 0)
    newton, fit = solve(X, labels, weights, 1e-3, 4, fit_intercept, memory_budget=memory_budget)
    assert not newton.whole
    assert fit.system.alike == (memory_budget is not None)
    assert fit.converged
    size = np.abs(jointly.solution.coefficients).max()
    assert fit.solution.coefficients == pytest.approx(jointly.solution.coefficients, abs=1e-6 * size)
    assert fit.solution.intercept == pytest.approx(jointly.solution.intercept, abs=1e-6 * size)
    assert fit.solution.coefficients.sum(axis=1) == pytest.approx(np.zeros(newton.factor.rank), abs=1e-9 * size)


@pytest.mark.parametrize("n_classes", [2, 4, 7, 15])
def test_products_with_features_held_are_in_single_precision(monkeypatch, n_classes):
    X, labels = labelled(300, n_classes)
    Y, loss = indicators(labels, n_classes), class_loss(n_classes)
    rows = features_of(RowPasses(ArrayRows(X, Y)), nystrom_factor(Gaussian(1.0), X[:40]))
    rng, t = np.random.default_rng(0), Y.shape[1]
    predictor, vectors = rng.normal(size=(300, t)), rng.normal(size=(41, t))
    seen, as_held = set(), feature_rows._as_held
    monkeypatch.setattr(feature_rows, "_as_held", lambda tile, _: seen.add(tile.features.dtype) or as_held(tile, _))
    for product in (
        lambda one: one.curved(loss, loss.curvature_parts(Y, predictor), vectors),
        lambda one: one.values(vectors),
        lambda one: one.sums(predictor),
    ):
        seen.clear()
        held, streamed = product(rows.held()), product(rows)
        assert seen == {np.dtype(np.float32)}
        assert held.dtype == np.float64
        assert held == pytest.approx(streamed, abs=1e-6 * np.abs(streamed).max())


def test_the_curvature_of_a_step_is_computed_once_for_all_its_products(monkeypatch):
    X, labels = labelled(1500, 4)
    monkeypatch.setattr("ridgemark.solvers.newton._FEW_UNKNOWNS", 0)
    computed, products = [], []
    parts, product = Softmax.curvature_parts, SecondDerivative.times
    monkeypatch.setattr(Softmax, "curvature_parts", lambda *given: computed.append(1) or parts(*given))
    monkeypatch.setattr(SecondDerivative, "times", lambda *given: products.append(1) or product(*given))
    _, fit = solve(X, labels, np.ones(1500), 1e-6, 4)
    assert len(computed) == fit.n_steps < len(products) / 2


def test_a_worn_system_serves_the_last_step_and_the_second(monkeypatch):
    X, labels = labelled(1500, 4)
    monkeypatch.setattr("ridgemark.solvers.newton._FEW_UNKNOWNS", 0)
    monkeypatch.setattr(Newton, "_most_spent", 0)  # a system is summed anew for every other step but the first
    systems, system = [], Newton.system
    monkeypatch.setattr(Newton, "system", lambda *given: systems.append(1) or system(*given))
    _, fit = solve(X, labels, np.ones(1500), 1e-6, 4)
    assert fit.converged
    assert len(systems) == fit.n_steps - 3


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_mean_curvature_alone_leads_to_the_minimum(monkeypatch, n_classes):
    X, labels = labelled(1500, n_classes)
    _, expected = solve(X, labels, np.ones(1500), 1e-4, n_classes)
    monkeypatch.setattr("ridgemark.solvers.newton._FEW_UNKNOWNS", 0)
    monkeypatch.setattr(Newton, "whole", False)
    monkeypatch.setattr(Newton, "_most_spent", np.inf)
    monkeypatch.setattr(Newton, "system", None)  # no other system is summed
    _, fit = solve(X, labels, np.ones(1500), 1e-4, n_classes)
    c = expected.solution.coefficients
    assert fit.solution.coefficients == pytest.approx(c, abs=1e-6 * np.abs(c).max())


def test_conjugate_gradients_take_few_products_at_small_ridges(monkeypatch):
    """Steps sum to zero over the classes: along others the second derivative is far below the preconditioner."""
    X, labels = labelled(1500, 6, sharpness=8.0)
    monkeypatch.setattr("ridgemark.solvers.newton._FEW_UNKNOWNS", 0)
    products, product = [], SecondDerivative.times
    monkeypatch.setattr(SecondDerivative, "times", lambda *given: products.append(1) or product(*given))
    _, fit = solve(X, labels, np.ones(1500), 1e-7, 6)
    assert fit.converged
    assert len(products) < 15 * fit.n_steps


def test_rows_drawn_by_leverage_make_better_systems_than_those_drawn_by_curvature(monkeypatch):
    """Most rows lie close together and are uncertain; those spread around are few, and sure of their class."""
    rng = np.random.default_rng(0)
    X = np.concatenate([0.2 * rng.normal(size=(2700, 2)), rng.uniform(-6.0, 6.0, size=(300, 2))])
    labels = np.where(np.arange(3000) < 2700, rng.integers(0, 3, 3000), (X[:, 0] > 0) + (X[:, 1] > 0))
    X, labels = X[::-1].copy(), labels[::-1]
    monkeypatch.setattr("ridgemark.solvers.newton._FEW_UNKNOWNS", 0)
    monkeypatch.setattr("ridgemark.solvers.drawn_rows._SAMPLED", 300)
    monkeypatch.setattr("ridgemark.solvers.drawn_rows._FEWEST", 0)
    factor = nystrom_factor(Gaussian(1.0), X[:150], np.arange(150))
    passes = RowPasses(ArrayRows(X, indicators(labels, 3)), 2**24)
    newton = Newton(passes, factor, class_loss(3), True)
    newton = replace(newton, held=newton.rows.held(), rough=True)
    fit, goal, products = newton.solve(3e-3, zero(factor, 3), 1e-4), 1e-8, {}
    point = newton._point(_as_vectors(fit.solution), 3e-3)
    leverages, nearby = DrawnRows._leverages, newton.with_own_system(fit).system
    for name in ("leverage", "curvature"):
        if name == "curvature":  # as many rows, drawn by another number
            monkeypatch.setattr(
                DrawnRows, "_leverages", lambda *given: _with_sums(given[1], leverages(*given).sum(axis=0))
            )
        system = newton.system(fit.solution, 3e-3, nearby)
        begin = float((point.gradient * system.solve(point.gradient)).sum())
        parts = newton.loss.curvature_parts(newton._targets, point.predictor)
        second = SecondDerivative(newton.held, newton.loss, parts, 3e-3, True)
        _, products[name] = second.solve(-point.gradient, system, goal * begin, 100)
    assert products["leverage"] < products["curvature"] / 2


def _with_sums(columns, sums):
    return columns * (sums / columns.sum(axis=0))


def test_a_step_for_two_classes_takes_one_pass():
    X, labels = labelled(800, 2)
    newton, fit = solve(X, labels, np.ones(800), 1e-4, 2)
    assert newton.passes.n_passes == fit.n_steps <= 8


def test_separable_classes_have_finite_coefficients():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 50)
    X = rng.normal(size=(100, 2)) + 8.0 * labels[:, None]
    for ridge in (1e-3, 1e-9, 1e-15):
        _, fit = solve(X[::-1], labels[::-1], np.ones(100), ridge, 2)
        assert fit.converged
        assert np.isfinite(fit.solution.coefficients).all()
        assert fit.loss / 100 < 10 * np.sqrt(ridge)


def test_a_far_start_is_damped():
    X, labels = labelled(200, 3)
    newton, near = solve(X, labels, np.ones(200), 1e-4, 3)
    far = RidgeSolution(20.0 * np.ones_like(near.solution.coefficients) * [1, -1, 0], np.array([10.0, -10.0, 0.0]))
    again = newton.solve(1e-4 * 200, far)
    assert again.solution.coefficients == pytest.approx(near.solution.coefficients, abs=1e-5)


def test_the_solution_at_another_ridge_is_found_to_first_order():
    X, labels = labelled(800, 2)
    newton, fit = solve(X, labels, np.ones(800), 1e-3, 2)
    for change, most in ((1.02, 1e-3), (1.2, 3e-2)):
        exact = newton.solve(change * 0.8, fit.solution).solution.coefficients
        near = fit.extrapolated(change * 0.8).coefficients
        moved = np.abs(exact - fit.solution.coefficients).max()
        assert np.abs(near - exact).max() < most * moved + 1e-9 * np.abs(exact).max()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_features_held_in_single_precision_lead_to_the_same_coefficients(monkeypatch, n_classes, fit_intercept):
    """Held features give a near start and the curvature; slopes are summed in double precision."""
    X, labels = labelled(400, n_classes)
    weights = np.random.default_rng(1).uniform(0.1, 2.0, 400)
    newton, exact = solve(X, labels, weights, 1e-5, n_classes, fit_intercept)
    for name in ("_FEW_FEATURES", "_FEW_UNKNOWNS"):
        monkeypatch.setattr(f"ridgemark.solvers.newton.{name}", 0)
    held = newton.hold()
    assert not held.whole
    rough = held.solve(1e-5 * weights.sum(), zero(newton.factor, exact.solution.coefficients.shape[1]), 1e-6)
    before = newton.passes.n_passes
    fit = replace(held, rough=False).solve(1e-5 * weights.sum(), rough.solution, system=rough.system)
    assert fit.converged
    assert newton.passes.n_passes - before <= 3 + 2 * fit.n_steps < 20
    size = np.abs(exact.solution.coefficients).max()
    assert rough.solution.coefficients == pytest.approx(exact.solution.coefficients, abs=0.05 * size)
    assert fit.solution.coefficients == pytest.approx(exact.solution.coefficients, abs=1e-6 * size)
    assert fit.solution.intercept == pytest.approx(exact.solution.intercept, abs=1e-6 * size)


def test_features_are_held_where_the_memory_budget_has_room(monkeypatch):
    monkeypatch.setattr("ridgemark.solvers.newton._FEW_FEATURES", 0)
    X, labels = labelled(400, 2)
    for budget, holds in ((70_000, True), (60_000, False)):
        newton, _ = solve(X, labels, np.ones(400), 1e-3, 2, memory_budget=budget)
        assert (newton.hold().held is not None) == holds


@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e30])
def test_systems_of_single_targets_are_solved_to_single_precision(unit):
    rng = np.random.default_rng(0)
    features, weights = rng.normal(size=(300, 20)) * np.logspace(0, -3, 20), rng.random((300, 2))
    rows = np.c_[features, np.ones(300)]
    blocks = np.stack([rows.T @ (w[:, None] * rows) for w in weights.T]) * unit
    system = TargetSystems(blocks, weights * unit, True, 1e-6 * unit)
    vectors = unit**2 * rng.normal(size=(21, 2))
    exact = [np.linalg.inv(block + 1e-6 * unit * np.diag([1.0] * 20 + [0.0])) for block in blocks]
    solved = np.c_[exact[0] @ vectors[:, 0], exact[1] @ vectors[:, 1]]
    np.testing.assert_allclose(system.solve(vectors), solved, rtol=0, atol=1e-5 * np.abs(solved).max())
    leverage = np.stack([np.einsum("ij,jk,ik->i", rows, inverse, rows) for inverse in exact], axis=1)
    np.testing.assert_allclose(system.leverage(features, np.full((300, 2), True)), leverage, rtol=1e-4)


def work_of_fit(monkeypatch, n_classes, **options):
    """Return the calls of a fit of 256 rows, and the multiplications of its triangular factors."""
    rng = np.random.default_rng(0)
    labels = np.arange(256) % n_classes
    X = rng.normal(size=(n_classes, 3))[labels] + rng.normal(size=(256, 3))
    model, work = NystromClassifier(ridge=[1e-1, 1e-2], random_state=0, **options), {"calls": 0, "products": 0}

    def count(frame, event, argument):
        work["calls"] += event in ("call", "c_call")

    def factored(matrix, plain=linalg.cholesky_):
        work["products"] += len(matrix) ** 3
        return plain(matrix)

    with monkeypatch.context() as patch:
        patch.setattr(linalg, "cholesky_", factored)
        sys.setprofile(count)
        try:
            with pytest.warns(RidgeEdgeWarning):
                model.fit(X, labels)
        finally:
            sys.setprofile(None)
    return np.array(list(work.values()))


@pytest.mark.parametrize(
    ("fewer", "options"), [(48, {"kernel": "linear"}), (16, {"kernel": "gaussian", "bandwidth": "median"})]
)
def test_products_grow_in_proportion_to_the_number_of_classes(monkeypatch, fewer, options):
    few, many = (work_of_fit(monkeypatch, n, **options) for n in (fewer, 2 * fewer))
    assert many[1] < 2.5 * few[1]


def test_calls_grow_no_faster_than_the_number_of_classes(monkeypatch):
    _, few, many = (work_of_fit(monkeypatch, n, kernel="linear") for n in (4, 16, 64))  # the first imports
    assert many[0] < 4 * few[0]


def test_fits_of_many_classes_use_one_thread_for_small_matrices(monkeypatch):
    changes, limited = [], threads._limited
    monkeypatch.setattr(threads, "_limited", lambda to_one: changes.append(to_one) or limited(to_one))
    with threads.one_blas_thread():  # held, so that only single operations could ask for more
        work_of_fit(monkeypatch, 16, kernel="gaussian", bandwidth="median")
    assert changes.count(False) < 10
