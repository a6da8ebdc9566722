"""Kernel values against the formulas, written down a second time in the plainest way."""

import math

import numpy as np
import pytest
from scipy import sparse

from ridgemark.errors import DataError, DataTypeError, ParameterError
from ridgemark.kernels import (
    Bernoulli,
    Cosine,
    Custom,
    Gaussian,
    Laplacian,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Polynomial,
    PowerExponential,
    Precomputed,
    make_kernel,
)
from tests.helpers import rounding

WIDTHS = np.array([0.5, 2.0, 1.3])


def _distance(x, z, widths):
    return math.sqrt(sum(((a - b) / w) ** 2 for a, b, w in zip(x, z, widths, strict=True)))


def _fourier_bernoulli(order, x, z):
    """2 sum_k cos(2 pi k (x - z)) / (2 pi k)^(2 order): the same kernel by its Fourier series."""
    return sum(2 * math.cos(2 * math.pi * k * (x - z)) / (2 * math.pi * k) ** (2 * order) for k in range(1, 20_000))


FORMULAS = {
    "gaussian": (Gaussian, lambda x, z, b: math.exp(-(_distance(x, z, b) ** 2) / 2)),
    "laplacian": (
        Laplacian,
        lambda x, z, b: math.exp(-sum(abs(u - v) / w for u, v, w in zip(x, z, b, strict=True))),
    ),
    "matern12": (Matern12, lambda x, z, b: math.exp(-_distance(x, z, b))),
    "matern32": (
        Matern32,
        lambda x, z, b: (1 + math.sqrt(3) * _distance(x, z, b)) * math.exp(-math.sqrt(3) * _distance(x, z, b)),
    ),
    "matern52": (
        Matern52,
        lambda x, z, b: (
            (1 + math.sqrt(5) * _distance(x, z, b) + 5 * _distance(x, z, b) ** 2 / 3)
            * math.exp(-math.sqrt(5) * _distance(x, z, b))
        ),
    ),
    "power_exponential": (
        lambda bandwidth: PowerExponential(bandwidth, exponent=1.3),
        lambda x, z, b: math.exp(-(_distance(x, z, b) ** 1.3)),
    ),
    "polynomial": (
        lambda bandwidth: Polynomial(degree=3, offset=0.7, bandwidth=bandwidth),
        lambda x, z, b: (sum(u * v / w**2 for u, v, w in zip(x, z, b, strict=True)) + 0.7) ** 3,
    ),
}

ALL_DENSE = [
    Gaussian(1.3),
    Laplacian(1.3),
    Matern12(2.0),
    Matern32(2.0),
    Matern52(2.0),
    PowerExponential(2.0, 1.3),
    Linear(),
    Polynomial(2),
    Cosine(),
    Gaussian(1.0) + 2.0 * Linear(),
    Matern32(1.0) * Cosine(),
]


