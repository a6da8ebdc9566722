"""A transformed target: predictions are means in its own units, intervals quantiles, and everything else follows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from ridgemark import NystromRidge, load, open_rows
from ridgemark.errors import DataError, ParameterError
from ridgemark.transforms import TargetTransform, make_transform

QUICK = {"kernel": "gaussian", "bandwidth": 1.0, "n_landmarks": 40, "random_state": 0}


def skewed(n=500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.exp(np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.5 * rng.normal(size=n))


def targets(kind):
    y = skewed()[1]
    return y - 2.0 if kind == "yeo-johnson" else y


@pytest.mark.parametrize("kind", ["none", "log", "sqrt", "yeo-johnson"])
def test_the_way_back_undoes_the_map(kind):
    y = targets(kind)
    transform = make_transform(kind, y)
    np.testing.assert_allclose(transform.inverse(transform.forward(y)), y, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
def test_the_map_of_yeo_and_johnson_is_undone_for_every_exponent(exponent):
    y = np.linspace(-3, 3, 13)
    transform = TargetTransform("yeo-johnson", exponent, low=-50.0, high=50.0)
    np.testing.assert_allclose(transform.inverse(transform.forward(y)), y, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", ["log", "sqrt", "yeo-johnson"])
def test_the_slope_is_the_derivative_of_the_prediction(kind):
    y = targets(kind)
    transform = make_transform(kind, y).recalibrated(y, make_transform(kind, y).forward(y) + 0.1, np.ones(len(y)))
    f = np.linspace(transform.low, transform.high, 21)[1:-1]
    step = 1e-6
    expected = (transform.predicted(f + step) - transform.predicted(f - step)) / (2 * step)
    np.testing.assert_allclose(transform.slope(f), expected, rtol=1e-5)


@pytest.mark.parametrize("kind", ["log", "sqrt", "yeo-johnson"])
def test_the_way_back_never_decreases_and_ends_within_reach_of_the_targets(kind):
    y = targets(kind)
    transform = make_transform(kind, y)
    values = transform.inverse(np.linspace(-1e6, 1e6, 2001))
    assert (np.diff(values) >= 0).all()
    assert np.isfinite(values).all()


def test_two_coefficients_are_the_regression_on_what_was_left_out():
    rng = np.random.default_rng(0)
    y = np.exp(rng.normal(size=200))
    weights, left_out = rng.integers(1, 4, 200).astype(float), np.log(y) + rng.normal(size=200)
    made = make_transform("log", y)
    f = np.clip(left_out - np.log(made.unit), made.low, made.high)
    z = made.inverse(f)
    design = np.stack([np.ones(200), z], axis=1)
    alpha, beta = np.linalg.lstsq(design * np.sqrt(weights)[:, None], y * np.sqrt(weights), rcond=None)[0]
    fitted = made.recalibrated(y, f, weights)
    assert alpha > 0
    np.testing.assert_allclose([fitted.alpha, fitted.beta], [alpha, beta], rtol=1e-9)
    residuals = y - alpha - beta * z
    assert fitted.left_out_error == pytest.approx(np.sqrt(np.average(residuals**2, weights=weights)))


def test_predictions_stay_within_the_range_of_the_targets():
    y = targets("log")
    transform = make_transform("log", y)
    assert transform.predicted(np.array([1e3]))[0] == pytest.approx(y.max())
    assert transform.predicted(np.array([-1e3]))[0] == pytest.approx(y.min())
    assert transform.slope(np.array([1e3, -1e3])).tolist() == [0.0, 0.0]


def test_alpha_is_zero_where_it_would_make_positive_targets_negative():
    y = np.linspace(1.0, 5.0, 50)
    transform = make_transform("log", y)
    steep = transform.forward(y) * 0.3 + 0.7 * transform.forward(y).mean()  # regression of y on it has alpha < 0
    fitted = transform.recalibrated(y, steep, np.ones(50))
    assert fitted.alpha == 0.0
    assert (fitted.predicted(np.linspace(-100, 100, 50)) > 0).all()


@pytest.fixture(scope="module", params=["log", "sqrt", "yeo-johnson", "auto"])
def fitted(request):
    X, y = skewed()
    return NystromRidge(target_transform=request.param, **QUICK).fit(X, y)


def test_predictions_are_positive_where_all_targets_are(fitted):
    rng = np.random.default_rng(1)
    assert (fitted.predict(rng.normal(0, 20, size=(500, 2))) > 0).all()


def test_residuals_are_in_units_of_the_target_and_have_nearly_mean_zero(fitted):
    y = skewed()[1]
    assert np.sqrt(np.mean(fitted.loo_residuals_**2)) == pytest.approx(fitted.target_transform_.left_out_error)
    assert abs(fitted.loo_residuals_.mean()) < 0.02 * y.std()


def test_intervals_are_those_of_the_mapped_target_carried_over():
    X, y = skewed()
    model = NystromRidge(target_transform="log", **QUICK).fit(X, y)
    plain = NystromRidge(**QUICK).fit(X, np.log(y))
    np.testing.assert_allclose(model.predict_interval(X[:50]), np.exp(plain.predict_interval(X[:50])), rtol=1e-8)


def test_no_transform_is_the_fit_without_one():
    X, y = skewed()
    plain, none = (NystromRidge(target_transform=kind, **QUICK).fit(X, y) for kind in (None, "none"))
    np.testing.assert_array_equal(plain.predict(X[:20]), none.predict(X[:20]))
    np.testing.assert_array_equal(plain.loo_residuals_, none.loo_residuals_)
    assert not hasattr(plain, "target_transform_")


def test_auto_takes_the_least_error_in_units_of_the_target():
    X, noise = skewed()[0], np.random.default_rng(1).normal(size=500)
    y = np.exp(2.5 * np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * noise)
    model = NystromRidge(target_transform="auto", **QUICK).fit(X, y)
    compared = dict(model.target_transform_.compared)
    assert set(compared) == {"none", "sqrt", "yeo-johnson"}
    assert compared[model.target_transform_.kind] == min(compared.values())
    assert model.target_transform_.kind != "none"


def test_effects_are_derivatives_of_predictions_and_differences_between_them():
    X, y = skewed()
    X = np.column_stack([X, np.arange(len(X)) % 2])
    model = NystromRidge(target_transform="log", **QUICK).fit(X, y + X[:, 2])
    effects, step = model.effects(X[:10]), 1e-5
    moved = [X[:10] + sign * step * np.array([1.0, 0, 0]) for sign in (1, -1)]
    np.testing.assert_allclose(
        effects[:, 0], (model.predict(moved[0]) - model.predict(moved[1])) / (2 * step), rtol=1e-5
    )
    low, high = X[:10].copy(), X[:10].copy()
    low[:, 2], high[:, 2] = 0.0, 1.0
    np.testing.assert_allclose(effects[:, 2], model.predict(high) - model.predict(low), rtol=1e-8)
    np.testing.assert_allclose(model.effects_summary(X[:10]).average[:, 0], effects.mean(axis=0), rtol=1e-10)


def test_standard_deviations_follow_the_slope():
    X, y = skewed()
    model = NystromRidge(target_transform="log", **QUICK).fit(X, y)
    plain = NystromRidge(**QUICK).fit(X, np.log(y))
    (values, spread), (_, before) = model.predict(X[:5], return_std=True), plain.predict(X[:5], return_std=True)
    np.testing.assert_allclose(spread, (values - model.target_transform_.alpha) * before, rtol=1e-6)


def test_a_model_with_a_transform_is_saved_calibrated_and_certified(tmp_path):
    X, y = skewed(200)
    model = NystromRidge(target_transform="log", **QUICK | {"ridge": 1e-3}).fit(X, y)
    loaded = load(model.save(tmp_path / "model.ridgemark"))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_allclose(loaded.predict_interval(X[:9]), model.predict_interval(X[:9]), rtol=1e-3)
    plain = NystromRidge(**QUICK | {"ridge": 1e-3}).fit(X, np.log(y))
    assert model.certify(X, y).bound == pytest.approx(plain.certify(X, np.log(y)).bound, rel=1e-6)
    model.calibrate(X, y)
    assert model.score(X, y) > 0.3


def test_weights_and_sources_and_tables_are_taken():
    X, y = skewed(200)
    weights = np.arange(200) % 3
    model = NystromRidge(target_transform="log", **QUICK)
    by_array = clone(model).fit(X, y, sample_weight=weights).predict(X[:9])
    by_source = clone(model).fit(open_rows(X, target=y, weight=weights)).predict(X[:9])
    np.testing.assert_allclose(by_array, by_source, rtol=1e-9)
    kept = weights > 0
    repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights)).target_transform_
    weighted = clone(model).fit(X[kept], y[kept], sample_weight=weights[kept]).target_transform_
    assert repeated.spread == pytest.approx(weighted.spread, rel=1e-9)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(c=np.where(X[:, 0] > 0, "up", "down"))
    assert (clone(model).fit(frame, y).predict(frame) > 0).all()


@pytest.mark.parametrize(("kind", "shift"), [("log", 3.0), ("sqrt", 3.0)])
def test_targets_outside_the_domain_are_refused(kind, shift):
    X, y = skewed(100)
    with pytest.raises(DataError, match="yeo-johnson"):
        NystromRidge(target_transform=kind, **QUICK).fit(X, y - shift)


def test_later_targets_outside_the_domain_are_refused_with_their_row():
    X, y = skewed(100)
    model = NystromRidge(target_transform="log", **QUICK).fit(X, y)
    y[7] = -1.0
    with pytest.raises(DataError, match="row 7"):
        model.certify(X, y)


def test_what_is_not_supported_is_refused_in_one_line():
    X, y = skewed(100)
    model = NystromRidge(target_transform="log", **QUICK)
    with pytest.raises(DataError, match="one target, got 2"):
        model.fit(X, np.stack([y, y], axis=1))
    with pytest.raises(ParameterError, match="partial_fit does not transform"):
        model.partial_fit(X, y)
    with pytest.raises(ParameterError, match="target_transform must be"):
        NystromRidge(target_transform="cube", **QUICK).fit(X, y)


def test_a_constant_target_and_few_rows_are_left_as_they_are():
    X, y = skewed(15)
    assert (
        NystromRidge(target_transform="auto", **QUICK | {"n_landmarks": 5}).fit(X, y).target_transform_.kind == "none"
    )
