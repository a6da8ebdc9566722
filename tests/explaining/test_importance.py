"""What matters: total indices against formulas, and what a model keeps to compute them."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from ridgemark import NystromClassifier, NystromRidge, load
from ridgemark.explaining import Background, importance, merged_background, total_indices
from ridgemark.explaining.background import _spread
from ridgemark.kernels import Gaussian, Linear


def _linear(rows, slopes=(2.0, 1.0, 0.0, 0.5)):
    return rows @ np.array(slopes)[:, None]


def _names(d):
    return tuple(f"x{j}" for j in range(d))


def test_shares_of_a_linear_function_are_those_of_its_variance():
    X = np.random.default_rng(0).normal(size=(400, 4))
    found = total_indices(_linear, 50, X, np.arange(4), _names(4))
    expected = np.array([4.0, 1.0, 0.0, 0.25]) / 5.25
    assert (abs(found.shares[:, 0] - expected) <= 4.0 * found.standard_errors[:, 0]).all()
    assert found.shares[2, 0] == 0.0
    assert found.normalised.sum() == pytest.approx(1.0)


def test_standard_errors_of_shares_cover_as_they_say():
    rng, inside = np.random.default_rng(1), 0
    for _ in range(200):
        X = rng.normal(size=(100, 2))
        found = total_indices(lambda rows: rows[:, :1] * rows[:, 1:] + rows[:, :1], 50, X, np.arange(2), _names(2))
        # f = ab + a: Var f = 2; the total variance of a is 2, that of b is 1.
        inside += abs(found.shares[1, 0] - 0.5) <= 1.96 * found.standard_errors[1, 0]
    assert 0.85 <= inside / 200 <= 0.99


def test_an_interaction_counts_for_both_columns():
    X = np.random.default_rng(0).choice([-1.0, 1.0], size=(400, 3))
    found = total_indices(lambda rows: rows[:, :1] * rows[:, 1:2], 50, X, np.arange(3), _names(3))
    assert found.shares[:, 0] == pytest.approx([1.0, 1.0, 0.0], abs=0.1)


def test_features_of_a_column_are_replaced_together():
    rows = np.eye(2)[np.random.default_rng(0).integers(0, 2, 400)]
    seen = []
    total_indices(lambda some: seen.append(some.sum(axis=1)) or some[:, :1], 50, rows, np.zeros(2, int), ("city",))
    assert all((sums == 1.0).all() for sums in seen)  # never two levels, or none


def test_sparse_rows_have_the_importances_of_dense_ones():
    X = sparse.random(300, 12, density=0.2, random_state=0, format="csr")
    y = np.asarray(X @ np.arange(12.0)) + 1.0
    options = {"kernel": Gaussian(2.0), "ridge": 1e-4, "n_landmarks": 40, "selection": "uniform", "random_state": 0}
    from_sparse, from_dense = (NystromRidge(**options).fit(rows, y) for rows in (X, X.toarray()))
    expected = from_dense.importance_.shares
    assert sparse.issparse(from_sparse._model.background.rows)
    assert np.argsort(from_sparse.feature_importances_)[-1] == 11
    assert from_sparse.importance_.shares == pytest.approx(expected, rel=0.6, abs=0.05)


def test_custom_kernels_have_importances_and_precomputed_ones_say_why_not():
    X = np.random.default_rng(0).normal(size=(80, 3))
    model = NystromRidge(lambda A, B: A @ B.T, ridge=1e-3, n_landmarks=10, random_state=0).fit(X, X[:, 1])
    assert model.feature_importances_.argmax() == 1
    model = NystromRidge("precomputed", ridge=1e-3, n_landmarks=10, random_state=0).fit(X @ X.T, X[:, 1])
    with pytest.raises(AttributeError, match="a precomputed kernel has no columns"):
        _ = model.feature_importances_


def test_classes_share_the_variance_of_their_log_odds():
    X = np.random.default_rng(0).normal(size=(300, 3))
    model = NystromClassifier(bandwidth=2.0, ridge=1e-3, n_landmarks=50, random_state=0)
    model.fit(X, np.digitize(X[:, 2], [-0.5, 0.5]))
    assert model.importance_.shares.shape == (3, 3)
    assert model.feature_importances_.argmax() == 2


def test_importances_wait_until_they_are_read(monkeypatch, tmp_path):
    calls = []
    real = importance.total_indices
    monkeypatch.setattr("ridgemark.fitted.model.total_indices", lambda *args: calls.append(1) or real(*args))
    X = np.random.default_rng(0).normal(size=(200, 3))
    model = NystromRidge(bandwidth=1.0, ridge=1e-3, n_landmarks=30, random_state=0).fit(X, X[:, 0])
    assert not calls
    assert (model.feature_importances_ == model.importance_.normalised).all()
    assert len(calls) == 1  # kept
    loaded = load(model.save(tmp_path / "m", sums=False))
    assert (loaded.feature_importances_ == model.feature_importances_).all()


def test_a_constant_fit_has_no_importances():
    X = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.warns(match="in all rows"):
        model = NystromRidge(bandwidth=1.0, ridge=1e-3, random_state=0).fit(X, np.ones(60))
    assert (model.feature_importances_ == 0.0).all()


def test_too_many_columns_have_none(monkeypatch):
    monkeypatch.setattr(importance, "_MOST_WORK", 100.0)
    X = np.random.default_rng(0).normal(size=(200, 3))
    model = NystromRidge(bandwidth=1.0, ridge=1e-3, n_landmarks=30, random_state=0).fit(X, X[:, 0])
    with pytest.raises(AttributeError, match="for very many columns it would take too long"):
        _ = model.importance_


def test_less_work_takes_fewer_rows(monkeypatch):
    X = np.random.default_rng(0).normal(size=(400, 4))
    assert total_indices(_linear, 50, X, np.arange(4), _names(4)).n_rows == 400  # all
    monkeypatch.setattr(importance, "_WORK", 400.0 * 4 * 50 * 24 / 2)
    assert total_indices(_linear, 50, X, np.arange(4), _names(4)).n_rows == 200


def test_the_background_is_drawn_by_weight_and_each_row_once_without_weights():
    assert sorted(_spread(np.ones(50), 50)) == list(range(50))
    weights = np.array([1.0, 5.0, 2.0])
    counts = np.bincount(_spread(weights, 800), minlength=3)
    assert counts.tolist() == [100, 500, 200]
    X = np.random.default_rng(0).normal(size=(300, 2))
    weights = np.where(X[:, 0] > 0, 1.0, 0.0)
    model = NystromRidge(bandwidth=1.0, ridge=1e-3, n_landmarks=20, random_state=0).fit(X, X[:, 0], weights)
    assert (model._model.background.rows[:, 0] > 0).all()


def test_beginnings_of_the_background_are_spread_over_all_rows():
    first = _spread(np.ones(1000), 1000)[:100]
    assert abs(np.sort(first) - np.arange(5.0, 1000.0, 10.0)).max() < 15


def test_merged_backgrounds_keep_shares_extents_and_landmarks():
    def part(low, size, total):
        rows = np.full((size, 1), low)
        return Background(rows, np.ones(size), np.full(size, -1), total, np.array([low]), np.array([low + 0.5]))

    merged = merged_background(part(0.0, 500, 3000.0), part(1.0, 900, 1000.0))
    assert len(merged) == 1000
    assert (merged.rows == 0.0).mean() == pytest.approx(0.75, abs=0.01)
    assert (merged.low, merged.high, merged.total_weight) == (0.0, 1.5, 4000.0)


def test_importances_follow_what_shuffling_a_column_costs():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=900), "b": rng.choice(["u", "v", "w"], 900), "c": rng.normal(size=900)})
    table["a"] = table["a"].mask(rng.random(900) < 0.1)
    y = np.sin(3.0 * table["a"].fillna(0.0)) + 1.5 * (table["b"] == "v") + 0.1 * rng.normal(size=900)
    model = NystromRidge(Gaussian(2.0) + Linear(), ridge=1e-4, n_landmarks=150, random_state=0)
    model.fit(table[:600], y[:600])
    assert model.feature_importances_.argmin() == 2
    assert np.argsort(-model.feature_importances_)[:2].tolist() == _costs(model, table[600:], y[600:], rng)[:2]


def _costs(model, table, y, rng):
    """Return the columns by what permuting each costs on these rows, the largest first."""
    errors = []
    for name in table:
        shuffled = table.assign(**{name: rng.permutation(table[name].to_numpy())})
        errors.append(np.mean((model.predict(shuffled) - y) ** 2))
    return np.argsort(errors)[::-1].tolist()
