"""How far predictions move when BLAS, and with it the package, has two threads instead of one.

The same fits, with the same seed, in one process for each number of threads: the limit is read when BLAS is loaded.
Prints, for every set and ridge, the largest difference of two predictions and its root mean square, in standard
deviations of y, and whether the same landmarks were drawn.

Run: python benchmarks/threads.py --data FOLDER (or set RIDGEMARK_DATA); see docs/data.md for the files.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

SETS = ("ocean-temp", "protein", "cal-housing")
RIDGES = (1e-3, 1e-5, 1e-7, 1e-9)
LIMITS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "OMP_NUM_THREADS")


def fit_all(data: Path, sets: list[str], n_rows: int, n_landmarks: int, output: Path) -> None:
    """Fit every set at every ridge and keep predictions and landmarks."""
    from ridgemark import NystromRidge

    kept = {}
    for name in sets:
        with np.load(data / f"{name}.npz") as archive:
            X, y = archive["X"], archive["y"].astype(np.float64).ravel()
        rows = np.random.default_rng(0).permutation(len(X))[:n_rows]
        X, y = X[rows].astype(np.float64), y[rows]
        X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
        y = (y - y.mean()) / y.std()
        for ridge in RIDGES:
            model = NystromRidge(bandwidth="median", ridge=ridge, n_landmarks=n_landmarks, random_state=0).fit(X, y)
            kept[f"{name} {ridge:g} predictions"] = model.predict(X)
            kept[f"{name} {ridge:g} landmarks"] = model.landmark_indices_
    np.savez(output, **kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("RIDGEMARK_DATA"), help="folder with NAME.npz files")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--landmarks", type=int, default=1000)
    parser.add_argument("--threads", type=int, nargs=2, default=(1, 2))
    parser.add_argument("--output", type=Path, help=argparse.SUPPRESS)  # of one process of the comparison
    options = parser.parse_args()
    if not options.data:
        sys.exit("give --data FOLDER, or set RIDGEMARK_DATA (see docs/data.md)")
    if options.output:
        fit_all(Path(options.data), options.sets, options.rows, options.landmarks, options.output)
        return
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for threads in options.threads:
            path = Path(folder) / f"{threads}.npz"
            command = [sys.executable, *sys.argv, "--data", options.data, "--output", str(path)]
            subprocess.run(command, env=os.environ | dict.fromkeys(LIMITS, str(threads)), check=True)
            with np.load(path) as archive:
                found.append({key: archive[key] for key in archive.files})
    print("| set | ridge | largest difference | RMS difference | same landmarks |\n|---|---|---|---|---|")
    for name in options.sets:
        for ridge in RIDGES:
            one, two = (kept[f"{name} {ridge:g} predictions"] for kept in found)
            drawn = [kept[f"{name} {ridge:g} landmarks"] for kept in found]
            difference = abs(one - two)
            same = "yes" if np.array_equal(*drawn) else "no"
            rms = np.sqrt(np.mean(difference**2))
            print(f"| {name} | {ridge:g} | {difference.max():.1e} | {rms:.1e} | {same} |")


if __name__ == "__main__":
    main()
