"""Error, time and peak memory of default fits, of two or more versions of the package beside each other.

Versions are folders with the source, as `git worktree add ../before COMMIT` makes; each fit runs in a process of its
own, and versions take turns. 90% of the rows train (ocean-temp: 60,000), the rest tests; a case of classes has the log
loss for its error. Every fit is one line of JSON in the output, so that a run goes on where another ended.

    python benchmarks/default_fits.py --versions before=../before/src after=src --output fits.jsonl --data FOLDER
    python benchmarks/default_fits.py --versions before=../before/src after=src --output fits.jsonl --show

Options of the estimator may be given, as `--options '{"n_landmarks": 5000}'`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

REGRESSION = (
    "cal-housing", "elevators", "kin40k", "nycflights13", "ocean-temp", "protein", "pumadyn-32nm",
    "pumadyn-32fm-fann1024", "gas-batch2", "gas-batch3", "made-up 1000 x 10", "made-up 300 x 8",
)  # fmt: skip
CLASSES = ("electricity", "covtype-1")
MOST = {"ocean-temp": 60_000}  # rows that train


def rows_of(name: str, folder: str, split: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return rows and targets that train, and those that test."""
    if name.startswith("made-up"):
        n, d = int(name.split()[1]), int(name.split()[3])
        rng = np.random.default_rng(split)
        X = rng.normal(size=(n + 1000, d))
        y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * X[:, 3:].sum(axis=1) + 0.5 * rng.normal(size=len(X))
        return X[:n], y[:n], X[n:], y[n:]
    with np.load(Path(folder) / ("covtype100k.npz" if name == "covtype-1" else f"{name}.npz")) as archive:
        X, y = archive["X"].astype(np.float64), archive["y"].astype(np.float64)
    if name == "covtype-1":
        y = (y == 1).astype(np.float64)
    order = np.random.default_rng(split).permutation(len(X))
    cut = 9 * len(X) // 10
    train, test = order[: min(cut, MOST.get(name, cut))], order[cut:]
    return X[train], y[train], X[test], y[test]


def fit(name: str, folder: str, split: int, options: dict[str, Any]) -> dict[str, Any]:
    """Fit, and return what was measured."""
    from ridgemark import NystromClassifier, NystromRidge

    warnings.simplefilter("ignore")
    X, y, X_test, y_test = rows_of(name, folder, split)
    model = (NystromClassifier if name in CLASSES else NystromRidge)(**{"random_state": split} | options)
    if "device" in options:  # the first fit on a GPU loads its libraries
        type(model)(**model.get_params()).set_params(n_landmarks=100).fit(X[:500], y[:500])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin, cpu = time.perf_counter(), time.process_time()
    model.fit(X, y)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if name in CLASSES:
        shares = model.predict_proba(X_test)[np.arange(len(y_test)), np.searchsorted(model.classes_, y_test)]
        error = float(-np.log(np.maximum(shares, 1e-15)).mean())
    else:
        error = float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)) / y.std())
    tuning = getattr(model, "tuning_", None)
    return {
        "error": error,
        "seconds": seconds,
        "cpu": cpu,
        "tuning": getattr(tuning, "seconds", 0.0),
        "landmarks": model.n_landmarks_,
        "peak_mib": peak / 1024,
        "kernel": getattr(tuning, "kernel", ""),
        "level": getattr(tuning, "level", ""),
        "ridge": float(np.min(model.ridge_)),
        "tuned_ridge": getattr(tuning, "ridge", None),
    }


def show(records: list[dict[str, Any]], versions: list[str], clock: str) -> str:
    """Return for every set the medians over the splits, and the ratios of the last version to the first."""
    names = list(dict.fromkeys(one["set"] for one in records))
    first, last = versions[0], versions[-1]
    lines = [f"| set | splits | error {first} | {last} | ratio | {clock} {first} | {last} | ratio | landmarks | MiB |"]
    lines += ["|---" * 10 + "|"]
    ratios = []
    for name in names:
        by = {v: {one["split"]: one for one in records if (one["version"], one["set"]) == (v, name)} for v in versions}
        splits = sorted(set(by[first]) & set(by[last]))
        if not splits:
            continue
        medians = [[np.median([by[v][s][what] for s in splits]) for v in (first, last)] for what in ("error", clock)]
        ratios.append([np.median([by[last][s][w] / by[first][s][w] for s in splits]) for w in ("error", clock)])
        (e0, e1), (s0, s1) = medians
        p, mib = (
            "/".join(f"{np.median([by[v][s][what] for s in splits]):.0f}" for v in (first, last))
            for what in ("landmarks", "peak_mib")
        )
        cells = f"{e0:.4f} | {e1:.4f} | {ratios[-1][0]:.3f} | {s0:.1f} | {s1:.1f} | {ratios[-1][1]:.2f} | {p} | {mib} |"
        lines.append(f"| {name} | {len(splits)} | {cells}")
    if ratios:
        mean = np.exp(np.log(ratios).mean(axis=0))
        lines.append(f"\nGeometric mean of the ratios: error {mean[0]:.3f}, time {mean[1]:.2f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--versions", nargs="+", required=True, metavar="NAME=FOLDER")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--data", default=os.environ.get("RIDGEMARK_DATA"), help="folder with NAME.npz files")
    parser.add_argument("--sets", nargs="+", default=REGRESSION)
    parser.add_argument("--splits", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--options", type=json.loads, default={})
    parser.add_argument("--show", action="store_true", help="print the table, without a fit")
    parser.add_argument("--clock", choices=("seconds", "cpu"), default="seconds", help="seconds of the processor: cpu")
    parser.add_argument("--one", nargs=2, metavar=("SET", "SPLIT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(fit(options.one[0], options.data, int(options.one[1]), options.options)))
        return
    versions = dict(one.split("=", 1) for one in options.versions)
    lines = options.output.read_text(encoding="utf-8").splitlines() if options.output.is_file() else []
    records = [json.loads(line) for line in lines]
    done = {(one["version"], one["set"], one["split"]) for one in records}
    cases = [(name, split) for name in options.sets for split in options.splits]
    for name, split in [] if options.show else cases:
        for version, folder in versions.items():
            if (version, name, split) in done:
                continue
            command = [sys.executable, __file__, *sys.argv[1:], "--one", name, str(split)]
            environment = os.environ | {"PYTHONPATH": os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])}
            ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if ended.returncode:
                print(f"{version}, {name}, split {split}: {ended.stderr.strip().splitlines()[-1]}", flush=True)
                continue
            records.append({"version": version, "set": name, "split": split} | json.loads(ended.stdout))
            with options.output.open("a", encoding="utf-8") as file:
                file.write(json.dumps(records[-1]) + "\n")
    print(show(records, list(versions), options.clock))


if __name__ == "__main__":
    main()
