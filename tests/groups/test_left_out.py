"""Residuals, potentials and errors of rows left out with their group equal those of refits."""

import numpy as np
import pytest

from ridgemark import NystromRidge, open_rows
from ridgemark.errors import DataError, ParameterError
from ridgemark.kernels import Gaussian
from ridgemark.losses import loss_sums
from ridgemark.operators import hold_features, nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.path import Ridges, loo_path
from ridgemark.rows import ArrayRows
from ridgemark.rows.groups import hashes_of
from ridgemark.solvers import SpectralSolver
from tests.groups.problems import group_numbers, patients

FIXED = {"kernel": "gaussian", "bandwidth": 1.0, "n_landmarks": 30, "random_state": 0}


def problem(seed=0, n=240):
    """Return rows with two targets, some equal, their weights, two of them zero, and groups, one very heavy."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    X[40:50] = X[:10]
    Y = np.c_[np.sin(X[:, 0]), 10 + X[:, 1] ** 2] + 0.1 * rng.normal(size=(n, 2))
    groups = group_numbers(n, rng, 90)
    w = rng.uniform(0.1, 3.0, n) * np.where(groups == 0, 8.0, 1.0)
    w[[8, 30]] = 0.0
    return X, Y, w, groups


def refits(B, Y, w, groups, scaled_ridge, intercept):
    """Return residuals of every row, and `b'F^-1 b` at it, from a fit to the rows of all other groups."""
    A = np.c_[B, np.ones(len(B))] if intercept else B
    penalty = np.diag(np.r_[np.full(B.shape[1], scaled_ridge), [0.0] * intercept])
    residuals, spread = np.empty(Y.shape), np.empty(len(Y))
    for number in [*np.unique(groups), None]:  # rows of weight zero are not in the fit of all rows
        own = w == 0.0 if number is None else groups == number
        less = np.where((groups == number) & (number is not None), 0.0, w)
        matrix = A.T @ (less[:, None] * A) + penalty
        residuals[own] = (Y - A @ np.linalg.solve(matrix, A.T @ (less[:, None] * Y)))[own]
        spread[own] = np.einsum("ij,ij->i", A[own], np.linalg.solve(matrix, A[own].T).T)
    return residuals, spread


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("budget", [None, 60_000], ids=["one block", "small blocks"])
def test_residuals_equal_those_of_refits_without_each_group(intercept, weighted, budget):
    X, Y, w, groups = problem()
    weights = w if weighted else np.ones(len(w))
    passes = RowPasses(ArrayRows(X, Y, w if weighted else None, hashes_of(groups, len(w))), budget)
    factor, origin = nystrom_factor(Gaussian(1.0), X[60:90], np.arange(60, 90)), Y.mean(axis=0) * intercept
    hold_features(passes, factor)
    solver = SpectralSolver(loss_sums(passes, factor, origin), intercept)
    ridges = np.array([1e-1, 1e-3, 1e-5])
    path, left_out = loo_path(passes, factor, solver, Ridges(ridges, ridges * weights.sum()), origin)
    B = factor.features(X)
    for k, ridge in enumerate(ridges):
        residuals, spread = refits(B, Y, weights, groups, ridge * weights.sum(), intercept)
        error = (weights[:, None] * residuals**2).sum(axis=0) / weights.sum()
        assert path.loo_error[k] == pytest.approx(error, rel=1e-7)
        if k == path.chosen[0]:
            assert left_out.residuals == pytest.approx(residuals, abs=1e-9 * np.abs(Y).max())
            potential = weights * ((1 - (B**2).sum(axis=1)) / (ridge * weights.sum()) + spread)
            assert left_out.potential == pytest.approx(np.c_[potential, potential], rel=1e-6)


def test_pulls_take_each_group_out_of_a_prediction():
    X, Y, w, groups = problem()
    passes = RowPasses(ArrayRows(X, Y, w, hashes_of(groups, len(w))))
    factor = nystrom_factor(Gaussian(1.0), X[60:90], np.arange(60, 90))
    solver = SpectralSolver(loss_sums(passes, factor, np.zeros(2)), True)
    scaled = 1e-3 * w.sum()
    _, left_out = loo_path(passes, factor, solver, Ridges(np.array([1e-3]), np.array([scaled])), np.zeros(2))
    pulls, B = left_out.pulls, factor.features(X) - solver.feature_mean
    number = passes.left_out().kind
    assert len(pulls.groups) == len(np.unique(groups[w > 0]))
    for k in pulls.groups[:5]:
        own = (number == k)[:, None] * w[:, None] * left_out.residuals
        assert pulls.features[k] == pytest.approx(B.T @ own, abs=1e-9)
        assert pulls.constants[k] == pytest.approx(own.sum(axis=0), abs=1e-9)


@pytest.mark.parametrize(
    "options", [{}, {"kernel": "auto", "bandwidth": "auto", "n_landmarks": "auto"}], ids=["fixed", "tuned"]
)
def test_groups_of_one_row_change_no_bit(options):
    X, y, _ = patients(60, 5)
    plain, groups = (NystromRidge(**FIXED | options).fit(X, y, groups=labels) for labels in (None, np.arange(300)))
    assert (plain.predict(X) == groups.predict(X)).all()
    assert (plain.loo_residuals_ == groups.loo_residuals_).all()
    assert (plain.predict_interval(X) == groups.predict_interval(X)).all()
    assert (plain.predict_interval(X, adaptive=False) == groups.predict_interval(X, adaptive=False)).all()


def test_equal_rows_of_different_groups_leave_alone():
    X, y, _ = patients(60, 5)
    X[1::2] = X[::2]
    model = NystromRidge(ridge=1e-3, **FIXED).fit(X, y, groups=np.arange(300)).calibrate(X, y, groups=np.arange(300))
    for row in (0, 7):
        rest = np.arange(300) != row
        other = NystromRidge(selection=model.landmarks_, ridge=model.scaled_ridge_ / 299, **FIXED | {"n_landmarks": 30})
        assert model.loo_residuals_[row] == pytest.approx(
            y[row] - other.fit(X[rest], y[rest]).predict(X[[row]])[0], abs=1e-8
        )


def test_the_order_of_rows_changes_no_group():
    X, y, groups = patients(40, 8)
    order = np.random.default_rng(0).permutation(len(y))
    first = NystromRidge(**FIXED).fit(X, y, groups=groups)
    second = NystromRidge(**FIXED).fit(X[order], y[order], groups=np.array([f"p{k}" for k in groups])[order])
    assert first.ridge_ == second.ridge_
    assert first.loo_residuals_[order] == pytest.approx(second.loo_residuals_, abs=1e-9)


def test_the_error_is_that_of_new_groups_and_not_of_new_rows():
    X, y, groups = patients(60, 20)
    Z, z, _ = patients(200, 20, seed=1)
    options = {"bandwidth": "median", "n_landmarks": 100, "random_state": 0}
    model = NystromRidge(**options).fit(X, y, groups=groups)
    alone = NystromRidge(**options).fit(X, y)
    error = ((z - model.predict(Z)) ** 2).mean()
    assert (model.loo_residuals_**2).mean() == pytest.approx(error, rel=0.3)
    assert (alone.loo_residuals_**2).mean() < 0.3 * ((z - alone.predict(Z)) ** 2).mean()


def test_labels_are_checked():
    X, y, groups = patients(10, 5)
    labels = groups.astype(float)
    labels[7] = np.nan
    for wrong, what in [
        (labels, "row 7"),
        (groups[:-1], "one label for each of the 50 rows"),
        (np.c_[groups, groups], "one label for each of the 50 rows"),
        (np.zeros(50), "one group"),
        ([(1, 2)] * 50, "cannot be labels"),
    ]:
        with pytest.raises(DataError, match=what):
            NystromRidge(**FIXED).fit(X, y, groups=wrong)
    with pytest.raises(ParameterError, match="not groups"):
        NystromRidge(ridge="gcv", **FIXED).fit(X, y, groups=groups)
    with pytest.raises(ParameterError, match="brings its own groups"):
        NystromRidge(**FIXED).fit(open_rows(X, target=y, group=groups), groups=groups)


@pytest.mark.parametrize("intercept", [False, True])
def test_a_group_of_very_many_rows_is_left_out_in_parts(intercept, monkeypatch):
    X, Y, w, groups = problem()
    factor, ridges = nystrom_factor(Gaussian(1.0), X[60:80], np.arange(60, 80)), np.array([1e-1, 1e-3])
    passes = RowPasses(ArrayRows(X, Y, w, hashes_of(groups, len(w))))
    solver = SpectralSolver(loss_sums(passes, factor, np.zeros(2)), intercept)
    searched = Ridges(ridges, ridges * w.sum())
    path, whole = loo_path(passes, factor, solver, searched, np.zeros(2))
    monkeypatch.setattr("ridgemark.path.left_out._LONG", 25)
    again, parts = loo_path(passes, factor, solver, searched, np.zeros(2))
    assert again.loo_error == pytest.approx(path.loo_error, rel=1e-9)
    assert parts.residuals == pytest.approx(whole.residuals, abs=1e-8)
    assert parts.potential == pytest.approx(whole.potential, rel=1e-8)
    assert parts.pulls.features == pytest.approx(whole.pulls.features, abs=1e-7)
    assert parts.pulls.constants == pytest.approx(whole.pulls.constants, abs=1e-7)
