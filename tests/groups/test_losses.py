"""Groups of classes and of other losses: one Newton step is near refits, and intervals and sets are for new groups."""

import numpy as np
import pytest

from ridgemark import NystromClassifier, NystromRegressor, open_rows
from ridgemark.kernels import Gaussian
from ridgemark.losses import SQUARED, RidgeSolution, class_loss, make_loss
from ridgemark.operators import nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.path import left_out_predictor
from ridgemark.rows import ArrayRows
from ridgemark.rows.groups import hashes_of
from ridgemark.solvers import Newton
from tests.groups.problems import group_numbers
from tests.helpers import slowly

FIXED = {"kernel": "gaussian", "bandwidth": 1.0, "n_landmarks": 30, "random_state": 0}


def problem(name, n=160, seed=0):
    """Return rows, targets of a loss, weights and groups, one of them with more rows than landmarks."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    signal = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]
    if name == "poisson":
        y = rng.poisson(np.exp(signal))[:, None].astype(float)
    elif name == "two classes":
        y = (signal + rng.normal(size=n) > 0)[:, None].astype(float)
    elif name.startswith("three classes"):
        y = np.eye(3)[np.digitize(signal + rng.normal(size=n), [-0.5, 0.5])]
    else:
        y = (signal + 0.3 * rng.standard_t(3, size=n))[:, None]
    return X, y, rng.uniform(0.5, 2.0, n), group_numbers(n, rng, 50)


LOSSES = {
    "squared": SQUARED,
    "huber": make_loss("huber", None),
    "poisson": make_loss("poisson", None),
    "two classes": class_loss(2),
    "three classes": class_loss(3),
    "three classes, one by one": class_loss(3),
}


@pytest.mark.parametrize("intercept", [True, *slowly(False)])
@pytest.mark.parametrize("name", LOSSES)
def test_one_step_is_near_refits_without_each_group(name, intercept, monkeypatch):
    X, y, w, groups = problem(name)
    factor = nystrom_factor(Gaussian(1.0), X[:25], np.arange(25))
    loss = LOSSES[name].settled(y - np.median(y), w) if name == "huber" else LOSSES[name]
    ridge, start = 0.02 * w.sum(), RidgeSolution(np.zeros((factor.rank, y.shape[1])), np.zeros(y.shape[1]))

    def fitted(rows):
        source = ArrayRows(X[rows], y[rows], w[rows], hashes_of(groups[rows], len(rows)))
        newton = Newton(RowPasses(source), factor, loss, intercept)
        return newton, newton.with_own_system(newton.solve(ridge, start))

    if name.endswith("one by one"):  # as where the system of all classes would be large
        monkeypatch.setattr("ridgemark.solvers.newton._FEW_UNKNOWNS", 10)
    newton, fit = fitted(np.arange(len(y)))
    rows = newton.passes.single_rows()
    step, inside = left_out_predictor(newton, fit), factor.features(X) @ fit.solution.coefficients
    inside = (inside + fit.solution.intercept)[rows]
    exact = np.empty_like(step)
    for group in np.unique(groups):
        _, other = fitted(np.flatnonzero(groups != group))
        own = groups[rows] == group
        exact[own] = factor.features(X[rows][own]) @ other.solution.coefficients + other.solution.intercept
    moved = np.sqrt(((exact - inside) ** 2).mean())
    error = np.sqrt(((step - exact) ** 2).mean())
    assert error < (1e-6 if name == "squared" else 0.35) * moved
    assert newton.loss.values(y[rows], step).mean() == pytest.approx(
        newton.loss.values(y[rows], exact).mean(), rel=0.05
    )


def patients_with_labels(n_patients, seed, classes=2):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_patients), 10)
    own, level, t = rng.normal(size=(n_patients, 2)), 2.0 * rng.normal(size=n_patients), rng.uniform(-1, 1, len(groups))
    score = level[groups] + np.sin(3 * t) + 0.3 * rng.logistic(size=len(groups))
    return np.c_[own[groups], t], np.digitize(score, [0.0] if classes == 2 else [-1.0, 1.0]), groups


@pytest.mark.parametrize("classes", [2, 3])
def test_the_log_loss_of_groups_is_that_of_new_groups(classes):
    X, y, groups = patients_with_labels(60, 0, classes)
    Z, z, _ = patients_with_labels(200, 1, classes)
    fixed = FIXED | {"n_landmarks": 120, "kernel": "laplacian"}
    rows, model = NystromClassifier(**fixed).fit(X, y), NystromClassifier(**fixed).fit(X, y, groups=groups)

    def shown_over_true(fitted):
        true = -np.log(np.clip(fitted.predict_proba(Z)[np.arange(len(z)), z], 1e-15, 1)).mean()
        return fitted.ridge_path_.loo_loss[fitted.ridge_path_.chosen] / true

    assert model.n_groups_ == 60
    assert 0.85 < shown_over_true(model) < 1.15
    assert shown_over_true(rows) < 0.75
    assert model.ridge_ > rows.ridge_
    assert model.calibration_.n_groups == 60
    held = [fitted.predict_set(Z, 0.9)[np.arange(len(z)), z].mean() for fitted in (rows, model)]
    assert held[0] < held[1]
    assert held[1] > 0.82


@pytest.mark.parametrize("seeds", [2, *slowly(8)])
@pytest.mark.parametrize("loss", ["huber", "quantile"])
def test_intervals_of_other_losses_cover_new_groups(loss, seeds):
    options = FIXED | {"kernel": "laplacian", "n_landmarks": 100}
    options |= {"quantiles": [0.05, 0.95]} if loss == "quantile" else {}
    inside = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        groups, others = np.repeat(np.arange(60), 6), np.repeat(np.arange(100), 3)
        own, new = rng.normal(size=(60, 3)), rng.normal(size=(100, 3))
        x, z = rng.uniform(-1, 1, len(groups)), rng.uniform(-1, 1, len(others))
        y = own[groups, 2] + np.sin(3 * x) + 0.2 * rng.normal(size=len(x))
        t = new[others, 2] + np.sin(3 * z) + 0.2 * rng.normal(size=len(z))
        model = NystromRegressor(loss, **options).fit(np.c_[own[groups, :2], x], y, groups=groups)
        ends = model.predict_interval(np.c_[new[others, :2], z])
        inside.append(np.mean((ends[:, 0] <= t) & (t <= ends[:, 1])))
    assert model.calibration_.n_groups == 60
    assert 0.82 < np.mean(inside) < 0.97


def test_classes_with_groups_of_one_row_change_nothing():
    X, y, _ = patients_with_labels(20, 0)
    alone, singly = (NystromClassifier(**FIXED).fit(X, y, groups=labels) for labels in (None, np.arange(200)))
    assert (alone.predict_proba(X) == singly.predict_proba(X)).all()
    assert alone.ridge_ == singly.ridge_


def test_counts_with_exposures_take_groups():
    rng = np.random.default_rng(0)
    X, groups, exposure = rng.normal(size=(200, 2)), np.repeat(np.arange(20), 10), rng.uniform(0.5, 2.0, 200)
    counts = rng.poisson(exposure * np.exp(X[:, 0] + rng.normal(size=20)[groups]))
    model = NystromRegressor("poisson", **FIXED).fit(X, counts, exposure=exposure, groups=groups)
    assert model.n_groups_ == 20


def test_a_diagnosis_of_rows_with_groups_leaves_groups_out():
    X, y, groups = patients_with_labels(40, 0)
    model = NystromClassifier(**FIXED).fit(X, y, groups=groups)
    surprise = model.diagnose(open_rows(X, target=y, group=groups)).surprise.mean()
    assert surprise == pytest.approx(model.ridge_path_.loo_loss[model.ridge_path_.chosen], rel=0.02)
    assert model.diagnose(X, y).surprise.mean() < surprise
