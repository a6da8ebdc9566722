"""The bounds of ExactKernelRidge hold for the numbers returned, whatever the ridge and however rows repeat."""

import warnings

import mpmath
import numpy as np
import pytest

from ridgemark import ExactKernelRidge, NystromRidge
from ridgemark.errors import ColumnWarning, ConvergenceWarning, LandmarkCountWarning
from ridgemark.kernels import Gaussian, Linear, Matern12, Matern32, Matern52
from tests.exact_digits import DIGITS, KernelRidge, numbers

TOL = 1e-6


def random_problem(seed):
    """Rows, targets, weights, kernel and options: repeats, near repeats, offsets, and ridges from 1e-20 to 1e-4."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(10, 61)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-1, 1)
    repeats = rng.integers(4)
    if repeats % 2:
        X = X[rng.integers(0, max(2, n // 2), n)]
    if repeats >= 2:
        near = rng.integers(0, n, n // 3)
        X[near] = X[rng.integers(0, n, len(near))] + 10.0 ** rng.uniform(-16, -2) * rng.normal(size=(len(near), d))
    scale = np.median(np.abs(X - np.median(X, axis=0))) + 1e-9
    X += rng.choice([0.0, 0.0, 0.0, 10.0 ** rng.uniform(0, 8)])
    family = rng.choice([Gaussian, Gaussian, Matern12, Matern32, Matern52])
    kernel = family(scale * 10.0 ** rng.uniform(-0.5, 0.7) * rng.uniform(0.5, 2.0, rng.choice([1, d])).squeeze())
    y = np.sin(X[:, 0] / scale) + rng.choice([0.0, 0.1, 1.0]) * rng.normal(size=n) + rng.choice([0.0, 0.0, 100.0])
    weights = np.ones(n) if rng.random() < 0.7 else rng.integers(1, 5, n) * rng.choice([1.0, 0.3])
    n_landmarks = "auto" if rng.random() < 0.6 else int(rng.integers(3, n + 1))
    options = {"ridge": 10.0 ** rng.uniform(-20, -4), "fit_intercept": bool(rng.integers(2)), "random_state": seed}
    return X, y, weights, kernel, {**options, "n_landmarks": n_landmarks}


def fitted(estimator, X, y, weights):
    """The estimator, and whether it warned that it is not as close to exact as asked."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(X, y, weights)
    assert {one.category for one in caught} <= {ConvergenceWarning, LandmarkCountWarning, ColumnWarning}
    return estimator, any(one.category is ConvergenceWarning for one in caught)


def check(seed):
    X, y, weights, kernel, options = random_problem(seed)
    model, warned = fitted(ExactKernelRidge(kernel, tol=TOL, **options), X, y, weights)
    same = {**options, "n_landmarks": "auto", "selection": X[model.landmark_indices_]}
    landmarks, _ = fitted(NystromRidge(kernel, **same), X, y, weights)
    reached = model.history_[-1]

    def rms(values):
        return float(np.sqrt(np.average(values**2, weights=weights)))

    new = X[:4] + np.random.default_rng(seed).normal(size=X[:4].shape) * X.std(axis=0)
    with mpmath.workdps(DIGITS):
        scaled_ridge = mpmath.mpf(options["ridge"]) * numbers(weights).sum()
        exact = KernelRidge(kernel, X, y, scaled_ridge, weights, options["fit_intercept"])
        apart, of_landmarks = ((numbers(one.predict(X)) - exact.fitted).astype(float) for one in (model, landmarks))
        elsewhere = (numbers(model.predict(new)) - exact(new)).astype(float)
    assert rms(apart) <= reached.returned[0]
    assert rms(apart) <= rms(of_landmarks) + TOL
    assert np.abs(elsewhere).max() <= reached.norm[0] * (1 + options["fit_intercept"])  # k(x, x) = 1
    spread = rms(y - np.average(y, weights=weights))
    lost = rms(y - model.predict(X)) ** 2 - rms(y - model.predict(X) + apart) ** 2
    assert warned or lost <= 1e-6 * spread**2
    assert warned == (reached.returned[0] > TOL)
    assert options["ridge"] < 1e-8 or reached.rounding[0] <= 1e-5 * rms(y)


@pytest.mark.parametrize("seed", range(0, 500, 50))
def test_bounds_hold_against_50_digits(seed):
    check(seed)


@pytest.mark.slow
def test_bounds_hold_against_50_digits_in_500_problems():
    for seed in range(500):
        check(seed)


