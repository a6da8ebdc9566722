"""Columns far from zero: linear kernels do not mind, and where rounding spoils a fit a warning says so."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

from ridgemark import ExactKernelRidge, NystromRidge, exact, leverage_scores, load
from ridgemark.errors import ConditioningWarning, ParameterError
from ridgemark.estimators.cautions import what_rounding_spoilt
from ridgemark.kernels import Gaussian, Linear, Polynomial
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows

FAR = 2.0**30  # so that adding it to multiples of 2^-10 does not round


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = np.round(1024 * rng.normal(size=(300, 3))) / 1024
    return X, X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=300)


@pytest.mark.parametrize("estimator", [NystromRidge, ExactKernelRidge])
@pytest.mark.parametrize("kernel", ["linear", 4.0 * Linear()], ids=repr)
def test_a_linear_fit_of_columns_far_from_zero_is_ridge_regression(data, estimator, kernel):
    X, y = data
    factor = 1.0 if kernel == "linear" else 4.0
    peer = Ridge(alpha=300 * 1e-4 / factor).fit(X, y)
    model = estimator(kernel, ridge=1e-4, random_state=0).fit(X + FAR, y)
    assert model.predict(X + FAR) == pytest.approx(peer.predict(X), abs=1e-6)


@pytest.mark.parametrize("ridge", ["loo", "gcv", 1e-8])
def test_normal_columns_plus_a_billion_are_fitted_as_well_as_normal_ones(data, ridge):
    X, y = data
    here, far = (NystromRidge("linear", ridge=ridge, random_state=0).fit(X + at, y).score(X + at, y) for at in (0, 1e9))
    assert far == pytest.approx(here, abs=1e-6)


def test_a_linear_term_of_a_sum_is_measured_from_the_columns_too(data):
    X, y = data
    kernel = Gaussian(2.0) + 0.5 * Linear()
    here, far = (NystromRidge(kernel, ridge=1e-4, random_state=0).fit(X + at, y).predict(X + at) for at in (0, FAR))
    assert far == pytest.approx(here, abs=1e-7)
    assert kernel == Gaussian(2.0) + 0.5 * Linear()  # the user's own is left as it was


def test_all_that_follows_a_linear_fit_works_far_from_zero(data, tmp_path):
    X, y = data
    far = X + FAR
    model = NystromRidge("linear", ridge=1e-4, random_state=0).fit(far, y)
    near = NystromRidge("linear", ridge=1e-4, random_state=0).fit(X, y)
    assert np.array_equal(load(model.save(tmp_path / "model")).predict(far), model.predict(far))
    assert np.isin(model.landmarks_, far).all()
    assert model.certify(far, y).bound == pytest.approx(near.certify(X, y).bound, abs=1e-9)
    assert model.predict(far, return_std=True)[1] == pytest.approx(near.predict(X, return_std=True)[1], rel=1e-6)
    intervals = [fit.calibrate(rows, y).predict_interval(rows) for fit, rows in ((model, far), (near, X))]
    assert intervals[0] == pytest.approx(intervals[1], abs=1e-7)
    assert model.predict(sparse.csr_matrix(far)) == pytest.approx(model.predict(far), abs=1e-12)
    more = NystromRidge("linear", ridge=1e-4, random_state=0).partial_fit(far[:100], y[:100])
    assert more.partial_fit(far[100:], y[100:]).predict(far) == pytest.approx(near.predict(X), abs=1e-7)


@pytest.mark.parametrize(
    "options",
    [{"kernel": "polynomial"}, {"kernel": Polynomial(2)}, {"kernel": "linear", "fit_intercept": False}],
    ids=str,
)
def test_a_fit_that_rounding_spoils_is_told_with_the_remedy(data, options):
    X, y = data
    with pytest.warns(ConditioningWarning, match=r"(rounding decides|up to rounding).*; centre the columns"):
        NystromRidge(ridge=1e-3, n_landmarks=50, random_state=0, **options).fit(X + 1e9, y)
    with pytest.warns(ConditioningWarning, match="centre the columns"):
        NystromRidge(ridge=1e-3, n_landmarks=50, random_state=0, **options).partial_fit(X + 1e9, y)


@pytest.mark.parametrize("offset", [0.0, 200.0, 2000.0])
def test_predictions_that_change_with_the_last_bit_of_the_rows_are_told(offset):
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=400), offset + rng.integers(0, 2, 400)]
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=400)
    model = NystromRidge("polynomial", bandwidth="median", ridge=1e-3, n_landmarks=50, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if offset:
            with pytest.raises(ConditioningWarning, match=r"changes its predictions by 0\.0"):
                model.fit(X, y)
        else:
            model.fit(X, y)


def test_sparse_rows_far_from_zero_are_not_centred_but_told(data):
    X, y = data
    with pytest.warns(ConditioningWarning, match="the kernel is the same for all rows up to|rounding decides this fit"):
        NystromRidge("linear", ridge=1e-3).fit(sparse.csr_matrix(X + 1e9), y)


@pytest.mark.parametrize("n_rows", [300, 5000])
def test_a_training_error_above_the_variance_is_found(n_rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 2))
    y = X[:, 0] + rng.normal(size=n_rows)
    model = NystromRidge(bandwidth=2.0, ridge=1e-3, n_landmarks=40, random_state=0).fit(X, y)._model
    passes, fit, function = RowPasses(ArrayRows(X, y)), model.sums, model.function
    assert what_rounding_spoilt(passes, fit, function) == ""
    spoilt = replace(function, intercept=function.intercept + 100.0)
    found = what_rounding_spoilt(passes, fit, spoilt)
    ratio = (np.mean((y - function.cross_kernel(X) @ function.dual_coef - spoilt.intercept) ** 2)) / y.var()
    assert f"error on its training rows is {ratio:.3g} times the variance of the targets" in found


@pytest.mark.filterwarnings("ignore:the target is 100,000 in all rows")
def test_targets_that_are_noise_or_constant_and_equal_rows_are_no_reason_to_warn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    NystromRidge(bandwidth=1.0, ridge=10.0, n_landmarks=30, random_state=0).fit(X, rng.standard_cauchy(3000))
    NystromRidge("polynomial", ridge=1e-3, n_landmarks=30, random_state=0).fit(X, np.full(3000, 1e5))
    NystromRidge(bandwidth=1.0, ridge=1e-3, fit_intercept=False).fit(np.ones((50, 2)), rng.normal(size=50) + 7)


def test_an_origin_moves_rows_before_their_product(data):
    X, _ = data
    origin = np.array([1.0, -2.0, 3.0])
    kernel, moved = Linear(origin), X - origin
    assert kernel(X) == pytest.approx(moved @ moved.T, abs=1e-12)
    assert kernel(X.astype(np.float32)).dtype == np.float32
    spectrum = exact.kernel_spectrum(X, kernel)
    assert (spectrum.eigenvectors * spectrum.eigenvalues) @ spectrum.eigenvectors.T == pytest.approx(
        kernel(X), abs=1e-10
    )
    weights = np.random.default_rng(1).uniform(size=300)
    options = {"ridge": 1e-2, "method": "exact", "sample_weight": weights}
    wanted = leverage_scores(moved, kernel="linear", **options).lower
    assert leverage_scores(X, kernel=kernel, **options).lower == pytest.approx(wanted, abs=1e-10)
    for wrong in ([1.0, 2.0], "far", np.nan):
        with pytest.raises(ParameterError, match="Linear: origin must be a finite number or one for each of the 3"):
            Linear(wrong)(X)
