"""`NystromClassifier` beside other classifiers, on real data with columns as they are.

Rows are split as by `benchmarks/accuracy.py`. "covtype-1" is class 1 of covtype100k against the rest, on at most
60,000 training rows; "covtype-7" has all seven classes. Every fit is one line of JSON in the output, fits that are
there already are not run again, and `--show` makes the table of docs/classification.md: medians over the seeds.

Run: python benchmarks/classes.py --data FOLDER (or set RIDGEMARK_DATA) --output FILE; then --output FILE --show.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from records import Record, append, by_seed, machine, median, read, told
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ridgemark import NystromClassifier
from ridgemark.errors import RidgemarkWarning
from ridgemark.kernels import Gaussian
from ridgemark.losses import RidgeSolution, class_loss
from ridgemark.operators import nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.solvers import Newton
from ridgemark.tuning import median_distance

SETS: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray], int | None]] = {
    "electricity": ("electricity", lambda y: y, None),
    "covtype-1": ("covtype100k", lambda y: y == 1, 60_000),
    "covtype-7": ("covtype100k", lambda y: y.astype(int), None),
}
_ENOUGH = 10.0  # times our seconds, after which lbfgs is not given a smaller tolerance


def nystroem(seed: int, X: np.ndarray) -> Any:
    """Return scikit-learn's `Nystroem(1000)` with logistic regression, columns standardised, median bandwidth."""
    rows = StandardScaler().fit_transform(X[np.random.default_rng(seed).permutation(len(X))[:1000]])
    gamma = 1.0 / (2.0 * median_distance(rows) ** 2)
    features = Nystroem(gamma=gamma, n_components=1000, random_state=seed)
    return make_pipeline(StandardScaler(), features, LogisticRegressionCV(Cs=[1.0, 10.0, 100.0], cv=3, max_iter=300))


METHODS: dict[str, tuple[str, Callable[[int, np.ndarray], Any]]] = {
    "2000": ("`n_landmarks=2000`", lambda seed, X: NystromClassifier(n_landmarks=2000, random_state=seed)),
    "5000": (
        "`n_landmarks=5000`",
        lambda seed, X: NystromClassifier(n_landmarks=5000, memory_budget=2**32, random_state=seed),
    ),
    "boosting": ("HistGradientBoosting", lambda seed, X: HistGradientBoostingClassifier(random_state=seed)),
    "nystroem": ("Nystroem(1000) + LogisticRegression", nystroem),
}


