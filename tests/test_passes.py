"""Sums and maps over blocks are those of the whole, whatever the blocks and the threads."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from ridgemark.kernels import Gaussian, Linear, Matern32, Precomputed
from ridgemark.moments import Moments
from ridgemark.nystrom import nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(3000, 3)), rng.normal(size=(3000, 2)), rng.uniform(0, 2, 3000)


def _dense_moments(features, targets, weights, diagonal):
    residual = diagonal - (features**2).sum(axis=1)
    return {
        "n_rows": 3000,
        "total_weight": weights.sum(),
        "gram": features.T @ (weights[:, None] * features),
        "cross": features.T @ (weights[:, None] * targets),
        "feature_sum": features.T @ weights,
        "target_sum": targets.T @ weights,
        "target_square": weights @ targets**2,
        "trace_kernel": weights @ diagonal,
        "trace_residual": weights @ residual,
    }


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear()], ids=repr)
def test_moments_are_the_weighted_sums_they_are_named_for(data, kernel):
    X, Y, w = data
    factor = nystrom_factor(kernel, X[:40], np.arange(40))
    moments = RowPasses(ArrayRows(X, Y, w)).moments(factor, np.array([0.5, -1.0]))
    expected = _dense_moments(factor.features(X), Y - [0.5, -1.0], w, kernel.diagonal(X))
    for name, value in expected.items():
        assert getattr(moments, name) == pytest.approx(value, rel=1e-9, abs=1e-8), name


def test_moments_of_parts_add_up_to_those_of_the_whole(data):
    X, Y, w = data
    factor = nystrom_factor(Gaussian(1.0), X[:40], np.arange(40))
    whole = RowPasses(ArrayRows(X, Y, w)).moments(factor)
    parts = [RowPasses(ArrayRows(X[s], Y[s], w[s])).moments(factor) for s in (slice(0, 17), slice(17, 3000))]
    total = parts[0] + parts[1]
    for name in Moments.__dataclass_fields__:
        assert getattr(total, name) == pytest.approx(getattr(whole, name), rel=1e-10, abs=1e-10), name


def test_results_are_bit_identical_for_one_thread_and_two(data):
    """A block's result does not depend on what runs beside it, and sums are taken in row order."""
    X, Y, _ = data
    factor = nystrom_factor(Gaussian(1.0), X[:40], np.arange(40))
    grams = []
    for threads in (1, 2, 2):
        with threadpool_limits(threads, user_api="blas"):
            passes = RowPasses(ArrayRows(X, Y))
            passes._block_rows = lambda width: 500
            grams.append(passes.moments(factor).gram)
    assert np.array_equal(grams[0], grams[1])
    assert np.array_equal(grams[1], grams[2])


def test_the_blas_limit_in_force_before_is_restored(data):
    from ridgemark.backends.threads import worker_threads

    X, Y, _ = data
    factor = nystrom_factor(Gaussian(1.0), X[:40], np.arange(40))
    with threadpool_limits(2, user_api="blas"):
        before = worker_threads()
        RowPasses(ArrayRows(X, Y)).moments(factor)
        assert worker_threads() == before


def test_an_error_in_one_block_reaches_the_caller(data):
    X, _, _ = data
    passes = RowPasses(ArrayRows(X))

    def fail(block):
        if block.start > 0:
            raise ValueError("in a thread")
        return np.zeros(block.n_rows)

    with threadpool_limits(2, user_api="blas"), pytest.raises(ValueError, match="in a thread"):
        passes.map("test", fail, 1, 0)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern32(2.0)], ids=repr)
@pytest.mark.parametrize("block_rows", [700, 256, 130, 1])
def test_products_with_the_kernel_matrix_are_those_of_the_dense_one(data, kernel, block_rows):
    X, Y, _ = data
    n = 700 if block_rows > 1 else 50
    passes = RowPasses(ArrayRows(X[:n]))
    passes._block_rows = lambda width: block_rows
    assert passes.kernel_product(kernel, Y[:n]) == pytest.approx(kernel(X[:n]) @ Y[:n], abs=1e-10)
    assert np.allclose(passes.kernel_matrix(kernel), kernel(X[:n]), rtol=0, atol=1e-12)


def test_half_of_the_kernel_matrix_is_evaluated_for_a_product(data):
    X, Y, _ = data
    passes = RowPasses(ArrayRows(X))
    passes._block_rows = lambda width: 100
    passes.kernel_product(Gaussian(1.0), Y)
    assert passes.n_kernel_evaluations == 3000 * (3000 + 100) // 2


