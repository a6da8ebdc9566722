"""Mixtures of kernels: their values, derivatives and parameters, and what is refused."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from ridgemark import NystromRidge
from ridgemark.errors import DataTypeError, ParameterError
from ridgemark.kernels import (
    ColumnMap,
    Cosine,
    Custom,
    Gaussian,
    Laplacian,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Mixture,
    PowerExponential,
    Precomputed,
)
from tests.helpers import rounding

WIDTHS = np.array([0.8, 1.5, 1.1, 2.0])
MATRIX = np.random.default_rng(5).normal(size=(4, 3)) / 2
METRICS = {
    "one": {},
    "shared": {"bandwidth": 1.7},
    "per feature": {"bandwidth": WIDTHS},
    "matrix": {"metric": MATRIX},
}
COLUMNS = ColumnMap(np.full(4, -1.5), np.full(4, 2.0), np.zeros(4), np.array([0.0, 0.7, 0.0, 1.0]))
RADIAL = [Gaussian(2.0), Matern32(0.7), Matern12(3.0), Matern52(1.2), PowerExponential(1.1, exponent=0.5)]
OTHERS = [Laplacian(WIDTHS), Linear(0.1, WIDTHS)]
MIXTURES = {
    "all": (RADIAL, OTHERS, [0.3, 0.1, 0.5, 0.2, 0.4, 0.6, 0.7]),
    "radial": (RADIAL[:3], [], np.array([0.3, 0.1, 0.5])),
    "others": ([], OTHERS, [2.0, 0.1]),
}


@pytest.fixture
def rows():
    rng = np.random.default_rng(7)
    return rng.normal(size=(50, 4)) * 1.5, rng.normal(size=(9, 4))


def _mixture(name="all", metric="shared", columns=None):
    return Mixture(*MIXTURES[name], **METRICS[metric], columns=columns)


def _expected(kernel, X, Z):
    X, Z = kernel.mapped(X), kernel.mapped(Z)
    return sum(weight * part(X, Z) for weight, part in kernel.separate())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [None, COLUMNS], ids=["as given", "mapped"])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", MIXTURES)
def test_values_are_the_weighted_sum_of_the_parts(name, metric, columns, dtype, rows):
    X, Z = (side.astype(dtype) for side in rows)
    kernel = _mixture(name, metric, columns)
    expected, bound = _expected(kernel, X, Z), kernel.bind(Z)
    out = np.full((50, 9), np.nan, dtype)
    for block in (kernel(X, Z), bound(X), bound(X, out=out)):
        assert block.dtype == dtype
        assert block == pytest.approx(expected, abs=rounding(dtype, 10.0))
    whole = kernel(X)
    assert np.array_equal(whole, whole.T)
    assert np.array_equal(np.diagonal(whole), kernel.diagonal(X))
    assert kernel.diagonal(X) == pytest.approx(np.diagonal(kernel(X, X.copy())), abs=rounding(dtype, 10.0))
    assert kernel.diagonal(X).dtype == dtype


def test_a_mixture_of_stationary_kernels_has_a_constant_diagonal():
    assert _mixture("radial").constant_diagonal == pytest.approx(0.9)
    assert _mixture("all").constant_diagonal is None


@pytest.mark.parametrize("metric", ["shared", "per feature"])
def test_sparse_rows_give_the_dense_block(metric):
    S = sparse.random(30, 4, density=0.4, format="csr", random_state=0)
    Z = sparse.random(7, 4, density=0.5, format="csr", random_state=1)
    kernel = Mixture(RADIAL, [Linear(widths=WIDTHS), Cosine()], np.arange(1.0, 8.0), **METRICS[metric])
    dense = kernel(S.toarray(), Z.toarray())
    for block in (kernel(S, Z), kernel(S.toarray(), Z), kernel(S, Z.toarray())):
        assert block == pytest.approx(dense, abs=1e-6)  # a root of a rounding error for the exponent 0.5
    assert kernel.diagonal(S) == pytest.approx(kernel.diagonal(S.toarray()))


@pytest.mark.parametrize(
    ("kernel", "refusing"),
    [
        (_mixture("others"), "Laplacian"),
        (_mixture("radial", "matrix"), "Mixture with a metric or a map of columns"),
        (_mixture("radial", columns=COLUMNS), "Mixture with a metric or a map of columns"),
        (Gaussian() + _mixture("others") * Linear(), "Laplacian"),
    ],
)
def test_sparse_rows_are_refused_in_the_name_of_what_refuses_them(kernel, refusing):
    for method in (kernel, kernel.bind):
        with pytest.raises(DataTypeError, match=f"^{refusing} does not accept sparse rows; .*toarray"):
            method(sparse.csr_array(np.eye(4)))


@pytest.mark.parametrize("n_features", [20, 600])
def test_a_tuned_kernel_refuses_sparse_rows_in_the_name_that_was_given(n_features):
    X = sparse.random(40, n_features, density=0.1, format="csr", random_state=0)
    with pytest.raises(DataTypeError, match=r"^Laplacian does not accept sparse rows"):
        NystromRidge("laplacian", n_landmarks=10, random_state=0).fit(X, np.arange(40.0))


@pytest.mark.parametrize("columns", [None, COLUMNS], ids=["as given", "mapped"])
@pytest.mark.parametrize("metric", ["one", "shared", "per feature"])
@pytest.mark.parametrize("n_landmarks", [7, 300])
def test_a_value_has_the_same_bits_in_every_block(metric, n_landmarks, columns):
    """Of differences; how a product rounds in blocks of several sizes is up to BLAS."""
    rng = np.random.default_rng(1)
    kernel = Mixture(RADIAL, OTHERS[:1], np.arange(1.0, 7.0), **METRICS[metric], columns=columns)
    X, bound = rng.normal(size=(211, 4)), kernel.bind(rng.normal(size=(n_landmarks, 4)))
    whole = bound(X)
    for size in (1, 2, 109, 210):
        assert np.array_equal(np.concatenate([bound(X[i : i + size]) for i in range(0, 211, size)]), whole)


@pytest.mark.parametrize("columns", [None, COLUMNS], ids=["as given", "mapped"])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", MIXTURES)
def test_derivatives_are_finite_differences(name, metric, columns, rows):
    X, Z = rows
    kernel, step = _mixture(name, metric, columns), 1e-6
    gradient = kernel.gradient(X, Z)
    slopes = []
    for j in range(4):
        move = step * np.eye(4)[j]
        slopes.append((kernel(X + move, Z) - kernel(X - move, Z)) / (2 * step))
        assert gradient.column(j) == pytest.approx(slopes[j], abs=1e-6)
    coefficients, weights = np.random.default_rng(2).normal(size=(9, 2)), np.linspace(-1.0, 1.0, 50)
    found = gradient.of_functions(coefficients)
    assert found == pytest.approx(np.stack([one @ coefficients for one in slopes], axis=1), abs=1e-5)
    assert gradient.sums(weights) == pytest.approx(np.stack([weights @ one for one in slopes], axis=1), abs=1e-5)


def test_an_origin_is_given_in_units_of_the_rows(rows):
    X, Z = rows
    origin = np.array([9.0, 1.0, -9.0, 0.5])
    kernel = Mixture([Gaussian(2.0)], [Linear()], [1.0, 0.5], columns=COLUMNS).centred(origin)
    assert kernel.others[0].origin == pytest.approx(COLUMNS.apply(origin[None])[0])
    assert kernel.centred(origin + 1.0) is kernel
    assert kernel(X, Z) == pytest.approx(_expected(kernel, X, Z))


def test_the_unit_of_the_metric_does_not_matter(rows):
    """Lengths in the unit of the metric: what counts is the metric divided by a length."""
    X, Z = rows
    near = np.concatenate([X + 1e5, Z - 1e5])
    for metric in ({"bandwidth": 1.0}, {"bandwidth": WIDTHS}, {"metric": MATRIX}):
        kernel = Mixture(RADIAL[:4], [], np.ones(4), **metric)
        small = [clone(part).set_params(bandwidth=part.bandwidth * 2.0**-20) for part in RADIAL[:4]]
        changed = {name: value * 2.0 ** (20 if name == "bandwidth" else -20) for name, value in metric.items()}
        other = Mixture(small, [], np.ones(4), **changed)
        assert other.bind(near)(near) == pytest.approx(kernel.bind(near)(near), abs=1e-9)
        assert other.bind(near).entry_error(near) == pytest.approx(kernel.bind(near).entry_error(near), rel=1e-6)


def test_mixtures_are_their_parameters():
    kernel = _mixture("all", "matrix", COLUMNS)
    copies = [clone(kernel), pickle.loads(pickle.dumps(kernel)), _mixture("all", "matrix", clone(COLUMNS))]
    for copy in copies:
        assert copy == kernel
        assert copy is not kernel
        assert hash(copy) == hash(kernel)
    assert _mixture("radial") == Mixture(RADIAL[:3], [], [0.3, 0.1, 0.5], 1.7)
    assert kernel != _mixture("all", "matrix")
    assert kernel != clone(kernel).set_params(weights=[1.0] * 7)
    assert kernel.get_params()["columns__low"] is COLUMNS.low
    names = {one.__name__: one for one in (ColumnMap, Gaussian, Laplacian, Linear, Matern32, Mixture)}
    short = Mixture([Gaussian(1.0), Matern32(2.0)], [Laplacian(3.0), Linear()], [1.0, 2.0, 3.0, 4.0], 0.5)
    assert eval(repr(short), names) == short


def test_the_shared_bandwidth_is_set_by_a_nested_name(rows):
    X, _ = rows
    model = NystromRidge(kernel=_mixture("all"), ridge=1e-2, n_landmarks=10, random_state=0)
    model.set_params(kernel__bandwidth=0.9, kernel__weights=[1.0] * 7)
    assert model.kernel.bandwidth == 0.9
    assert model.fit(X, X[:, 0]).kernel_.weights == [1.0] * 7


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (Mixture(), "weights must hold one number for each of its 0 parts, of which there is at least one"),
        (Mixture([Gaussian()], weights=[1.0, 2.0]), "each of its 1 parts.* got 2"),
        (Mixture([Gaussian()], weights=[[1.0]]), "every one of weights must be a positive finite number"),
        (Mixture([Gaussian()], weights=[0.0]), "every one of weights must be a positive finite number, got 0.0"),
        (Mixture([Gaussian()], weights=[np.nan]), "every one of weights must be a positive finite number, got nan"),
        (Mixture([Gaussian()], weights=["much"]), "every one of weights must be a positive finite number, got 'much'"),
        (Mixture([Gaussian()], weights=None), "weights must be a list, got None"),
        (Mixture([Laplacian()], weights=[1.0]), "radial must be a list of kernels of the distance.*got Laplacian"),
        (Mixture(Gaussian(), weights=[1.0]), "radial must be a list"),
        (Mixture([Gaussian()], 3, weights=[1.0]), "others must be a list"),
        (Mixture([Gaussian([1.0] * 4)], weights=[1.0]), "radial must be .* one number as bandwidth"),
        (Mixture([Gaussian(metric=MATRIX)], weights=[1.0]), "units of the metric, which is that of the mixture"),
        (Mixture([Gaussian(-1.0)], weights=[1.0]), "radial must be .* one number as bandwidth.*-1.0"),
        (Mixture([Gaussian("wide")], weights=[1.0]), "radial must be .* one number as bandwidth.*wide"),
        (Mixture([Gaussian(1e200)], weights=[1.0]), "radial must be .* one number as bandwidth"),
        (Mixture([], ["linear"], [1.0]), "others must be a list of Kernel objects of rows, got 'linear'"),
        (Mixture([], [Precomputed()], [1.0]), "others must be a list of Kernel objects of rows"),
        (Mixture([Gaussian()], weights=[1.0], columns=3), "columns must be a ColumnMap, got 3"),
        (Mixture([Gaussian()], weights=[1.0], bandwidth=0.0), "Mixture: bandwidth must be a positive finite number"),
        (Mixture([Gaussian()], weights=[1.0], metric=np.eye(3)), r"metric must be a matrix P of shape \(4, r\)"),
        (Mixture([Gaussian()], weights=[1.0], bandwidth=2.0, metric=MATRIX), "bandwidth and metric exclude each other"),
        (Linear(widths=0.0), "Linear: widths must be a positive finite number, got 0.0"),
        (
            Linear(widths=[1.0]),
            r"Linear: widths per feature needs one value for each of the 4 features, got shape \(1,\)",
        ),
    ],
    ids=str,
)
def test_an_impossible_mixture_is_refused_in_words(kernel, words, rows):
    with pytest.raises(ParameterError, match=words):
        kernel(rows[0])
    with pytest.raises(ParameterError, match=words):
        NystromRidge(kernel=kernel, ridge=1e-2, n_landmarks=5).fit(rows[0], rows[0][:, 0])


def test_a_users_function_may_be_a_part(rows):
    X, Z = rows
    kernel = Mixture([Gaussian(2.0)], [Custom(lambda a, b: a @ b.T)], [1.0, 0.5], columns=COLUMNS)
    assert kernel.stays_on_host
    assert kernel(X, Z) == pytest.approx(_expected(kernel, X, Z))


def test_widths_divide_the_rows_of_a_linear_kernel(rows):
    X, Z = rows
    origin = np.arange(4.0)
    expected = ((X - origin) / WIDTHS) @ ((Z - origin) / WIDTHS).T
    assert Linear(origin, WIDTHS)(X, Z) == pytest.approx(expected, abs=1e-12)
    assert Linear(origin, WIDTHS).diagonal(X) == pytest.approx(np.diagonal(Linear(origin, WIDTHS)(X)))
    assert Linear(widths=2.0).centred(origin) == Linear(origin, 2.0)
    assert Linear(widths=WIDTHS)(sparse.csr_matrix(X), Z) == pytest.approx(Linear(widths=WIDTHS)(X, Z))
