"""Intervals for rows of new groups: the jackknife+ over groups, coverage, guarantee, and errors of effects."""

import numpy as np
import pytest

from ridgemark import NystromRidge
from ridgemark.errors import ParameterError
from tests.groups.problems import patients
from tests.helpers import most_failures, slowly

FIXED = {"kernel": "gaussian", "bandwidth": 2.0, "n_landmarks": 30, "random_state": 0}


@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_of_one_width_run_between_quantiles_of_refits_without_each_group(weighted):
    X, y, groups = patients(25, 4)
    w = np.random.default_rng(0).uniform(0.5, 2.0, 100) if weighted else np.ones(100)
    model = NystromRidge(ridge=1e-3, **FIXED).fit(X, y, w, groups=groups)
    Z = patients(3, 2, seed=5)[0]
    low, high, counted = [], [], []
    for group in range(25):
        rest = groups != group
        ridge = model.scaled_ridge_ / w[rest].sum()
        other = NystromRidge(selection=model.landmarks_, **FIXED | {"ridge": ridge}).fit(X[rest], y[rest], w[rest])
        sizes = abs(y[~rest] - other.predict(X[~rest]))
        low += [other.predict(Z) - size for size in sizes]
        high += [other.predict(Z) + size for size in sizes]
        counted += (w[~rest] / 4).tolist()
    counted, ends = np.array(counted), model.predict_interval(Z, adaptive=False)
    for k in range(len(Z)):
        for values, end, sign in ((low, ends[k, 0], -1.0), (high, ends[k, 1], 1.0)):
            candidates = sign * np.array(values)[:, k]
            order = np.argsort(candidates)
            reached = np.cumsum(counted[order]) >= (24 / 25 - 1e-9) * counted.sum()  # ceil(.9 26) of 25 groups
            assert sign * end == pytest.approx(candidates[order][np.argmax(reached)], abs=1e-6)


@pytest.mark.parametrize("seeds", [12, *slowly(40)])
def test_ninety_percent_of_rows_of_new_groups_are_covered_and_rows_left_out_cover_fewer(seeds):
    inside = {"groups": [], "one width": [], "rows": []}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        n_groups = int(rng.integers(30, 120))
        X, y, groups = patients(n_groups, 6, seed=2 * seed)
        Z, z, _ = patients(100, 3, seed=2 * seed + 1)
        model = NystromRidge(**FIXED).fit(X, y, groups=groups)
        rows = NystromRidge(**FIXED | {"kernel": "laplacian", "n_landmarks": 100}).fit(X, y)
        for name, ends in (
            ("groups", model.predict_interval(Z)),
            ("one width", model.predict_interval(Z, adaptive=False)),
            ("rows", rows.predict_interval(Z)),
        ):
            inside[name].append(np.mean((ends[:, 0] <= z) & (z <= ends[:, 1])))
    assert 0.87 < np.mean(inside["groups"]) < 0.935
    assert 0.87 < np.mean(inside["one width"]) < 0.935
    assert np.mean(inside["rows"]) < 0.8


def test_every_group_counts_equally():
    X, y, groups = patients(40, 5)
    large = np.repeat(np.arange(200), np.where(groups < 10, 8, 1))
    rng = np.random.default_rng(1)
    moved = X[large] + 0.01 * rng.normal(size=(len(large), 3))
    model = NystromRidge(ridge=1e-2, **FIXED).fit(moved, y[large], groups=groups[large])
    known = model.calibration_
    totals = np.bincount(known.groups.of_rows, known.weights)
    assert known.n_distinct == len(totals) == 40
    assert totals == pytest.approx(np.ones(40))


def test_coverage_is_proved_for_uniform_landmarks_and_groups_of_one_size():
    X, y, groups = patients(60, 5)
    few = FIXED | {"n_landmarks": 10, "selection": "uniform", "ridge": 1e-2}
    model = NystromRidge(**few).fit(X, y, groups=groups)
    assert model.calibration_.guaranteed
    assert "new groups" in model.calibration_.reason
    with_landmark = np.unique(groups[model.landmark_indices_])
    assert model.calibration_.n_distinct == 60 - len(with_landmark)
    assert not np.isin(groups[model.calibration_.indices], with_landmark).any()
    unequal = NystromRidge(**few).fit(X[:-1], y[:-1], groups=groups[:-1]).calibration_
    assert not unequal.guaranteed
    assert "unequal" in unequal.reason
    assert (
        not NystromRidge(**FIXED | {"selection": "uniform", "ridge": 1e-2})
        .fit(X[:50], y[:50], groups=groups[:50] // 2)
        .calibration_.guaranteed
    )


def test_the_guarantee_over_groups_holds():
    """P(miss) is at most 2 alpha = 0.4 for coverage 0.8, for one row of one new group of every simulation."""
    missed = 0
    for seed in range(60):
        X, y, groups = patients(25, 3, seed=seed)
        old, new = groups < 24, np.flatnonzero(groups == 24)[:1]
        options = FIXED | {"n_landmarks": 5, "selection": "uniform", "ridge": 1e-2, "random_state": seed}
        model = NystromRidge(**options).fit(X[old], y[old], groups=groups[old])
        assert model.calibration_.guaranteed
        low, high = model.predict_interval(X[new], coverage=0.8)[0]
        missed += not low <= y[new][0] <= high
    assert missed <= most_failures(60, 0.4)


def test_too_few_groups_are_named():
    X, y, groups = patients(6, 20)
    model = NystromRidge(**FIXED).fit(X, y, groups=groups)
    with pytest.raises(ParameterError, match="at least 9 groups of calibration rows, got 6"):
        model.predict_interval(X)
    assert np.isfinite(model.predict_interval(X, coverage=0.5)).all()


def test_errors_of_effects_are_those_of_the_jackknife_over_groups():
    """Levels of patients make the error of a column's effect larger than independent rows would."""
    X, y, groups = patients(40, 10)
    model, rows = (NystromRidge(ridge=1e-2, **FIXED).fit(X, y, groups=labels) for labels in (groups, None))
    own, alone = model.effects_summary(X), rows.effects_summary(X)
    assert own.average == pytest.approx(alone.average)
    assert own.standard_error[0, 0] > 1.5 * alone.standard_error[0, 0]