@pytest.fixture
def rows():
    rng = np.random.default_rng(7)
    return rng.normal(size=(12, 3)), rng.normal(size=(5, 3))


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("width", [1.7, WIDTHS], ids=["one bandwidth", "one per feature"])
def test_block_holds_the_formula_at_every_pair(name, width, rows):
    X, Z = rows
    make, formula = FORMULAS[name]
    widths = np.broadcast_to(width, 3)
    expected = [[formula(x, z, widths) for z in Z] for x in X]
    assert make(bandwidth=width)(X, Z) == pytest.approx(np.array(expected), rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("order", [2, 3, 4, 8])
def test_bernoulli_equals_its_fourier_series(order):
    points = [0.0, 0.1, 0.25, 0.5, 0.77, 1.0, 3.3, -0.4]
    block = Bernoulli(order)(np.array(points)[:, None], [[0.3]])[:, 0]
    expected = np.array([_fourier_bernoulli(order, x, 0.3) for x in points])
    assert block == pytest.approx(expected, abs=1e-11 * abs(expected).max())


def test_cosine_of_a_zero_row_is_zero_and_of_huge_rows_is_finite():
    block = Cosine()(np.array([[0.0, 0.0], [1e300, 1e300], [1e-300, 0.0]]), np.array([[1.0, 0.0]]))
    assert block[:, 0] == pytest.approx([0.0, math.sqrt(0.5), 1.0])


@pytest.mark.parametrize("kernel", [*ALL_DENSE, Bernoulli(2)], ids=repr)
def test_diagonal_is_the_blocks_diagonal(kernel):
    X = np.random.default_rng(1).normal(size=(9, 1 if isinstance(kernel, Bernoulli) else 3))
    assert kernel.diagonal(X) == pytest.approx(np.diagonal(kernel(X, X.copy())), rel=1e-12)


@pytest.mark.parametrize("kernel", ALL_DENSE, ids=repr)
def test_single_precision_is_kept_and_agrees(kernel, rows):
    X, Z = rows
    single = kernel(X.astype(np.float32), Z.astype(np.float32))
    assert single.dtype == np.float32
    assert kernel.diagonal(X.astype(np.float32)).dtype == np.float32
    exact = kernel(X, Z)
    assert single == pytest.approx(exact, abs=rounding(np.float32, abs(exact).max()))


@pytest.mark.parametrize(
    "kernel", [Gaussian(1.3), Laplacian(1.3), Matern12(2.0), Matern32(2.0), Matern52(2.0), Gaussian(WIDTHS)], ids=repr
)
def test_kernels_keep_their_digits_far_from_the_origin(kernel, rows):
    X, Z = rows
    assert np.abs(kernel(X + 1e6, Z + 1e6) - kernel(X, Z)).max() < 1e-6
    assert np.abs(kernel(X + 1e6) - kernel(X)).max() < 1e-6


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern12(1.0), Matern32(1.0), Matern52(1.0)], ids=repr)
def test_two_far_clusters_keep_their_digits_too(kernel, rows):
    """Centring cannot help where the data lie around two origins."""
    X, Z = rows
    shift = np.where(np.arange(12)[:, None] % 2, 1e6, -1e6)
    far = kernel(X + shift, np.concatenate([Z + 1e6, Z - 1e6]))
    near = kernel(X, Z)
    odd = np.arange(12) % 2 == 1
    assert np.abs(far[odd, :5] - near[odd]).max() < 1e-6
    assert np.abs(far[~odd, 5:] - near[~odd]).max() < 1e-6
    assert far[odd, 5:].max() == 0.0


def test_equal_rows_have_kernel_one_even_for_the_kernel_with_a_kink():
    X = np.random.default_rng(3).normal(size=(40, 6)) * 50
    assert np.diagonal(Matern12(0.01)(X, X.copy())).min() == 1.0


def test_a_value_does_not_depend_on_the_other_rows_of_its_block(rows):
    X, Z = rows
    whole = Gaussian(1.1)(X, Z)
    assert np.array_equal(np.concatenate([Gaussian(1.1)(X[:5], Z), Gaussian(1.1)(X[5:], Z)]), whole)


def test_rows_beyond_the_floating_range_of_squares_give_zero_or_one():
    X = np.array([[1e200], [0.0], [1.0]])
    block = Gaussian(1.0)(X, np.array([[1e200], [0.0], [-1e308]]))
    assert block == pytest.approx(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, math.exp(-0.5), 0.0]]))
    assert Matern52(1.0)(X, X.copy())[0] == pytest.approx([1.0, 0.0, 0.0])


def test_a_block_of_rows_with_themselves_is_exactly_symmetric(rows):
    X, _ = rows
    for kernel in ALL_DENSE:
        block = kernel(X)
        assert np.array_equal(block, block.T)
        assert np.array_equal(np.diagonal(block), kernel.diagonal(X))


@pytest.mark.parametrize(
    "kernel", [Gaussian(1.3), Gaussian(np.full(20, 0.7)), Matern12(2.0), Linear(), Polynomial(2), Cosine()], ids=repr
)
def test_sparse_rows_give_the_dense_block(kernel):
    S = sparse.random(30, 20, density=0.2, format="csr", random_state=0)
    Z = sparse.random(7, 20, density=0.3, format="csr", random_state=1)
    dense = kernel(S.toarray(), Z.toarray())
    assert kernel(S, Z) == pytest.approx(dense, abs=1e-13)
    assert kernel(S.toarray(), Z) == pytest.approx(dense, abs=1e-13)
    assert kernel(S, Z.toarray()) == pytest.approx(dense, abs=1e-13)
    assert kernel.diagonal(S) == pytest.approx(kernel.diagonal(S.toarray()))


