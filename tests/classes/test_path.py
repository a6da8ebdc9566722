"""One-step leave-one-out chooses a ridge as refits do."""

import functools
import gc

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine

from ridgemark import NystromClassifier
from ridgemark.errors import RidgeEdgeWarning
from ridgemark.kernels import Gaussian
from ridgemark.losses import RidgeSolution, class_loss
from ridgemark.operators import nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.path import LossSearch, Ridges, left_out_predictor
from ridgemark.rows import ArrayRows
from ridgemark.solvers import CurvatureSystem, JointSystem, Newton, NewtonFit, TargetSystems
from tests.classes.problems import indicators, labelled
from tests.helpers import slowly


def small_set(name):
    rng = np.random.default_rng(0)
    if name == "smooth":
        X, labels = labelled(150, 2)
        return X, labels, 1.0
    X, labels = {"cancer": load_breast_cancer, "wine": load_wine}[name](return_X_y=True)
    rows = rng.permutation(len(X))[:120]
    X = X[rows]
    return (X - X.mean(axis=0)) / X.std(axis=0), labels[rows], np.sqrt(X.shape[1])


class Refits:
    """A problem whose leave-one-out loss is found by refits, without each distinct row, or each row."""

    singly = False

    def __init__(self, X, labels, width, weights=None, n_landmarks=50):
        self.n_classes = int(labels.max()) + 1
        self.X, self.Y = X, indicators(labels, self.n_classes)
        self.weights = np.ones(len(X)) if weights is None else weights
        self.factor = nystrom_factor(Gaussian(width), X[:n_landmarks], np.arange(n_landmarks))
        self.loss = class_loss(self.n_classes)
        self.newton = self.on(np.ones(len(X), dtype=bool))
        self.sample = self.newton.drawn.sample
        t = self.Y.shape[1]
        self.zero = RidgeSolution(np.zeros((self.factor.rank, t)), np.zeros(t))
        self.known = {}

    def on(self, rows):
        passes = RowPasses(ArrayRows(self.X[rows], self.Y[rows], self.weights[rows]))
        return Newton(passes, self.factor, self.loss, True)

    def one_step(self, fit):
        left_out = left_out_predictor(self.newton, self.newton.with_own_system(fit))
        values = self.loss.values(self.sample.targets(), left_out)
        weights = self.sample.row_counts()
        return float(weights @ values / weights.sum())

    def refitted(self, fit, scaled_ridge):
        """Return the leave-one-out loss by refits, which begin at a fit of the same ridge and are done once."""
        if scaled_ridge not in self.known:
            self.known[scaled_ridge] = self._refit(fit, scaled_ridge)
        return self.known[scaled_ridge]

    def _refit(self, fit, scaled_ridge):
        features, total = self.factor.features(self.X), 0.0
        _, group = np.unique(self.X, axis=0, return_inverse=True)
        group = np.arange(len(self.X)) if self.singly else group
        for one in np.unique(group):
            own = group == one
            without = self.on(~own).solve(scaled_ridge, fit.solution, tol=1e-9).solution
            predictor = features[own] @ without.coefficients + without.intercept
            total += float(self.weights[own] @ self.loss.values(self.Y[own], predictor))
        return total / self.weights.sum()


@functools.cache
def refits_of(name):
    return Refits(*small_set(name))


@pytest.mark.parametrize("name", ["smooth", *slowly("cancer", "wine")])
def test_the_ridge_chosen_in_one_step_is_within_a_percent_of_the_best_by_refits(name):
    problem = refits_of(name)
    n = len(problem.X)
    ridges = np.logspace(-1, -6, 11)
    search = LossSearch([problem.newton], Ridges(ridges, n * ridges), [problem.zero])
    for position in range(len(ridges)):
        search.evaluate(position)
    chosen = search.best(n)[0].chosen
    near = [k for k in range(len(ridges)) if abs(k - chosen) <= 2]
    refitted = {k: problem.refitted(problem.newton.solve(n * ridges[k], problem.zero), n * ridges[k]) for k in near}
    assert refitted[chosen] <= 1.01 * min(refitted.values())


