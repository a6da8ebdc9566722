"""The errors of linear ridge regression and of the mean beside those of the tuned kernel."""

import numpy as np
import pytest

from ridgemark import NystromRidge, load
from ridgemark.backends import NUMPY
from ridgemark.kernels import ColumnMap
from ridgemark.tuning import Tuner
from ridgemark.tuning import baselines as module
from ridgemark.tuning.baselines import compare_with_baselines
from ridgemark.tuning.criterion import Sample
from ridgemark.tuning.draw import TuningRows


def drawn(fit_intercept=True, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 3))
    y = X @ rng.normal(size=(3, 2)) + 1.0 + rng.normal(size=(80, 2))
    weights = rng.integers(1, 4, 80).astype(float)
    parts = slice(0, 50), slice(50, 80)
    tuning, judging = (
        Sample(X[part], y[part], weights[part] / weights[part].sum(), 10, fit_intercept, NUMPY) for part in parts
    )
    map_ = ColumnMap(X.min(axis=0), X.max(axis=0))
    return TuningRows(tuning, tuning, judging, np.ones(3), np.zeros(3), map_, False)


def lines(X, y, w, ridge, fit_intercept):
    """Return the function of weighted linear ridge regression, `sum w = 1`."""
    w = w / w.sum()
    centre, middle = (float(fit_intercept) * (w @ values) for values in (X, y))
    gram = (X - centre).T @ (w[:, None] * (X - centre)) + ridge * np.eye(X.shape[1])
    c = np.linalg.solve(gram, (X - centre).T @ (w[:, None] * (y - middle)))
    return lambda points: (points - centre) @ c + middle


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_lines_are_judged_as_weighted_ridge_regression_is(fit_intercept, monkeypatch):
    rows, ridge = drawn(fit_intercept), 0.3
    monkeypatch.setattr(module, "_RIDGES", np.array([ridge]))
    errors = compare_with_baselines(rows, np.ones(30))
    fitted, judging = rows.tuning, rows.judging
    predict = lines(fitted.features, fitted.targets, fitted.weights, ridge, fit_intercept)
    squares = ((judging.targets - predict(judging.features)) ** 2).mean(axis=1)
    assert errors.linear == pytest.approx(np.sqrt(judging.weights @ squares), rel=1e-10)
    mean = fit_intercept * (fitted.weights @ fitted.targets)
    squares = ((judging.targets - mean) ** 2).mean(axis=1)
    assert errors.mean == pytest.approx(np.sqrt(judging.weights @ squares), rel=1e-10)
    assert errors.model == 1.0


def test_left_out_errors_of_the_mean_are_those_of_means_without_the_row():
    rows = drawn()
    y, w = rows.tuning.targets, rows.tuning.weights
    residuals = np.array([y[k] - np.average(np.delete(y, k, 0), axis=0, weights=np.delete(w, k)) for k in range(50)])
    expected = np.sqrt((w @ residuals**2).mean())
    assert compare_with_baselines(rows, np.ones(30)).mean_left_out == pytest.approx(expected, rel=1e-10)


def test_a_linear_target_is_fitted_by_lines_and_a_curved_one_is_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    tuner = Tuner(rows=200, evaluations=10)
    straight = NystromRidge(bandwidth=tuner, random_state=0).fit(X, X[:, 0] + 0.1 * rng.normal(size=400))
    curved = NystromRidge(bandwidth=tuner, random_state=0).fit(X, X[:, 0] ** 2 + 0.1 * rng.normal(size=400))
    assert straight.tuning_.baselines.linear < 0.15 < 0.9 < straight.tuning_.baselines.mean
    assert curved.tuning_.baselines.model < 0.3 < 0.9 < curved.tuning_.baselines.linear


def test_baselines_are_saved(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    model = NystromRidge(bandwidth=Tuner(rows=100, evaluations=5), random_state=0).fit(
        X, X[:, 0] + rng.normal(size=len(X))
    )
    loaded = load(model.save(tmp_path / "model.ridgemark"))
    assert vars(loaded.tuning_.baselines) == vars(model.tuning_.baselines)


def test_without_judging_rows_there_are_no_baselines():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    assert NystromRidge(random_state=0).fit(X, X[:, 0] + rng.normal(size=60)).tuning_.baselines is None
