"""The path over ridges equals brute force: refits for every ridge and every row left out."""

import numpy as np
import pytest

from ridgemark import NystromRidge, exact
from ridgemark.errors import RidgeEdgeWarning
from ridgemark.kernels import Gaussian
from ridgemark.losses import loss_sums
from ridgemark.operators import nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.path import Ridges, loo_path, ridge_path
from ridgemark.rows import ArrayRows
from ridgemark.solvers import SpectralSolver
from ridgemark.tuning import median_distance

RIDGES = np.array([1e-1, 1e-3, 1e-5, 1e-8])


def ridges_of(solver):
    """Return the ridges searched, and their products with the sum of weights."""
    return Ridges(RIDGES, RIDGES * solver.total_weight)


@pytest.fixture
def data():
    """Two targets, some equal rows, weights of all sizes, two of them zero."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    X[40:50], X[50:53] = X[:10], X[7]
    Y = np.c_[np.sin(X[:, 0]), 1e3 + X[:, 1] ** 2] + 0.1 * rng.normal(size=(60, 2))
    w = np.r_[rng.integers(1, 4, 50), rng.uniform(0.1, 0.9, 10)].astype(float)
    w[[8, 30]] = 0.0
    return X, Y, w


def _path(X, Y, w, intercept, **options):
    passes = RowPasses(ArrayRows(X, Y, w), options.pop("budget", None))
    factor = nystrom_factor(Gaussian(1.0), X[:25], np.arange(25))
    origin = Y.mean(axis=0) if intercept else np.zeros(2)
    solver = SpectralSolver(loss_sums(passes, factor, origin), intercept)
    return (*loo_path(passes, factor, solver, ridges_of(solver), origin, **options), factor, solver, origin)


def _refit(factor, X, Y, w, scaled_ridge, intercept):
    """Ridge regression on the features by its normal equations; returns a predictor."""
    B = factor.features(X)
    A = np.c_[B, np.ones(len(B))] if intercept else B
    penalty = np.diag(np.r_[np.full(B.shape[1], scaled_ridge), [0.0] * intercept])
    coef = np.linalg.lstsq(
        np.r_[np.sqrt(w)[:, None] * A, np.sqrt(penalty)],
        np.r_[np.sqrt(w)[:, None] * Y, np.zeros((len(penalty), 2))],
        rcond=None,
    )[0]
    return lambda Z: (np.c_[factor.features(Z), np.ones(len(Z))] if intercept else factor.features(Z)) @ coef


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("budget", [None, 200_000], ids=["residuals kept", "two passes"])
def test_leave_one_out_residuals_equal_those_of_refits(data, intercept, weighted, budget):
    X, Y, w = data
    weights = w if weighted else np.ones(60)
    path, left_out, factor, _, _ = _path(X, Y, weights if weighted else None, intercept, budget=budget)
    scaled = path.ridges[path.chosen[0]] * weights.sum()
    B = factor.features(X)
    A = np.c_[B, np.ones(60)] if intercept else B
    penalty = np.diag(np.r_[np.full(B.shape[1], scaled), [0.0] * intercept])
    brute, variance = np.empty((60, 2)), np.empty(60)
    for i in range(60):
        equal = (X[i] == X).all(axis=1) & (weights[i] > 0)
        less = np.where(equal, 0.0, weights)
        brute[i] = Y[i] - _refit(factor, X, Y, less, scaled, intercept)(X[i : i + 1])[0]
        variance[i] = A[i] @ np.linalg.solve(A.T @ (less[:, None] * A) + penalty, A[i])
    assert left_out.residuals == pytest.approx(brute, abs=1e-9 * abs(Y).max())
    potential = weights * ((1 - (B**2).sum(axis=1)) / scaled + variance)
    assert left_out.potential == pytest.approx(np.c_[potential, potential], rel=1e-6)
    assert left_out.weights == pytest.approx(weights / weights[weights > 0].mean())
    expected = (weights[:, None] * brute**2).sum(axis=0) / weights.sum()
    assert path.loo_error[path.chosen[0]] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("third", [0.0, 1.0, 2.0])
def test_rows_of_few_cells_are_left_out_one_by_one(third):
    """But not with a column of three values, nor where a cell has fewer than ten rows on average."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (60, 2)).astype(float)
    X[0] = third
    Y = X + rng.normal(size=(60, 2))
    few = 39 if third < 2.0 else 60
    for n_rows in (60, few):
        rows, targets = X[:n_rows], Y[:n_rows]
        path, left_out, factor, _, _ = _path(rows, targets, None, True)
        scaled = path.ridges[path.chosen[0]] * n_rows
        singly = third < 2.0 and n_rows == 60
        for i in range(5):
            others = np.arange(n_rows) != i if singly else (rows != rows[i]).any(axis=1)
            expected = (
                targets[i] - _refit(factor, rows, targets, others.astype(float), scaled, True)(rows[i : i + 1])[0]
            )
            assert left_out.residuals[i] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
