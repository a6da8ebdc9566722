"""Merging equal rows changes neither the problem nor the row numbers."""

import numpy as np
import pytest
from scipy import sparse

from ridgemark import ExactKernelRidge
from ridgemark.kernels import Gaussian, Precomputed
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.rows.distinct import DistinctRows
from ridgemark.solvers.kernel_system import merge_equal_rows


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0], [3.0, 1.0], [2.0, 0.0], [1.0, 0.0]])
    return X, rng.normal(size=(6, 2)), np.array([1.0, 2.0, 3.0, 0.0, 1.0, 1.0])


def merged(X, Y, weights, kernel=None, distinct=None):
    passes = RowPasses(ArrayRows(X, Y, weights))
    return merge_equal_rows(passes, kernel or Gaussian(1.0), distinct or passes.distinct_rows(), np.zeros(Y.shape[1]))


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_equal_rows_have_the_sum_of_weights_and_the_mean_target(data, convert):
    X, Y, w = data
    rows = merged(convert(X), Y, w)
    assert rows.numbers.tolist() == [0, 1]
    assert rows.passes.row_counts().tolist() == [5.0, 3.0]
    means = [np.average(Y[group], axis=0, weights=w[group]) for group in ([0, 2, 5], [1, 4])]
    assert rows.passes.targets() == pytest.approx(np.array(means))
    assert rows.largest == 3


def test_different_rows_of_one_hash_are_not_merged(data):
    X, Y, w = data
    one_group = DistinctRows(np.array([0]), np.array([0, 0, 0, -1, 0, 0]), np.zeros(1, np.uint64))
    rows = merged(X, Y, w, distinct=one_group)
    assert rows.numbers.tolist() == [0, 1, 4]
    assert rows.passes.row_counts().tolist() == [5.0, 2.0, 1.0]


def test_repeats_in_a_precomputed_kernel_keep_their_columns(data):
    X, Y, w = data
    rows = merged(Gaussian(1.0)(X), Y, w, Precomputed())
    assert rows.numbers.tolist() == list(range(6))
    assert rows.passes.row_counts().tolist() == [5.0, 3.0, 0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("ridge", [1e-3, 1e-15])
def test_repeats_are_fitted_alike_in_every_kind_of_rows(ridge):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(15, 2))[rng.integers(0, 15, 40)]
    y = X[:, 0] + (1.0 if ridge < 1e-9 else 0.1) * rng.normal(size=40)
    K = Gaussian(1.0)(X)
    plain = ExactKernelRidge(bandwidth=1.0, ridge=ridge, random_state=0).fit(X, y).predict(X)
    thin = ExactKernelRidge(bandwidth=1.0, ridge=ridge, random_state=0).fit(sparse.csr_array(X), y)
    given = ExactKernelRidge("precomputed", ridge=ridge, random_state=0).fit(K, y)
    assert thin.predict(sparse.csr_array(X)) == pytest.approx(plain, abs=1e-6)
    assert given.predict(K) == pytest.approx(plain, abs=1e-6)
