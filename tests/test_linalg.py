"""Triangles: products and inverses that leave out the zeros give what full ones give."""

import numpy as np
import pytest

from ridgemark.linalg import congruence, inverse_triangle, pivoted_cholesky, solve_triangle, times_triangle


def upper(size, seed=0):
    rng = np.random.default_rng(seed)
    return np.triu(rng.normal(size=(size, size))) + 5 * np.eye(size)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 129, 300])
def test_products_with_a_triangle_are_those_with_the_full_matrix(size):
    rows, triangle = np.random.default_rng(1).normal(size=(17, size)), upper(size)
    out = np.full((17, size), np.nan)
    assert times_triangle(rows, triangle, out) == pytest.approx(rows @ triangle)


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
    inverse = inverse_triangle(dirty)
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
