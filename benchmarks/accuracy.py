"""The accuracy of the defaults beside other regressors, on real data with columns as they are.

For every set and seed, `default_rng(seed).permutation(n)` orders the rows: the first 90% train (of ocean-temp the first
60,000) and the last 10% test. Errors are test RMSE in standard deviations of the training targets, times are those of
the fit. Every fit is one line of JSON in the output, fits that are there already are not run again, and `--show` makes
the tables of docs/accuracy.md from such files: medians over the seeds.

Run: python benchmarks/accuracy.py --data FOLDER (or set RIDGEMARK_DATA) --output FILE; then --show FILE.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import defaults
import numpy as np
import sklearn
from scipy.optimize import minimize
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info

import ridgemark
from ridgemark import ExactKernelRidge, NystromRidge
from ridgemark.errors import RidgemarkWarning

Record = dict[str, Any]

TRAINING_ROWS = {"ocean-temp": 60_000}
PROCESS_ROWS, PROCESS_STEPS = 2000, 50  # rows that a Gaussian process is fitted to, and steps of its search
EXACT_TOLERANCE = 1e-3  # in standard deviations of y


def some_steps(criterion: Callable[..., Any], start: np.ndarray, bounds: Any) -> tuple[np.ndarray, float]:
    """Minimise as scikit-learn does, in fewer steps: with many columns each takes seconds."""
    found = minimize(criterion, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": PROCESS_STEPS})
    return found.x, found.fun


class _GaussianProcess:
    """scikit-learn's Gaussian process with one length scale per feature, on 2,000 of the rows, standardised."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        # From the distance of standardised rows: with short length scales all is noise, and the search stays there.
        scales = np.full(X.shape[1], np.sqrt(X.shape[1]))
        kernel = ConstantKernel() * RBF(scales, (1e-2, 1e4)) + WhiteKernel(0.1)
        process = GaussianProcessRegressor(kernel, optimizer=some_steps, normalize_y=True, random_state=self.seed)
        self.model = make_pipeline(StandardScaler(), process).fit(X[:PROCESS_ROWS], y[:PROCESS_ROWS])

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.concatenate([self.model.predict(part) for part in np.array_split(X, len(X) // 5000 + 1)])


class _RecursiveFeatureMachine:
    """xRFM with its defaults on the CPU, columns and targets standardised; a fifth of the rows validate."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        import torch
        import xrfm

        self.columns, self.targets = StandardScaler().fit(X), StandardScaler().fit(y[:, None])
        self.model = xrfm.xRFM(device=torch.device("cpu"), tuning_metric="mse", random_state=self.seed)
        rows = [torch.from_numpy(self.columns.transform(X)).float()]
        rows.append(torch.from_numpy(self.targets.transform(y[:, None])).float())
        cut = len(X) * 4 // 5
        self.model.fit(*(one[:cut] for one in rows), *(one[cut:] for one in rows))

    def predict(self, X: np.ndarray) -> np.ndarray:
        import torch

        found = self.model.predict(torch.from_numpy(self.columns.transform(X)).float())
        return self.targets.inverse_transform(np.asarray(found).reshape(-1, 1))[:, 0]


def nystroem(seed: int, X: np.ndarray, y: np.ndarray) -> Any:
    """Return scikit-learn's `Nystroem(1000) + RidgeCV` with the median bandwidth, columns standardised."""
    return make_pipeline(StandardScaler(), defaults.theirs(StandardScaler().fit_transform(X), seed))


def exact(seed: int, X: np.ndarray, y: np.ndarray) -> ExactKernelRidge:
    return ExactKernelRidge(tol=EXACT_TOLERANCE * float(y.std()), random_state=seed)


# For every method its heading, and what makes it from the seed, the training rows and targets.
METHODS: dict[str, tuple[str, Callable[[int, np.ndarray, np.ndarray], Any]]] = {
    "default": ("`NystromRidge()`", lambda seed, X, y: NystromRidge(random_state=seed)),
    "many": ("`n_landmarks=5000`", lambda seed, X, y: NystromRidge(n_landmarks=5000, random_state=seed)),
    "exact": ("`ExactKernelRidge()`", exact),
    "median": ('`bandwidth="median"`', lambda seed, X, y: NystromRidge(bandwidth="median", random_state=seed)),
    "boosting": ("HistGradientBoosting", lambda seed, X, y: HistGradientBoostingRegressor(random_state=seed)),
    "nystroem": ("Nystroem(1000) + RidgeCV", nystroem),
    "process": ("Gaussian process, 2,000 rows", lambda seed, X, y: _GaussianProcess(seed)),
    "xrfm": ("xRFM", lambda seed, X, y: _RecursiveFeatureMachine(seed)),
}
RATIOS = (("default", "median"), ("default", "boosting"), ("many", "boosting"), ("exact", "boosting"))


def regression_sets(folder: Path) -> list[str]:
    """Return the names of all files whose targets are not classes: floating-point numbers."""
    names = []
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as archive:
            if np.issubdtype(archive["y"].dtype, np.floating):
                names.append(path.stem)
    return names


def split(path: Path, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training rows and targets, and test rows and targets."""
    with np.load(path) as archive:
        X, y = archive["X"].astype(np.float64), archive["y"].astype(np.float64)
    order = np.random.default_rng(seed).permutation(len(X))
    cut = int(0.9 * len(X))
    train, test = order[: TRAINING_ROWS.get(path.stem, cut)], order[cut:]
    return X[train], y[train], X[test], y[test]


def measure(method: str, seed: int, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> Record:
    """Fit, predict, and return the error in standard deviations of y with the seconds of both."""
    time.sleep(0.3)  # threads that wait by spinning from the fit before
    model = METHODS[method][1](seed, X, y)
    begin = time.perf_counter()
    model.fit(X, y)
    middle = time.perf_counter()
    predicted = model.predict(X_test)
    end = time.perf_counter()
    error = float(np.sqrt(np.mean((y_test - predicted) ** 2)) / y.std())
    return {"rmse": error, "seconds": middle - begin, "predict_seconds": end - middle, **told(model, y)}


def told(model: Any, y: np.ndarray) -> Record:
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
    threads = max(library["num_threads"] for library in threadpool_info())
    return (
        f"{platform.machine()}, {threads} threads, numpy {np.__version__}, scikit-learn {sklearn.__version__}, "
        f"ridgemark {ridgemark.__version__}"
    )


def run(folder: Path, sets: list[str], seeds: list[int], methods: list[str], done: set[Any]) -> Iterator[Record]:
    """Yield a record of every fit that is not done."""
    for name in sets:
        path = folder / f"{name}.npz"
        if not path.exists():
            print(f"{name}: {path.name} is missing: see docs/data.md", file=sys.stderr)
            continue
        for seed in seeds:
            wanted = [method for method in methods if (name, seed, method) not in done]
            if not wanted:
                continue
            X, y, X_test, y_test = split(path, seed)
            for method in wanted:
                found = measure(method, seed, X, y, X_test, y_test)
                size = {"rows": len(X), "features": X.shape[1]}
                yield {"set": name, "seed": seed, "method": method, **size, **found, "machine": machine()}


def read(paths: list[Path]) -> list[Record]:
    """Return the records of all files; of equal set, seed and method the last one."""
    records = {}
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            records[record["set"], record["seed"], record["method"]] = record
    return list(records.values())


def by_seed(records: list[Record], name: str, method: str) -> dict[int, Record]:
    return {one["seed"]: one for one in records if (one["set"], one["method"]) == (name, method)}


def median(records: dict[int, Record], field: str) -> float:
    return float(np.median([one[field] for one in records.values()]))


def cell(found: dict[int, Record], best: bool) -> str:
    """Return error and seconds; for an exact fit also the distance from exact it is within."""
    if not found:
        return ""
    error = f"{median(found, 'rmse'):.4f}"
    within = f", within {median(found, 'bound'):.0e}" if all("bound" in one for one in found.values()) else ""
    return f"{f'**{error}**' if best else error} ({median(found, 'seconds'):.0f} s{within})"


def accuracy_table(records: list[Record], sets: list[str], methods: list[str]) -> Iterator[str]:
    """Yield the lines of the table of errors; the smallest of each set is bold."""
    yield "| set | rows | columns | " + " | ".join(METHODS[method][0] for method in methods) + " |"
    yield "|---" * (3 + len(methods)) + "|"
    for name in sets:
        found = {method: by_seed(records, name, method) for method in methods}
        errors = {method: median(some, "rmse") for method, some in found.items() if some}
        first = next(one for one in records if one["set"] == name)
        cells = (cell(some, errors.get(method) == min(errors.values())) for method, some in found.items())
        yield f"| {name} | {first['rows']:,} | {first['features']} | " + " | ".join(cells) + " |"


def ratio(records: list[Record], name: str, method: str, other: str) -> float | None:
    """Return the median over the splits that both have of the ratio of errors."""
    one, two = by_seed(records, name, method), by_seed(records, name, other)
    common = sorted(one.keys() & two.keys())
    return float(np.median([one[seed]["rmse"] / two[seed]["rmse"] for seed in common])) if common else None


def chosen(records: list[Record], name: str) -> str:
    """Return what tuning chose, over the seeds, and the median number of landmarks."""
    found = by_seed(records, name, "default")
    if not found:
        return " | "
    kinds = sorted({f"{one['level']}, {one['kernel']}" for one in found.values() if "level" in one})
    return f"{'; '.join(kinds)} | {median(found, 'landmarks'):.0f}"


def ratio_table(records: list[Record], sets: list[str], methods: list[str]) -> Iterator[str]:
    """Yield the lines of the table of ratios on the same splits, and on how many sets each is below one."""
    pairs = [pair for pair in RATIOS if set(pair) <= set(methods)]
    headings = [" / ".join(METHODS[method][0] for method in pair) for pair in pairs]
    yield "| set | " + " | ".join([*headings, "chosen by `NystromRidge()`", "its landmarks"]) + " |"
    yield "|---" * (3 + len(pairs)) + "|"
    values = {name: [ratio(records, name, *pair) for pair in pairs] for name in sets}
    for name, row in values.items():
        cells = ["" if value is None else f"{value:.3f}" for value in row]
        yield f"| {name} | " + " | ".join([*cells, chosen(records, name)]) + " |"
    yield ""
    for heading, column in zip(headings, zip(*values.values(), strict=True), strict=True):
        known = [value for value in column if value is not None]
        below = sum(value < 1 for value in known)
        yield f"- {heading}: below 1 on {below} of {len(known)} sets, at most {max(known):.3f}"


def show(records: list[Record]) -> str:
    """Return all that was measured as Markdown."""
    sets = sorted({one["set"] for one in records})
    methods = [method for method in METHODS if any(one["method"] == method for one in records)]
    seeds = sorted({one["seed"] for one in records})
    lines = [
        f"Medians over the seeds {', '.join(map(str, seeds))}: test RMSE in standard deviations of y, and in brackets "
        "the seconds of the fit.",
        "",
        *accuracy_table(records, sets, methods),
        "",
        "Ratios of errors on the same splits, and what tuning chose:",
        "",
        *ratio_table(records, sets, methods),
        "",
        *(f"Measured on: {one}" for one in sorted({one["machine"] for one in records})),
    ]
    return "\n".join(lines)


def installed(methods: list[str]) -> list[str]:
    """Return the methods without xRFM where its package is not installed."""
    if "xrfm" in methods and importlib.util.find_spec("xrfm") is None:
        print("xRFM: not installed", file=sys.stderr)
        return [method for method in methods if method != "xrfm"]
    return methods


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("RIDGEMARK_DATA"), help="folder with NAME.npz files")
    parser.add_argument("--sets", nargs="+", help="all whose targets are not classes, when not given")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=[m for m in METHODS if m != "exact"], help="all but exact"
    )
    parser.add_argument("--output", type=Path, help="add a line of JSON for every fit to this file")
    parser.add_argument("--show", type=Path, nargs="+", metavar="FILE", help="print the tables of these files")
    options = parser.parse_args()
    if options.show:
        print(show(read(options.show)))
        return
    if not options.data:
        sys.exit("give --data FOLDER or set RIDGEMARK_DATA; docs/data.md says where the files come from")
    for category in (RidgemarkWarning, ConvergenceWarning):
        warnings.simplefilter("ignore", category)
    folder = Path(options.data)
    records = read([options.output]) if options.output and options.output.exists() else []
    done = {(one["set"], one["seed"], one["method"]) for one in records}
    sets = options.sets or regression_sets(folder)
    for record in run(folder, sets, options.seeds, installed(options.methods), done):
        records.append(record)
        line = json.dumps(record)
        print(line, file=sys.stderr, flush=True)
        if options.output:
            with options.output.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
    print(show(records))


if __name__ == "__main__":
    main()
