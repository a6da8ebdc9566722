"""Conjugate gradients report the residuals of their solution, and always stop."""

import numpy as np
import pytest

from ridgemark.solvers import conjugate_gradient


def _system(condition, n=60, seed=0):
    rng = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(rng.normal(size=(n, n)))
    return basis * np.geomspace(1.0, 1.0 / condition, n) @ basis.T, rng.normal(size=(n, 3))


def _solve(matrix, right, tol=1e-8, max_products=500, preconditioner=None):
    inverse = np.eye(len(matrix)) if preconditioner is None else preconditioner
    tol = np.broadcast_to(tol, right.shape[1])
    return conjugate_gradient(lambda v, _: matrix @ v, lambda v, _: inverse @ v, right, tol, max_products)


def test_reported_residuals_are_those_of_the_solution():
    matrix, right = _system(1e3)
    solved = _solve(matrix, right)
    residual = np.linalg.norm(right - matrix @ solved.solution, axis=0)
    assert (residual <= 1e-8).all()
    assert solved.reached.residual == pytest.approx(residual, rel=1e-3)
    assert set(solved.outcomes) == {"converged"}


def test_residuals_never_rise():
    """Those of plain conjugate gradients rise; the combination of smallest residual is returned."""
    matrix, right = _system(1e6)
    sizes = np.array([step.residual for step in _solve(matrix, right, max_products=100).history])
    assert (np.diff(sizes, axis=0) <= 1e-12).all()


def test_columns_are_solved_and_stopped_independently():
    matrix, right = _system(1e3)
    together = _solve(matrix, right, tol=np.array([1e-2, 1e-10, 1e-6]))
    for column, tol in enumerate((1e-2, 1e-10, 1e-6)):
        alone = _solve(matrix, right[:, [column]], tol)
        assert together.solution[:, column] == pytest.approx(alone.solution[:, 0], abs=1e-10)
        stopped = np.array([step.residual[column] for step in together.history[alone.reached.n_products :]])
        assert (stopped == stopped[0]).all()


def test_stopped_columns_are_not_multiplied_any_more():
    matrix, right = _system(10.0)
    widths = []

    def product(vectors, columns):
        widths.append(len(columns))
        return matrix @ vectors

    conjugate_gradient(product, lambda v, _: v, right, np.array([1e-1, 1e-10, 1e-1]), 500)
    assert (widths[0], widths[-1]) == (6, 2)


def test_most_products_are_of_half_the_size_where_residuals_are_seldom_measured():
    matrix, right = _system(1e3)
    widths = []

    def product(vectors, columns):
        widths.append(len(columns))
        return matrix @ vectors

    solved = conjugate_gradient(product, lambda v, _: v, right[:, :1], np.array([1e-8]), 500, recompute_every=4)
    assert widths[:8] == [1, 1, 1, 2, 1, 1, 1, 2]
    assert np.linalg.norm(right[:, :1] - matrix @ solved.solution) <= 2e-8


def test_it_takes_hardly_more_steps_than_textbook_conjugate_gradients():
    matrix, right = _system(1e4)
    x, r = np.zeros(60), right[:, 0].copy()
    d, steps = r.copy(), 0
    while np.linalg.norm(r) > 1e-8:
        step = r @ r / (d @ matrix @ d)
        x, before, r = x + step * d, r @ r, r - step * matrix @ d
        d, steps = r + r @ r / before * d, steps + 1
    # Rounding decides how many of these steps exceed the 60 of exact arithmetic, and differs between BLAS kernels.
    assert _solve(matrix, right[:, :1]).reached.n_products <= 1.2 * steps + 5


def test_the_exact_inverse_as_preconditioner_takes_one_product():
    matrix, right = _system(1e3)
    assert _solve(matrix, right, preconditioner=np.linalg.inv(matrix)).reached.n_products == 1


def test_reaching_the_limit_of_products_is_reported():
    matrix, right = _system(1e6)
    solved = _solve(matrix, right, max_products=5)
    assert solved.reached.n_products == 5
    assert solved.outcomes == ("out of products",) * 3


@pytest.mark.parametrize("condition", [1e2, 1e6, 1e12, 1e16])
def test_a_tolerance_below_rounding_ends_in_stagnation(condition):
    matrix, right = _system(condition)
    solved = _solve(matrix, right, tol=1e-300, max_products=10_000)
    assert set(solved.outcomes) == {"stagnated"}
    assert solved.reached.n_products < 2_000
    assert np.isfinite(solved.solution).all()


def test_an_indefinite_preconditioner_ends_in_stagnation():
    matrix, right = _system(1e3)
    assert set(_solve(matrix, right, preconditioner=-np.eye(60)).outcomes) == {"stagnated"}


def test_a_right_side_of_zero_needs_no_product():
    matrix, right = _system(1e3)
    solved = _solve(matrix, np.zeros_like(right))
    assert solved.reached.n_products == 0
    assert not solved.solution.any()
