"""How far rows are from the data: rates of flags, and variances of rows left out against refits."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from ridgemark import NystromClassifier, NystromRidge, load
from ridgemark.errors import DataError, ParameterError
from ridgemark.explaining.novelty import left_out_variances
from ridgemark.kernels import Gaussian
from tests.helpers import most_failures


def _data(n=400, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=n)


def _fitted(X, y, **options):
    return NystromRidge("gaussian", bandwidth=1.5, ridge=1e-4, random_state=0, **options).fit(X, y)


@pytest.mark.parametrize("n_landmarks", [40, 150, 400])
def test_about_the_level_of_new_rows_is_flagged(n_landmarks):
    X, y = _data()
    new, _ = _data(2000, seed=1)
    novelty = _fitted(X, y, n_landmarks=n_landmarks).novelty(new)
    assert 0.02 <= novelty.flag.mean() <= 0.09
    assert 0.12 <= (novelty.share <= 0.2).mean() <= 0.28


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("n_landmarks", [12, 60])
def test_variances_are_those_of_fits_without_the_row(intercept, weighted, n_landmarks):
    X, y = _data(60)
    weights = np.random.default_rng(2).integers(1, 4, 60).astype(float) if weighted else np.ones(60)
    options = {"kernel": Gaussian(1.5), "ridge": 1e-3, "fit_intercept": intercept, "random_state": 0}
    model = NystromRidge(selection="uniform", n_landmarks=n_landmarks, **options).fit(X, y, weights)
    background, scaled = model._model.background, float(model.scaled_ridge_)
    found = left_out_variances(model._model.expanded, background)[:, 0]
    unit = model._model.sums.weight_unit
    for k in range(0, 60, 7):
        i = int(np.flatnonzero((X == background.rows[k]).all(axis=1))[0])
        landmarks = np.delete(model.landmark_indices_, np.flatnonzero(model.landmark_indices_ == i))
        others = np.delete(np.arange(60), i)
        expected = _variance(X, others, landmarks, weights / unit, scaled / unit, intercept, X[i])
        assert found[k] == pytest.approx(expected, rel=1e-4, abs=1e-7)


def _variance(X, others, landmarks, weights, scaled, intercept, x):
    """Return `n lambda` times the posterior variance at x given some rows and landmarks, by dense formulas."""
    kernel = Gaussian(1.5)
    inverse = np.linalg.inv(kernel(X[landmarks]) + 1e-12 * np.eye(len(landmarks)))
    root = np.linalg.cholesky(inverse)
    features, own = kernel(X[others], X[landmarks]) @ root, (kernel(x[None], X[landmarks]) @ root)[0]
    outside = 1.0 - own @ own
    if intercept:
        features, own = np.c_[np.ones(len(features)), features], np.r_[1.0, own]
    penalty = scaled * np.diag(np.r_[[0.0] * intercept, np.ones(len(landmarks))])
    gram = features.T @ (weights[others, None] * features) + penalty
    return outside + scaled * own @ np.linalg.solve(gram, own)


def test_rows_shifted_in_a_column_that_matters_are_flagged_and_the_column_is_named():
    X, y = _data()
    model, (new, _) = _fitted(X, y, n_landmarks=60), _data(200, seed=1)
    new[:, 1] += 8.0
    novelty = model.novelty(new)
    assert novelty.flag.mean() >= 0.95
    assert novelty.columns_beyond(int(np.argmax(new[:, 1]))) == ["x1"]
    assert "x1: " in str(novelty)


def test_a_column_without_influence_makes_no_row_novel_but_is_named():
    X, y = _data(d=2)
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "number": np.arange(400.0)})
    kernel = Gaussian(metric=[[0.6, 0.0], [0.0, 0.6], [0.0, 0.0]])
    model = NystromRidge(kernel, ridge=1e-4, n_landmarks=60, random_state=0).fit(table, y)
    novelty = model.novelty(table.assign(number=1e4 + np.arange(400.0)))
    assert novelty.flag.mean() < 0.1
    assert novelty.beyond[:, 2].all()


def test_loaded_models_sparse_rows_and_classes_answer_alike(tmp_path):
    X, y = _data()
    new, _ = _data(50, seed=1)
    for model in (
        _fitted(X, y, n_landmarks=60),
        NystromClassifier(bandwidth=1.5, ridge=1e-3, n_landmarks=60, random_state=0).fit(X, y > 0.5),
    ):
        loaded = load(model.save(tmp_path / "m"))
        assert loaded.novelty(new).share == pytest.approx(model.novelty(new).share, abs=0.01)
        with pytest.raises(DataError, match=r"novelty needs the sums .* save it with sums=True"):
            load(model.save(tmp_path / "m", sums=False)).novelty(new)
    model = _fitted(sparse.csr_array(X), y, n_landmarks=60)
    assert model.novelty(sparse.csr_array(new)).share == pytest.approx(model.novelty(new).share)


def test_rows_of_classes_are_flagged_at_about_the_level():
    X, y = _data(600)
    new, _ = _data(2000, seed=1)
    for labels in (y > 0.5, np.digitize(y, [0.3, 1.0])):
        model = NystromClassifier(bandwidth=1.5, ridge=1e-3, n_landmarks=100, random_state=0).fit(X, labels)
        assert 0.02 <= model.novelty(new).flag.mean() <= 0.09


def test_rows_added_later_count():
    X, y = _data(600)
    model = NystromRidge(bandwidth=1.5, ridge=1e-4, n_landmarks=60, random_state=0).partial_fit(X[:200], y[:200])
    far = X[200:] + np.array([6.0, 0.0, 0.0])
    assert model.novelty(far).flag.mean() > 0.95
    assert model.partial_fit(far, y[200:]).novelty(far).flag.mean() < 0.1


def test_shares_of_exchangeable_rows_are_at_most_the_level_as_often():
    rng, flagged = np.random.default_rng(0), 0
    for seed in range(60):
        X, y = _data(60, 2, seed)
        model = NystromRidge(Gaussian(1.0), ridge=1e-3, n_landmarks=20, random_state=seed).fit(X, y)
        flagged += int(model.novelty(rng.normal(size=(1, 2)), level=0.1).flag[0])
    assert flagged <= most_failures(60, 0.12)


@pytest.mark.parametrize("level", [0.0, 1.0, -1, None, "a"])
def test_levels_are_between_zero_and_one(level):
    X, y = _data(60)
    with pytest.raises(ParameterError, match="level must be a number between 0 and 1"):
        _fitted(X, y, n_landmarks=9).novelty(X, level=level)