@pytest.mark.parametrize("name", ["smooth", *slowly("cancer", "wine")])
def test_one_step_is_within_two_percent_of_refits_for_few_effective_dimensions(name):
    problem = refits_of(name)
    n = len(problem.X)
    for ridge in np.logspace(-1, -3, 3):
        fit = problem.newton.solve(n * ridge, problem.zero)
        sums = problem.newton.sums(fit.solution, n * ridge)
        assert CurvatureSystem(sums, True, n * ridge).effective_dimension < n / 10
        assert problem.one_step(fit) == pytest.approx(problem.refitted(fit, n * ridge), rel=0.02)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_equal_rows_are_left_out_together(n_classes):
    X, labels = labelled(120, n_classes)
    X[60:100] = X[:40]
    weights = np.random.default_rng(3).uniform(0.2, 2.0, 120)
    problem = Refits(X, labels, 1.0, weights)
    fit = problem.newton.solve(3.0, problem.zero)
    assert problem.sample.source.n_rows == 80
    assert problem.one_step(fit) == pytest.approx(problem.refitted(fit, 3.0), rel=0.02)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_of_few_cells_are_left_out_one_by_one(n_classes):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (120, 2)).astype(float)
    labels = (X[:, 0] + rng.integers(0, 2, 120) * (n_classes - 1)).astype(int) % n_classes
    problem = Refits(X, labels, 1.0)
    problem.singly = True
    fit = problem.newton.solve(3.0, problem.zero)
    assert problem.sample.source.n_rows == 120
    assert problem.one_step(fit) == pytest.approx(problem.refitted(fit, 3.0), rel=0.02)


@pytest.mark.parametrize(("rows", "holds"), [(8192, False), (60, False), (60, True)])
def test_systems_of_each_class_alone_leave_rows_out_nearly_as_well(monkeypatch, rows, holds):
    """Also from a sample of the rows, or from some drawn of all, whose curvature stands for that of all."""
    X, labels = labelled(240, 3)
    exactly = Refits(X, labels, 1.0)
    fit = exactly.newton.solve(2.0, exactly.zero)
    values = exactly.loss.values(exactly.sample.targets(), left_out_predictor(exactly.newton, fit))
    monkeypatch.setattr("ridgemark.solvers.newton._FEW_UNKNOWNS", 0)
    monkeypatch.setattr("ridgemark.solvers.drawn_rows._SAMPLED", rows)
    problem = Refits(X, labels, 1.0)
    problem.newton = problem.newton.hold() if holds else problem.newton
    assert problem.one_step(problem.newton.solve(2.0, problem.zero)) == pytest.approx(values[:rows].mean(), rel=0.05)