def test_bounds_hold_where_a_mean_is_subtracted_from_rows_of_very_different_length():
    for seed in range(10):  # three rows a millionth apart and one far away, whose k(x, x) is 1e21 times theirs
        rng = np.random.default_rng(seed)
        X = 1e5 * np.repeat(rng.normal(size=(2, 4)), (3, 1), axis=0) + 1e-6 * rng.normal(size=(4, 4))
        y = rng.normal(size=4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of rounding, and of the distance reached
            model = ExactKernelRidge("linear", ridge=5e-7, random_state=0).fit(X, y)
        with mpmath.workdps(DIGITS):
            exact = KernelRidge(Linear(), X, y, 4 * mpmath.mpf(5e-7), None, True)
            apart = (numbers(model.predict(X)) - exact.fitted).astype(float)
        assert np.sqrt(np.mean(apart**2)) <= model.history_[-1].returned[0], seed


@pytest.mark.parametrize("ridge", [1e-12, 1e-16])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_equal_rows_are_one_row(ridge, fit_intercept):
    y = np.random.default_rng(0).normal(size=100)
    X = np.zeros((100, 3))
    model = ExactKernelRidge(Gaussian(1.0), ridge=ridge, fit_intercept=fit_intercept, random_state=0).fit(X, y)
    exact = y.mean() / (1.0 if fit_intercept else 1.0 + ridge)
    distance = np.abs(model.predict(X) - exact).max()
    assert distance <= model.history_[-1].returned[0] + 1e-16
    assert distance <= 1e-12
    assert model.X_fit_.shape == (1, 3)


@pytest.mark.parametrize("seed", range(10))
def test_forty_points_in_one_dimension_are_fitted_as_well_as_by_their_landmarks(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(40, 1))
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=40)
    model, _ = fitted(ExactKernelRidge(Gaussian(1.0), ridge=1e-9, random_state=seed), X, y, None)
    landmarks, _ = fitted(NystromRidge(Gaussian(1.0), ridge=1e-9, random_state=seed), X, y, None)
    assert model.score(X, y) == pytest.approx(landmarks.score(X, y), abs=1e-6)
    assert model.history_[-1].returned[0] <= 1e-5


def test_a_ridge_below_rounding_is_said_to_leave_no_bound():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 1)), rng.normal(size=300)
    for ridge in (1e-15, 1e-17, 1e-20):
        with pytest.warns(ConvergenceWarning, match=r"the bound is void"):
            ExactKernelRidge(Gaussian(1.0), ridge=ridge, n_landmarks=100, random_state=0).fit(X, y)


def test_a_tolerance_that_a_constant_meets_is_said():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1))
    with pytest.warns(ConvergenceWarning, match="but so is a constant; choose a smaller tol"):
        ExactKernelRidge(Gaussian(1.0), ridge=1e-3, tol=10.0, random_state=0).fit(X, rng.normal(size=40))


@pytest.mark.parametrize("n_features", [1, 2, 6])
def test_rounding_stays_small_for_columns_of_any_scale(n_features):
    rng = np.random.default_rng(n_features)
    widths = 10.0 ** rng.uniform(-6, 6, n_features)
    X = rng.normal(size=(400, n_features)) * widths
    X[200:] += 1e5 * widths  # a second cluster, far away
    kernel = Gaussian(2 * np.sqrt(n_features) * widths)
    y = rng.normal(size=400)
    model, _ = fitted(ExactKernelRidge(kernel, ridge=1e-8, n_landmarks=200, random_state=0), X, y, None)
    assert model.history_[-1].rounding[0] <= 1e-5 * np.sqrt(np.mean(y**2))


def test_the_landmark_model_is_returned_for_one_target_and_not_for_the_other():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1))
    Y = np.c_[np.full(40, 3.0), rng.normal(size=40)]
    model, warned = fitted(ExactKernelRidge(Gaussian(1.0), ridge=1e-15, random_state=0), X, Y, None)
    assert warned
    assert model.predict(X)[:, 0] == pytest.approx(3.0, abs=1e-12)
    assert model.history_[-1].returned[0] <= 1e-12 < model.history_[-1].returned[1]


def test_merged_rows_give_what_weights_give():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    counts = rng.integers(1, 5, 60)
    options = {"bandwidth": 1.0, "ridge": 1e-6, "random_state": 0}
    repeated = ExactKernelRidge(**options).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    weighted = ExactKernelRidge(**options).fit(X, y, counts.astype(float))
    assert repeated.X_fit_.shape == (60, 2)
    assert repeated.predict(X) == pytest.approx(weighted.predict(X), abs=1e-9)
