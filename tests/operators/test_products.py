"""Products with C, B and K equal those of the dense matrices, held or not, for all block sizes."""

import cloudpickle
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from ridgemark import NystromRidge
from ridgemark.kernels import Gaussian, Matern32, Precomputed
from ridgemark.losses import loss_sums
from ridgemark.operators import (
    Cross,
    Features,
    KernelMatrix,
    ShiftedInverse,
    Weighting,
    hold_features,
    nystrom_factor,
)
from ridgemark.passes import RowPasses
from ridgemark.path import leave_one_out
from ridgemark.rows import ArrayRows
from ridgemark.solvers import solve_landmarks


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(700, 3)), rng.normal(size=(700, 2)), rng.uniform(0, 2, 700)


def _passes(X, block_rows=None, weights=None, **options):
    passes = RowPasses(ArrayRows(X, None, weights), **options)
    if block_rows:
        passes.block_rows = lambda width: block_rows
    return passes


HOLDING = pytest.mark.parametrize("held", [False, True], ids=["streamed", "held"])


@HOLDING
@pytest.mark.parametrize("block_rows", [700, 256, 130])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern32(2.0)], ids=repr)
def test_products_with_the_kernel_matrix(data, kernel, block_rows, held):
    X, Y, _ = data
    K = KernelMatrix(_passes(X, block_rows), kernel).hold(10**9 if held else 0)
    assert (K.held is not None) == held
    assert pytest.approx(kernel(X) @ Y, abs=1e-10) == K @ Y
    assert pytest.approx(kernel(X) @ Y, abs=1e-10) == K.T @ Y


@pytest.mark.parametrize("block_rows", [None, 100, 701])
def test_some_rows_of_a_product_with_the_kernel_matrix(data, block_rows):
    X, Y, _ = data
    some = np.array([3, 699, 3, 0, *range(200, 400)])
    product, error = KernelMatrix(_passes(X, block_rows), Gaussian(1.0)).rows_product_and_error(some, Y, np.abs(Y))
    assert product == pytest.approx((Gaussian(1.0)(X) @ Y)[some], abs=1e-9)
    assert (0 < error).all()
    assert (error < 1e-11).all()


def test_a_product_with_the_kernel_matrix_uses_the_budget_it_has(data):
    # 100 kB hold a tile of about 30 x 30 entries: ten parts of 300 columns, each with one pass.
    X, Y, _ = data
    passes = _passes(X[:300], memory_budget=100_000)
    assert pytest.approx(Gaussian(1.0)(X[:300]) @ Y[:300], abs=1e-11) == KernelMatrix(passes, Gaussian(1.0)) @ Y[:300]
    assert passes.n_passes <= 13


def test_half_of_the_kernel_matrix_is_evaluated_for_a_product(data):
    X, Y, _ = data
    passes = _passes(X, 100)
    KernelMatrix(passes, Gaussian(1.0)) @ Y
    assert passes.n_kernel_evaluations == 700 * (700 + 100) // 2


def test_products_have_the_same_bits_for_one_thread_and_two(data):
    X, Y, _ = data
    products = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            products.append(KernelMatrix(_passes(X), Gaussian(1.0)) @ Y)
    assert np.array_equal(*products)


def test_products_with_a_precomputed_kernel_are_those_of_its_matrix(data):
    X, Y, _ = data
    K = Gaussian(1.0)(X[:300])
    assert pytest.approx(K @ Y[:300], abs=1e-10) == KernelMatrix(_passes(K, 130), Precomputed()) @ Y[:300]


@HOLDING
@pytest.mark.parametrize("block_rows", [None, 100])
def test_products_with_the_kernel_of_the_landmarks(data, block_rows, held):
    X, Y, w = data
    passes = _passes(X, block_rows, w)
    dense = Gaussian(1.0)(X, X[:40])
    cross = Cross(passes, Gaussian(1.0).bind(X[:40])).hold(10**9 if held else 0)
    assert pytest.approx(dense @ Y[:40], abs=1e-10) == cross @ Y[:40]
    assert pytest.approx(dense.T @ Y, abs=1e-9) == cross.T @ Y
    offset = np.array([0.3, -0.2])
    expected = dense.T @ (w[:, None] * (dense @ Y[:40] - offset))
    assert cross.normal(Y[:40], offset) == pytest.approx(expected, abs=1e-8)


def test_a_product_with_landmarks_is_one_pass(data):
    X, Y, _ = data
    passes = _passes(X)
    cross = Cross(passes, Gaussian(1.0).bind(X[:40]))
    for number, product in enumerate((lambda: cross @ Y[:40], lambda: cross.T @ Y, lambda: cross.normal(Y[:40], 0.0))):
        product()
        assert (passes.n_passes, passes.n_kernel_evaluations) == (number + 1, (number + 1) * 700 * 40)


@HOLDING
def test_products_with_the_features(data, held):
    X, Y, _ = data
    factor = nystrom_factor(Gaussian(1.0), X[:40], np.arange(40))
    dense = factor.features(X)
    features = Features(_passes(X, 300), factor).hold(10**9 if held else 0)
    assert (features.held is not None) == held
    assert pytest.approx(dense @ Y[: factor.rank], abs=1e-8) == features @ Y[: factor.rank]
    assert pytest.approx(dense.T @ Y, abs=1e-8) == features.T @ Y


