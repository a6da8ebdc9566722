"""One fit with landmarks and ridge given, against the bare arithmetic in it and against scikit-learn.

kin40k (36,000 rows, where the data are) and 200,000 made-up rows of 20 features, 500 to 2,000 landmarks; the kernel,
bandwidth, lambda and number of landmarks are the same for all. Every round runs all contenders in turn; shown are
medians over the rounds of seconds, and of ratios within a round. Memory is what each fit adds at its peak, in a process
of its own. Then predictions, the default fit with everything chosen, and other ways to fit the same rows.

Run: python benchmarks/fit.py --data FOLDER (or set RIDGEMARK_DATA); without data, the made-up rows alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from contenders import (
    bare_fit,
    compare_fits,
    compare_predictions,
    in_turn,
    landmark_ridge,
    scikit_learn_ridge,
    synthetic_rows,
)
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.kernel_ridge import KernelRidge

from ridgemark import NystromRidge

PATH_OF_RIDGES = np.logspace(0, -8, 20)
EXACT_ROWS = 8000  # as many as scikit-learn's KernelRidge takes in seconds


class Case(NamedTuple):
    """Rows, and the kernel and lambda they are fitted with."""

    name: str
    X: np.ndarray
    y: np.ndarray
    bandwidth: float
    ridge: float


def cases(folder: str | None, rows: int) -> Iterator[Case]:
    """Yield the sets: real rows with half the median bandwidth, made-up ones with a small and a large lambda."""
    path = Path(folder) / "kin40k.npz" if folder else None
    if path is not None and path.exists():
        with np.load(path) as data:
            X, y = data["X"].astype(np.float64)[:36_000], data["y"].astype(np.float64)[:36_000]
        yield Case("kin40k", (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std(), 2.0, 1e-7)
    X, y = synthetic_rows(rows)
    yield Case("synthetic", X, y, 6.0, 1e-6)
    yield Case("synthetic, large lambda", X, y, 3.0, 1e-1)


def megabytes_added(call: Callable[[], Any], answer: list[Any] | None = None) -> float:
    """Return the peak of memory that a call adds, in a copy of this process; what it returns goes into `answer`."""
    receive, send = multiprocessing.Pipe(duplex=False)

    def measured() -> None:
        before = _status("VmRSS")
        returned = call()
        send.send(((_status("VmHWM") - before) / 2**10, returned if answer is not None else []))

    process = multiprocessing.get_context("fork").Process(target=measured)
    process.start()
    added, returned = receive.recv()
    process.join()
    if answer is not None:
        answer.extend(returned)
    return float(added)


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1])


def fits(case: Case, p: int, repeats: int) -> dict[str, Any]:
    """Compare one fit, in time and memory."""
    Z = case.X[np.random.default_rng(1).choice(len(case.X), p, replace=False)]
    ours = landmark_ridge(Z, case.bandwidth, case.ridge)
    peer = scikit_learn_ridge(len(case.X), p, case.bandwidth, case.ridge)
    added = [megabytes_added(lambda model=model: model.fit(case.X, case.y)) for model in (ours, peer)]
    found = compare_fits(case.X, case.y, p, case.bandwidth, case.ridge, repeats)
    return {"set": case.name, "rows": len(case.X), "p": p, **found, "megabytes": added}


def predictions(case: Case, p: int, repeats: int) -> dict[str, Any]:
    found = compare_predictions(case.X, case.y, p, case.bandwidth, case.ridge, repeats)
    return {"set": case.name, "rows": len(case.X), "p": p, **found}


def default_fit(case: Case, p: int, repeats: int) -> dict[str, Any]:
    """Compare the fit that chooses its landmarks and, by leave-one-out, lambda with one bare pass."""
    Z = case.X[np.random.default_rng(1).choice(len(case.X), p, replace=False)]
    model = NystromRidge(bandwidth=case.bandwidth, ridge=PATH_OF_RIDGES, n_landmarks=p, random_state=0)
    taken = in_turn(
        {"bare": lambda: bare_fit(case.X, Z, case.bandwidth), "ridgemark": lambda: model.fit(case.X, case.y)}, repeats
    )
    over = float(np.median(taken["ridgemark"] / taken["bare"]))
    seconds = {f"{name}_seconds": float(np.median(values)) for name, values in taken.items()}
    return {"set": case.name, "rows": len(case.X), "p": p, **seconds, "over_bare": over, "passes": model.n_passes_}


def others(case: Case, p: int) -> Iterator[tuple[str, float, float]]:
    """Yield name, seconds and test RMSE of ways to fit nine tenths of the rows."""
    cut = len(case.X) * 9 // 10
    X, y, X_test, y_test = case.X[:cut], case.y[:cut], case.X[cut:], case.y[cut:]
    few = min(EXACT_ROWS, cut)
    ways: dict[str, tuple[Any, int]] = {
        f"ridgemark, {p} landmarks": (NystromRidge(bandwidth=case.bandwidth, n_landmarks=p, random_state=0), cut),
        f"scikit-learn Nystroem({p}) + Ridge": (scikit_learn_ridge(cut, p, case.bandwidth, case.ridge), cut),
        f"scikit-learn KernelRidge, {few:,} rows": (
            KernelRidge(kernel="rbf", gamma=1 / (2 * case.bandwidth**2), alpha=few * case.ridge),
            few,
        ),
        "scikit-learn HistGradientBoostingRegressor": (HistGradientBoostingRegressor(random_state=0), cut),
    }
    if importlib.util.find_spec("falkon"):
        ways[f"Falkon, {p} centres"] = (_Falkon(p, case.bandwidth, case.ridge), cut)
    for name, (model, rows) in ways.items():
        start = time.perf_counter()
        model.fit(X[:rows], y[:rows])
        seconds = time.perf_counter() - start
        yield name, seconds, float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)))


class _Falkon:
    """Falkon, where it is installed, behind `fit` and `predict`."""

    def __init__(self, p: int, bandwidth: float, ridge: float) -> None:
        import falkon

        options = falkon.FalkonOptions(use_cpu=True)
        kernel = falkon.kernels.GaussianKernel(sigma=bandwidth, opt=options)
        self.model = falkon.Falkon(kernel=kernel, penalty=ridge, M=p, options=options, seed=0)

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        import torch

        self.model.fit(torch.from_numpy(X), torch.from_numpy(y)[:, None])

    def predict(self, X: np.ndarray) -> np.ndarray:
        import torch

        return self.model.predict(torch.from_numpy(X)).numpy()[:, 0]


FIT_HEAD = (
    "| set | rows | p | bare s | ridgemark s | over bare | scikit-learn s | times faster | MB added | "
    "scikit-learn MB |\n|---|---|---|---|---|---|---|---|---|---|"
)


def fit_row(found: dict[str, Any]) -> str:
    ours, theirs = found["megabytes"]
    return (
        f"| {found['set']} | {found['rows']:,} | {found['p']} | {found['bare_seconds']:.2f} | "
        f"{found['ridgemark_seconds']:.2f} | {found['over_bare']:.2f} | {found['scikit_learn_seconds']:.2f} | "
        f"{found['times_faster']:.2f} | {ours:.0f} | {theirs:.0f} |"
    )


BARE_HEAD = "| {} | rows | p | bare s | ridgemark s | over bare |\n|---|---|---|---|---|---|"


def bare_row(found: dict[str, Any]) -> str:
    return (
        f"| {found['set']} | {found['rows']:,} | {found['p']} | {found['bare_seconds']:.3f} | "
        f"{found['ridgemark_seconds']:.3f} | {found['over_bare']:.2f} |"
    )


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("RIDGEMARK_DATA"), help="folder with kin40k.npz")
    parser.add_argument("--rows", type=int, default=200_000, help="made-up rows")
    parser.add_argument("--landmarks", type=int, nargs="+", default=[500, 1000, 2000])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--no-others", action="store_true", help="leave out the other ways to fit")
    parser.add_argument("--json", type=Path, help="write the records here")
    options = parser.parse_args(arguments)
    records: dict[str, Any] = {"fit": [], "predict": [], "default": [], "others": []}
    every = list(cases(options.data, options.rows))
    print(FIT_HEAD)
    for case in every:
        for p in options.landmarks:
            records["fit"].append(fits(case, p, options.repeats))
            print(fit_row(records["fit"][-1]), flush=True)
    middle = sorted(options.landmarks)[len(options.landmarks) // 2]
    for kind, compare, sizes in (("predict", predictions, options.landmarks), ("default", default_fit, [middle])):
        print("\n" + BARE_HEAD.format(kind))
        # The case of a large lambda differs from the one before it in nothing that matters here.
        for case, p in product(every[:-1], sizes):
            records[kind].append(compare(case, p, options.repeats))
            print(bare_row(records[kind][-1]), flush=True)
    for case in [] if options.no_others else every[:1]:
        print(f"\n| {case.name}, nine tenths of the rows | seconds | test RMSE |\n|---|---|---|")
        for name, seconds, error in others(case, middle):
            records["others"].append({"set": case.name, "way": name, "seconds": seconds, "rmse": error})
            print(f"| {name} | {seconds:.2f} | {error:.4f} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(records, indent=1), encoding="utf-8")
    return records


if __name__ == "__main__":
    main()