def split(folder: Path, name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training rows and labels, and test rows and labels."""
    file, labels, most = SETS[name]
    with np.load(folder / f"{file}.npz") as archive:
        X, y = archive["X"].astype(np.float64), labels(archive["y"])
    order, cut = np.random.default_rng(seed).permutation(len(X)), int(0.9 * len(X))
    train, test = order[: most or cut], order[cut:]
    return X[train], y[train], X[test], y[test]


def measure(
    method: str, device: str, seed: int, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray
) -> Record:
    """Fit, predict, and return accuracy and log loss with the seconds of the fit."""
    model = METHODS[method][1](seed, X)
    if "device" in model.get_params():
        model.set_params(device=device)
    begin = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - begin
    p = model.predict_proba(X_test)
    right = float(np.mean(model.classes_[p.argmax(axis=1)] == y_test))
    loss = float(log_loss(y_test, p, labels=model.classes_))
    found = {"accuracy": right, "log_loss": loss, "seconds": seconds, **told(model, np.ones(2))}
    if hasattr(model, "predict_set"):
        own = np.searchsorted(model.classes_, y_test)
        found["covered"] = float(model.predict_set(X_test)[np.arange(len(own)), own].mean())
    return found


def show(records: list[Record]) -> str:
    """Return accuracy, log loss and seconds of every set and method as a table in Markdown."""
    methods = [method for method in METHODS if any(one["method"] == method for one in records)]
    lines = ["| set | rows | " + " | ".join(METHODS[method][0] for method in methods) + " |"]
    lines.append("|---" * (2 + len(methods)) + "|")
    for name in SETS:
        if not (rows := [one["rows"] for one in records if one["set"] == name]):
            continue
        found = [by_seed(records, name, method) for method in methods]
        cells = [
            f"{median(some, 'accuracy'):.3f}, {median(some, 'log_loss'):.3f} ({median(some, 'seconds'):.0f} s)"
            if some
            else ""
            for some in found
        ]
        lines.append(f"| {name} | {rows[0]:,} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *(f"Measured on: {one}" for one in sorted({one["machine"] for one in records}))])


def speed(folder: Path, name: str, n_rows: int, n_landmarks: int, ridge: float = 1e-6) -> Iterator[Record]:
    """Yield the seconds of our solver and of scikit-learn's on the same features, and distances from its finest answer.

    Ours begins with the rows and evaluates the features itself; scikit-learn is given them. newton-cholesky is the
    reference. The tolerance of lbfgs falls until it reaches 1e-6 of the largest coefficient, or until it takes
    `_ENOUGH` times as long as ours: `times` is then a lower bound of how much longer it takes.
    """
    X, y, _, _ = split(folder, name, 0)
    X, codes = StandardScaler().fit_transform(X[:n_rows]), np.unique(y[:n_rows], return_inverse=True)[1]
    k, scaled = int(codes.max()) + 1, ridge * len(X)
    Y = codes[:, None].astype(float) if k == 2 else np.eye(k)[codes]
    factor = nystrom_factor(Gaussian(median_distance(X[:1000])), X[:n_landmarks], np.arange(n_landmarks))
    about = {"set": name, "rows": len(X), "classes": k, "features": factor.rank, "machine": machine()}
    begin = time.perf_counter()
    held = Newton(RowPasses(ArrayRows(X, Y), 8 * len(X) * n_landmarks), factor, class_loss(k), True).hold()
    near = held.solve(scaled, RidgeSolution(np.zeros((factor.rank, Y.shape[1])), np.zeros(Y.shape[1])), 1e-6)
    ours = replace(held, rough=False).solve(scaled, near.solution, system=near.system).solution.coefficients.T
    mine = time.perf_counter() - begin
    yield about | {"solver": "ours", "seconds": mine, "rough_steps": near.n_steps}
    B, reference = factor.features(X), None
    for solver, tol in [("newton-cholesky", 1e-10), *(("lbfgs", 10.0**-power) for power in (4, 6, 8, 10))]:
        begin = time.perf_counter()
        model = LogisticRegression(solver=solver, tol=tol, C=1.0 / scaled, max_iter=100_000).fit(B, codes)
        seconds = time.perf_counter() - begin
        found = about | {"solver": solver, "tol": tol, "seconds": seconds, "times": seconds / mine}
        found["steps"], reference = int(model.n_iter_.max()), model.coef_ if reference is None else reference
        size = np.abs(reference).max()
        distances = [float(np.abs(c - reference).max() / size) for c in (ours, model.coef_)]
        yield found | {"our_distance": distances[0], "distance": distances[1]}
        if solver == "lbfgs" and (distances[1] <= 1e-6 or seconds > _ENOUGH * mine):
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("RIDGEMARK_DATA"), help="folder with NAME.npz files")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--device", default="cpu", help="where NystromClassifier computes")
    parser.add_argument("--output", type=Path, help="add a line of JSON for every fit to this file")
    parser.add_argument("--show", action="store_true", help="print the table of the output, without a fit")
    parser.add_argument("--speed", action="store_true", help="time the solver beside scikit-learn's, line by line")
    parser.add_argument("--rows", type=int, default=50_000, help="rows of --speed; 5,000 for a quick check")
    parser.add_argument("--landmarks", type=int, default=1000, help="landmarks of --speed")
    options = parser.parse_args()
    records = read(options.output)
    if not options.show:
        if not options.data:
            sys.exit("give --data FOLDER or set RIDGEMARK_DATA; docs/data.md says where the files come from")
        warnings.simplefilter("ignore", RidgemarkWarning)
        if options.speed:
            for name in options.sets:
                for record in speed(Path(options.data), name, options.rows, options.landmarks):
                    print(json.dumps(record), flush=True)
            return
        done = {(one["set"], one["seed"], one["method"]) for one in records}
        wanted = [(n, s, m) for n in options.sets for s in options.seeds for m in options.methods]
        for name, seed, method in (one for one in wanted if one not in done):
            rows = split(Path(options.data), name, seed)
            found = measure(method, options.device, seed, *rows)
            record = {
                "set": name,
                "seed": seed,
                "method": method,
                "rows": len(rows[0]),
                **found,
                "machine": machine(options.device),
            }
            records.append(record)
            print(json.dumps(record), flush=True)
            append(options.output, record)
    print(show(records))


if __name__ == "__main__":
    main()
