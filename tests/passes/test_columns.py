"""The units of columns."""

import numpy as np
import pytest
from scipy import sparse

from ridgemark import NystromRidge
from ridgemark.passes import RowPasses
from ridgemark.passes.columns import Columns
from ridgemark.rows import ArrayRows


def columns(X, weights=None, budget=None):
    return RowPasses(ArrayRows(X, None, weights), budget).columns()


def some_rows(n=1000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5)) * [1.0, 1e6, 1e-6, 1.0, 1.0] + [0.0, 1e9, 0.0, 0.0, 0.0]
    X[:, 3] = rng.random(n) < 0.01  # a rare indicator
    X[:, 4] = 4.0
    return X


@pytest.mark.parametrize("budget", [None, 40_000])
def test_units_are_standard_deviations_but_of_indicators_and_constants(budget):
    X = some_rows()
    found = columns(X, budget=budget)
    assert np.allclose(found.units, [*X[:, :3].std(axis=0), 0.5, 1.0], rtol=1e-9)
    assert found.constant.tolist() == [False, False, False, False, True]


def test_weights_count_like_repeated_rows():
    X, weights = some_rows(200), np.random.default_rng(1).integers(0, 4, 200)
    weighted, repeated = columns(X, weights.astype(float)), columns(np.repeat(X, weights, axis=0))
    assert np.allclose(weighted.units, repeated.units, rtol=1e-9)
    assert (weighted.two_valued == repeated.two_valued).all()


def test_sparse_columns_are_those_of_the_dense_rows():
    dense = sparse.random(300, 6, density=0.3, random_state=0).toarray()
    dense[:, 0] = np.arange(300) % 3 == 0
    dense[:, 1] = np.where(np.arange(300) % 3 == 0, -1.0, 1.0)
    X = sparse.csr_matrix(dense)
    one, other = columns(X), columns(X.toarray())
    for name in ("mean", "squares", "low", "high", "two_valued", "units"):
        assert np.allclose(getattr(one, name), getattr(other, name), rtol=1e-9), name


def test_two_values_in_each_block_may_be_three_in_all():
    one, other = (Columns.of(np.array([[0.0], [end]]), np.ones(2)) for end in (1.0, 2.0))
    assert (one + one).two_valued.all()
    assert not (one + other).two_valued.any()


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_extreme_numbers_have_finite_units(size):
    units = columns(size * np.random.default_rng(0).normal(size=(50, 2))).units
    assert (units > 0).all()
    assert np.isfinite(units).all()


def test_a_raw_table_fits_like_a_standardised_one():
    rng = np.random.default_rng(0)
    n = 600
    city = np.eye(4)[rng.integers(0, 4, n)]
    X = np.c_[rng.normal(50, 10, n), rng.normal(200_000, 60_000, n), city]
    y = np.sin(X[:, 0] / 8) + (X[:, 1] / 200_000) ** 2 + city @ [0.0, 0.5, 1.0, -0.5] + 0.1 * rng.normal(size=n)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    raw, standard = (
        NystromRidge(bandwidth="median", random_state=0).fit(A[:400], y[:400]).score(A[400:], y[400:])
        for A in (X, scaled)
    )
    assert raw > standard - 0.01
