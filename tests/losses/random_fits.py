"""Fits of random tables of numbers by a loss, some of them degenerate."""

import warnings

import numpy as np

from ridgemark import NystromRegressor
from ridgemark.errors import RidgemarkError, RidgemarkWarning


def random_problem(loss, seed):
    rng = np.random.default_rng([seed, len(loss)])
    n, d = int(rng.choice([2, 3, 5, 10, 40, 150])), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3, 3)
    kind = rng.integers(0, 9)
    if kind == 0:
        X[:] = X[0]
    if kind == 1:
        X[n // 2 :] = X[: n - n // 2]
    f = rng.normal(size=n) * rng.choice([0, 1, 3])
    y = {
        "poisson": lambda: rng.poisson(np.exp(np.clip(f, -5, 8))).astype(float),
        "gamma": lambda: np.exp(f),
    }.get(loss, lambda: f * 10.0 ** rng.choice([-8, 0, 8]) + rng.choice([0, 1e6]))()
    if kind == 2:
        y[0] = 1e12
    if kind == 3:
        y[:] = y[0]
    if kind == 4:
        y[:] = abs(y) * 1e-150 + 1e-160
    if kind == 5:
        y[:] = abs(y) * 1e100 + 1.0
    weights = rng.uniform(0, 2, n) * (rng.random(n) > 0.2) if rng.random() < 0.3 else None
    if weights is not None and weights.sum() == 0:
        weights[0] = 1
    options = {"bandwidth": "median", "fit_intercept": bool(rng.random() < 0.8), "random_state": 0}
    options["ridge"] = ["loo", 1e-3, 1e-9, 1e2][rng.integers(4)]
    if loss == "quantile" and rng.random() < 0.5:
        options["quantiles"] = [0.05, 0.5, 0.95]
    return X, y, weights, options


def fit_at_random(loss, seed):
    """Fit and ask all questions; any error but one of the package fails, and so does a warning of another kind."""
    X, y, weights, options = random_problem(loss, seed)
    before = X.copy(), y.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", RidgemarkWarning)
        try:
            model = NystromRegressor(loss, **options).fit(X, y, weights)
        except RidgemarkError:
            return
        assert np.isfinite(model.predict(X)).all()
        assert 0 <= np.min(model.certify(X, y, sample_weight=weights).bound)
        model.score(X, y, weights)
        model.diagnose(X, y, weights)
        model.effects(X)
        try:
            model.predict_interval(X, 0.5)
        except RidgemarkError as error:
            assert "needs" in str(error) or "range" in str(error), error  # too few rows, one level, or exp(f) of noise
    assert np.array_equal(before[0], X)
    assert np.array_equal(before[1], y)
