"""What the factor on tr H in generalised cross-validation prevents and costs, on real data.

For every set, 20 random samples of 40, 80, 150 and 400 rows, with all rows or a third of them as landmarks: lambda by
`training_error/(1 - factor tr H/n)^2` for several factors, and by leave-one-out. Prints the root mean squared error on
2,000 other rows over that of leave-one-out's lambda: the mean, and the worst.

Run: python benchmarks/cross_validation.py --data FOLDER (or set RIDGEMARK_DATA); see docs/data.md for the files.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np

from ridgemark.fitting.recipe import default_ridges
from ridgemark.kernels import Gaussian
from ridgemark.losses import loss_sums
from ridgemark.operators import nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.path import Ridges, loo_path
from ridgemark.rows import ArrayRows
from ridgemark.solvers import SpectralSolver
from ridgemark.tuning import median_distance

SETS = ("protein", "elevators", "cal-housing", "kin40k", "electricity", "gas-batch2", "ocean-temp")
FACTORS = (1.0, 1.2, 1.4, 1.6, 1.8)
ROWS = (40, 80, 150, 400)


def criterion(solver: SpectralSolver, scaled_ridge: float, factor: float, n_rows: int) -> float:
    left = 1.0 - factor * (solver.effective_dimension(scaled_ridge) + 1.0) / n_rows
    return float(solver.training_error(scaled_ridge)[0] / left**2) if left > 1e-12 else np.inf


def ratios(X: np.ndarray, y: np.ndarray, n_rows: int, n_landmarks: int) -> list[float]:
    """Return the error of each factor over that of leave-one-out, on the rows after the first `n_rows`."""
    passes = RowPasses(ArrayRows(X[:n_rows], y[:n_rows, None]))
    factor = nystrom_factor(Gaussian(median_distance(X[:n_rows])), X[:n_landmarks])
    solver, origin = SpectralSolver(loss_sums(passes, factor), True), np.zeros(1)
    ridges = default_ridges(1.0)
    path, _ = loo_path(passes, factor, solver, Ridges(ridges, n_rows * ridges), origin)
    features, scaled = factor.features(X[n_rows:]), path.ridges * n_rows

    def error(scaled_ridge: float) -> float:
        solution = solver.solution(scaled_ridge)
        return float(np.linalg.norm(y[n_rows:] - features @ solution.coefficients[:, 0] - solution.intercept[0]))

    chosen = [min(scaled, key=lambda s: criterion(solver, s, f, n_rows)) for f in FACTORS]
    return [error(s) / error(scaled[path.chosen[0]]) for s in chosen]


def one_set(X: np.ndarray, y: np.ndarray, repeats: int) -> np.ndarray:
    found = []
    for n_rows in ROWS:
        for seed in range(repeats):
            rows = np.random.default_rng(seed).permutation(len(X))[: n_rows + 2000]
            part = X[rows][:, X[rows[:n_rows]].std(axis=0) > 1e-10]
            part = (part - part[:n_rows].mean(axis=0)) / part[:n_rows].std(axis=0)
            found += [ratios(part, y[rows], n_rows, n_landmarks) for n_landmarks in (n_rows, n_rows // 3)]
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("RIDGEMARK_DATA"), help="folder with NAME.npz files")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--sets", nargs="+", default=SETS)
    options = parser.parse_args()
    if not options.data:
        sys.exit("give --data FOLDER or set RIDGEMARK_DATA; see docs/data.md")
    print("| set | " + " | ".join(f"factor {f:g}" for f in FACTORS) + " |\n" + "|---" * (1 + len(FACTORS)) + "|")
    for name in options.sets:
        with np.load(Path(options.data) / f"{name}.npz") as archive:
            X, y = archive["X"].astype(np.float64), archive["y"].astype(np.float64)
        found = one_set(X, (y - y.mean()) / y.std(), options.repeats)
        cells = (f"{mean:.3f}, {worst:.2f}" for mean, worst in zip(found.mean(axis=0), found.max(axis=0), strict=True))
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