@pytest.mark.parametrize("kernel", [Laplacian(), Laplacian() + Gaussian(), Bernoulli()], ids=repr)
def test_kernels_of_coordinate_differences_refuse_sparse_rows_with_the_remedy(kernel):
    with pytest.raises(DataTypeError, match="toarray"):
        kernel(sparse.csr_matrix(np.eye(3)))


def test_a_callable_is_a_kernel(rows):
    X, Z = rows
    kernel = make_kernel(lambda a, b: a @ b.T + 1.0)
    assert isinstance(kernel, Custom)
    assert kernel(X, Z) == pytest.approx(X @ Z.T + 1)
    assert kernel.diagonal(X) == pytest.approx((X**2).sum(axis=1) + 1)


def test_a_callable_may_take_rows_of_any_type():
    words = ["ridge", "ridges", "mark"]
    kernel = Custom(lambda a, b: np.array([[len(set(s) & set(t)) for t in b] for s in a]))
    assert kernel(words)[0].tolist() == [5.0, 5.0, 1.0]
    assert kernel.diagonal(words).tolist() == [5.0, 6.0, 4.0]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda a, b: a[:, 0], r"shape \(12, 5\), got \(12,\)"),
        (lambda a, b: np.full((len(a), len(b)), np.nan), "returned nan at"),
        (lambda a, b: np.full((len(a), len(b)), "x"), "real numbers"),
    ],
)
def test_a_callable_that_returns_no_block_is_named(function, words, rows):
    with pytest.raises(DataError, match=words):
        make_kernel(function)(*rows)


def test_precomputed_takes_columns_of_what_it_is_given():
    K = np.arange(16.0).reshape(4, 4)
    K = K + K.T
    cross = Precomputed().bind(K[[1, 3]], np.array([1, 3]))
    assert np.array_equal(cross(K[:2]), K[:2][:, [1, 3]])
    assert np.array_equal(Precomputed().diagonal(K), np.diagonal(K))
    assert np.array_equal(Precomputed().diagonal(K[2:], np.array([2, 3])), np.diagonal(K)[2:])
    with pytest.raises(DataError, match="must be square"):
        Precomputed()(K[:2])
    with pytest.raises(DataError, match="at least 4, got 3"):
        cross(K[:, :3])


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (Gaussian(0.0), "Gaussian: bandwidth must be a positive finite number, got 0.0"),
        (Gaussian(np.nan), "got nan"),
        (Gaussian("wide"), "got 'wide'"),
        (Gaussian([1.0, 2.0]), r"one value for each of the 3 features, got shape \(2,\)"),
        (Matern32([1.0, -2.0, 1.0]), "got -2.0 for feature 1"),
        (Polynomial(degree=0), "degree must be an integer of at least 1, got 0"),
        (Polynomial(degree=1.5), "got 1.5"),
        (Polynomial(offset=-1.0), "offset must be"),
        (Linear() * -2.0, "factor must be a positive finite number, got -2.0"),
        (Custom("not callable"), "must be callable"),
    ],
    ids=str,
)
def test_an_impossible_parameter_is_refused_by_name(kernel, words, rows):
    with pytest.raises(ParameterError, match=words):
        kernel(rows[0])


def test_bernoulli_takes_one_feature_and_an_order_it_knows():
    with pytest.raises(DataError, match="one feature, got 3"):
        Bernoulli()(np.ones((2, 3)))
    for order in (0, 9, 2.5, True):
        with pytest.raises(ParameterError, match="order must be an integer from 1 to 8"):
            Bernoulli(order)(np.ones((2, 1)))


def test_rows_of_different_widths_are_refused():
    with pytest.raises(DataError, match="got 3 and 2"):
        Gaussian()(np.ones((2, 3)), np.ones((2, 2)))


def test_nan_rows_are_refused():
    with pytest.raises(ValueError, match="NaN"):
        Gaussian()(np.array([[np.nan]]))


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ParameterError, match=r"gaussian, rbf, laplacian, matern12.*got 'sigmoid'"):
        make_kernel("sigmoid")
