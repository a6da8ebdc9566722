"""Products and inverses of triangular matrices agree with those of full matrices."""

import ctypes
from fractions import Fraction

import numpy as np
import pytest

from ridgemark.backends import NUMPY, blas
from ridgemark.errors import NumericalError
from ridgemark.linalg import (
    cholesky_,
    congruence,
    inverse_triangle_,
    pivoted_cholesky,
    product_in_blocks,
    raised_cholesky,
    solve_triangle,
    squared_norm_of_product,
    sum_rounding,
    symmetric_eigen,
)


def upper(size, seed=0):
    rng = np.random.default_rng(seed)
    return np.triu(rng.normal(size=(size, size))) + 5 * np.eye(size)


@pytest.fixture(params=["routines", "numpy"])
def either_way(request, monkeypatch):
    if request.param == "numpy":  # as if scipy was built with 64-bit integers
        for name in ("_TRMM", "_GEMM", "_TRTRI"):
            monkeypatch.setattr(blas, name, {})


both_precisions = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@pytest.mark.parametrize("size", [1, 2, 130])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_norm_of_a_triangle_times_its_transpose(size, order):
    triangle = np.array(upper(size), order=order)
    before = triangle.copy()
    assert squared_norm_of_product(triangle) == pytest.approx(np.linalg.norm(triangle @ triangle.T) ** 2)
    assert np.array_equal(triangle, before)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 129, 300])
@pytest.mark.parametrize("order", ["C", "F"])
@both_precisions
def test_products_with_a_triangle_are_those_with_the_full_matrix(size, order, dtype, either_way):
    rows = np.random.default_rng(1).normal(size=(17, size)).astype(dtype)
    triangle = np.array(upper(size), order=order, dtype=dtype)
    expected = rows @ triangle
    assert blas.times_triangle_(rows, triangle) is rows
    tolerance = 1e4 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(rows, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 129, 300])
@pytest.mark.parametrize("order", ["C", "F"])
def test_products_with_a_transposed_triangle_are_those_with_the_full_matrix(size, order, either_way):
    rows, triangle = np.random.default_rng(1).normal(size=(17, size)), np.array(upper(size), order=order)
    expected = rows @ triangle.T
    assert blas.times_triangle_(rows, triangle, transposed=True) is rows
    assert rows == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 129, 300])
@pytest.mark.parametrize("order", ["C", "F"])
@both_precisions
def test_an_inverse_by_halves_is_the_inverse(size, order, dtype, either_way):
    triangle = np.array(upper(size) / 5.0, order=order, dtype=dtype)
    inverse = NUMPY.inverse_triangle(triangle)
    rounding = 1e4 * float(np.finfo(dtype).eps) * max(1.0, float(abs(inverse).max(initial=0.0)))
    assert inverse.dtype == dtype and (inverse == np.triu(inverse)).all()
    assert abs(inverse @ triangle - np.eye(size)).max(initial=0.0) <= rounding


def test_a_singular_triangle_has_no_inverse(either_way):
    triangle = upper(70)
    triangle[66, 66] = 0.0
    with pytest.raises(np.linalg.LinAlgError):
        NUMPY.inverse_triangle(triangle)


@pytest.mark.parametrize("leading", [0, 1, 60, 129, 130])
@pytest.mark.parametrize("order", ["C", "F"])
def test_columns_of_a_block_are_updated_in_place(leading, order, either_way):
    block, triangle = np.random.default_rng(1).normal(size=(17, 130)), np.array(upper(130), order=order)
    right = np.array(np.random.default_rng(2).normal(size=(leading, 130 - leading)), order=order)
    first, others = block[:, :leading].copy(), block[:, leading:].copy()
    NUMPY.subtract_product_(block[:, leading:], block[:, :leading], right)
    blas.times_triangle_(block[:, :leading], triangle[:leading, :leading])
    expected = np.hstack([first @ triangle[:leading, :leading], others - first @ right])
    assert block == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_read_only_arrays_are_not_written():
    block, triangle = np.ones((4, 3)), upper(3)
    block.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        blas.times_triangle_(block, triangle)
    with pytest.raises(ValueError, match="read-only"):
        NUMPY.subtract_product_(block, np.ones((4, 2)), np.ones((2, 3)))
    assert (block == 1).all()


@pytest.mark.parametrize("shape", [(0, 3), (5, 0), (1, 1), (17, 130), (300, 40)])
def test_products_of_rows_are_symmetric_to_the_last_bit(shape):
    rows = np.random.default_rng(1).normal(size=shape)
    gram = NUMPY.gram(rows)
    assert gram == pytest.approx(np.einsum("ki,kj->ij", rows, rows), rel=1e-12, abs=1e-12)
    assert (gram == gram.T).all()


def test_strides_that_blas_does_not_support_give_the_same_result():
    rows, triangle = np.random.default_rng(1).normal(size=(30, 20)), upper(10)
    expected = rows[:, ::2] @ triangle
    gram = NUMPY.gram(rows[:, ::2])
    assert gram == pytest.approx(np.einsum("ki,kj->ij", rows[:, ::2], rows[:, ::2]))
    assert (gram == gram.T).all()
    blas.times_triangle_(rows[:, ::2], triangle)
    assert rows[:, ::2] == pytest.approx(expected)


