"""A faster and a slower fit: less and more work, and explicit arguments that win over it."""

import numpy as np
import pytest

from ridgemark import ExactKernelRidge, NystromClassifier, NystromRegressor, NystromRidge
from ridgemark.errors import ParameterError
from ridgemark.fitting.effort import EFFORTS
from ridgemark.tuning import Tuner

FEW = Tuner(rows=200, judging_rows=60, landmarks=30, evaluations=3)


def _rows(n=600, noise=0.1):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + noise * rng.normal(size=n)


def _fitted(effort, n):
    X, y = _rows(n)
    model = NystromRidge(bandwidth="per_feature", effort=effort, random_state=0).fit(X, y)
    X, y = _rows(n + 1000)
    return model, np.sqrt(np.mean((model.predict(X[n:]) - y[n:]) ** 2))


def _evaluated(model):
    """Return how many kernel values the tuner computed."""
    tuning = model.tuning_
    return tuning.n_evaluations * tuning.n_tuning * tuning.n_landmarks


def test_a_fast_fit_takes_less_work_and_is_still_good():
    (fast, error), (usual, usual_error) = (_fitted(effort, 600) for effort in ("fast", "default"))
    assert _evaluated(fast) < 0.8 * _evaluated(usual)
    assert error < 1.1 * usual_error


@pytest.mark.slow
def test_a_fit_with_high_effort_takes_more_work_and_landmarks():
    (usual, usual_error), (high, error) = (_fitted(effort, 6000) for effort in ("default", "high"))
    assert _evaluated(high) > _evaluated(usual)
    assert high.n_landmarks_ > 1.5 * usual.n_landmarks_
    assert error < 1.02 * usual_error


@pytest.mark.parametrize(
    "explicit",
    [
        {"bandwidth": FEW, "n_landmarks": 40},
        {"kernel": "gaussian", "bandwidth": 1.5, "n_landmarks": 40},
        {"bandwidth": "median", "n_landmarks": 40, "ridge": 1e-3},
    ],
)
def test_explicit_arguments_win_over_the_effort(explicit):
    X, y = _rows(400)
    fits = [NystromRidge(**explicit, effort=effort, random_state=0).fit(X, y) for effort in EFFORTS]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.predict(X), fits[0].predict(X))


def test_a_level_is_tuned_with_the_effort_asked_for():
    X, y = _rows()
    fast, usual = (
        NystromRidge(bandwidth="per_feature", effort=effort, n_landmarks=50, random_state=0).fit(X, y)
        for effort in ("fast", "default")
    )
    assert {fast.tuning_.level, usual.tuning_.level} == {"per_feature"}
    assert fast.tuning_.n_landmarks < usual.tuning_.n_landmarks


@pytest.mark.parametrize("estimator", [NystromClassifier, NystromRegressor, ExactKernelRidge])
def test_all_estimators_that_tune_a_kernel_take_an_effort(estimator):
    X, y = _rows(400, noise=0.5)
    y = (y > 0).astype(int) if estimator is NystromClassifier else y
    model = estimator(bandwidth="shared", effort="fast", n_landmarks=60, random_state=0).fit(X, y)
    assert model.tuning_.n_landmarks == 150


@pytest.mark.parametrize("wrong", ["slow", None, 2, ["fast"]])
def test_other_efforts_are_refused_in_one_line(wrong):
    X, y = _rows(100)
    with pytest.raises(ParameterError, match="effort must be one of 'fast', 'default', 'high', got") as caught:
        NystromRidge(effort=wrong).fit(X, y)
    assert "\n" not in str(caught.value)
