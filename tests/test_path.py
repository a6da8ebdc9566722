"""The path over ridges equals brute force: refits for every ridge and every row left out; so does a search of it."""

import math

import numpy as np
import pytest

from ridgemark import NystromRidge, exact
from ridgemark.errors import RidgeEdgeWarning
from ridgemark.kernels import Gaussian
from ridgemark.losses import loss_sums
from ridgemark.operators import nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.path import Ridges, loo_path, ridge_path, searched_path, walk_downhill
from ridgemark.rows import ArrayRows
from ridgemark.solvers import SpectralSolver
from ridgemark.solvers.landmark_fit import CentredMoments
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


def test_a_walk_downhill_ends_at_the_lowest_of_a_valley():
    for best, start in ((3, 20), (20, 20), (39, 5), (0, 40), (40, 0)):
        seen = {}

        def loss(k, seen=seen, best=best):
            seen[k] = 1.0 + 0.01 * (k - best) ** 2
            return seen[k]

        walk_downhill(loss, start, 41)
        assert min(seen, key=seen.get) == best
        assert len(seen) < 25


def test_a_smaller_ridge_without_a_promise_is_not_tried():
    seen = []
    walk_downhill(lambda k: seen.append(k) or 1.0 + 0.01 * (k - 20) ** 2, 16, 41)
    assert 20 in seen
    assert max(seen) == 20


def test_a_flat_valley_is_not_walked():
    seen = []
    walk_downhill(lambda k: seen.append(k) or 1.0, 20, 41)
    assert set(seen) == {18, 20, 22}


def test_a_gain_that_does_not_count_ends_a_walk():
    losses, seen = 0.01 * 0.9 ** np.arange(41), []
    walk_downhill(lambda k: seen.append(k) or losses[k], 4, 41, least_gain=0.001)
    assert max(seen) < 10


def test_no_ridge_is_evaluated_twice():
    for start in range(0, 41, 4):
        seen = []
        walk_downhill(lambda k, seen=seen: seen.append(k) or 1.0 + 0.01 * (k - 17) ** 2, start, 41)
        assert len(seen) == len(set(seen))


def test_a_ridge_that_cannot_be_solved_ends_a_walk():
    seen = {}

    def error(k):
        seen[k] = math.inf if k > 25 else 2.0 - 0.05 * k
        return seen[k]

    walk_downhill(error, 20, 41)
    assert min(seen, key=seen.get) in (24, 25)
    assert max(seen) < 30