def test_the_routines_of_scipy_are_found():
    assert len(blas._TRMM) == len(blas._GEMM) == len(blas._TRTRI) == 2


@pytest.mark.parametrize("size", [0, 1, 130])
def test_congruence_is_symmetric_and_the_product_of_three(size):
    root = np.random.default_rng(2).normal(size=(size, size))
    triangle = upper(size)
    result = congruence(root @ root.T, triangle)
    assert (result == result.T).all()
    assert result == pytest.approx(triangle.T @ (root @ root.T) @ triangle)


def test_an_inverse_ignores_what_lies_below_the_diagonal():
    triangle = upper(50)
    dirty = triangle + np.tril(np.ones((50, 50)), -1)
    inverse = inverse_triangle_(dirty.copy())
    assert inverse @ triangle == pytest.approx(np.eye(50), abs=1e-12)
    assert (np.tril(inverse, -1) == 0).all()
    assert (dirty != triangle).any()
    assert solve_triangle(dirty, triangle[:, :3]) == pytest.approx(np.eye(50)[:, :3], abs=1e-12)
    assert solve_triangle(dirty, triangle.T[:, :3], transposed=True) == pytest.approx(np.eye(50)[:, :3], abs=1e-12)


def test_a_pivoted_factor_reproduces_the_matrix_where_it_was_kept():
    root = np.random.default_rng(3).normal(size=(20, 12))
    matrix = root @ root.T
    triangle, kept = pivoted_cholesky(matrix, np.dtype(np.float64))
    assert 12 <= len(kept) <= 14  # rounding may keep one or two by chance
    assert np.triu(triangle).T @ np.triu(triangle) == pytest.approx(matrix[np.ix_(kept, kept)], abs=1e-10)


def test_lapack_is_not_called_for_empty_arrays(capfd):
    none = np.empty((0, 0), order="F")
    assert solve_triangle(none, np.empty((0, 3))).shape == (0, 3)
    assert solve_triangle(none, np.empty((0, 3)), transposed=True).shape == (0, 3)
    assert solve_triangle(upper(2), np.empty((2, 0))).shape == (2, 0)
    assert inverse_triangle_(none).shape == (0, 0)
    assert cholesky_(none).shape == (0, 0)
    assert pivoted_cholesky(none, np.dtype(np.float64))[0].shape == (0, 0)
    ctypes.CDLL(None).fflush(None)
    assert capfd.readouterr() == ("", "")


def test_a_triangle_with_a_zero_on_its_diagonal_is_refused():
    triangle = np.asfortranarray(np.diag([1.0, 0.0, 2.0]))
    with pytest.raises(NumericalError, match="zero on its diagonal, at position 1"):
        solve_triangle(triangle, np.ones((3, 1)))
    with pytest.raises(NumericalError, match="zero on its diagonal, at position 1"):
        inverse_triangle_(triangle)


def test_a_matrix_that_is_not_positive_definite_has_no_factor():
    assert cholesky_(np.asfortranarray(np.diag([1.0, -1.0]))) is None


def test_entries_far_below_rounding_do_not_spoil_eigenvalues():
    rng = np.random.default_rng(0)
    matrix = np.diag(rng.uniform(0.5, 1.0, 200))
    scattered = rng.uniform(size=(200, 200)) < 0.01
    matrix += np.where(scattered | scattered.T, 10.0 ** rng.uniform(-315, -150, (200, 200)), 0.0)
    values, vectors = symmetric_eigen((matrix + matrix.T) / 2)
    assert vectors @ np.diag(values) @ vectors.T == pytest.approx(matrix, abs=1e-13)


@pytest.mark.parametrize("at_once", [64, 256])
@pytest.mark.parametrize("n_terms", [1, 64, 700])
def test_a_product_in_blocks_is_within_its_rounding_of_exact_arithmetic(n_terms, at_once):
    rng = np.random.default_rng(n_terms)
    left, right = (
        rng.uniform(size=(3, n_terms)),
        rng.choice([-1e9, 1e9], size=(n_terms, 1)) * rng.uniform(size=(n_terms, 1)),
    )
    product = product_in_blocks(left, right, at_once)[:, 0]
    for row, computed in zip(left, product, strict=True):
        exact = sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(row, right[:, 0], strict=True))
        allowed = sum_rounding(n_terms, at_once) * float(row @ np.abs(right[:, 0]))
        assert abs(Fraction(float(computed)) - exact) <= allowed
    if n_terms == 700:
        assert sum_rounding(n_terms, 64) < sum_rounding(n_terms, 256) / 3


@pytest.mark.parametrize("entry", [1e308, np.inf])
def test_a_ridge_is_not_raised_beyond_the_floating_point_range(entry):
    with pytest.raises(NumericalError, match="beyond the floating-point range"):
        raised_cholesky(np.array([[1.0, entry], [entry, 1.0]]), 0.0)


@pytest.mark.parametrize("entry", [0.0, 1.0])
def test_a_ridge_is_raised_until_the_matrix_is_definite(entry):
    factor = np.triu(raised_cholesky(np.array([[0.0, entry], [entry, 0.0]]), 0.0))
    assert 0 <= (factor.T @ factor)[0, 0] <= 20 * entry + 1e-300
    assert np.isfinite(factor).all()
