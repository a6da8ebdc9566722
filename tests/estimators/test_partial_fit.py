"""Rows that come in batches: sums of disjoint rows add."""

from itertools import pairwise

import numpy as np
import pytest

from ridgemark import NystromRidge, load, open_rows
from ridgemark.errors import DataError

CUTS = [0, 3, 100, 101, 350, 600, 999, 1500]  # seven uneven batches


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    return X, 50 + np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=1500), rng.integers(0, 3, 1500).astype(float)


def _in_batches(model, X, y, w=None):
    for first, last in pairwise(CUTS):
        model.partial_fit(X[first:last], y[first:last], None if w is None else w[first:last])
    return model


def test_importances_are_those_of_all_batches(data):
    X, y, _ = data
    options = {"bandwidth": 1.5, "selection": X[::15]}
    whole = NystromRidge(**options).fit(X, y)
    batches = NystromRidge(**options).partial_fit(X[:-1], y[:-1]).partial_fit(X[-1:], y[-1:])
    assert batches.feature_importances_ == pytest.approx(whole.feature_importances_, abs=0.05)


def test_a_batch_of_one_row_leaves_importances(data):
    X, y, _ = data
    model = NystromRidge(bandwidth=1.5, ridge=1e-3, selection=X[::15]).fit(X[:-1], y[:-1])
    before = model.feature_importances_
    assert model.partial_fit(X[-1:], y[-1:]).feature_importances_ == pytest.approx(before, abs=0.1)


@pytest.mark.filterwarnings("ignore::ridgemark.errors.RidgeEdgeWarning")
@pytest.mark.parametrize("ridge", [1e-2, 1e-5, 1e-8, "gcv", [1e-3, 1e-4]], ids=str)
@pytest.mark.parametrize("weighted", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("intercept", [False, True])
def test_seven_uneven_batches_give_what_one_fit_gives(data, ridge, weighted, intercept):
    X, y, w = data
    options = {"bandwidth": 1.5, "ridge": ridge, "selection": X[::15] + 0.01, "fit_intercept": intercept}
    batches = _in_batches(NystromRidge(**options), X, y, w if weighted else None)
    whole = NystromRidge(**options).fit(X, y, w if weighted else None)
    if not isinstance(ridge, list):
        assert batches.ridge_ == whole.ridge_
    whole = NystromRidge(**options | {"ridge": batches.ridge_}).fit(X, y, w if weighted else None)
    assert batches.predict(X) == pytest.approx(whole.predict(X), rel=1e-10, abs=1e-10 * abs(y).max())
    assert batches.scaled_ridge_ == pytest.approx(whole.scaled_ridge_)
    assert batches.effective_dimension_ == pytest.approx(whole.effective_dimension_)


@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_takes_rows_kept_of_all_batches(data, fitted, weighted, tmp_path):
    """Up to 2,048 distinct rows it is that of one fit, also where rows of different batches are equal."""
    X, y, w = data
    X[1400:] = X[:100]
    w = w if weighted else None
    options = {"bandwidth": 1.5, "selection": X[:60] + 0.01}
    whole = NystromRidge(**options).fit(X, y, w)
    if fitted:
        model = NystromRidge(**options).fit(X[:700], y[:700], None if w is None else w[:700])
        model = load(model.save(tmp_path / "m", sums=True))
        model.partial_fit(X[700:], y[700:], None if w is None else w[700:])
    else:
        model = _in_batches(NystromRidge(**options), X, y, w)
    assert model.ridge_path_.criterion == "loo"
    assert model.ridge_ == pytest.approx(whole.ridge_)
    # The variance of targets within a group of equal rows is in one of the two errors; no ridge changes it.
    difference = whole.ridge_path_.loo_error - model.ridge_path_.loo_error
    assert np.ptp(difference) < 1e-9
    assert not hasattr(model, "loo_residuals_")


def test_leave_one_out_of_many_rows_takes_a_fair_sample():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=6000)
    model = NystromRidge(bandwidth=1.0, selection=X[:80])
    for part in np.array_split(np.arange(6000), 5):
        model.partial_fit(X[part], y[part])
    assert len(model._model.rows.sample.hashes) == 2048
    whole = NystromRidge(bandwidth=1.0, selection=X[:80]).fit(X, y)
    ratio = model.ridge_path_.loo_error / whole.ridge_path_.loo_error
    assert ratio == pytest.approx(1.0, abs=0.1)
    assert model.ridge_path_.gcv == pytest.approx(whole.ridge_path_.gcv, rel=0.01)


def test_after_a_given_ridge_cross_validation_chooses_and_says_so(data):
    X, y, _ = data
    model = NystromRidge(bandwidth=1.5, selection=X[:60], ridge=1e-3).partial_fit(X[:700], y[:700])
    model.set_params(ridge="loo").partial_fit(X[700:], y[700:])
    assert model.ridge_path_.criterion == "gcv"


def test_it_adds_to_a_fit_and_a_new_fit_starts_anew(data):
    X, y, _ = data
    model = NystromRidge(bandwidth="median", ridge=1e-4, n_landmarks=80, random_state=0).fit(X[:700], y[:700])
    first = model.predict(X)
    landmarks = model.landmarks_
    model.partial_fit(X[700:], y[700:])
    assert np.array_equal(model.landmarks_, landmarks)
    whole = NystromRidge(ridge=1e-4, bandwidth=model.bandwidth_, selection=landmarks).fit(X, y)
    assert model.predict(X) == pytest.approx(whole.predict(X), abs=1e-9)
    assert np.array_equal(model.fit(X[:700], y[:700]).predict(X), first)


def test_the_first_batch_chooses_bandwidth_and_landmarks(data):
    X, y, _ = data
    model = NystromRidge(bandwidth="median", random_state=0).partial_fit(X[:200], y[:200])
    assert model.n_landmarks_ == 200
    bandwidth = model.bandwidth_
    model.partial_fit(100 * X[200:], y[200:])
    assert np.array_equal(model.bandwidth_, bandwidth)
    assert model.n_landmarks_ == 200


def test_a_row_source_is_a_batch_too(data):
    X, y, _ = data
    options = {"ridge": 1e-4, "bandwidth": 1.5, "selection": X[:50]}
    model = NystromRidge(**options)
    for part in (slice(0, 400), slice(400, 1500)):
        model.partial_fit(open_rows(X[part], target=y[part]))
    assert model.predict(X) == pytest.approx(NystromRidge(**options).fit(X, y).predict(X), abs=1e-9)


def test_a_bad_batch_leaves_the_model_as_it_was(data):
    X, y, _ = data
    model = NystromRidge(bandwidth="median", ridge=1e-4, n_landmarks=30, random_state=0).fit(X, y)
    before = model.predict(X)
    for batch in ((X[:9, :2], y[:9]), (np.full((9, 3), np.inf), y[:9]), (X[:9], np.full(9, np.inf))):
        with pytest.raises(ValueError, match=r"features|infinity"):
            model.partial_fit(*batch)
    with pytest.raises(DataError, match="fitted on 1 targets, got 2"):
        model.partial_fit(X, np.c_[y, y])
    assert np.array_equal(model.predict(X), before)
