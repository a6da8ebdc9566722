"""Intervals whose width follows the noise: coverage where noise differs, against refits, and what they promise."""

import copy
import itertools

import numpy as np
import pytest

from ridgemark import NystromRidge, load
from ridgemark.intervals.deviations import unit_variance


def _two_halves(n, seed):
    """Return rows with four times the noise where the first column is positive."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + np.where(X[:, 0] > 0, 0.4, 0.1) * rng.normal(size=n)


def _coverage_by_half(seed, **options):
    X, y = _two_halves(6000, seed)
    model = NystromRidge(bandwidth="median", random_state=seed, **options).fit(X[:2000], y[:2000])
    lower, upper = model.predict_interval(X[2000:]).T
    held, noisy = (lower <= y[2000:]) & (y[2000:] <= upper), X[2000:, 0] > 0
    return held[noisy].mean(), held[~noisy].mean()


def _small(n=60, **options):
    X, y = _two_halves(n, 3)
    options = {"bandwidth": 1.0, "selection": X[:12], "ridge": 1e-3} | options
    return X, y, NystromRidge(**options).fit(X, y).calibrate(X, y)


@pytest.mark.slow
def test_each_half_is_covered_in_twenty_repeats():
    coverage = np.mean([_coverage_by_half(seed) for seed in range(20)], axis=0)
    assert ((coverage > 0.86) & (coverage < 0.94)).all(), coverage


def test_each_half_is_covered():
    # Over fits of 2,000 rows the coverage of a half varies by some 2%.
    coverage = np.mean([_coverage_by_half(seed, n_landmarks=100) for seed in range(2)], axis=0)
    assert ((coverage > 0.83) & (coverage < 0.96)).all(), coverage


@pytest.mark.filterwarnings("ignore::ridgemark.errors.RidgeEdgeWarning")  # the columns do not predict a parity
@pytest.mark.parametrize("n_features", [1, 2, 3])
def test_targets_whose_residuals_have_one_size_are_fitted(n_features):
    """In a full factorial design the residuals of a parity differ in sign only; whether sums round depends on n."""
    for repeats in range(1, 13):
        X = np.tile(list(itertools.product([0.0, 1.0], repeat=n_features)), (repeats, 1))
        model = NystromRidge(bandwidth="median", random_state=0).fit(X, X.sum(axis=1) % 2)
        assert np.isfinite(model.calibration_.scores).all()


def test_a_few_equal_rows_change_widths_little():
    X, y = _two_halves(400, 5)
    options = {"bandwidth": "median", "n_landmarks": 60, "selection": X[:60], "random_state": 0}
    models = [NystromRidge(**options).fit(X[rows], y[rows]) for rows in (slice(400), np.r_[:400, 200:205])]
    one, other = (np.diff(model.predict_interval(X), axis=1) for model in models)
    assert other == pytest.approx(one, rel=0.1)


def test_width_grows_away_from_the_rows():
    X, y = _two_halves(500, 0)
    model = NystromRidge(bandwidth="median", n_landmarks=80, random_state=0).fit(X, y)
    widths = np.diff(model.predict_interval([[0.0, 0.0], [3.0, 0.0], [5.0, 0.0], [30.0, 0.0]]), axis=1).ravel()
    assert (np.diff(widths) > 0).all()
    constant = np.diff(model.predict_interval([[0.0, 0.0], [30.0, 0.0]], adaptive=False), axis=1).ravel()
    assert constant[1] == pytest.approx(constant[0], rel=0.2)


@pytest.mark.parametrize("intercept", [False, True])
def test_scores_are_those_of_refits_without_each_row(intercept):
    """Both parts of tau without row i, by refits: the size of the noise and the spread of the function."""
    X, _, model = _small(fit_intercept=intercept)
    known, fit = model.calibration_, model._model.sums
    B, one = fit.factor.features(X), np.ones((60, int(intercept)))
    A = np.c_[B, one]
    size = np.abs(known.residuals[:, 0])
    origin = size.mean()

    def fitted(ridge, keep, targets):
        penalty = np.diag(np.r_[np.full(B.shape[1], ridge), np.zeros(one.shape[1])])
        inverse = np.linalg.inv(A[keep].T @ A[keep] + penalty)
        return inverse @ (A[keep].T @ targets[keep]), inverse

    def left_out(ridge):
        keep = [np.arange(60) != i for i in range(60)]
        return np.array([origin + A[i] @ fitted(ridge, keep[i], size - origin)[0] for i in range(60)])

    s = fit.scaled_ridge[0]
    ridges = np.geomspace(10 * 60, s, 1 + int(np.ceil(4 * np.log10(600 / s))))
    levels = [np.maximum(left_out(ridge), 0.05 * np.median(size)) for ridge in ridges]
    without = 1 - (B**2).sum(axis=1)
    spread = np.array([A[i] @ fitted(s, np.arange(60) != i, size)[1] @ A[i] for i in range(60)]) + without / s
    errors = [np.mean((size - left_out(ridge)) ** 2) for ridge in ridges]
    level = levels[int(np.argmax(errors <= 1.0001 * min(errors)))]
    scale = np.sqrt(np.mean(size**2 / level**2))
    for _ in range(100):
        scale = np.sqrt(np.mean(np.minimum(size**2 / level**2, 25 * scale**2)))
    tau = np.sqrt((scale * level) ** 2 + unit_variance(fit, 60)[0] * spread)
    assert known.scores[:, 0] == pytest.approx(size / tau, rel=1e-6)


def test_several_coverages_are_each_alone():
    X, _, model = _small()
    for adaptive in (True, False):
        several = model.predict_interval(X, [0.5, 0.9, 0.8], adaptive)
        assert several.shape == (60, 2, 3)
        for k, coverage in enumerate([0.5, 0.9, 0.8]):
            assert np.array_equal(several[:, :, k], model.predict_interval(X, coverage, adaptive))
        widths = np.diff(several, axis=1)[:, 0]
        assert (widths[:, 0] < widths[:, 2]).all()
        assert (widths[:, 2] < widths[:, 1]).all()


def test_several_targets_and_coverages_have_targets_last():
    X, y = _two_halves(400, 0)
    model = NystromRidge(bandwidth=1.0, n_landmarks=30, random_state=0).fit(X, np.c_[y, 10 * y + 3])
    ends = model.predict_interval(X[:7], (0.5, 0.9))
    assert ends.shape == (7, 2, 2, 2)
    assert ends[..., 1] == pytest.approx(10 * ends[..., 0] + 3, rel=1e-6)


def _calibrated_by_others(seed=0, **options):
    X, y = _two_halves(900, seed)
    first, rest = slice(0, 300), slice(300, 900)
    model = NystromRidge(bandwidth=1.0, n_landmarks=40, random_state=0, **options).fit(X[first], y[first])
    added = copy.deepcopy(model).set_params(ridge=model.ridge_)
    return model, added.partial_fit(X[rest], y[rest]).calibrate(X[rest], y[rest])


def test_guaranteed_widths_are_of_rows_before_the_calibration_rows():
    before, model = _calibrated_by_others()
    known = model.calibration_
    assert known.guaranteed
    assert known.noise.outside
    assert np.array_equal(known.noise.solution.coefficients, before.calibration_.noise.solution.coefficients)


def test_without_rows_before_guaranteed_widths_know_no_noise():
    X, y = _two_halves(400, 0)
    model = NystromRidge(bandwidth=1.0, ridge=1e-3, n_landmarks=50, selection="uniform", random_state=0)
    known = model.fit(X, y).calibrate(X, y).calibration_
    assert known.guaranteed
    assert known.noise.outside
    assert not known.noise.solution.coefficients.any()


def test_a_factor_on_all_weights_does_not_change_guaranteed_intervals():
    X, y = _two_halves(200, 3)
    model = NystromRidge("gaussian", bandwidth=1.0, selection="uniform", n_landmarks=20, ridge=1e-3, random_state=0)
    ends = model.fit(X, y).calibrate(X, y).predict_interval(2 * X)
    for weight in (0.7, 3.3):
        assert model.fit(X, y, weight).calibrate(X, y, weight).calibration_.guaranteed
        assert model.predict_interval(2 * X) == pytest.approx(ends, rel=1e-8)


def test_guaranteed_intervals_contain_the_jackknife_plus():
    _, model = _calibrated_by_others()
    known, fit = model.calibration_, model._model.sums
    new = _two_halves(40, 9)[0] * 1.5
    solver = fit.solver
    rotate = lambda rows: (fit.factor.features(rows) - solver.feature_mean) @ solver.rotation  # noqa: E731
    shared = (rotate(new) / (solver.spectrum + fit.scaled_ridge)) @ rotate(known.rows).T + 1 / solver.total_weight
    without = model.predict(new)[:, None] - shared * known.shifts[:, 0]
    b = fit.factor.features(new)
    noise = known.noise
    sigma = np.maximum(b @ noise.solution.coefficients + noise.solution.intercept, noise.floor)[:, 0]
    tau = np.sqrt(sigma**2 + noise.variance * (1 - (b**2).sum(axis=1)) / fit.scaled_ridge)
    place = int(np.ceil(0.9 * (known.n_distinct + 1))) - 1
    upper = np.sort(without + known.scores[:, 0] * tau[:, None], axis=1)[:, place]
    lower = -np.sort(known.scores[:, 0] * tau[:, None] - without, axis=1)[:, place]
    found = model.predict_interval(new)
    assert (found[:, 0] <= lower + 1e-12).all()
    assert (found[:, 1] >= upper - 1e-12).all()
    assert np.mean(found[:, 1] - found[:, 0]) < 1.1 * np.mean(upper - lower)


def test_parts_of_the_rows_have_the_same_intervals(tmp_path):
    for model in (_small()[2], _calibrated_by_others()[1]):
        X = _two_halves(50, 5)[0]
        together = model.predict_interval(X, [0.5, 0.9])
        assert model.predict_interval(X[20:], [0.5, 0.9]) == pytest.approx(together[20:], rel=1e-12)
        loaded = load(model.save(tmp_path / "m", sums=True))
        assert np.array_equal(loaded.predict_interval(X, [0.5, 0.9]), together)


@pytest.mark.filterwarnings("ignore:the target is 0 in all rows")
def test_a_fit_without_noise_has_intervals():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = NystromRidge(bandwidth=1.0, ridge=1e-3, n_landmarks=20, random_state=0)
    ends = model.fit(X, np.zeros(60)).calibrate(X, np.zeros(60)).predict_interval(X)
    assert np.isfinite(ends).all()
    assert np.abs(ends).max() < 1e-6


def test_known_and_new_places_are_covered_where_rows_repeat():
    """Lambda, chosen for the means of equal rows, is so small that the function's variance is far too large."""
    known, new = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        effects = rng.normal(size=(2, 6))
        X = rng.integers(0, 6, (300, 2))
        noisy = effects[0, X[:, 0]] + effects[1, X[:, 1]] + 0.5 * rng.normal(size=(2, 300))
        fitted = (X[:, 0] + X[:, 1]) % 6 > 0  # 30 of 36 places
        indicators = np.hstack([X[:, [j]] == np.arange(6) for j in (0, 1)]).astype(float)
        model = NystromRidge(bandwidth="median", random_state=0).fit(indicators[fitted], noisy[0, fitted])
        lower, upper = model.predict_interval(indicators).T
        inside = (lower <= noisy[1]) & (noisy[1] <= upper)
        known.append(inside[fitted].mean())
        new.append(inside[~fitted].mean())
    assert min(known) > 0.85
    assert np.mean(new) > 0.85
