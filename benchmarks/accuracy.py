"""Test errors of the defaults beside other regressors: the tables of docs/accuracy.md.

For every set and seed, `default_rng(seed).permutation(n)` orders the rows: the first 90% train (of ocean-temp the first
60,000) and the last 10% test. Errors are test RMSE in standard deviations of the training targets, times are those of
the fit. Every fit is one record; tables show medians over the seeds.

Run: python benchmarks/accuracy.py --data FOLDER (or set RIDGEMARK_DATA) --output FILE, which takes hours. Without data,
a set of scikit-learn and a simulated robot arm are fitted; --rows 2000 is a quick look.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from peers import METHODS
from records import Record, append, by_seed, machine, median, read, told
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning

from ridgemark import ExactKernelRidge, NystromRidge
from ridgemark.backends import Floats
from ridgemark.cli.robot_arm import arm_rows
from ridgemark.errors import RidgemarkWarning

Sets = Mapping[str, Callable[[], tuple[Floats, Floats]]]

_TRAINING_ROWS = {"ocean-temp": 60_000}
_RATIOS = (
    ("default", "median"), ("default", "boosting"), ("default", "lightgbm"), ("default", "catboost"),
    ("many", "boosting"), ("exact", "boosting"),
)  # fmt: skip


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
        sys.exit(f"{path} is not an archive of arrays; write it with numpy.savez_compressed(path, X=X, y=y)")


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


def missing_packages(methods: Sequence[str]) -> list[str]:
    """Return the packages of these methods that are not installed."""
    packages = [METHODS[method].package for method in methods]
    return [package for package in packages if find_spec(package) is None]


def run(
    sets: Sets, seeds: Sequence[int], methods: Sequence[str], rows: int | None, done: set[Any], device: str = "cpu"
) -> Iterator[Record]:
    """Yield a record of every fit that is not done, to at most so many rows; methods must be installed.

    Only the fits of ridgemark use the device.
    """
    for name, load in sets.items():
        for seed in seeds:
            wanted = [method for method in methods if (name, seed, method) not in done]
            if wanted:
                parts = split(*load(), seed, rows or _TRAINING_ROWS.get(name))
            for method in wanted:
                size = {"rows": parts[0].shape[0], "features": parts[0].shape[1]}
                errors = measure(method, seed, device, *parts)
                yield {"set": name, "seed": seed, "method": method, **size, **errors, "machine": machine(device)}


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
    """Return the levels and the parts of kernels that tuning chose, over the seeds, and the median of landmarks."""
    found = by_seed(records, name, "default")
    if not found:
        return " | "
    levels = sorted({one["level"] for one in found.values() if "level" in one})
    parts = sorted({part for one in found.values() for part in one.get("kernel", "").split(" + ")})
    return f"{', '.join(levels)}{': ' * bool(levels)}{', '.join(parts)} | {median(found, 'landmarks'):.0f}"


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


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("RIDGEMARK_DATA"), help="folder with NAME.npz files")
    parser.add_argument("--sets", nargs="+", help="only these sets; by default all")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    wanted = [method for method in METHODS if method != "exact"]
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=wanted, help="by default all but exact")
    parser.add_argument("--rows", type=int, help="at most so many training rows")
    parser.add_argument("--device", default="cpu", help="where ridgemark computes: cpu, cuda (a GPU), ...")
    parser.add_argument("--output", type=Path, help="add a line of JSON for every fit to this file; none is made twice")
    parser.add_argument("--show", action="store_true", help="print the tables of the output, without a fit")
    options = parser.parse_args(arguments)
    if options.show:
        print(show(read(options.output)))
        return
    sets, records = regression_sets(Path(options.data) if options.data else None), read(options.output)
    if not sets:
        parser.error(f"{options.data} has no NAME.npz with arrays X and y, y of numbers; see docs/data.md")
    names = options.sets or list(sets)
    if unknown := [name for name in names if name not in sets]:
        parser.error(f"--sets: there is no {', '.join(unknown)}; there are {', '.join(sets)}")
    if absent := missing_packages(options.methods):
        print(f"left out, since not installed: {', '.join(absent)}", file=sys.stderr)
    methods = [method for method in options.methods if METHODS[method].package not in absent]
    done = {(record["set"], record["seed"], record["method"]) for record in records}
    chosen = {name: sets[name] for name in names}
    for record in run(chosen, options.seeds, methods, options.rows, done, options.device):
        records.append(record)
        append(options.output, record)
        print("{set}, split {seed}, {method}: {rmse:.4f} ({seconds:.1f} s)".format(**record), file=sys.stderr)
    print(show(records))


if __name__ == "__main__":
    main()
