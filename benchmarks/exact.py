"""ExactKernelRidge on real data: products with K until predictions are certified, test error, and peak memory.

Two parts. On many rows of kin40k (90% train, 10% test): products, seconds, memory and test error. On 5,000 rows: the
products to a certified 1e-6 and the true distance to the dense solution, for landmarks by leverage and uniform ones.
Inputs and targets are standardised; lambda by leave-one-out.

Run: python benchmarks/exact.py --data FOLDER (or set RIDGEMARK_DATA); see docs/data.md for the files.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

from ridgemark import ExactKernelRidge, exact
from ridgemark.tuning import median_distance

SMALL = (("kin40k", 0.5, 2000), ("elevators", 1.0, 1000))  # set, bandwidth in medians, landmarks


def standardised(folder: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(Path(folder) / f"{name}.npz") as archive:
        X, y = archive["X"].astype(np.float64), archive["y"].astype(np.float64)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    return (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def peak_megabytes() -> float:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 2**10


def products(folder: str, name: str, share: float, landmarks: int) -> None:
    X, y = (part[:5000] for part in standardised(folder, name))
    bandwidth = share * median_distance(X[:1000])
    for selection in ("leverage", "uniform"):
        model = ExactKernelRidge(bandwidth=bandwidth, n_landmarks=landmarks, selection=selection, random_state=0)
        model.fit(X, y)
        twin = exact.kernel_ridge(exact.kernel_matrix(X, model.kernel_), y, model.scaled_ridge_, fit_intercept=True)
        print(
            f"| {name} | {landmarks} {selection} | {model.ridge_:.1e} | {model.n_iter_} "
            f"| {model.history_[-1].returned[0]:.1e} | {rms(model.predict(X) - twin.fitted):.1e} |",
            flush=True,
        )


def many_rows(folder: str, rows: int, landmarks: int, tol: float) -> None:
    X, y = standardised(folder, "kin40k")
    test = slice(36_000, 40_000)
    model = ExactKernelRidge(bandwidth=0.5 * median_distance(X[:1000]), n_landmarks=landmarks, tol=tol, random_state=0)
    start = time.perf_counter()
    model.fit(X[:rows], y[:rows])
    seconds = time.perf_counter() - start
    error = rms(y[test] - model.predict(X[test]))
    print(f"kin40k, {rows:,} rows, {landmarks} landmarks, lambda {model.ridge_:.1e}, tol {tol:g}:")
    print(f"{model.n_iter_} products, certified to {model.history_[-1].returned[0]:.1e}, {seconds:.0f} s,")
    print(f"peak memory {peak_megabytes():.0f} MB, test RMSE {error:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("RIDGEMARK_DATA"), help="folder with NAME.npz files")
    parser.add_argument("--rows", type=int, default=36_000)
    parser.add_argument("--landmarks", type=int, default=2000)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--only", choices=["products", "many"])
    options = parser.parse_args()
    if not options.data:
        sys.exit("give --data FOLDER or set RIDGEMARK_DATA; docs/data.md says where the files come from")
    if options.only != "products":
        many_rows(options.data, options.rows, options.landmarks, options.tol)
    if options.only != "many":
        print("\n| set | landmarks | lambda | products | certified | true distance |\n|---|---|---|---|---|---|")
        for name, share, landmarks in SMALL:
            products(options.data, name, share, landmarks)


if __name__ == "__main__":
    main()
