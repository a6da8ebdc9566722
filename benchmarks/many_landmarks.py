"""Very many landmarks: conjugate gradients against the direct solver, where the cost model prefers either.

kin40k, 36,000 rows to fit and the rest to test, half the median bandwidth, lambda 1e-8, uniform landmarks. At each
number of landmarks, in a process of its own: the solver that `solver="auto"` takes, its seconds, what memory it adds at
its peak, the test RMSE and the certified distance from the direct solution. The direct solver's seconds are measured
where it is quick, and beyond that projected from there by the operations of `ridgemark.solvers.solver_cost`.

Run: python benchmarks/many_landmarks.py --data FOLDER (or set RIDGEMARK_DATA)
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np
from fit import megabytes_added

from ridgemark import NystromRidge
from ridgemark.solvers import choose_solver, solver_cost

ROWS, BANDWIDTH, RIDGE = 36_000, 2.0, 1e-8


def measured(X: np.ndarray, y: np.ndarray, p: int, solver: str) -> tuple[float, float, float, float]:
    """Return seconds, test RMSE, the bound on the distance from the direct solution, and megabytes added."""
    answer: list[float] = []

    def job() -> list[float]:
        model = NystromRidge(
            bandwidth=BANDWIDTH, ridge=RIDGE, n_landmarks=p, selection="uniform", solver=solver, random_state=0
        )
        start = time.perf_counter()
        model.fit(X[:ROWS], y[:ROWS])
        seconds = time.perf_counter() - start
        error = float(np.sqrt(np.mean((model.predict(X[ROWS:]) - y[ROWS:]) ** 2)))
        return [seconds, error, float(getattr(model, "solver_bound_", 0.0))]

    added = megabytes_added(job, answer)
    seconds, error, bound = answer
    return seconds, error, bound, added


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("RIDGEMARK_DATA"), help="folder with kin40k.npz")
    parser.add_argument("--landmarks", type=int, nargs="+", default=[1000, 2000, 5000, 10_000])
    parser.add_argument("--direct-up-to", type=int, default=5000, help="landmarks to which the direct solver is run")
    options = parser.parse_args()
    path = Path(options.data or "") / "kin40k.npz"
    if not path.is_file():
        sys.exit("give --data FOLDER or set RIDGEMARK_DATA; docs/data.md says where kin40k.npz comes from")
    with np.load(path) as data:
        X, y = data["X"].astype(np.float64), data["y"].astype(np.float64)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    print("| p | solver | seconds | MB added | test RMSE | RMS distance from direct, at most | direct, seconds |")
    print("|---|---|---|---|---|---|---|")
    rate = float("nan")  # seconds an operation of the direct solver takes
    for p in options.landmarks:
        solver = choose_solver(ROWS, p, X.shape[1])
        operations = solver_cost(ROWS, p, X.shape[1]).direct
        if p <= options.direct_up_to:
            seconds, error, bound, added = measured(X, y, p, "direct")
            rate = seconds / operations
            print(f"| {p} | direct | {seconds:.1f} | {added:.0f} | {error:.4f} | 0 | {seconds:.1f} |", flush=True)
        if solver == "gradient":
            seconds, error, bound, added = measured(X, y, p, solver)
            direct = f"{rate * operations:.0f}, projected"
            print(
                f"| {p} | gradient | {seconds:.1f} | {added:.0f} | {error:.4f} | {bound:.2g} | {direct} |", flush=True
            )


if __name__ == "__main__":
    main()
