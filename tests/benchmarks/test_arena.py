"""The wrapper for TabArena fits and predicts through the interface of its models."""

import pickle
import sys
import types
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, r2_score

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


class StandIn:
    """What AutoGluon documents of `AbstractModel`, as far as TabArena uses it: stands in where it is not installed."""

    def __init__(self, problem_type, hyperparameters=None):
        self.problem_type, self._params = problem_type, {}
        self._set_default_params()
        self._params |= hyperparameters or {}
        self.params_aux = self._get_default_auxiliary_params()

    def _set_default_param_value(self, name, value):
        self._params[name] = value

    def _get_model_params(self):
        return {**self._params}

    def _get_default_auxiliary_params(self):
        return {"ignored_type_group_special": []}

    def preprocess(self, X, y=None, is_train=False):
        return X

    def fit(self, X, y, **resources):
        self._fit(X=X, y=y, X_val=None, y_val=None, time_limit=60, **resources)
        return self

    def predict_proba(self, X):
        if self.problem_type == "regression":
            return self.model.predict(self.preprocess(X))
        probabilities = self.model.predict_proba(self.preprocess(X))
        return probabilities[:, 1] if self.problem_type == "binary" else probabilities


@pytest.fixture
def arena(monkeypatch):
    """The module of the wrapper, on the stand-in."""
    models = types.ModuleType("autogluon.core.models")
    models.AbstractModel = StandIn
    for name in ("autogluon", "autogluon.core"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "autogluon.core.models", models)
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.delitem(sys.modules, "arena", raising=False)
    return import_module("arena")


@pytest.fixture
def task():
    """A table of numbers, categories and gaps, and what it tells of a target."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.uniform(0, 3, 300), "kind": pd.Categorical(rng.choice(["a", "b", "c"], 300))})
    signal = np.sin(2 * X["size"]) + X["kind"].map({"a": 0.0, "b": 1.0, "c": 2.0}).astype(float)
    X.loc[::9, "size"] = np.nan
    X.index += 1000  # as of a part of a longer table
    return X, pd.Series(signal.to_numpy(), index=X.index)


def test_numbers_are_predicted(arena, task):
    X, y = task
    model = arena.RidgemarkModel("regression", {"n_landmarks": 100}).fit(X[:200], y[:200], num_cpus=1)
    assert model.model.get_params()["n_landmarks"] == 100
    assert r2_score(y[200:], model.predict_proba(X[200:])) > 0.7
    with pytest.raises(TypeError, match="unknown"):
        arena.RidgemarkModel("regression", {"unknown": 1}).fit(X, y)


@pytest.mark.parametrize(("problem", "edges"), [("binary", [1.0]), ("multiclass", [0.6, 1.5])])
def test_probabilities_of_labels_have_the_form_that_the_interface_asks_for(arena, task, problem, edges):
    X, y = task
    labels = pd.Series(np.digitize(y, edges), index=y.index)
    assert problem in arena.RidgemarkModel.supported_problem_types()
    model = pickle.loads(pickle.dumps(arena.RidgemarkModel(problem).fit(X[:200], labels[:200], num_cpus=1)))
    p = model.predict_proba(X[200:])
    assert p.shape == ((100,) if problem == "binary" else (100, 3))
    named = p > 0.5 if problem == "binary" else p.argmax(axis=1)
    assert accuracy_score(labels[200:], named) > 0.75


def test_every_kind_of_column_of_the_task_is_taken(arena):
    taken = arena.RidgemarkModel("regression").params_aux
    assert taken["valid_raw_types"] == ["bool", "int", "float", "category"]
    assert "ignored_type_group_special" in taken
