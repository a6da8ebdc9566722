"""What several tests need: tolerances with a reason, real data where it is at hand, allowances for chance."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.utils.estimator_checks import check_estimator

from ridgemark.fitting.effort import EFFORTS
from ridgemark.passes import Task, Workspace
from ridgemark.rows import Block
from ridgemark.tuning import Tuner


def slowly(*values: Any) -> list[Any]:
    """Return values of a parameter for the slow tests alone."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


@contextmanager
def tuned_quickly() -> Iterator[None]:
    """Let default fits tune one kernel on few rows: elsewhere tuning takes nine tenths of the time of a small fit."""
    few = Tuner(rows=200, judging_rows=100, landmarks=40, evaluations=4, kernels=("gaussian",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(EFFORTS, "default", replace(EFFORTS["default"], tuner=few))
        yield


@contextmanager
def without_figures() -> Iterator[None]:
    """Leave figures of pages empty: they take most of the time of a page, and other tests look at them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ridgemark.report.fit_figures.draw", lambda chart, name: "<svg></svg>")
        yield


def pass_scikit_learn(estimator: Any) -> None:
    """Run scikit-learn's checks; those of array libraries are in test_array_api, as they need a variable to be set."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks warn about what they skip
        results = check_estimator(estimator, on_skip=None, on_fail=None)
    failed = {r["check_name"]: repr(r["exception"]) for r in results if r["status"] == "failed"}
    assert [name for name in failed if "array_api" not in name] == [], failed
    assert sum(r["status"] == "passed" for r in results) > 40


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder that is filled once in a run of tests: one worker makes it, the others wait for it."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    ended = folder.with_name(f"{name} ended")
    try:
        folder.mkdir()
    except FileExistsError:
        while not ended.exists():
            time.sleep(0.1)
        return folder
    try:
        make(folder)
    finally:
        ended.touch()  # after an error too: the others then miss what was to be made
    return folder


def rounding(dtype: object, scale: float = 1.0) -> float:
    """A few hundred rounding errors of the precision, times the size of what was added up."""
    return 500.0 * float(np.finfo(np.dtype(dtype)).eps) * scale


def most_failures(repeats: int, probability: float) -> int:
    """The largest count of an event of this probability that chance explains, but for one time in a million."""
    return int(binom.ppf(1.0 - 1e-6, repeats, probability))


def real_data(name: str) -> dict[str, np.ndarray]:
    """A real data set from the folder named by RIDGEMARK_DATA; skips where it is absent."""
    folder = os.environ.get("RIDGEMARK_DATA")
    if not folder:
        pytest.skip("set RIDGEMARK_DATA to the folder with the real data sets (see docs/data.md) to run this test")
    path = Path(folder) / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"{path.name} is not in the folder RIDGEMARK_DATA (see docs/data.md)")
    with np.load(path) as archive:
        return {key: archive[key] for key in archive.files}


def standardised(X: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and standard deviation 1 (ddof 0); columns constant up to rounding are left out."""
    X = X[:, X.std(axis=0) > 1e-10 * np.abs(X).max(axis=0)]
    return (X - X.mean(axis=0)) / X.std(axis=0)


class FunctionTask(Task):
    """A task made of any function of a block."""

    what: ClassVar[str] = "test"
    function: Callable[[Block], Any]
    n_columns: int = 1

    @property
    def width(self) -> int:
        return self.n_columns

    def __call__(self, block: Block, workspace: Workspace) -> Any:
        return self.function(block)
