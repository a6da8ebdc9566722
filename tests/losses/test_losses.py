"""A loss defines a block's contribution; all losses use the same sums and solvers."""

from dataclasses import fields

import cloudpickle
import numpy as np
import pytest
from scipy.optimize import minimize

from ridgemark.kernels import Gaussian, Linear
from ridgemark.losses import Logistic, Moments, RidgeSolution, Softmax, SquaredLoss, loss_sums
from ridgemark.losses.slopes import thinned
from ridgemark.losses.sums import LossSums
from ridgemark.operators import nystrom_factor
from ridgemark.operators.factor import whiten_before
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.solvers import SpectralSolver


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(3000, 3)), rng.normal(size=(3000, 2)), rng.uniform(0, 2, 3000)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear()], ids=repr)
def test_moments_equal_their_definitions(data, kernel):
    X, Y, w = data
    origin = np.array([0.5, -1.0])
    factor = nystrom_factor(kernel, X[:40], np.arange(40))
    moments = loss_sums(RowPasses(ArrayRows(X, Y, w)), factor, origin)
    B, T, diagonal = factor.features(X), Y - origin, kernel.diagonal(X)
    expected = {
        "n_rows": 3000,
        "total_weight": w.sum(),
        "gram": B.T @ (w[:, None] * B),
        "cross": B.T @ (w[:, None] * T),
        "feature_sum": B.T @ w,
        "target_sum": T.T @ w,
        "target_square": w @ T**2,
        "trace_kernel": w @ diagonal,
        "trace_residual": w @ (diagonal - (B**2).sum(axis=1)),
    }
    for name, value in expected.items():
        assert getattr(moments, name) == pytest.approx(value, rel=1e-9, abs=1e-8), name


def test_moments_of_parts_add_up_to_those_of_the_whole(data):
    X, Y, w = data
    factor = nystrom_factor(Gaussian(1.0), X[:40], np.arange(40))
    whole = loss_sums(RowPasses(ArrayRows(X, Y, w)), factor)
    parts = [loss_sums(RowPasses(ArrayRows(X[s], Y[s], w[s])), factor) for s in (slice(0, 17), slice(17, 3000))]
    total = parts[0] + parts[1]
    for field in fields(Moments):
        assert getattr(total, field.name) == pytest.approx(getattr(whole, field.name), rel=1e-10, abs=1e-10), field.name


def newton(passes, factor, loss, scaled_ridge, steps):
    """Ten plain Newton steps: one pass each, and the solver of ridge regression."""
    at = RidgeSolution(np.zeros((factor.rank, 1)), np.zeros(1))
    for _ in range(steps):
        moments = loss_sums(passes, factor, loss=loss, at=at)
        solution = SpectralSolver(moments, fit_intercept=True).solution(scaled_ridge)
        at = RidgeSolution(solution.coefficients, solution.intercept)
    return at


def test_plain_newton_steps_find_the_minimum_of_a_loss_in_one_pass_each(data):
    X, Y, w = data
    labels = (Y[:, 0] + X[:, 0] > 0).astype(float)
    factor = nystrom_factor(Gaussian(2.0), X[:10], np.arange(10))
    B, scaled_ridge = factor.features(X), 30.0
    passes = RowPasses(ArrayRows(X, labels, w))
    found = newton(passes, factor, Logistic(), scaled_ridge, steps=8)
    assert passes.n_passes == 8

    def objective(c):
        eta = B @ c[:-1] + c[-1]
        slope = w * (1.0 / (1.0 + np.exp(-eta)) - labels)
        value = w @ (np.logaddexp(0.0, eta) - labels * eta) + scaled_ridge / 2 * c[:-1] @ c[:-1]
        return value, np.append(B.T @ slope + scaled_ridge * c[:-1], slope.sum())

    best = minimize(objective, np.zeros(factor.rank + 1), jac=True, tol=1e-12).x
    assert np.append(found.coefficients[:, 0], found.intercept) == pytest.approx(best, abs=1e-5)