def test_products_with_the_kernel_matrix_are_bit_identical_for_one_thread_and_two(data):
    X, Y, _ = data
    products = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            passes = RowPasses(ArrayRows(X))
            passes._block_rows = lambda width: 500
            products.append(passes.kernel_product(Gaussian(1.0), Y))
    assert np.array_equal(*products)


def test_products_with_a_precomputed_kernel_are_those_of_its_matrix(data):
    X, Y, _ = data
    K = Gaussian(1.0)(X[:300])
    passes = RowPasses(ArrayRows(K))
    passes._block_rows = lambda width: 130
    assert passes.kernel_product(Precomputed(), Y[:300]) == pytest.approx(K @ Y[:300], abs=1e-10)


@pytest.mark.parametrize("block_rows", [None, 100, 701])
def test_some_rows_of_products_and_products_with_landmarks(data, block_rows):
    X, Y, _ = data
    passes = RowPasses(ArrayRows(X[:700]))
    if block_rows:
        passes._block_rows = lambda width: block_rows
    expected = Gaussian(1.0)(X[:700]) @ Y[:700]
    some = np.array([3, 699, 3, 0, *range(200, 400)])
    parts = passes.parts(some)
    assert np.array_equal(np.concatenate([part.features for part in parts]), X[some])
    products = [passes.cross_product(Gaussian(1.0).against(part.features), Y[:700]) for part in parts]
    assert np.concatenate(products) == pytest.approx(expected[some], abs=1e-9)
    factor = nystrom_factor(Gaussian(1.0), X[:40], np.arange(40))
    before = passes.n_kernel_evaluations
    assert passes.cross_product(factor.cross_kernel, Y[:700]) == pytest.approx(expected[:40], abs=1e-9)
    assert passes.n_kernel_evaluations - before == 700 * 40


def test_features_of_all_rows_and_products_with_them(data):
    X, Y, _ = data
    factor = nystrom_factor(Gaussian(1.0), X[:40], np.arange(40))
    features = factor.features(X)
    with threadpool_limits(2, user_api="blas"):
        passes = RowPasses(ArrayRows(X))
        passes._block_rows = lambda width: 300
        assert np.allclose(passes.features(factor.cross_kernel, factor.whitener), features, rtol=0, atol=1e-9)
        assert passes.feature_sums(factor, Y) == pytest.approx(features.T @ Y, abs=1e-8)
        coefficients = Y[: factor.rank]
        assert passes.feature_values(factor, coefficients) == pytest.approx(features @ coefficients, abs=1e-8)


def test_passes_and_kernel_entries_are_counted_and_progress_is_reported(data):
    X, Y, _ = data
    seen = []
    passes = RowPasses(ArrayRows(X, Y), progress=lambda what, done, n: seen.append((what, done, n)))
    factor = nystrom_factor(Gaussian(1.0), X[:40], np.arange(40))
    passes.moments(factor)
    assert (passes.n_passes, passes.n_kernel_evaluations) == (1, 3000 * 40 + 40 * 40)
    assert seen[-1] == ("moments", 3000, 3000)
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


def test_equal_rows_are_one_kind_and_absent_rows_none():
    X = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [-0.0, 5.0], [0.0, 5.0], [7.0, 7.0]])
    distinct = RowPasses(ArrayRows(X, weights=[1, 1, 1, 1, 1, 0])).distinct_rows()
    assert sorted(distinct.indices.tolist()) == [0, 1, 3]
    assert distinct.kind[0] == distinct.kind[2]
    assert distinct.kind[3] == distinct.kind[4]
    assert distinct.kind[5] == -1
    assert sorted(distinct.totals(np.array([1.0, 10.0, 100.0, 5.0, 6.0, 99.0]))) == [10.0, 11.0, 101.0]


def test_the_order_of_candidates_does_not_depend_on_the_order_of_rows(data):
    X, _, _ = data
    shuffled = np.random.default_rng(1).permutation(3000)
    one = RowPasses(ArrayRows(X)).distinct_rows().indices
    other = RowPasses(ArrayRows(X[shuffled])).distinct_rows().indices
    assert np.array_equal(X[one], X[shuffled][other])


def test_a_small_budget_makes_small_blocks(data):
    X, Y, _ = data
    sizes = []
    passes = RowPasses(ArrayRows(X, Y), memory_budget=100_000)
    passes.map("test", lambda block: sizes.append(block.n_rows) or np.zeros(block.n_rows), 40, 0)
    assert max(sizes) * 8 * (2 * 3 + 4 * 40 + 2) <= 100_000
    assert sum(sizes) == 3000