def wavy(n, noise, seed=0):
    """Return rows and two targets of different scales, the second with more noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    signal = np.c_[np.sin(3 * X[:, 0]) * X[:, 1], 100 * X[:, 2] ** 2]
    return X, signal + noise * rng.normal(size=(n, 2)) * [1.0, 300.0]


@pytest.fixture
def tried(monkeypatch):
    """Search the ridge among 50 features as among more than a thousand."""
    monkeypatch.setattr("ridgemark.fitting.stages._WHOLE_PATH", 50)


def _uniform(**options):
    given = {"bandwidth": 1.5, "selection": "uniform", "n_landmarks": 90, "random_state": 0}
    return NystromRidge(**given | options)


@pytest.mark.filterwarnings("ignore::ridgemark.errors.RidgeEdgeWarning")
@pytest.mark.parametrize("noise", [0.0, 0.03, 1.0, 30.0])
@pytest.mark.parametrize("kernel", ["gaussian", "matern32"])
def test_some_ridges_choose_nearly_as_well_as_all(noise, kernel, monkeypatch):
    X, Y = wavy(3000, noise)
    model = _uniform(kernel=kernel)
    whole = model.fit(X, Y).ridge_path_
    monkeypatch.setattr("ridgemark.fitting.stages._WHOLE_PATH", 50)
    path = model.fit(X, Y).ridge_path_
    assert len(path.ridges) < 8 < len(whole.ridges)
    assert path.largest == pytest.approx(whole.largest)
    assert path.smallest >= whole.smallest  # not below the rounding of the sums
    where = [int(np.abs(np.log(whole.ridges / ridge)).argmin()) for ridge in path.ridges]
    assert path.ridges == pytest.approx(whole.ridges[where])
    assert path.effective_dimension == pytest.approx(whole.effective_dimension[where], rel=1e-6)
    assert path.gcv == pytest.approx(whole.gcv[where], rel=1e-5)
    errors = (whole.loo_error / Y.var(axis=0)).sum(axis=1)
    assert np.sqrt(errors[where[path.chosen[0]]]) < 1.01 * np.sqrt(errors.min())  # a sample of the rows judged
    # At the chosen ridge the error is that of all rows.
    assert path.loo_error[path.chosen[0]] == pytest.approx(whole.loo_error[where[path.chosen[0]]], rel=1e-6)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_error_at_the_chosen_ridge_is_of_refits_without_each_row(intercept, tried):
    X, Y = wavy(2400, 0.3)
    X[2300:] = X[:100]
    w = np.random.default_rng(1).integers(1, 4, 2400).astype(float)
    model = _uniform(fit_intercept=intercept).fit(X, Y, w)
    path, fit = model.ridge_path_, model._model.sums
    assert len(path.ridges) < 15
    B = fit.factor.features(X)
    A = np.c_[B, np.ones(len(B))] if intercept else B
    penalty = model.scaled_ridge_ / fit.weight_unit * np.diag(np.r_[np.ones(fit.factor.rank), [0.0] * intercept])
    gram, cross = A.T @ (w[:, None] * A) / fit.weight_unit + penalty, A.T @ (w[:, None] * Y) / fit.weight_unit
    residuals = np.empty_like(Y)
    _, group = np.unique(X, axis=0, return_inverse=True)
    for rows in (np.flatnonzero(group == one) for one in range(group.max() + 1)):
        own, share = A[rows], w[rows, None] / fit.weight_unit
        refit = np.linalg.solve(gram - own.T @ (share * own), cross - own.T @ (share * Y[rows]))
        residuals[rows] = Y[rows] - own @ refit
    assert model.loo_residuals_ == pytest.approx(residuals, rel=1e-5, abs=1e-6)
    expected = w @ residuals**2 / w.sum()
    assert path.loo_error[path.chosen[0]] == pytest.approx(expected, rel=1e-6)
    assert not path.sample[path.chosen[0]]


def test_other_errors_are_those_of_the_rows_kept(tried):
    X, Y = wavy(2500, 0.3)
    model = _uniform().fit(X, Y)
    path, kept = model.ridge_path_, model._model.rows.sample.rows
    assert len(kept) == 2048
    assert path.sample.sum() == len(path.ridges) - 1
    rows = (X[:, None, 0] == kept[:, 0]).any(axis=1)
    for k in np.flatnonzero(path.sample):
        other = _uniform(ridge=float(path.ridges[k])).fit(X, Y).calibrate(X, Y)
        assert path.loo_error[k] == pytest.approx((other.loo_residuals_[rows] ** 2).mean(axis=0), rel=1e-6)


def test_a_path_says_which_errors_are_of_a_sample(tried):
    X, Y = wavy(2500, 0.3)
    few = _uniform(n_landmarks=40)
    assert not few.fit(X, Y).ridge_path_.sample.any()
    assert few.partial_fit(X[:10], Y[:10]).ridge_path_.sample.all()
    assert _uniform().partial_fit(X[:1500], Y[:1500]).partial_fit(X[1500:], Y[1500:]).ridge_path_.sample.all()
    for options in ({"ridge": "gcv"}, {"ridge": [1e-2, 1e-5, 1e-9]}, {"ridge_per_target": True}):
        path = _uniform(**options).fit(X, Y).ridge_path_
        assert not path.sample.any()
        assert len(path.ridges) in (3, 57)


def test_noise_takes_the_largest_ridge_of_a_search_and_warns(tried):
    X, _ = wavy(2500, 0.0)
    with pytest.warns(RidgeEdgeWarning, match=r"largest of those searched, .*e-1\d to 1: "):
        model = _uniform().fit(X, np.random.default_rng(1).normal(size=2500))
    assert model.ridge_ == model.ridge_path_.largest
    assert len(model.ridge_path_.ridges) < 15


def test_batches_are_searched_as_one_fit_is(tried):
    X, Y = wavy(2000, 0.3)
    model = _uniform()
    whole = model.fit(X, Y).ridge_path_
    again = NystromRidge(bandwidth=1.5, selection=model.landmarks_)
    batches = again.partial_fit(X[:800], Y[:800]).partial_fit(X[800:], Y[800:]).ridge_path_
    assert batches.ridges == pytest.approx(whole.ridges)
    assert batches.loo_error == pytest.approx(whole.loo_error, rel=1e-6)


def test_ridges_below_rounding_are_not_searched(data):
    X, Y, _ = data
    passes, factor, origin = RowPasses(ArrayRows(X, Y)), nystrom_factor(Gaussian(1.0), X[:25]), Y.mean(axis=0)
    centred = CentredMoments(loss_sums(passes, factor, origin), True)
    total = centred.total_weight
    tiny = centred.rounding / total * np.array([0.9, 0.1])
    assert searched_path(passes, factor, centred, Ridges(tiny, tiny * total), origin, 1.0, 50) is None
    values = np.r_[1e-2, 1e-3, tiny]
    path, solved = searched_path(passes, factor, centred, Ridges(values, values * total), origin, 1e-3, 50)
    assert solved.size == centred.size
    assert path.smallest == 1e-3
    assert path.ridges.min() == 1e-3
