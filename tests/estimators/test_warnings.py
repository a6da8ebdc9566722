"""A warning names the user's line, not one of the package or of a decorator."""

import inspect

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from ridgemark import ExactKernelRidge, NystromFeatures, NystromRidge, open_rows
from ridgemark.errors import ColumnWarning, RidgemarkWarning
from ridgemark.kernels import Gaussian

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 2)), RNG.normal(size=40)
CASES = {
    "few rows": (NystromRidge(bandwidth="median", ridge=1e-3, n_landmarks=500), X, Y),
    "edge of the ridges": (NystromRidge(ridge=[1e-9, 1e-8], bandwidth=1.0), X, Y),
    "constant kernel": (NystromRidge("polynomial", ridge=1e-3), X + 1e9, Y),
    "exact, few rows": (ExactKernelRidge(bandwidth="median", ridge=1e-3, n_landmarks=500), X, Y),
    "exact, products spent": (
        ExactKernelRidge(Gaussian(1.0), ridge=1e-6, n_landmarks=3, tol=1e-9, max_iter=1),
        RNG.normal(size=(3000, 2)),
        RNG.normal(size=3000),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_warning_names_the_line_that_called_fit(case):
    model, rows, targets = CASES[case]
    with pytest.warns(RidgemarkWarning) as caught:
        line = inspect.currentframe().f_lineno + 1
        model.fit(rows, targets)
    assert {(one.filename, one.lineno) for one in caught} == {(__file__, line)}


@pytest.mark.parametrize(
    "call",
    [
        lambda: NystromFeatures(n_landmarks=500).fit_transform(X),
        lambda: make_pipeline(NystromFeatures(n_landmarks=500), "passthrough").fit(X),
        lambda: cross_val_score(CASES["few rows"][0], X, Y, cv=2),
    ],
)
def test_a_warning_names_the_line_that_called_scikit_learn(call):
    with pytest.warns(RidgemarkWarning) as caught:
        call()
    assert {(one.filename, one.lineno) for one in caught} == {(__file__, call.__code__.co_firstlineno)}


@pytest.mark.parametrize(
    ("value", "written"),
    [
        pytest.param(3.0, "3", marks=pytest.mark.slow),
        (0.0, "0"),
        pytest.param(0.1, "0.1", marks=pytest.mark.slow),
        (-1e9 / 3, "-333,333,000"),
    ],
)
@pytest.mark.parametrize("estimator", [NystromRidge, ExactKernelRidge])
def test_a_constant_target_is_warned_about(estimator, value, written):
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(1500, 2)), rng.random(1500)
    model = estimator(kernel="gaussian", bandwidth=1.0, n_landmarks=20, random_state=0)
    with pytest.warns(ColumnWarning, match=f"the target is {written} in all rows, and so is every prediction"):
        model.fit(X, np.full(1500, value), weights)
    assert model.predict(X) == pytest.approx(value, rel=1e-12)
    with pytest.warns(ColumnWarning, match="the target 'price' is"):
        model.fit(open_rows({"a": X[:, 0], "price": np.full(1500, value)}, target="price"))
    with pytest.warns(ColumnWarning, match="target 1 is"):
        model.fit(X, np.c_[X[:, 0] + rng.normal(size=1500), np.full(1500, value)])
    if value and estimator is NystromRidge:
        model.fit(X, value * (1 + 1e-12 * np.sin(X[:, 0])))