def test_every_ridge_of_the_path_equals_a_separate_fit(data, intercept):
    X, Y, w = data
    path, _, factor, solver, origin = _path(X, Y, w, intercept)
    for k, ridge in enumerate(path.ridges):
        scaled = ridge * w.sum()
        fitted = _refit(factor, X, Y, w, scaled, intercept)(X)
        solution = solver.solution(scaled)
        ours = factor.features(X) @ solution.coefficients + solution.intercept + origin
        assert ours == pytest.approx(fitted, abs=1e-8 * abs(Y).max())
        error = (w[:, None] * (Y - fitted) ** 2).sum(axis=0) / w.sum()
        assert path.training_error[k] == pytest.approx(error, rel=1e-6, abs=1e-12)
        B = factor.features(X)
        B = B - intercept * (w @ B) / w.sum()
        hat = np.linalg.solve(B.T @ (w[:, None] * B) + scaled * np.eye(B.shape[1]), B.T @ (w[:, None] * B))
        assert path.effective_dimension[k] == pytest.approx(np.trace(hat), rel=1e-8)
        distinct = len(np.unique(X[w > 0], axis=0))
        gcv = error / (1 - 1.6 * (np.trace(hat) + intercept) / distinct) ** 2
        assert path.gcv[k] == pytest.approx(gcv, rel=1e-6, abs=1e-12)


def test_the_chosen_ridge_has_the_smallest_error(data):
    X, Y, w = data
    path, *_ = _path(X, Y, w, True, per_target=True)
    assert np.array_equal(path.chosen, path.loo_error.argmin(axis=0))
    _, _, _, solver, _ = _path(X, Y, w, True)
    path = ridge_path(solver, ridges_of(solver), 50, per_target=True)
    assert np.array_equal(path.chosen, path.gcv.argmin(axis=0))
    assert path.loo_error is None


def test_a_raised_ridge_is_the_largest_that_is_nearly_as_good_for_every_target(data):
    X, Y, w = data
    path, *_ = _path(X, Y, w, True)
    for share in (0.0, 0.01, 1.0, np.inf):
        raised = path.raised(share)
        best = path.loo_error[path.chosen, [0, 1]]
        good = [k for k, errors in enumerate(path.loo_error) if (errors <= (1 + share) * best).all()]
        assert raised.chosen.tolist() == [good[0]] * 2
        assert (raised.chosen <= path.chosen).all()
    assert path.raised(np.inf).chosen[0] == 0


def test_the_choice_does_not_depend_on_the_units_of_a_target(data):
    X, Y, _ = data
    chosen = [_path(X, Y * [1.0, scale], None, True)[0].chosen[0] for scale in (1e-3, 1e3)]
    assert chosen[0] == chosen[1]


@pytest.mark.parametrize("ridge", ["loo", "gcv", [1e-3, 1e-5, 1e-6, 1e-8]], ids=str)
def test_the_estimator_searches_and_keeps_the_path(data, ridge):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(800, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=800)
    model = NystromRidge(bandwidth="median", ridge=ridge, n_landmarks=150, random_state=0).fit(X, y)
    path = model.ridge_path_
    assert model.ridge_ == path.ridges[path.chosen[0]]
    assert hasattr(model, "loo_residuals_") == (ridge != "gcv")
    if ridge != "gcv":
        assert np.mean(model.loo_residuals_**2) == pytest.approx(path.loo_error.min())
    assert 0.2 < np.sqrt(path.gcv.min()) < 0.5
    same = NystromRidge(
        ridge=float(model.ridge_), bandwidth=model.bandwidth_, selection=model.landmarks_, random_state=0
    ).fit(X, y)
    assert same.predict(X) == pytest.approx(model.predict(X), abs=1e-8)
    assert not hasattr(same, "ridge_path_")


def test_each_target_may_have_its_own_ridge():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(800, 2))
    Y = np.c_[np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=800), np.sin(X[:, 0]) + rng.normal(size=800)]
    model = NystromRidge(bandwidth="median", n_landmarks=100, ridge_per_target=True, random_state=0).fit(X, Y)
    assert model.ridge_.shape == (2,)
    assert model.ridge_[0] < model.ridge_[1]
    assert model.predict(X).shape == (800, 2)


def test_a_best_ridge_at_the_edge_warns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    with pytest.warns(RidgeEdgeWarning, match="smallest of those searched, 0.1 to 1: the targets may be free of noise"):
        NystromRidge(bandwidth="median", ridge=[1.0, 0.1], random_state=0).fit(X, np.sin(3 * X[:, 0]))
    with pytest.warns(RidgeEdgeWarning, match="largest of those searched, 0.1 to 1: the columns may not predict"):
        NystromRidge(bandwidth="median", ridge=[1.0, 0.1], random_state=0).fit(X, rng.normal(size=300))


def test_the_effective_dimension_of_a_fit_is_a_bracket_of_the_exact_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    model = NystromRidge(bandwidth="median", ridge=1e-4, n_landmarks=60, fit_intercept=False, random_state=0).fit(
        X, X[:, 0]
    )
    truth = exact.effective_dimension(exact.kernel_matrix(X, model.kernel_), 600 * 1e-4)
    assert model.effective_dimension_.lower <= truth <= model.effective_dimension_.upper


def test_the_median_distance_is_the_median_distance_at_every_scale():
    X = np.random.default_rng(0).normal(size=(200, 3))
    pairs = np.triu_indices(200, 1)
    expected = np.median(np.linalg.norm(X[pairs[0]] - X[pairs[1]], axis=1))
    for scale in (1e-150, 1.0, 1e150):
        assert median_distance(X * scale) == pytest.approx(expected * scale, rel=1e-9)
    assert median_distance(X[:1]) == 1.0