def test_a_matrix_beyond_the_budget_is_not_held(data):
    X, _, _ = data
    assert Cross(_passes(X), Gaussian(1.0).bind(X[:40])).hold(8 * 700 * 40 - 1).held is None


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_shifted_inverse_solves_with_the_weighted_and_centred_approximation(data, fit_intercept):
    X, Y, w = data
    factor = nystrom_factor(Gaussian(1.0), X[:40], np.arange(40))
    weighting = Weighting(w, fit_intercept)
    B = weighting(factor.features(X))
    spectrum, rotation = np.linalg.eigh(B.T @ B)
    ridges = np.array([0.5, 20.0])
    inverse = ShiftedInverse(Features(_passes(X), factor), weighting, spectrum, rotation, ridges)
    vectors = weighting(Y)
    for t, ridge in enumerate(ridges):
        expected = np.linalg.solve(B @ B.T + ridge * np.eye(700), vectors[:, t])
        assert inverse(vectors)[:, t] == pytest.approx(expected, abs=1e-9)
    assert inverse(vectors[:, 1:], np.array([1])) == pytest.approx(inverse(vectors)[:, 1:], rel=1e-12)


def test_the_weighting_projects_out_the_weighted_constant(data):
    _, Y, w = data
    weighting = Weighting(w, True)
    assert np.sqrt(w) @ weighting(Y) == pytest.approx(np.zeros(2), abs=1e-10)
    left, right = weighting(Y).T @ Y, Y.T @ weighting.transpose(Y)
    assert left == pytest.approx(right, abs=1e-9)
    assert Weighting(w, False)(Y) == pytest.approx(np.sqrt(w)[:, None] * Y)


def test_a_bound_kernel_gives_the_same_values_after_pickling(data):
    X, _, _ = data
    factor = nystrom_factor(Gaussian(1.0), X[:40], np.arange(40))
    again = cloudpickle.loads(cloudpickle.dumps(factor))
    assert np.array_equal(again.features(X), factor.features(X))


def _left_out(passes, factor):
    """Return the sums of the features, and leave-one-out of the fit from them."""
    moments = loss_sums(passes, factor)
    fit = solve_landmarks(factor, moments, True, np.full(2, 1e-2), np.zeros(2))
    found = leave_one_out(passes, fit)
    return moments.gram, moments.cross, found.residuals, found.potential, found.size_sums


@pytest.mark.parametrize("block_rows", [700, 130])
def test_features_held_give_what_features_evaluated_again_give(data, block_rows):
    X, Y, w = data
    factor = nystrom_factor(Gaussian(1.0), X[:60], np.arange(60))
    again, once = (RowPasses(ArrayRows(X, Y, w)) for _ in range(2))
    for passes in (again, once):
        passes.block_rows = lambda width: block_rows
    hold_features(once, factor)
    assert once.held is not None
    for one, other in zip(_left_out(again, factor), _left_out(once, factor), strict=True):
        assert other == pytest.approx(one, rel=1e-7, abs=1e-7)
    assert again.n_kernel_evaluations - once.n_kernel_evaluations == 700 * 60  # evaluated once, in place of twice


def test_features_held_are_those_of_their_landmarks_alone(data):
    X, Y, _ = data
    one, other = (nystrom_factor(Gaussian(1.0), X[rows], np.arange(60)[rows]) for rows in (slice(30), slice(30, 60)))
    passes = RowPasses(ArrayRows(X, Y))
    hold_features(passes, one)
    assert loss_sums(passes, other).gram == pytest.approx(loss_sums(RowPasses(ArrayRows(X, Y)), other).gram)


def test_features_are_held_within_the_memory_budget_alone(data):
    factor = nystrom_factor(Gaussian(1.0), data[0][:60], np.arange(60))
    for budget, held in ((8 * 700 * 60, True), (8 * 700 * 60 - 1, False)):
        passes = _passes(data[0], memory_budget=budget)
        hold_features(passes, factor)
        assert (passes.held is not None) == held


@pytest.mark.parametrize("selection", ["auto", "uniform"])
def test_a_model_does_not_depend_on_features_held(data, selection, monkeypatch):
    X, noise, w = data
    Y = np.sin(2 * X[:, :2]) + 0.1 * noise
    model = NystromRidge(bandwidth=2.0, selection=selection, n_landmarks=60, random_state=0)
    used = []
    look = RowPasses._held_for

    def noted(passes, task):
        used.append(found := look(passes, task))
        return found

    monkeypatch.setattr(RowPasses, "_held_for", noted)
    predicted, residuals = model.fit(X, Y, w).predict(X), model.loo_residuals_
    assert sum(found is not None for found in used) == 2  # for the sums, and for leave-one-out
    monkeypatch.setattr(RowPasses, "_held_for", lambda *_: None)
    assert model.fit(X, Y, w).predict(X) == pytest.approx(predicted, abs=1e-7)
    assert model.loo_residuals_ == pytest.approx(residuals, abs=1e-6)
