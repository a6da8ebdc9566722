"""Callbacks of scikit-learn: what they are told of a fit, and how they stop it."""

import sys

import numpy as np
import pytest

from ridgemark import ExactKernelRidge, NystromClassifier, NystromFeatures, NystromRegressor, NystromRidge
from ridgemark.errors import RidgemarkError

FIXED = {"bandwidth": 1.0, "n_landmarks": 30, "random_state": 0}
ESTIMATORS = [
    NystromRidge(**FIXED),
    NystromClassifier(**FIXED),
    NystromRegressor(**FIXED),
    ExactKernelRidge(bandwidth=1.0, random_state=0),
    NystromFeatures(**FIXED),
]


class Recorder:
    """Notes which tasks begin and end; returns true, or raises, at the end of a task of one name."""

    def __init__(self, stop_at=None, error=None):
        self.events, self.stop_at, self.error, self.open = [], stop_at, error, 0

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.open += 1
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context):
        self.open -= 1
        self.events.append(("end", context.task_name))
        if context.task_name == self.stop_at and self.error is not None:
            raise self.error
        return context.task_name == self.stop_at

    def names(self):
        return [name for kind, name in (event for event in self.events if type(event) is tuple) if kind == "begin"]


def rows(n=300):
    X = np.random.default_rng(0).normal(size=(n, 2))
    return X, (X[:, 0] > 0).astype(float)


@pytest.fixture(autouse=True)
def framework():
    return pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_a_fit_its_passes_and_their_tenths_are_tasks(estimator):
    recorder = Recorder()
    X, y = rows()
    estimator.set_callbacks(recorder).fit(X, y)
    names = recorder.names()
    assert (recorder.events[0], recorder.events[-1], recorder.open) == ("setup", "teardown", 0)
    assert (names[0], names.count("fit")) == ("fit", 1)
    assert "distinct rows" in names
    assert recorder.events[-2] == ("end", "fit")
    assert estimator.set_callbacks().fit(X, y) is estimator
    assert len(recorder.names()) == len(names)


def test_callbacks_change_nothing_in_the_model():
    X, y = rows()
    told, plain = NystromRidge(**FIXED).set_callbacks(Recorder()).fit(X, y), NystromRidge(**FIXED).fit(X, y)
    assert np.array_equal(told.dual_coef_, plain.dual_coef_)


def test_a_pass_of_several_blocks_has_ten_parts():
    recorder = Recorder()
    X, y = rows(4000)
    NystromRidge(**FIXED, ridge=1e-3, memory_budget=2**20).set_callbacks(recorder).fit(X, y)
    names = recorder.names()
    moments = names.index("moments")
    assert names[moments + 1 : moments + 11] == ["part"] * 10


@pytest.mark.parametrize("error", [None, KeyboardInterrupt(), ValueError("mine")])
def test_a_callback_stops_a_fit_and_the_earlier_one_stays(error):
    X, y = rows()
    model, recorder = NystromRidge(**FIXED).fit(X, y), Recorder("moments", error)
    before = model.predict(X)
    with pytest.raises(RidgemarkError if error is None else type(error), match=r"a callback stopped|mine|^$"):
        model.set_callbacks(recorder).fit(X, 1.0 - y)
    assert recorder.events[-1] == "teardown"
    assert np.array_equal(model.predict(X), before)


def test_a_monitor_of_scores_sees_the_fitted_model(framework):
    monitor, (X, y) = framework.ScoringMonitor(scoring="r2"), rows()
    model = NystromRidge(**FIXED).set_callbacks(monitor).fit(X, y)
    assert monitor.get_logs().data[-1]["r2"] == pytest.approx(model.score(X, y), rel=1e-12)


def test_progress_is_told_too():
    seen = []
    X, y = rows()
    model = NystromRidge(**FIXED, progress=lambda what, done, total: seen.append(what))
    recorder = Recorder()
    model.set_callbacks(recorder).fit(X, y)
    assert set(seen) == set(recorder.names()) - {"fit", "part"}


def test_an_older_scikit_learn_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.callback", None)
    monkeypatch.delattr("sklearn.callback", raising=False)
    with pytest.raises(RidgemarkError, match=r"set_callbacks needs scikit-learn 1\.9 or newer"):
        NystromRidge().set_callbacks(Recorder())