def test_the_task_of_a_loss_survives_pickling(data):
    X, Y, _ = data
    factor = nystrom_factor(Gaussian(2.0), X[:10], np.arange(10))
    at = RidgeSolution(np.ones((factor.rank, 1)), np.zeros(1))
    task = LossSums(whiten_before(factor), Logistic(), np.zeros(1), at)
    again = cloudpickle.loads(cloudpickle.dumps(task))
    rows = ArrayRows(X, (Y[:, :1] > 0).astype(float))
    assert np.array_equal(RowPasses(rows).reduce(task).gram, RowPasses(rows).reduce(again).gram)


@pytest.mark.parametrize("loss", [SquaredLoss(), Logistic(), Softmax()], ids=lambda loss: type(loss).__name__)
def test_slopes_and_curvature_are_derivatives(loss):
    rng, t = np.random.default_rng(0), 1 if isinstance(loss, Logistic) else 4
    y, eta, direction = rng.dirichlet(np.ones(t + 1), 50)[:, :t], 3 * rng.normal(size=(50, t)), rng.normal(size=(50, t))
    if isinstance(loss, Softmax):
        y /= y.sum(axis=1, keepdims=True)
    step = 1e-6
    up, down = eta + step * direction, eta - step * direction
    slope = (loss.values(y, up) - loss.values(y, down)) / (2 * step)
    assert (loss.slopes(y, eta) * direction).sum(axis=1) == pytest.approx(slope, abs=1e-7)
    curved = (loss.slopes(y, up) - loss.slopes(y, down)) / (2 * step)
    assert loss.curvature_product(y, eta, direction) == pytest.approx(curved, abs=1e-7)


def test_the_curvature_of_softmax_is_the_mean_of_its_eigenvalues():
    eta = 3 * np.random.default_rng(0).normal(size=(20, 4))
    matrices = np.stack([Softmax().curvature_product(eta, eta, np.tile(unit, (20, 1))) for unit in np.eye(4)], axis=2)
    eigenvalues = np.linalg.eigvalsh(matrices)
    assert eigenvalues[:, 0] == pytest.approx(0.0, abs=1e-15)
    assert Softmax().curvature(eta, eta) == pytest.approx(eigenvalues[:, 1:].mean(axis=1))


def test_sums_with_deferred_whitening_equal_the_reference(data):
    X, Y, w = data
    labels = (Y[:, 0] > 0).astype(float)
    factor = nystrom_factor(Gaussian(1.0), X[:40], np.arange(40))
    at = RidgeSolution(np.random.default_rng(1).normal(size=(factor.rank, 1)), np.ones(1))
    passes = RowPasses(ArrayRows(X, labels, w))
    reference = loss_sums(passes, factor, loss=Logistic(), at=at)
    deferred = loss_sums(passes, factor, scaled_ridge=3.0, loss=Logistic(), at=at)
    for name in ("gram", "cross", "feature_sum", "loss", "trace_residual"):
        assert getattr(deferred, name) == pytest.approx(getattr(reference, name), rel=1e-8, abs=1e-8), name


@pytest.mark.parametrize("count", [500, 4000])
def test_light_weights_are_thinned_to_the_same_sums(count):
    rng = np.random.default_rng(0)
    weights, values = rng.exponential(size=(4000, 2)) ** 3 * [1.0, 1e-6], rng.normal(size=4000) ** 2
    left = thinned(weights, weights, [count, count])
    assert ((left == 0) | (left >= weights)).all()
    assert (0.2 * count < np.count_nonzero(left, axis=0)).all()
    assert (np.count_nonzero(left, axis=0) < 1.1 * count).all()
    assert values @ left == pytest.approx(values @ weights, rel=0.1)
    assert np.array_equal(thinned(np.ones((5, 1)), np.ones((5, 1)), [5]), np.ones((5, 1)))
    assert not thinned(np.zeros((5, 1)), np.zeros((5, 1)), [5]).any()


def test_weights_are_thinned_by_importance():
    rng = np.random.default_rng(0)
    weights, importance = rng.uniform(size=(4000, 1)), rng.exponential(size=(4000, 1)) ** 3
    left = thinned(weights, importance, [500])
    assert (left[importance > 100.0] == weights[importance > 100.0]).all()
    assert 400 < np.count_nonzero(left) < 600
    assert (importance * left).sum() == pytest.approx((importance * weights).sum(), rel=0.05)
