"""Deferred whitening gives the moments of the reference, and is used only where its rounding error is negligible."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve, sqrtm

from ridgemark.kernels import Gaussian, Laplacian, Linear, Matern32, Matern52
from ridgemark.losses import Moments, loss_sums
from ridgemark.operators import nystrom_factor
from ridgemark.operators.factor import plan_whitening
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(3000, 3)), rng.normal(size=(3000, 2)), rng.uniform(0, 2, 3000)


def _moments(rows, factor, scaled_ridge=None):
    return loss_sums(RowPasses(rows), factor, scaled_ridge=scaled_ridge)


def _change(found, reference, scaled_ridge):
    """The norm of `(G + s)^-1/2 (G~ - G) (G + s)^-1/2`: the relative error of the matrix of a solution."""
    root = np.linalg.inv(np.real(sqrtm(reference.gram + scaled_ridge * np.eye(len(reference.gram)))))
    return np.linalg.norm(root @ (found.gram - reference.gram) @ root, 2)


def test_all_whitening_is_deferred_where_the_landmark_kernel_is_well_conditioned(data):
    X, Y, _ = data
    factor = nystrom_factor(Gaussian(0.3), X[:40], np.arange(40))
    assert plan_whitening(factor, 3000, 3000 * 1e-3).n_before == 0
    found, reference = (_moments(ArrayRows(X, Y), factor, ridge) for ridge in (3000 * 1e-3, None))
    assert not np.array_equal(found.gram, reference.gram)
    for name in Moments.__dataclass_fields__:
        assert getattr(found, name) == pytest.approx(getattr(reference, name), rel=1e-9, abs=1e-9), name


RIDGES = pytest.mark.parametrize("ridge", [1e-2, 1e-5, 1e-8])


@RIDGES
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern32(1.0), Matern52(2.0), Laplacian(2.0)], ids=repr)
def test_deferred_whitening_changes_nothing_relative_to_the_ridge(data, kernel, ridge):
    X, Y, w = data
    rows, scaled_ridge = ArrayRows(X, Y, w), 3000 * ridge
    factor = nystrom_factor(kernel, X[:200], np.arange(200))
    reference, found = (_moments(rows, factor, one) for one in (None, scaled_ridge))
    assert _change(found, reference, scaled_ridge) < 2e-9
    assert found.trace_residual >= reference.trace_residual * (1 - 1e-9)
    assert found.trace_residual <= reference.trace_residual + 1e-3 * scaled_ridge
    assert (np.diagonal(found.gram) >= 0).all()


@RIDGES
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Gaussian(10.0), Matern52(2.0)], ids=repr)
def test_predictions_differ_no_more_than_by_another_order_of_summation(data, kernel, ridge):
    X, Y, _ = data
    scaled_ridge = 3000 * ridge
    factor = nystrom_factor(kernel, X[:200], np.arange(200))
    reference, found = (_moments(ArrayRows(X, Y), factor, one) for one in (None, scaled_ridge))
    B = factor.features(X)
    other = replace(reference, gram=B.T @ B, cross=B.T @ Y)

    def predictions(moments):
        return B @ cho_solve(cho_factor(moments.gram + scaled_ridge * np.eye(factor.rank)), moments.cross)

    unsure = abs(predictions(other) - predictions(reference)).max()
    assert abs(predictions(found) - predictions(reference)).max() < 1e-9 + 10 * unsure


def test_a_smaller_ridge_defers_less(data):
    X, _, _ = data
    factor = nystrom_factor(Matern32(1.0), X[:200], np.arange(200))
    parts = [plan_whitening(factor, 3000, 3000 * ridge).n_before for ridge in (1e-2, 1e-6, 1e-10)]
    assert parts == sorted(parts)
    assert 0 < parts[1] < 200


@pytest.mark.parametrize(
    ("kernel", "scale", "ridge", "n_landmarks"),
    [
        (Gaussian(3.0), 1.0, 1e-18, 200),  # no rounding error is negligible relative to such a ridge
        (Gaussian(1.0), 1.0, 1e-3, 1000),  # three rows for each landmark: deferring saves no time
        (Linear(), 1e80, 1e150, 20),  # fourth powers overflow
    ],
    ids=["small ridge", "few rows", "large numbers"],
)
def test_nothing_is_deferred_otherwise(data, kernel, scale, ridge, n_landmarks):
    X, _, _ = data
    factor = nystrom_factor(kernel, scale * X[:n_landmarks], np.arange(n_landmarks))
    assert not plan_whitening(factor, 3000, 3000 * ridge).is_deferred


# The sum is 1e4 or 1e5 times the predicted one, so the decision does not depend on the rounding of BLAS.
@pytest.mark.parametrize(
    ("kernel", "scale", "weight", "ridge"), [(Linear(), 100.0, 1.0, 1.0 / 3000), (Matern32(1.0), 1.0, 1e5, 1e-6)]
)
def test_deferred_whitening_falls_back_when_rounding_error_is_too_large(data, kernel, scale, weight, ridge):
    X, scaled_ridge = data[0], 3000 * ridge
    factor = nystrom_factor(kernel, np.eye(3) if kernel == Linear() else X[:200])
    assert plan_whitening(factor, 3000, scaled_ridge).is_deferred
    rows = ArrayRows(scale * X, weights=np.full(3000, weight))
    passes = RowPasses(rows)
    found = loss_sums(passes, factor, scaled_ridge=scaled_ridge)
    assert passes.n_passes == 2  # the sum that was discarded, and the reference
    assert np.array_equal(found.gram, _moments(rows, factor).gram)


def test_repeated_landmarks_do_not_prevent_deferring(data):
    X, Y, _ = data
    factor = nystrom_factor(Gaussian(0.3), X[np.r_[:40, :10]])
    assert factor.rank == 40
    assert plan_whitening(factor, 3000, 3000 * 1e-3).n_before == 0
    found, reference = (_moments(ArrayRows(X, Y), factor, ridge) for ridge in (3000 * 1e-3, None))
    assert found.gram == pytest.approx(reference.gram, rel=1e-9, abs=1e-9)
