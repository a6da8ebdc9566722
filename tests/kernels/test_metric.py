"""Radial kernels in the metric of a matrix: values, refusals, parameters, and derivatives by the squared distance."""

import pickle

import mpmath
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from ridgemark import NystromRidge, load
from ridgemark.errors import DataTypeError, NumericalError, ParameterError
from ridgemark.kernels import (
    Cosine,
    Gaussian,
    Laplacian,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    PowerExponential,
    RadialKernel,
    make_kernel,
)
from tests.exact_digits import radial_value

RADIAL = [
    Gaussian(),
    Matern12(),
    Matern32(),
    Matern52(),
    PowerExponential(exponent=0.5),
    PowerExponential(exponent=1.4),
    PowerExponential(exponent=2.0),
]
METRIC = np.array([[1.0, 0.5], [-0.3, 0.2], [0.0, 2.0]])


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def _with(kernel, metric):
    return clone(kernel).set_params(metric=metric)


@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
def test_a_metric_measures_projected_rows(kernel, rng):
    for n_features, rank in ((3, 2), (6, 6), (8, 1), (2, 5)):
        P = rng.normal(size=(n_features, rank)) / 2
        X, Z = rng.normal(size=(9, n_features)), rng.normal(size=(5, n_features))
        assert _with(kernel, P)(X, Z) == pytest.approx(kernel(X @ P, Z @ P), abs=1e-14)


@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
def test_a_diagonal_metric_is_a_bandwidth_per_feature(kernel, rng):
    X, Z, widths = rng.normal(size=(9, 4)), rng.normal(size=(5, 4)), rng.uniform(0.5, 2.0, size=4)
    expected = clone(kernel).set_params(bandwidth=widths)(X, Z)
    assert _with(kernel, np.diag(1 / widths))(X, Z) == pytest.approx(expected, abs=1e-13)


def test_a_large_offset_loses_no_digits(rng):
    X, Z, P = rng.normal(size=(9, 4)), rng.normal(size=(6, 4)), rng.normal(size=(4, 3))
    offset = 2.0**24
    X, Z = np.round(X * 2**20) / 2**20, np.round(Z * 2**20) / 2**20  # so that the offset itself is exact
    assert np.abs(Gaussian(metric=P)(X + offset, Z + offset) - Gaussian(metric=P)(X, Z)).max() < 1e-13


def test_power_exponential_has_matern12_and_the_gaussian_at_its_ends(rng):
    X, Z = rng.normal(size=(9, 6)), rng.normal(size=(5, 6))
    assert PowerExponential(1.5, exponent=1)(X, Z) == pytest.approx(Matern12(1.5)(X, Z), abs=1e-14)
    assert PowerExponential(np.sqrt(2.0), exponent=2)(X, Z) == pytest.approx(Gaussian()(X, Z), abs=1e-14)
    assert make_kernel("power_exponential", 2.0) == PowerExponential(2.0)


def test_impossible_parameters_are_refused(rng):
    X = rng.normal(size=(4, 3))
    cases = [
        (Gaussian(2.0, metric=METRIC), "Gaussian: bandwidth and metric exclude each other, got bandwidth=2.0"),
        (Matern32([1.0, 1.0, 1.0], metric=METRIC), "exclude each other"),
        (Gaussian(metric=METRIC[:2]), r"metric must be a matrix P of shape \(3, r\).*got shape \(2, 2\)"),
        (Gaussian(metric=METRIC[:, 0]), r"got shape \(3,\)"),
        (Gaussian(metric=METRIC[:, :0]), r"got shape \(3, 0\)"),
        (Gaussian(metric="wide"), "matrix of numbers, got 'wide'"),
        (Gaussian(metric=METRIC * np.nan), "finite, got nan"),
        (Gaussian(METRIC), r"one number per feature, got an array of shape \(3, 2\).*Gaussian\(metric=P\)"),
        (make_kernel("matern52", METRIC), "metric=P"),
        (PowerExponential(exponent=0.0), "exponent must be a number above 0 and at most 2, got 0.0"),
        (PowerExponential(exponent=2.1), "got 2.1"),
        (PowerExponential(exponent="one"), "got 'one'"),
    ]
    for kernel, words in cases:
        with pytest.raises(ParameterError, match=words):
            kernel(X)


