"""What a model remembers, forgets and refuses between calls."""

import numpy as np
import pytest

from ridgemark import ExactKernelRidge, NystromFeatures, NystromRidge, open_rows
from ridgemark.errors import ConditioningWarning, DataError, NumericalError, ParameterError
from ridgemark.selection import Given, Leverage


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)


def _kernel(X, Z):
    return np.exp(-((X[:, None] - Z[None]) ** 2).sum(axis=2) / 2)


def test_a_fit_that_fails_leaves_the_model_as_it_was(data):
    X, y = data
    model = NystromRidge(ridge=1e-3, n_landmarks=10, bandwidth=1.0, random_state=0).fit(X, y)
    before = model.predict(X)
    with pytest.raises(NumericalError):
        model.fit(X[::-1] + 1, np.where(np.arange(60) % 2, 1.7e308, -1.7e308))
    assert np.array_equal(model.predict(X), before)
    fresh = NystromRidge(bandwidth="median")
    with pytest.raises(ValueError, match="infinity"):
        fresh.fit(np.full((9, 2), np.inf), np.zeros(9))
    assert not vars(fresh).keys() - fresh.get_params().keys()


def test_rows_of_a_precomputed_kernel_do_not_hold_what_deviations_and_further_rows_need(data):
    X, y = data
    K = _kernel(X, X)
    model = NystromRidge("precomputed", ridge=1e-3, n_landmarks=20, random_state=0).fit(K, y)
    with pytest.raises(DataError, match=r"needs k\(x, x\)"):
        model.predict(K[::-1], return_std=True)
    with pytest.raises(DataError, match=r"do not hold their own k\(x, x\)"):
        model.partial_fit(K, y)
    raw = NystromRidge(bandwidth=1.0, ridge=1e-3, selection=Given(indices=model.landmark_indices_)).fit(X, y)
    new = _kernel(X + 0.1, X)
    raw.calibrate(X, y)
    model.calibrate(K, y)
    ends = raw.predict_interval(X + 0.1, adaptive=False)
    assert model.predict_interval(new, adaptive=False) == pytest.approx(ends, abs=1e-6)
    # Widths follow the noise, but without k(x, x) they do not grow away from the rows.
    assert np.isfinite(model.predict_interval(np.repeat(new, 3, axis=0))).all()
    with pytest.raises(DataError, match="in the order of the fit"):
        model.calibrate(K[::-1], y[::-1])


@pytest.mark.parametrize("make", [NystromRidge, ExactKernelRidge])
def test_a_precomputed_kernel_that_is_not_square_is_refused_from_any_source(make):
    rows = np.random.default_rng(0).normal(size=(30, 20))
    with pytest.raises(DataError, match=r"must be square, got shape \(30, 20\)"):
        make("precomputed", ridge=1e-3).fit(open_rows(rows, target=np.zeros(30)))
    with pytest.raises(DataError, match=r"must be square, got shape \(30, 20\)"):
        NystromFeatures("precomputed").fit(open_rows(rows))


def test_the_guarantee_is_that_of_the_fit_not_of_parameters_set_later(data):
    X, y = data
    model = NystromRidge(bandwidth="median", ridge=1e-3, n_landmarks=20, random_state=0).fit(X, y)
    model.set_params(selection="uniform", bandwidth=1.0).calibrate(X, y)
    assert not model.calibration_.guaranteed


def test_rows_in_another_order_are_calibrated_without_a_guarantee(data):
    X, y = data
    model = NystromRidge(ridge=1e-3, selection="uniform", bandwidth=1.0, n_landmarks=20, random_state=0).fit(X, y)
    shuffled = np.random.default_rng(1).permutation(60)
    assert model.calibrate(X, y).calibration_.guaranteed
    model.calibrate(X[shuffled], y[shuffled])
    assert not model.calibration_.guaranteed
    assert not model.diagnose().landmarks.any()


def test_an_intercept_cannot_come_or_go_between_batches(data):
    X, y = data
    model = NystromRidge(bandwidth="median", ridge=1e-3, n_landmarks=20, random_state=0).fit(X[:30], y[:30] + 100)
    with pytest.raises(ParameterError, match="fit_intercept was True for the rows so far and is False now"):
        model.set_params(fit_intercept=False).partial_fit(X[30:], y[30:] + 100)


def test_landmarks_are_doubled_whatever_the_selection_finds(data):
    X, y = data
    given = NystromRidge(
        bandwidth="median", selection=Given(indices=[0, 1, 2]), ridge=1e-3, certify_with="trace", risk_tolerance=1e-3
    )
    assert given.fit(X, y).tolerance_.reason == "the number of landmarks was given"
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 2))
    y = np.sin(3 * X[:, 0])
    for selection in ("rpcholesky", Leverage(replace=True)):
        model = NystromRidge(
            selection=selection, ridge=1e-6, bandwidth=2.0, certify_with="trace", risk_tolerance=1e-6, random_state=0
        ).fit(X, y)
        assert len(model.tolerance_.n_landmarks) <= 5
        assert model.tolerance_.n_landmarks[-1] == 700 or model.tolerance_.met


