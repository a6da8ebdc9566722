"""Whitening left for after the sum gives the reference's moments, is done only where it may be, and says so."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve, sqrtm

from ridgemark import NystromRidge
from ridgemark.kernels import Gaussian, Laplacian, Linear, Matern32, Matern52
from ridgemark.moments import Moments
from ridgemark.nystrom import nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.whitening import plan_whitening


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(3000, 3)), rng.normal(size=(3000, 2)), rng.uniform(0, 2, 3000)


def _moments(rows, factor, scaled_ridge=None):
    passes = RowPasses(rows)
    return passes.moments(factor, scaled_ridge=scaled_ridge), passes


def _change(found, reference, scaled_ridge):
    """The norm of `(G + s)^-1/2 (G~ - G) (G + s)^-1/2`: by how much, relative to itself, a solution's matrix is off."""
    root = np.linalg.inv(np.real(sqrtm(reference.gram + scaled_ridge * np.eye(len(reference.gram)))))
    return np.linalg.norm(root @ (found.gram - reference.gram) @ root, 2)


def test_all_is_done_afterwards_where_the_landmark_kernel_is_well_conditioned(data):
    X, Y, _ = data
    factor = nystrom_factor(Gaussian(0.3), X[:40], np.arange(40))
    found, passes = _moments(ArrayRows(X, Y), factor, 3000 * 1e-3)
    assert passes.whitened == "after"
    reference, passes = _moments(ArrayRows(X, Y), factor)
    assert passes.whitened == "before"
    for name in Moments.__dataclass_fields__:
        assert getattr(found, name) == pytest.approx(getattr(reference, name), rel=1e-9, abs=1e-9), name


RIDGES = pytest.mark.parametrize("ridge", [1e-2, 1e-4, 1e-6, 1e-8])


@RIDGES
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern32(1.0), Matern52(2.0), Laplacian(2.0)], ids=repr)
def test_what_is_left_for_afterwards_changes_nothing_beside_the_ridge(data, kernel, ridge):
    X, Y, w = data
    rows, scaled_ridge = ArrayRows(X, Y, w), 3000 * ridge
    factor = nystrom_factor(kernel, X[:200], np.arange(200))
    reference, found = (_moments(rows, factor, one)[0] for one in (None, scaled_ridge))
    assert _change(found, reference, scaled_ridge) < 2e-9
    assert found.trace_residual >= reference.trace_residual * (1 - 1e-9)
    assert found.trace_residual <= reference.trace_residual + 1e-3 * scaled_ridge


@RIDGES
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Gaussian(3.0), Gaussian(10.0), Matern52(2.0)], ids=repr)
def test_predictions_are_the_references_to_the_digits_that_another_order_of_sums_keeps(data, kernel, ridge):
    X, Y, _ = data
    scaled_ridge = 3000 * ridge
    factor = nystrom_factor(kernel, X[:200], np.arange(200))
    reference, found = (_moments(ArrayRows(X, Y), factor, one)[0] for one in (None, scaled_ridge))
    B = factor.features(X)
    other = replace(reference, gram=B.T @ B, cross=B.T @ Y)

    def predictions(moments):
        return B @ cho_solve(cho_factor(moments.gram + scaled_ridge * np.eye(factor.rank)), moments.cross)

    unsure = abs(predictions(other) - predictions(reference)).max()
    assert abs(predictions(found) - predictions(reference)).max() < 1e-9 + 10 * unsure


@RIDGES
@pytest.mark.parametrize("kernel", [Gaussian(3.0), Gaussian(10.0)], ids=repr)
def test_no_feature_gets_a_negative_length(data, kernel, ridge):
    X, Y, _ = data
    factor = nystrom_factor(kernel, X[:200], np.arange(200))
    found, _ = _moments(ArrayRows(X, Y), factor, 3000 * ridge)
    assert (np.diagonal(found.gram) >= 0).all()


def test_a_part_is_done_before_where_that_is_enough(data):
    X, Y, _ = data
    factor = nystrom_factor(Matern32(1.0), X[:200], np.arange(200))
    parts = [plan_whitening(factor, 3000, 3000 * ridge).n_before for ridge in (1e-2, 1e-6, 1e-10)]
    assert parts == sorted(parts)
    assert 0 < parts[1] < 200
    assert _moments(ArrayRows(X, Y), factor, 3000 * 1e-6)[1].whitened == "partly"


@pytest.mark.parametrize(
    ("kernel", "scale", "ridge", "n_landmarks"),
    [
        (Gaussian(3.0), 1.0, 1e-12, 200),  # nothing may be lost beside such a ridge
        (Gaussian(1.0), 1.0, 1e-3, 1000),  # three rows a landmark: no time to save
        (Linear(), 1e80, 1e150, 20),  # squares of squares beyond the range
    ],
    ids=["small ridge", "few rows", "large numbers"],
)
def test_all_is_done_before_otherwise(data, kernel, scale, ridge, n_landmarks):
    X, Y, _ = data
    factor = nystrom_factor(kernel, scale * X[:n_landmarks], np.arange(n_landmarks))
    assert _moments(ArrayRows(scale * X, Y), factor, 3000 * ridge)[1].whitened == "before"


# Far from the edge of the decision, whatever the BLAS kernel rounds: the sum is 1e4 or 1e5 times the one predicted.
@pytest.mark.parametrize(
    ("kernel", "scale", "weight", "ridge", "planned"),
    [(Linear(), 100.0, 1.0, 1.0 / 3000, "after"), (Matern32(1.0), 1.0, 1e5, 1e-6, "partly")],
)
def test_deferred_whitening_falls_back_when_rounding_error_is_too_large(data, kernel, scale, weight, ridge, planned):
    X, scaled_ridge = data[0], 3000 * ridge
    factor = nystrom_factor(kernel, np.eye(3) if planned == "after" else X[:200])
    assert plan_whitening(factor, 3000, scaled_ridge).name == planned
    rows = ArrayRows(scale * X, weights=np.full(3000, weight))
    found, passes = _moments(rows, factor, scaled_ridge)
    assert passes.whitened == "before"
    assert passes.n_passes == 2  # the sum that was discarded, and the reference
    assert np.array_equal(found.gram, _moments(rows, factor)[0].gram)


def test_repeated_landmarks_do_not_stand_in_the_way(data):
    X, Y, _ = data
    factor = nystrom_factor(Gaussian(0.3), X[np.r_[:40, :10]])
    assert factor.n_dropped == 10
    found, passes = _moments(ArrayRows(X, Y), factor, 3000 * 1e-3)
    assert passes.whitened == "after"
    assert found.gram == pytest.approx(_moments(ArrayRows(X, Y), factor)[0].gram, rel=1e-9, abs=1e-9)


def test_a_fit_says_when_its_features_were_whitened(data):
    X, Y, _ = data
    how = [
        NystromRidge(kernel, ridge=ridge, selection=X[:200]).fit(X, Y).whitened_
        for kernel, ridge in ((Gaussian(0.1), 1e-1), (Matern32(1.0), 1e-6), (Gaussian(3.0), 1e-12))
    ]
    assert how == ["after", "partly", "before"]