def test_sparse_rows_and_rows_outside_the_range_are_refused():
    with pytest.raises(DataTypeError, match=r"Gaussian with a metric does not accept sparse rows; .*toarray"):
        Gaussian(metric=METRIC)(sparse.csr_matrix(np.eye(3)))
    with pytest.raises(NumericalError, match="rescale the columns and the metric"):
        Gaussian(metric=1e200 * METRIC)(1e200 * np.eye(3), np.eye(3))


def test_a_kernel_with_a_metric_is_its_parameters():
    kernel = Gaussian(metric=METRIC)
    assert kernel == Gaussian(metric=METRIC.tolist()) == clone(kernel) == pickle.loads(pickle.dumps(kernel))
    assert hash(kernel) == hash(Gaussian(metric=METRIC.tolist()))
    assert kernel != Gaussian()
    assert kernel != Gaussian(metric=METRIC.T)
    assert (kernel + Linear()).get_params()["left__metric"] is METRIC
    assert eval(repr(kernel), {"Gaussian": Gaussian, "array": np.array}) == kernel
    assert repr(Gaussian(metric=np.ones((20, 5)))) == "Gaussian(bandwidth=1.0, metric=<matrix of shape (20, 5)>)"
    assert repr(Gaussian(2.0)) == "Gaussian(bandwidth=2.0)"


def test_a_model_fits_predicts_and_is_saved_with_a_metric(rng, tmp_path):
    X = rng.normal(size=(200, 3))
    y = np.sin(X @ METRIC[:, 0])
    projected = NystromRidge(Gaussian(), selection=X[:40] @ METRIC, ridge=1e-6).fit(X @ METRIC, y)
    model = NystromRidge(Gaussian(metric=METRIC), selection=X[:40], ridge=1e-6).fit(X, y)
    assert model.predict(X) == pytest.approx(projected.predict(X @ METRIC), abs=1e-6)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.kernel_ == Gaussian(metric=METRIC)
    assert np.array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
def test_values_and_derivatives_are_those_of_the_formula(kernel):
    rho = np.geomspace(1e-12, 400.0, 25)
    value, derivative = kernel.value_and_derivative(rho)
    with mpmath.workdps(40):
        for i, one in enumerate(map(float, rho)):
            exact = mpmath.diff(lambda t: radial_value(kernel, t), one, h=mpmath.mpf(one) * mpmath.mpf(10) ** -12)
            assert value[i] == pytest.approx(float(radial_value(kernel, mpmath.mpf(one))), rel=1e-12)
            assert derivative[i] == pytest.approx(float(exact), rel=1e-11)


def test_singular_derivatives_are_zero_at_zero_and_below_rounding():
    rho = np.array([0.0, 1e-15, 0.5, np.inf])
    slopes = {Gaussian: -0.5, Matern32: -1.5, Matern52: -5 / 6}
    for kernel in RADIAL:
        value, derivative = kernel.value_and_derivative(rho)
        assert np.array_equal(value[[0, 3]], [1.0, 0.0])
        assert np.isfinite(derivative).all()
        assert derivative[3] == 0.0
        if type(kernel) in slopes or kernel == PowerExponential(exponent=2.0):
            assert derivative[0] == slopes.get(type(kernel), -1.0)
            continue
        assert derivative[0] == 0.0
        assert derivative[1] < -1.0
        assert np.array_equal(kernel.value_and_derivative(rho, rounding=1e-14)[1] == 0, [True, True, False, True])
        limits = np.array([0.0, 0.0, 1.0, 0.0])
        assert np.array_equal(kernel.value_and_derivative(rho, rounding=limits)[1] == 0, [True, False, True, True])


def test_kernels_that_are_not_radial_say_so():
    for kernel in (Laplacian(), Cosine(), Gaussian() + Gaussian()):
        assert not isinstance(kernel, RadialKernel)
        with pytest.raises(ParameterError, match=f"{type(kernel).__name__} is not a function of the squared distance"):
            kernel.value_and_derivative(np.ones(3))