def test_a_constant_kernel_is_fitted_and_certified(data):
    X, y = data
    with pytest.warns(ConditioningWarning, match="the kernel is the same for all rows up to rounding"):
        model = NystromRidge(bandwidth=1e9, ridge=1e-3).fit(X, y)
    assert model.predict(X) == pytest.approx(np.full(60, y.mean()), abs=1e-6)
    assert "d_eff is 0" in str(model.certificate_) or model.certificate_.bound < 1e-6


def test_an_audit_of_another_fit_bounds_nothing(data):
    X, y = data
    model = NystromRidge(ridge=1e-4, bandwidth=1.0, n_landmarks=12, random_state=0).fit(X, y)
    other = NystromRidge(ridge=1e-4, bandwidth=1.0).fit(X, y).certify(X, y)
    with pytest.raises(ParameterError, match="audit is that of another fit"):
        model.distance_to_exact(X, other, X, y)
    with pytest.raises(ParameterError, match='kind "audit", got NoneType'):
        model.distance_to_exact(X, None, X, y)


@pytest.mark.parametrize("scale", [1e200, 1e-170])
def test_targets_whose_squares_leave_the_range_are_refused_where_errors_are_compared(data, scale):
    X, y = data
    with pytest.raises(NumericalError, match=r"squares of the targets (exceed|fall below) the floating-point range"):
        NystromRidge(bandwidth="median", random_state=0).fit(X, y * scale)
    given = NystromRidge(bandwidth="median", ridge=1e-3, random_state=0).fit(X, y * scale)
    assert given.predict(X) / scale == pytest.approx(
        NystromRidge(bandwidth="median", ridge=1e-3, random_state=0).fit(X, y).predict(X)
    )


def test_weights_that_sum_to_one_choose_the_ridge_that_equal_weights_choose():
    rng = np.random.default_rng(200)
    X = rng.normal(size=(200, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=200)
    plain, light = (
        NystromRidge(bandwidth="median", ridge="gcv", random_state=0).fit(X, y, np.full(200, weight)).ridge_
        for weight in (1.0, 1 / 200)
    )
    assert light == pytest.approx(plain)


def test_a_ridge_below_all_rounding_gives_no_wild_predictions(data):
    X, y = data
    for ridge in (1e-18, 1e-25, 1e-40):
        assert (
            abs(NystromRidge(bandwidth="median", ridge=ridge, random_state=0).fit(X, y).predict(X + 0.01)).max() < 100
        )


def test_a_direct_fit_forgets_the_gradients_bound(data):
    X, y = data
    model = NystromRidge(bandwidth="median", n_landmarks=20, solver="gradient", ridge=1e-3, random_state=0).fit(X, y)
    assert model.solver_bound_ > 0
    with pytest.raises(DataError, match="solved by gradients"):
        model.predict_interval(X)
    assert not hasattr(model.set_params(solver="direct").fit(X, y), "solver_bound_")


def test_constant_columns_and_repeats_are_those_of_all_rows(data):
    X, y = data
    first = X[:30].copy()
    first[:, 2] = 1.0
    model = NystromRidge(ridge=1e-3, bandwidth=1.0, n_landmarks=20, random_state=0).partial_fit(first, y[:30])
    model.partial_fit(X[30:], y[30:]).calibrate(np.vstack([first, X[30:]]), y)
    assert model.diagnose().constant_columns == ()


def test_a_row_source_scores_by_its_own_targets(data):
    X, y = data
    model = NystromRidge(bandwidth="median", ridge=1e-3, random_state=0).fit(X, y)
    assert model.score(open_rows(X, target=y)) == pytest.approx(model.score(X, y))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fit_intercept": "no"}, "fit_intercept must be True or False, got 'no'"),
        ({"ridge_per_target": None}, "ridge_per_target must be True or False"),
        ({"certify_with": np.array(["a", "b"])}, "certify_with must be None or one of"),
        ({"bandwidth": ["a", "b", "c"]}, 'bandwidth must be "auto"'),
        ({"ridge": 1e308}, "leaves the floating-point range"),
        ({"ridge": [1e-320, 1e-3]}, "leaves the floating-point range"),
    ],
)
def test_options_that_mean_nothing_are_refused_by_name(data, options, words):
    with pytest.raises((ParameterError, NumericalError), match=words):
        NystromRidge(**options).fit(*data)


def test_one_number_as_weight_is_that_of_every_row(data):
    model = NystromRidge(n_landmarks=10, bandwidth=1.0, ridge=1e-3, random_state=0)
    one = model.fit(*data, sample_weight=2.0).dual_coef_
    assert np.array_equal(one, model.fit(*data, sample_weight=np.full(60, 2.0)).dual_coef_)


@pytest.mark.parametrize("weights", [["a"] * 60, "2.0", np.ones((60, 2)), np.ones(60) * 1j], ids=str)
def test_weights_that_are_no_numbers_are_refused(data, weights):
    with pytest.raises(DataError, match="sample_weight must be an array of one number for each of the 60 rows"):
        NystromRidge(bandwidth="median", ridge=1e-3).fit(*data, sample_weight=weights)
    with pytest.raises(DataError, match="sample_weight must be an array of one number for each of the 60 rows"):
        NystromFeatures().fit(data[0], sample_weight=weights)


def test_weights_beside_a_row_source_are_refused(data):
    with pytest.raises(ParameterError, match="brings its own weights"):
        NystromFeatures().fit(open_rows(data[0]), sample_weight=np.ones(60))
