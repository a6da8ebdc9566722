"""Landmarks that nearly repeat each other are told apart, and nothing else is touched."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from ridgemark import near_repeats
from ridgemark.kernels import Bernoulli, Cosine, Custom, Gaussian, Laplacian, Linear, Matern12, Matern32, Polynomial
from ridgemark.nystrom import nystrom_factor

LONG = np.longdouble

extended = pytest.mark.skipif(np.finfo(LONG).eps > 1e-18, reason="this system has no extended precision")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def twins(rng):
    """Sixty rows, the last twenty 1e-6 from the first."""
    rows = rng.normal(size=(40, 4))
    return np.concatenate([rows, rows[:20] + 1e-6 * rng.normal(size=(20, 4))])


def _gaussian(A, B, bandwidth):
    A, B = A.astype(LONG), B.astype(LONG)
    squares = sum((A[:, j, None] - B[None, :, j]) ** 2 for j in range(A.shape[1]))
    return np.exp(-squares / (2 * LONG(bandwidth) ** 2))


def _in_double_precision(monkeypatch, *arguments):
    with monkeypatch.context() as patch:
        patch.setattr(near_repeats, "_EXTENDED", False)
        return nystrom_factor(*arguments)


def _equal(one, other):
    return np.array_equal(one.kept, other.kept) and np.array_equal(one.triangle, other.triangle)


@extended
@pytest.mark.parametrize("n_terms", [1, 7, 60])
def test_a_difference_from_a_product_is_that_of_rational_numbers(rng, n_terms):
    """V is A B but for the rounding of long double, so that every digit of V - A B is one that rounding would take."""
    A = rng.normal(size=(4, n_terms)).astype(LONG) * 10.0 ** rng.integers(-9, 9, size=(4, 1)) / 3
    B = rng.normal(size=(n_terms, 3)) * 10.0 ** rng.integers(-9, 9, size=(1, 3))
    product = [[sum(_fraction(a) * _fraction(b) for a, b in zip(r, c, strict=True)) for c in B.T] for r in A]
    V = A @ B.astype(LONG)
    slices = near_repeats._slices(B, near_repeats._exact_bits(n_terms), axis=0)
    difference = near_repeats._less_product(V, A, slices)
    for i, row in enumerate(product):
        for j, exact in enumerate(row):
            size = float(np.abs(A[i]).max() * np.abs(B[:, j]).max())
            assert abs(float(_fraction(difference[i, j]) - (_fraction(V[i, j]) - exact))) <= 1e-25 * n_terms * size


def _fraction(number):
    return Fraction(*number.as_integer_ratio())


@extended
def test_features_are_orthonormal_in_extended_precision(monkeypatch, twins):
    factor = nystrom_factor(Gaussian(1.0), twins)
    assert factor.rank == 60
    assert np.array_equal(factor.triangle, np.triu(factor.triangle))
    assert _off_orthonormal(factor, twins).max() < 1e-5
    in_double = _in_double_precision(monkeypatch, Gaussian(1.0), twins)
    assert _off_orthonormal(in_double, twins).max() > 1e-3  # it does matter


@extended
def test_features_of_twins_are_orthogonal_to_the_others_where_those_are_many(rng):
    rows = rng.normal(size=(100, 3))
    rows = np.concatenate([rows, rows[:20] + 1e-6 * rng.normal(size=(20, 3))])
    factor = nystrom_factor(Gaussian(1.0), rows)
    assert factor.rank == 120
    assert _off_orthonormal(factor, rows)[:100, 100:].max() < 1e-7  # without refining X, 3e-6


def _off_orthonormal(factor, landmarks):
    """The entries of `T'W T - I` for the Gaussian kernel of bandwidth one."""
    W = _gaussian(landmarks[factor.kept], landmarks[factor.kept], 1.0)
    T = factor.triangle.astype(LONG)
    return np.abs(T.T @ W @ T - np.eye(factor.rank)).astype(float)


@extended
@pytest.mark.parametrize(
    "kernel",
    [Gaussian([1.0, 2.0, 3.0, 4.0]), Laplacian(2.0), Matern12(2.0), Matern32(2.0), 2.0 * Gaussian(2.0) + Linear()],
)
def test_twins_are_kept_and_exact_repeats_are_dropped(twins, kernel):
    factor = nystrom_factor(kernel, np.concatenate([twins, twins[:7], twins[-7:]]))
    assert factor.rank == 60
    assert factor.n_dropped == 14
    features = factor.features(twins)
    assert features @ features.T == pytest.approx(kernel(twins), abs=1e-6)


@extended
@pytest.mark.parametrize(("kernel", "rank"), [(Linear(), 4), (Cosine(), 4), (Polynomial(2), 15)])
def test_a_kernel_of_few_dimensions_keeps_as_many_landmarks(twins, kernel, rank):
    assert nystrom_factor(kernel, twins).rank == rank


@extended
@pytest.mark.parametrize("scale", [1e-150, 1e-50, 1e50, 1e150])
def test_landmarks_of_any_scale_are_told_apart_alike(twins, scale):
    for kernel in (Gaussian, Laplacian, Matern32):
        assert nystrom_factor(kernel(3.0 * scale), twins * scale).rank == nystrom_factor(kernel(3.0), twins).rank
    assert nystrom_factor(Linear(), twins * scale).rank == 4


@extended
@pytest.mark.parametrize("count", [1, 5])
def test_equal_landmarks_are_one(twins, count):
    assert nystrom_factor(Gaussian(3.0), np.repeat(twins[:1], count, axis=0)).rank == 1


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Gaussian(20.0), Matern12(1.0), Linear(), Polynomial(3)])
def test_landmarks_that_do_not_repeat_have_the_factor_of_double_precision(monkeypatch, rng, kernel):
    rows = rng.normal(size=(60, 3))  # smooth kernels of these are singular in double precision, without near repeats
    assert _equal(nystrom_factor(kernel, rows), _in_double_precision(monkeypatch, kernel, rows))


def test_kernels_that_have_no_more_digits_keep_the_factor_of_double_precision(monkeypatch, twins):
    def own(A, B):
        assert A.dtype == B.dtype == np.float64  # a function is never asked for what it may not know
        return Gaussian(2.0)(A, B)

    cases = [(Custom(own), twins), (Custom(own) + Linear(), twins), (2.0 * Custom(own), twins)]
    cases += [(Bernoulli(2), twins[:, :1]), (Gaussian(2.0), sparse.csr_matrix(twins))]
    cases += [(Gaussian(2.0), twins.astype(np.float32))]
    for kernel, landmarks in cases:
        factors = nystrom_factor(kernel, landmarks), _in_double_precision(monkeypatch, kernel, landmarks)
        assert _equal(*factors), kernel


@extended
def test_values_beyond_the_range_leave_the_factor_of_double_precision(monkeypatch, twins):
    known = _in_double_precision(monkeypatch, Gaussian(2.0), twins)
    monkeypatch.setattr(near_repeats, "_left_over", lambda *arguments: np.full((60, 60), np.nan))
    assert _equal(nystrom_factor(Gaussian(2.0), twins), known)
