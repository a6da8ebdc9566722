"""The bound on the rounding of kernel values, against the formulas in 50 digits."""

from functools import partial

import mpmath
import numpy as np
import pytest
from scipy import sparse

from ridgemark.kernels import (
    Bernoulli,
    ColumnMap,
    Cosine,
    Gaussian,
    Laplacian,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Mixture,
    Polynomial,
    PowerExponential,
    Precomputed,
)
from tests.exact_digits import kernel_value

STATIONARY = [Gaussian, Laplacian, Matern12, Matern32, Matern52]
POWERS = [partial(PowerExponential, exponent=q) for q in (0.3, 1.0, 1.4, 2.0)]
FEATURES = [1, 2, 3, 12]
SPREADS = [0.0, 20.0, 1e3, 1e6, 1e11]  # of the clusters, in bandwidths


def _clusters(rng, n, n_features, spread, offset=0.0):
    """Rows one or a tenth of a bandwidth apart, some of them repeated nearly, around two centres and an origin."""
    rows = rng.normal(size=(n, n_features)) * rng.choice([0.1, 1.0, 4.0], size=(n, 1))
    rows[1::5] = rows[::5][: len(rows[1::5])] + 1e-7
    return rows + spread * rng.integers(0, 2, size=(n, 1)) * rng.normal(size=n_features) + offset


def _shares(kernel, rows, landmarks):
    """Return the error of each value as a share of `sqrt(k(x, x) k(z, z))`, and what it is said to be at most."""
    bound = kernel.bind(landmarks)
    values, allowed = bound(rows), bound.entry_error(rows)
    assert allowed.shape == (rows.shape[0],)
    rows, landmarks = (side.toarray() if sparse.issparse(side) else side for side in (rows, landmarks))
    size = np.sqrt(np.outer(kernel.diagonal(rows), kernel.diagonal(landmarks)).astype(float))
    with mpmath.workdps(50):
        errors = [
            [float(abs(mpmath.mpf(float(values[i, j])) - kernel_value(kernel, x, z))) for j, z in enumerate(landmarks)]
            for i, x in enumerate(rows)
        ]
    return np.array(errors) / np.where(size > 0, size, 1.0), allowed[:, None]


@pytest.mark.parametrize("make", STATIONARY + POWERS)
@pytest.mark.parametrize("n_features", FEATURES)
def test_no_value_errs_by_more_than_the_bound(make, n_features):
    rng = np.random.default_rng(n_features)
    for spread in SPREADS:
        width = float(rng.choice([0.3, 1.0, 60.0]))
        for bandwidth in (width, width * rng.uniform(0.5, 2.0, size=n_features)):
            both = _clusters(rng, 7, n_features, spread, spread * rng.normal()) * bandwidth
            errors, allowed = _shares(make(bandwidth), both[:4], both[3:])
            assert (errors <= allowed).all(), (spread, bandwidth)


@pytest.mark.parametrize("make", STATIONARY + POWERS)
@pytest.mark.parametrize("n_features", FEATURES)
def test_far_clusters_lose_no_digits(make, n_features):
    """Columns are subtracted as they are: the bound is some machine epsilons however far the clusters lie apart."""
    rng = np.random.default_rng(0)
    for bandwidth in (60.0, rng.uniform(30.0, 90.0, size=n_features)):
        for spread in (1e8, 1e11):
            rows = (rng.normal(size=(40, n_features)) + spread * np.sign(rng.normal(size=(40, 1)))) * bandwidth
            assert make(bandwidth).bind(rows).entry_error(rows).max() < 1e-11


def test_a_row_far_from_the_centre_finds_the_landmark_beside_it():
    """Beyond 1e9 bandwidths the product's rounding alone exceeds the distance at which kernels vanish."""
    rng = np.random.default_rng(0)
    landmarks = rng.normal(size=(9, 6))
    landmarks[0] += 1e12
    assert Gaussian(1.0)(landmarks[:1] + 0.25, landmarks)[0, 0] == pytest.approx(np.exp(-6 * 0.25**2 / 2), rel=1e-2)


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        Linear(0.3, 0.7),
        Polynomial(3, 0.7, 1.3),
        Cosine(),
        2.0 * Linear() + Gaussian(1.3),
        Matern32(2.0) * Polynomial(2),
    ],
    ids=repr,
)
@pytest.mark.parametrize("n_features", [1, 12])
def test_the_bound_holds_for_inner_products_sums_and_products(kernel, n_features):
    rng = np.random.default_rng(1)
    both = rng.normal(size=(14, n_features)) * np.exp(rng.normal(size=(14, 1)))
    errors, allowed = _shares(kernel, both[:8], both[5:])
    assert (errors <= allowed).all()
    assert allowed.max() < 1e-12


@pytest.mark.parametrize(
    "kernel", [Gaussian(1.3), Matern12(1.3), Matern52([1.0, 0.5, 2.0, 0.7, 1.1]), Linear()], ids=repr
)
def test_the_bound_holds_for_sparse_rows(kernel):
    rng = np.random.default_rng(2)
    for scale in (1.0, 1e3):
        both = rng.normal(size=(14, 5)) * (rng.random((14, 5)) < 0.5) * scale
        both[7] = both[0] + (both[0] != 0) * 1e-3
        errors, allowed = _shares(kernel, sparse.csr_matrix(both[:8]), sparse.csr_matrix(both[5:]))
        assert (errors <= allowed).all()


