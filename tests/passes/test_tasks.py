"""Every task gives the same result after pickling, so that an executor may run it in another process."""

import inspect
import pkgutil
from importlib import import_module

import cloudpickle
import numpy as np

import ridgemark
from ridgemark import ExactKernelRidge, NystromClassifier, NystromRegressor, NystromRidge
from ridgemark.certificates import audit
from ridgemark.passes import RowPasses, Task
from ridgemark.rows import ArrayRows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(320, 3))
Y = np.c_[np.sin(X[:, 0]), X[:, 1]] + 0.1 * RNG.normal(size=(320, 2))


def _tasks(family=Task):
    """Return every class of task in the package that can be run."""
    for module in pkgutil.walk_packages(ridgemark.__path__, "ridgemark."):
        if not module.name.endswith(("__main__", "backends.torch")):
            import_module(module.name)
    below = {task for one in family.__subclasses__() for task in _tasks(one)} | {family}
    return {task for task in below if task.__module__.startswith("ridgemark.") and not inspect.isabstract(task)}


def _everything():
    """Return what fits, predictions and certificates compute, by all tasks together."""
    options = {"n_landmarks": 40, "bandwidth": 1.5, "random_state": 0}
    model = NystromRidge(**options, selection="recursive").fit(X, Y)
    yield model.predict(X)
    yield model.predict(X, return_std=True)[1]
    yield model.predict_interval(X)
    yield model.predict_interval(X, adaptive=False)
    yield from model.effects(X, return_std=True)
    yield model.effects_summary(X).average
    certificate = model.certify(X, Y)
    yield certificate.bound
    yield model.distance_to_exact(X[:50] + 0.1, certificate, X, Y)
    yield model.certify(X, Y, kind="operator").bound
    yield audit(
        RowPasses(ArrayRows(X, Y)), model._model.sums, rng=np.random.default_rng(0), kernel_entries=320 * 30
    ).bound
    yield NystromRidge(**options, ridge=1e-3, selection="leverage").fit(X, Y).calibrate(X, Y).loo_residuals_
    yield NystromRidge(**options, solver="gradient", ridge=1e-3, memory_budget=400_000).fit(X, Y).predict(X)
    for budget in (None, 100_000):  # with and without room for the coordinates and for all residuals
        chosen = NystromRidge(**options, selection="rpcholesky", memory_budget=budget).fit(X, Y)
        yield chosen.landmark_indices_
        yield chosen.ridge_path_.loo_error
        groups = {"groups": np.arange(len(X)) // 10}
        shifted = Y + np.random.default_rng(0).normal(size=(len(X), 2))[groups["groups"]]
        together = NystromRidge(**options, memory_budget=budget).fit(X, shifted, **groups)
        yield together.predict_interval(X, adaptive=False)
        yield (
            NystromRidge(**options, ridge=[10.0, 1e-2, 1e-9], memory_budget=budget)
            .fit(X, shifted, **groups)
            .loo_residuals_
        )
    yield ExactKernelRidge(bandwidth=1.5, ridge=1e-3, n_landmarks=40, random_state=0).fit(X, Y).predict(X)
    for count, landmarks in ((2, 40), (4, 40), (4, 260)):  # two classes; one system for all classes, and one for each
        labels = np.digitize(Y[:, 0], np.quantile(Y[:, 0], np.arange(1, count) / count))
        classes = NystromClassifier("gaussian", bandwidth=1.5, n_landmarks=landmarks, random_state=0)
        yield classes.fit(X, labels).predict_proba(X)
    yield classes.diagnose(X, labels).cook_distance
    single = NystromRidge(**options).fit(X, Y[:, 0])
    yield single.novelty(X).share
    yield single.contributions(X[:20]).values
    counts = NystromRegressor("poisson", **options, ridge=1e-3).fit(X, np.round(np.exp(Y[:, 0])))
    yield counts.effects(X)
    yield NystromRegressor("poisson", **options).fit(X, np.round(np.exp(Y[:, 0])), **groups).predict(X)


def test_every_task_gives_the_same_bytes_after_pickling(monkeypatch):
    monkeypatch.setattr(RowPasses, "_held_for", lambda *_: None)  # features held here are not those of other processes
    expected, seen, run = list(_everything()), set(), RowPasses._run

    def pickled(passes, task, *arguments, **options):
        seen.add(type(task))
        return run(passes, cloudpickle.loads(cloudpickle.dumps(task)), *arguments, **options)

    monkeypatch.setattr(RowPasses, "_run", pickled)
    for one, other in zip(expected, _everything(), strict=True):
        assert np.array_equal(one, other)
    # A new task must be run by one of the calls above.
    on_devices_only = {"MatrixBlocks"}
    assert {task.__name__ for task in _tasks()} <= {task.__name__ for task in seen} | on_devices_only
