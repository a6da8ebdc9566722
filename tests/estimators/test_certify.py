"""Certificates and the solvers, as the estimator offers them."""

import json
from itertools import pairwise

import numpy as np
import pytest

from ridgemark import NystromRidge, exact, load
from ridgemark.errors import DataError, NumericalError, ParameterError
from ridgemark.solvers import solver_cost
from tests.helpers import slowly


def _data(n=900, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    X[: n // 30] *= 8
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=n)


def _distance(model, X, y):
    """RMS distance of the fitted values to exact kernel ridge regression."""
    K = exact.kernel_matrix(X, model.kernel_)
    twin = exact.kernel_ridge(K, y, model.scaled_ridge_, fit_intercept=model.fit_intercept)
    return np.sqrt(np.mean((model.predict(X) - twin.fitted) ** 2)), twin


@pytest.mark.parametrize("intercept", [True, *slowly(False)])
def test_every_kind_bounds_the_distance_to_exact(intercept, tmp_path):
    X, y = _data()
    model = NystromRidge(bandwidth="median", n_landmarks=80, ridge=1e-4, fit_intercept=intercept, random_state=0).fit(
        X, y
    )
    distance, twin = _distance(model, X, y)
    assert model.certificate_.kind == "trace"
    assert distance <= model.certificate_.bound
    audit = model.certify(X, y)
    operator = model.certify(X, y, kind="operator")
    assert distance <= audit.bound <= 4 * distance
    assert distance <= operator.bound
    assert operator.risk_factor >= 1
    assert json.loads(audit.to_json())["certainty"] == "deterministic"
    new = np.random.default_rng(5).normal(size=(200, 2)) * 3
    bounds = model.distance_to_exact(new, audit, X, y)
    away = np.abs(model.predict(new) - twin.predict(model.kernel_(new, X)))
    assert (away <= bounds).all()
    loaded = load(model.save(tmp_path / "m", sums=True))
    assert loaded.certificate_.claim == model.certificate_.claim
    assert loaded.certify(X, y).bound == audit.bound


def test_other_rows_are_refused():
    X, y = _data()
    model = NystromRidge(bandwidth="median", n_landmarks=80, ridge=1e-4, random_state=0).fit(X, y)
    for other in (_data(seed=1), (X, y[::-1]), (X[:-1], y[:-1])):
        with pytest.raises(DataError, match="not the rows the model was fitted on"):
            model.certify(*other)
    with pytest.raises(
        DataError, match=f"fitted on {len(y)} rows of total weight {len(y)}, got {len(y)} of {len(y) / 5:.12g};"
    ):
        model.certify(X, y, sample_weight=np.full(len(y), 0.2))
    light = NystromRidge(bandwidth="median", n_landmarks=80, ridge=1e-4, random_state=0).fit(X, y, np.full(len(y), 0.2))
    with pytest.raises(DataError, match=f"of total weight {len(y) / 5:.12g}, got {len(y)} of {len(y)};"):
        light.certify(X, y)
    with pytest.raises(ParameterError, match="kind of a certificate must be one of 'audit', 'operator', 'trace'"):
        model.certify(X, y, kind="guess")


@pytest.mark.parametrize("kind", ["audit", "operator"])
def test_rows_of_the_fit_beyond_the_range_are_not_said_to_be_others(kind):
    rng = np.random.default_rng(0)
    X, y = 1e100 * rng.normal(size=(10, 1)), 1e150 * rng.normal(size=10)
    model = NystromRidge("linear", ridge=10.0, fit_intercept=False, random_state=0).fit(X, y)
    with pytest.raises(NumericalError, match="exceeds the floating-point range"):
        model.certify(X, y, kind=kind)


@pytest.mark.parametrize("kind", ["audit", "operator"])
@pytest.mark.parametrize("ridge", ["loo", *slowly(1e-4)])
def test_the_tolerance_is_a_promise(kind, ridge):
    X, y = _data(800)
    model = NystromRidge(
        bandwidth="median",
        ridge=ridge,
        certify_with=kind,
        risk_tolerance=0.05,
        failure_probability=0.01,
        random_state=0,
    ).fit(X, y)
    tolerance = model.tolerance_
    assert tolerance.met
    assert tolerance.n_landmarks[-1] == model.n_landmarks_
    assert model.certificate_.kind == kind
    distance, _ = _distance(model, X, y)
    assert distance <= model.certificate_.bound
    if kind == "audit" and ridge == "loo":
        assert model.certificate_.bound <= 0.05 * np.sqrt(np.mean(model.loo_residuals_**2))


def test_landmarks_are_doubled_and_kept_until_the_tolerance_is_met():
    X, y = _data(900)
    options = {"bandwidth": 0.7, "ridge": 1e-4, "selection": "uniform", "random_state": 0}
    model = NystromRidge(certify_with="audit", risk_tolerance=0.01, **options).fit(X, y)
    sizes = model.tolerance_.n_landmarks
    assert len(sizes) > 1
    assert all(later == min(2 * earlier, 900) for earlier, later in pairwise(sizes))
    assert model.tolerance_.bounds[-1] < model.tolerance_.bounds[0]
    assert len(np.unique(model.landmark_indices_)) == model.n_landmarks_


def test_a_promise_that_cannot_be_kept_says_why():
    X, y = _data()
    given = NystromRidge(
        bandwidth="median", n_landmarks=20, certify_with="audit", risk_tolerance=1e-6, ridge=1e-5, random_state=0
    )
    assert not given.fit(X, y).tolerance_.met
    assert given.tolerance_.reason == "the number of landmarks was given"
    small = NystromRidge(
        certify_with="trace", risk_tolerance=1e-6, ridge=1e-7, bandwidth=0.1, memory_budget=12_000_000, random_state=0
    )
    assert small.fit(X, y).tolerance_.reason == "twice the landmarks exceed the memory budget"
    for wrong in ({"certify_with": "hope"}, {"certify_with": "audit", "solver": "gradient"}, {"solver": "magic"}):
        with pytest.raises(ParameterError, match=r"certify_with|solver must be one of 'auto', 'direct', 'gradient'"):
            NystromRidge(**wrong).fit(X, y)


class TestTheGradient:
    """For many landmarks, without the products of their features."""

    @pytest.mark.parametrize("selection", ["leverage", *slowly("uniform", "kmeans")])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_it_finds_what_the_direct_solver_finds(self, selection, weighted):
        X, y = _data(1200)
        w = np.random.default_rng(0).integers(0, 3, 1200) if weighted else None
        options = {"bandwidth": 0.2, "ridge": 1e-5, "n_landmarks": 300, "selection": selection, "random_state": 0}
        direct = NystromRidge(solver="direct", **options).fit(X, y, w)
        gradient = NystromRidge(solver="gradient", **options).fit(X, y, w)
        assert gradient.solver_ == "gradient"
        present = slice(None) if w is None else w > 0
        off = np.sqrt(np.average((gradient.predict(X) - direct.predict(X))[present] ** 2))
        assert off <= 1.5 * gradient.solver_bound_ + 1e-9
        assert off < 1.5e-2 * np.std(y - direct.predict(X))

    def test_a_part_of_the_landmarks_chooses_the_ridge(self):
        X, y = _data(3000)
        Y = np.c_[y, -y]
        model = NystromRidge(
            bandwidth="median", solver="gradient", n_landmarks=2200, selection="uniform", random_state=0
        ).fit(X, Y)
        assert model.ridge_path_.criterion == "loo"
        assert model.predict(X).shape == (3000, 2)
        assert model.n_landmarks_ == 2200
        assert not hasattr(model, "loo_residuals_")
        assert model.certificate_ is None

    def test_what_needs_sums_is_refused_in_words(self, tmp_path):
        X, y = _data()
        model = NystromRidge(bandwidth="median", solver="gradient", n_landmarks=100, ridge=1e-4, random_state=0).fit(
            X, y
        )
        for call in (
            lambda: model.partial_fit(X, y),
            lambda: model.certify(X, y),
            lambda: model.calibrate(X, y),
            lambda: model.predict(X, return_std=True),
        ):
            with pytest.raises(DataError, match=r"needs the sums that a direct solver keeps.*solver=\"direct\""):
                call()
        assert np.array_equal(load(model.save(tmp_path / "m")).predict(X), model.predict(X))
        model.set_params(solver="direct").fit(X, y).partial_fit(X, y)

    def test_auto_asks_the_cost_model(self):
        X, y = _data()
        assert NystromRidge(bandwidth="median", n_landmarks=100, ridge=1e-4).fit(X, y).solver_ == "direct"
        few, many = solver_cost(36_000, 1_000, 8), solver_cost(36_000, 10_000, 8)
        assert few.direct < few.gradient
        assert many.gradient < many.direct