@pytest.mark.parametrize("order", [1, 2, 5, 8])
def test_the_bound_holds_for_the_bernoulli_kernel(order):
    rng = np.random.default_rng(3)
    both = np.concatenate([rng.random(8), 1e4 * rng.normal(size=6)])[:, None]
    errors, allowed = _shares(Bernoulli(order), both[:11], both[5:])
    assert (errors <= allowed).all()


@pytest.mark.parametrize("make", STATIONARY + POWERS)
def test_the_bound_holds_in_single_precision(make):
    rng = np.random.default_rng(4)
    for n_features in (1, 5):
        both = _clusters(rng, 14, n_features, 100.0).astype(np.float32)
        errors, allowed = _shares(make(1.5), both[:8], both[5:])
        assert (errors <= allowed).all()


@pytest.mark.parametrize("make", [Gaussian, Matern12, Matern32, Matern52, *POWERS])
def test_the_bound_holds_for_a_metric(make):
    rng = np.random.default_rng(6)
    for n_features, rank in ((2, 2), (12, 1), (3, 5), (12, 7)):
        for spread, dtype in ((0.0, np.float64), (20.0, np.float64), (1e6, np.float64), (20.0, np.float32)):
            P = rng.normal(size=(n_features, rank)) * rng.choice([0.1, 1.0, 10.0], size=rank)
            both = _clusters(rng, 7, n_features, spread, spread * rng.normal()).astype(dtype)
            errors, allowed = _shares(make(metric=P), both[:4], both[3:])
            assert (errors <= allowed).all(), (n_features, rank, spread)


def test_the_bound_for_a_metric_is_near_machine_precision():
    rng = np.random.default_rng(7)
    rows, P = rng.normal(size=(40, 10)) + 1e3, rng.normal(size=(10, 4)) / 3
    assert Gaussian(metric=P).bind(rows).entry_error(rows).max() < 1e-12


ROUGH = [PowerExponential(0.2, exponent=0.3), Gaussian(2.0)]
SMOOTH = [Gaussian(2.0), Matern32(0.02), Matern52(7.0)]
SINGULAR = [Matern12(0.5), Gaussian(30.0), PowerExponential(3.0, exponent=1.4)]


def _mixtures(rng, n_features):
    """Every kind of metric, with short and long lengths, other parts, and a map of the columns."""
    widths = rng.uniform(0.5, 2.0, size=n_features)
    others = [Laplacian(widths), Linear(0.3, widths)]
    columns = ColumnMap(np.full(n_features, -4.0), np.full(n_features, 3.0), 0.1 * widths, widths * (widths > 1.0))
    for radial in (ROUGH, SMOOTH, SINGULAR):
        weights = rng.exponential(size=len(radial) + 2)
        for metric in ({"bandwidth": 1.3}, {"bandwidth": widths}, {"metric": rng.normal(size=(n_features, 2))}):
            yield Mixture(radial, others, weights, **metric)
            yield Mixture(radial, [], weights[:-2], **metric, columns=columns)
    yield Mixture([], others, [0.3, 0.2], columns=columns)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_features", [1, 2, 6])
def test_the_bound_holds_for_a_mixture(n_features, dtype):
    rng = np.random.default_rng(8)
    for spread in (0.0, 1e2, 1e6):
        for kernel in _mixtures(rng, n_features):
            both = _clusters(rng, 7, n_features, spread, spread * rng.normal()).astype(dtype)
            errors, allowed = _shares(kernel, both[:4], both[3:])
            assert (errors <= allowed).all(), (kernel, spread)


def test_the_bound_of_a_mixture_is_near_machine_precision():
    """With short lengths beside a wide metric too, and rows far from the landmarks' centre."""
    rng = np.random.default_rng(9)
    rows = rng.normal(size=(40, 6)) + 1e7 * np.sign(rng.normal(size=(40, 1)))
    for radial in (SMOOTH, SINGULAR):
        short = [type(part)(**(part.get_params() | {"bandwidth": part.bandwidth * 1e-6})) for part in radial]
        kernel = Mixture(short, [Laplacian()], np.ones(4), bandwidth=1e6 * np.linspace(1.0, 2.0, 6))
        assert kernel.bind(rows).entry_error(rows).max() < 1e-9


def test_the_bound_of_a_mixture_holds_for_sparse_rows():
    rng = np.random.default_rng(2)
    both = rng.normal(size=(14, 5)) * (rng.random((14, 5)) < 0.5) * 30.0
    both[7] = both[0] + (both[0] != 0) * 1e-3
    for radial in (SMOOTH, SINGULAR):
        kernel = Mixture(radial, [Linear(widths=0.7)], np.ones(4), bandwidth=np.linspace(1.0, 2.0, 5))
        errors, allowed = _shares(kernel, sparse.csr_matrix(both[:8]), sparse.csr_matrix(both[5:]))
        assert (errors <= allowed).all()


def test_values_given_have_no_error():
    K = np.eye(4)
    assert (Precomputed().bind(K, np.array([1, 2])).entry_error(K) == 0).all()
