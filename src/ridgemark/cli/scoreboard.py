"""The scoreboard of `ridgemark bench --accuracy`: test errors of the defaults beside other regressors.

For every set and seed, `default_rng(seed).permutation(n)` orders the rows: the first 90% train (of ocean-temp the first
60,000) and the last 10% test. Errors are test RMSE in standard deviations of the training targets, times are those of
the fit. Every fit is one record; tables show medians over the seeds.
"""

import json
import platform
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import sklearn
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info

import ridgemark
from ridgemark import ExactKernelRidge, NystromRidge
from ridgemark.backends import Floats
from ridgemark.cli.peers import METHODS
from ridgemark.cli.robot_arm import arm_rows
from ridgemark.errors import DataError, RidgemarkWarning
from ridgemark.rows.places import shown

Record = dict[str, Any]
Sets = Mapping[str, Callable[[], tuple[Floats, Floats]]]

_TRAINING_ROWS = {"ocean-temp": 60_000}
_RATIOS = (("default", "median"), ("default", "boosting"), ("many", "boosting"), ("exact", "boosting"))


def regression_sets(folder: Path | None) -> Sets:
    """Return what loads each file whose targets are not classes.

    Without a folder these are a set of scikit-learn and a simulated robot arm.
    """
    if folder is None:
        return {"diabetes": partial(load_diabetes, return_X_y=True), "robot-arm": _arm}
    return {path.stem: partial(_load, path) for path in sorted(folder.glob("*.npz")) if _has_numbers(path)}


def _arm() -> tuple[Floats, Floats]:
    rows = arm_rows(4000, np.random.default_rng(0))
    return rows.inputs, rows.measured


def _has_numbers(path: Path) -> bool:
    try:
        with np.load(path) as archive:
            return {"X", "y"} <= {*archive} and bool(np.issubdtype(archive["y"].dtype, np.floating))
    except (OSError, ValueError, BadZipFile):
        raise DataError(
            f"{shown(path)} is not an archive of arrays; write it with numpy.savez_compressed(path, X=X, y=y)"
        ) from None


def _load(path: Path) -> tuple[Floats, Floats]:
    with np.load(path) as archive:
        return archive["X"].astype(np.float64), archive["y"].astype(np.float64)


def split(X: Floats, y: Floats, seed: int, most: int | None) -> tuple[Floats, Floats, Floats, Floats]:
    """Return training rows and targets, at most so many, and test rows and targets."""
    order, cut = np.random.default_rng(seed).permutation(len(X)), int(0.9 * len(X))
    train, test = order[:cut][:most], order[cut:]
    return X[train], y[train], X[test], y[test]


def measure(method: str, seed: int, device: str, X: Floats, y: Floats, X_test: Floats, y_test: Floats) -> Record:
    """Fit, predict, and return the error in standard deviations of y with the seconds of both."""
    time.sleep(0.3)  # threads that wait by spinning from the fit before
    model = METHODS[method].make(seed, X, y)
    if isinstance(model, NystromRidge | ExactKernelRidge):
        model.device = device
    begin = time.perf_counter()
    with warnings.catch_warnings():
        for category in (RidgemarkWarning, ConvergenceWarning):
            warnings.simplefilter("ignore", category)
        model.fit(X, y)
        middle = time.perf_counter()
        predicted = model.predict(X_test)
    end = time.perf_counter()
    error = float(np.sqrt(np.mean((y_test - predicted) ** 2)) / y.std())
    return {"rmse": error, "seconds": middle - begin, "predict_seconds": end - middle, **told(model, y)}


def told(model: Any, y: Floats) -> Record:
    """Return what a fit of ridgemark says of itself."""
    found: Record = {}
    if hasattr(model, "n_landmarks_"):
        found["landmarks"] = int(model.n_landmarks_)
    if hasattr(model, "tuning_"):
        tuning = model.tuning_
        found |= {"level": tuning.level, "kernel": tuning.kernel, "tuning_seconds": tuning.seconds}
    if hasattr(model, "history_"):
        found |= {"bound": float(model.history_[-1].returned[0] / y.std()), "products": int(model.n_iter_)}
    return found


def machine() -> str:
    """Return the processor, the threads and the versions."""
    threads = max(library["num_threads"] for library in threadpool_info())
    return (
        f"{platform.machine()}, {threads} threads, numpy {np.__version__}, scikit-learn {sklearn.__version__}, "
        f"ridgemark {ridgemark.__version__}"
    )


def missing_packages(methods: Sequence[str]) -> list[str]:
    """Return the packages of these methods that are not installed."""
    return [METHODS[one].package for one in methods if find_spec(METHODS[one].package) is None]


