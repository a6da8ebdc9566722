"""Arrays of other libraries, with scikit-learn's `array_api_dispatch`, give what NumPy arrays give."""

import warnings
from unittest import SkipTest

import numpy as np
import pytest
from sklearn import config_context
from sklearn.utils.estimator_checks import estimator_checks_generator

from ridgemark import ExactKernelRidge, NystromClassifier, NystromFeatures, NystromRidge, load
from ridgemark.errors import DataTypeError

strict = pytest.importorskip("array_api_strict")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=200)
WEIGHTS = RNG.integers(1, 3, 200).astype(float)
GIVEN = {"kernel": "gaussian", "bandwidth": 2.0, "ridge": 1e-3, "random_state": 0}
MODEL = NystromRidge(**GIVEN, n_landmarks=30)


@pytest.fixture(autouse=True)
def dispatch(monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with config_context(array_api_dispatch=True):
        yield


@pytest.mark.parametrize(
    "estimator",
    [
        NystromRidge(**GIVEN),
        NystromFeatures(n_landmarks=10),
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in (NystromRidge(), NystromClassifier(), NystromClassifier(**GIVEN), ExactKernelRidge(**GIVEN))
        ),
    ],
    ids=repr,
)
def test_no_check_of_array_libraries_fails(estimator):
    passed = 0
    for one, check in estimator_checks_generator(estimator):
        if "array_api" not in str(check):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there are few rows
            try:
                check(one)
                passed += 1
            except SkipTest as reason:  # a library or a device that is not there
                assert "SCIPY_ARRAY_API" not in str(reason)
    assert passed > 1


def elsewhere(values, device="device1"):
    return strict.asarray(values, device=strict.Device(device))


def on_host(values):
    return np.from_dlpack(values, device="cpu")


def test_targets_and_weights_follow_the_rows_and_answers_come_back_to_their_device(tmp_path):
    expected, rows = MODEL.fit(X, Y, WEIGHTS).predict(X, return_std=True), elsewhere(X)
    for targets, weights in ((elsewhere(Y, "CPU_DEVICE"), WEIGHTS), (Y, elsewhere(WEIGHTS))):
        model = load(MODEL.fit(rows, targets, weights).save(tmp_path / "model", sums=True))
        for one, other in zip(expected, model.predict(rows, return_std=True), strict=True):
            assert other.device == rows.device
            assert np.array_equal(one, on_host(other))
        assert model.score(rows, targets) > 0.9


def test_rows_of_another_library_are_refused():
    MODEL.fit(elsewhere(X), Y)
    with pytest.raises(DataTypeError, match=r"NystromRidge\.certify\(\) must use the same namespace .*strict"):
        MODEL.certify(X, Y)
    with pytest.raises(DataTypeError, match=r'fitted on rows in host memory .* numpy\.from_dlpack\(X, device="cpu"\)'):
        MODEL.fit(X, Y).predict(elsewhere(X))


def test_arrays_on_a_device_are_refused_without_dispatch():
    refused = pytest.raises(DataTypeError, match=r"strict on a device .*set_config\(array_api_dispatch=True\)")
    with config_context(array_api_dispatch=False), refused:
        MODEL.fit(elsewhere(X), Y)


def test_dask_arrays_stay_lazy():
    da = pytest.importorskip("dask.array")
    rows = da.from_array(X, chunks=(90, 3))
    assert isinstance(MODEL.fit(rows, Y).predict(rows), da.Array)