def test_classes_left_out_one_by_one_move_as_far_as_jointly(monkeypatch):
    """Of three classes two are alike: each alone would move twice as far, and the loss be 4% too large."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    wave = 1.5 * np.sin(2.0 * X[:, 0])
    chances = np.exp(np.stack([wave, -wave, X[:, 1] - 3.0], axis=1))
    labels = (rng.uniform(size=(600, 1)) * chances.sum(axis=1, keepdims=True) > chances.cumsum(axis=1)).sum(axis=1)
    problem = Refits(X, labels, 0.7)
    fit = problem.newton.solve(0.6, problem.zero)
    jointly = problem.one_step(fit)
    monkeypatch.setattr("ridgemark.solvers.newton._FEW_UNKNOWNS", 0)
    alone = problem.newton.solve(0.6, fit.solution)
    assert isinstance(alone.system, TargetSystems)
    assert problem.one_step(alone) == pytest.approx(jointly, rel=0.02)
    monkeypatch.setattr("ridgemark.path.loss_search._jointly", lambda leverage, *given: leverage)
    assert problem.one_step(alone) > 1.03 * jointly


@pytest.mark.parametrize("scaled_ridge", [0.1, 0.01])
def test_a_row_far_from_others_moves_as_far_with_one_class_as_with_all(monkeypatch, scaled_ridge):
    """All rows are landmarks, of a narrow kernel: with half its leverage a row would seem to be known without it."""
    X, labels = labelled(200, 4)
    problem = Refits(X, labels, 0.3, n_landmarks=200)
    fit = problem.newton.solve(scaled_ridge, problem.zero)
    jointly = problem.one_step(fit)
    monkeypatch.setattr("ridgemark.solvers.newton._FEW_UNKNOWNS", 0)
    alone = problem.newton.solve(scaled_ridge, fit.solution)
    assert isinstance(alone.system, TargetSystems)
    assert problem.one_step(alone) == pytest.approx(jointly, rel=0.1)


def test_rows_that_hardly_change_are_not_left_out_of_each_class(monkeypatch):
    X, labels = labelled(400, 5, sharpness=20.0)
    monkeypatch.setattr("ridgemark.solvers.newton._FEW_UNKNOWNS", 0)
    problem = Refits(X, labels, 1.0)
    features, every = problem.factor.features(X), np.ones((400, 5), dtype=bool)
    looked_at, leverage = [], TargetSystems.leverage
    monkeypatch.setattr(TargetSystems, "leverage", lambda *given: looked_at.append(given[2]) or leverage(*given))
    for ridge in (1e-2, 1e-5):
        fit = problem.newton.solve(400 * ridge, problem.zero)
        assert (fit.system.leverage(features, every) <= (1.0 + 1e-9) * fit.system.most_leverage(features)).all()
        looked_at.clear()
        loss = problem.one_step(fit)
        assert 0.02 < np.concatenate(looked_at).mean() < 0.98
        with monkeypatch.context() as patched:
            patched.setattr("ridgemark.path.loss_search._SEEN", 0.0)
            assert problem.one_step(fit) == pytest.approx(loss, rel=1e-4)


def test_a_search_keeps_the_system_of_the_best_ridge_alone():
    problem = Refits(*labelled(80, 3), 1.0)
    ridges = np.logspace(-1, -4, 5)
    search = LossSearch([problem.newton], Ridges(ridges, 80 * ridges), [problem.zero])
    losses = [search.evaluate(position) for position in range(5)]
    path, [solution], [system] = search.best(80.0)
    assert path.loo_loss.tolist() == losses
    assert np.array_equal(solution.coefficients, search.parts[0].solutions[path.chosen].coefficients)
    assert system.scaled_ridge == 80 * ridges[np.argmin(losses)]
    gc.collect()
    assert [one for one in gc.get_objects() if type(one) is JointSystem] == [system]


def test_a_search_sums_one_system_for_each_ridge(monkeypatch):
    """A solve begins with the system of the best ridge so far, up to a decade away, or with the mean curvature."""
    monkeypatch.setattr("ridgemark.solvers.newton._FEW_UNKNOWNS", 0)
    X, labels = labelled(300, 3)
    problem = Refits(X, labels, 1.0)
    monkeypatch.setattr(Newton, "_most_spent", np.inf)
    systems, system = [], Newton.system
    monkeypatch.setattr(Newton, "system", lambda *given: systems.append(1) or system(*given))
    ridges = np.append(np.logspace(-1, -2, 5), 1e-6)
    search = LossSearch([problem.newton], Ridges(ridges, 300 * ridges), [problem.zero])
    for position in (2, 4, 0, 3, 1):
        search.evaluate(position)
    assert search.parts[0].best_at == 4
    assert len(systems) == 5
    search.parts[0].best_at = 0  # the nearest ridge is not the best one, which is far away
    search.evaluate(5)
    assert len(systems) == 5 + 1


def test_a_solve_between_two_ridges_begins_with_the_better_one(monkeypatch):
    X, labels = labelled(300, 3)
    problem, ridges, begun = Refits(X, labels, 1.0), np.array([1.0, 0.1, 0.01]), []
    search = LossSearch([problem.newton], Ridges(ridges, 300 * ridges), [problem.zero])
    monkeypatch.setattr(NewtonFit, "extrapolated", lambda fit, ridge: begun.append(fit) or fit.solution)
    search.evaluate(0)
    search.evaluate(2)
    begun.clear()
    assert search.parts[0].best_at == 2
    search.evaluate(1)
    assert len(begun) == 1


def test_of_ridges_that_predict_all_labels_for_sure_the_largest_is_taken():
    X = np.random.default_rng(0).normal(size=(300, 2))
    labels = X[:, 0] > 0
    X[:, 0] += np.where(labels, 1.0, -1.0)
    model = NystromClassifier("gaussian", bandwidth=3.0, n_landmarks=100, random_state=0, ridge=[1e-4, 1e-6, 1e-8])
    path = model.fit(X, labels).ridge_path_
    assert path.loo_loss[2] < 0.1 * path.loo_loss[1] < 0.01 * path.loo_loss[0]
    assert 300 * path.loo_loss[1] < 0.25 < 300 * path.loo_loss[0]
    assert path.chosen == 1


def test_the_estimator_finds_the_best_of_the_ridges_searched():
    X, labels = labelled(400, 2)
    searched = NystromClassifier("gaussian", bandwidth=1.0, n_landmarks=60, random_state=0).fit(X, labels)
    every = NystromClassifier(
        "gaussian", bandwidth=1.0, n_landmarks=60, random_state=0, ridge=np.logspace(0, -6, 25)
    ).fit(X, labels)
    assert len(every.ridge_path_.ridges) == 25
    assert len(searched.ridge_path_.ridges) < 15
    assert searched.ridge_path_.loo_loss.min() <= 1.002 * every.ridge_path_.loo_loss.min()
    assert searched.ridge_ == searched.ridge_path_.ridges[searched.ridge_path_.chosen]


def test_the_edge_is_that_of_the_ridges_searched_not_of_those_tried():
    X, labels = labelled(300, 2)
    options = {"kernel": "gaussian", "bandwidth": 1.0, "n_landmarks": 40, "random_state": 0}
    with pytest.warns(RidgeEdgeWarning):
        assert NystromClassifier(**options, ridge=[1.0, 10.0, 100.0]).fit(X, labels).ridge_path_.on_edge
    assert not NystromClassifier(**options).fit(X, labels).ridge_path_.on_edge


@pytest.mark.parametrize("n_classes", [2, 3])
def test_dimensions_of_targets_are_traces(n_classes):
    """`m - s tr H^-1_kk` of the m coefficients of target k: jointly, and with H_kk^-1 for each target alone."""
    X, labels = labelled(150, n_classes)
    problem, s = Refits(X, labels, 1.0), 0.15
    fit = problem.newton.solve(s, problem.zero, tol=1e-9)
    features = np.column_stack([problem.factor.features(X), np.ones(len(X))])
    predictor = features[:, :-1] @ fit.solution.coefficients + fit.solution.intercept
    t, m = problem.Y.shape[1], features.shape[1] - 1
    units = [np.tile(unit, (len(X), 1)) for unit in np.eye(t)]
    curvature = [problem.loss.curvature_product(problem.Y, predictor, unit) for unit in units]
    blocks = np.einsum("ia,lik,ib->kalb", features, np.stack(curvature), features)
    alone = TargetSystems(np.stack([blocks[k, :, k] for k in range(t)]), np.empty((0, t)), True, s)
    ridge = np.diag(np.append(np.full(m, s), 0.0))
    inverses = [np.linalg.inv(blocks[k, :, k] + ridge)[:m, :m] for k in range(t)]
    assert alone.dimensions == pytest.approx([m - s * one.trace() for one in inverses], rel=1e-4)
    # Constants that are equal in all targets have no influence; without curvature along them there is no inverse.
    whole = blocks.reshape(t * (m + 1), -1) + np.kron(np.eye(t), ridge)
    whole += np.kron(np.full((t, t), float(t > 1)), np.diag(np.append(np.zeros(m), 1.0)))
    jointly = np.linalg.inv(whole).reshape(t, m + 1, t, m + 1)
    assert fit.system.dimensions == pytest.approx([m - s * jointly[k, :m, k, :m].trace() for k in range(t)], rel=1e-4)


@pytest.mark.parametrize("rare", [1, 2, 5])
def test_a_few_labels_without_pattern_do_not_choose_a_tiny_ridge(rare):
    rng = np.random.default_rng(2)
    X, labels = rng.normal(size=(400, 3)), np.arange(400) < rare
    model = NystromClassifier("gaussian", bandwidth="median", n_landmarks=60, random_state=0).fit(X, labels)
    losses = -model.predict_log_proba(rng.normal(size=(2000, 3)))
    share = rare / 400
    assert (1 - share) * losses[:, 0].mean() + share * losses[:, 1].mean() < -1.2 * share * np.log(share) + 1.2 * share


@pytest.mark.parametrize(("seed", "class_weight"), [(1, None), pytest.param(5, "balanced", marks=pytest.mark.slow)])
def test_a_rare_class_among_many_rows_does_not_choose_a_tiny_ridge(seed, class_weight):
    """Leave-one-out alone, which sees 8,192 of the rows, chose 3e-8 and 3e-7: 1.8 and 14 times the best loss."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40_000, 5))
    odds = 1.2 * X[:, 0] + 0.7 * X[:, 1] * X[:, 2] + np.log(0.001) - 0.97
    labels, train = rng.random(40_000) < 1.0 / (1.0 + np.exp(-odds)), np.arange(40_000) < 20_000
    model = NystromClassifier(
        "gaussian", bandwidth="median", n_landmarks=100, class_weight=class_weight, random_state=0
    )
    weights = np.where(labels[~train], 1.0 / labels[train].mean(), 1.0) if class_weight else None

    def loss(ridge):
        logs = model.set_params(ridge=ridge).fit(X[train], labels[train]).predict_log_proba(X[~train])
        return np.average(-np.where(labels[~train], logs[:, 1], logs[:, 0]), weights=weights)

    assert loss("loo") < 1.15 * min(loss(ridge) for ridge in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6))