def run(
    sets: Sets, seeds: Sequence[int], methods: Sequence[str], rows: int | None, done: set[Any], device: str = "cpu"
) -> Iterator[Record]:
    """Yield a record of every fit that is not done, to at most so many rows; methods must be installed.

    Only the fits of ridgemark use the device.
    """
    computer = machine() if device == "cpu" else f"{machine()}, ridgemark on {device}"
    for name, load in sets.items():
        for seed in seeds:
            wanted = [method for method in methods if (name, seed, method) not in done]
            if wanted:
                parts = split(*load(), seed, rows or _TRAINING_ROWS.get(name))
            for method in wanted:
                size = {"rows": parts[0].shape[0], "features": parts[0].shape[1]}
                found = measure(method, seed, device, *parts)
                yield {"set": name, "seed": seed, "method": method, **size, **found, "machine": computer}


def read(paths: Sequence[Path]) -> list[Record]:
    """Return the records of all files; of equal set, seed and method the last one."""
    records = {}
    for path in paths:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                record = json.loads(line)
                records[record["set"], record["seed"], record["method"]] = record
            except (ValueError, TypeError, KeyError):
                raise DataError(
                    f"line {number} of {shown(path)} is not a record of this command; give a new file, or one that it "
                    "wrote"
                ) from None
    return list(records.values())


def by_seed(records: Sequence[Record], name: str, method: str) -> dict[int, Record]:
    """Return the records of a set and a method."""
    return {one["seed"]: one for one in records if (one["set"], one["method"]) == (name, method)}


def median(records: dict[int, Record], field: str) -> float:
    """Return the median of a number over the seeds."""
    return float(np.median([one[field] for one in records.values()]))


def _cell(found: dict[int, Record], best: bool) -> str:
    """Return error and seconds; for an exact fit also the distance from exact it is within."""
    if not found:
        return ""
    error = f"{median(found, 'rmse'):.4f}"
    within = f", within {median(found, 'bound'):.0e}" if all("bound" in one for one in found.values()) else ""
    return f"{f'**{error}**' if best else error} ({median(found, 'seconds'):.0f} s{within})"


def _accuracy_table(records: Sequence[Record], sets: Sequence[str], methods: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the table of errors; the smallest of each set is bold."""
    yield "| set | rows | columns | " + " | ".join(METHODS[method].heading for method in methods) + " |"
    yield "|---" * (3 + len(methods)) + "|"
    for name in sets:
        found = {method: by_seed(records, name, method) for method in methods}
        errors = {method: median(some, "rmse") for method, some in found.items() if some}
        first = next(one for one in records if one["set"] == name)
        cells = (_cell(some, errors.get(method) == min(errors.values())) for method, some in found.items())
        yield f"| {name} | {first['rows']:,} | {first['features']} | " + " | ".join(cells) + " |"


def _ratio(records: Sequence[Record], name: str, method: str, other: str) -> float | None:
    """Return the median over the splits that both have of the ratio of errors."""
    one, two = by_seed(records, name, method), by_seed(records, name, other)
    common = sorted(one.keys() & two.keys())
    return float(np.median([one[seed]["rmse"] / two[seed]["rmse"] for seed in common])) if common else None


def _chosen(records: Sequence[Record], name: str) -> str:
    """Return what tuning chose, over the seeds, and the median number of landmarks."""
    found = by_seed(records, name, "default")
    if not found:
        return " | "
    kinds = sorted({f"{one['level']}, {one['kernel']}" for one in found.values() if "level" in one})
    return f"{'; '.join(kinds)} | {median(found, 'landmarks'):.0f}"


def _ratio_table(records: Sequence[Record], sets: Sequence[str], methods: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the table of ratios on the same splits, and on how many sets each is below one."""
    pairs = [pair for pair in _RATIOS if set(pair) <= set(methods)]
    headings = [" / ".join(METHODS[method].heading for method in pair) for pair in pairs]
    yield "| set | " + " | ".join([*headings, "chosen by `NystromRidge()`", "its landmarks"]) + " |"
    yield "|---" * (3 + len(pairs)) + "|"
    values = {name: [_ratio(records, name, *pair) for pair in pairs] for name in sets}
    for name, row in values.items():
        cells = ["" if value is None else f"{value:.3f}" for value in row]
        yield f"| {name} | " + " | ".join([*cells, _chosen(records, name)]) + " |"
    yield ""
    for heading, column in zip(headings, zip(*values.values(), strict=True), strict=True):
        known = [value for value in column if value is not None] or [np.nan]
        below = sum(value < 1 for value in known)
        yield f"- {heading}: below 1 on {below} of {len(known)} sets, at most {max(known):.3f}"


def show(records: Sequence[Record]) -> str:
    """Return all that was measured as Markdown."""
    sets = sorted({one["set"] for one in records})
    methods = [method for method in METHODS if any(one["method"] == method for one in records)]
    seeds = sorted({one["seed"] for one in records})
    lines = [
        f"Medians over the seeds {', '.join(map(str, seeds))}: test RMSE in standard deviations of y, and in brackets "
        "the seconds of the fit.",
        "",
        *_accuracy_table(records, sets, methods),
        "",
        "Ratios of errors on the same splits, and what tuning chose:",
        "",
        *_ratio_table(records, sets, methods),
        "",
        *(f"Measured on: {one}" for one in sorted({one["machine"] for one in records})),
    ]
    return "\n".join(lines)
