"""The defaults against scikit-learn's `Nystroem(n_components=1000) + RidgeCV`: test error and time on real data.

Inputs are standardised by the training rows; 90% train, 10% test, every split fitted by both in turn. scikit-learn is
given the median bandwidth and the same ridges. Prints the medians over the splits.

Run: python benchmarks/defaults.py --data FOLDER (or set RIDGEMARK_DATA); see docs/data.md for the files.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from peers import nystroem
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from ridgemark import NystromRidge
from ridgemark.errors import RidgeEdgeWarning

SETS = ("elevators", "protein", "kin40k", "cal-housing")


def ours(seed: int):
    return NystromRidge(bandwidth="median", random_state=seed)


def fitted(model, X, y, X_test, y_test) -> tuple[float, float, object]:
    """Return test RMSE and the seconds of fit and predict."""
    time.sleep(0.3)  # threads that wait by spinning from the fit before
    start = time.perf_counter()
    model.fit(X, y)
    predicted = model.predict(X_test)
    return float(np.sqrt(np.mean((y_test - predicted) ** 2))), time.perf_counter() - start, model


def compare(X: np.ndarray, y: np.ndarray, seeds: range) -> tuple[np.ndarray, list[int]]:
    """Return (seed, [our RMSE, our seconds, their RMSE, their seconds]) in units of the targets' spread."""
    rows, landmarks = [], []
    for seed in seeds:
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.1, random_state=seed)
        scaler = StandardScaler().fit(X_train)
        X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
        mean, spread = y_train.mean(), y_train.std()
        parts = X_train, (y_train - mean) / spread, X_test, (y_test - mean) / spread
        error, seconds, model = fitted(ours(seed), *parts)
        peer_error, peer_seconds, _ = fitted(nystroem(X_train, seed), *parts)
        rows.append([error, seconds, peer_error, peer_seconds])
        landmarks.append(model.n_landmarks_)
    return np.array(rows), landmarks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("RIDGEMARK_DATA"), help="folder with NAME.npz files")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sets", nargs="+", default=SETS)
    options = parser.parse_args()
    if not options.data:
        sys.exit("give --data FOLDER or set RIDGEMARK_DATA; docs/data.md says where the files come from")
    warnings.simplefilter("ignore", RidgeEdgeWarning)
    print("| set | rows | landmarks | RMSE ridgemark | RMSE scikit-learn | ratio | seconds | seconds | times faster |")
    print("|---|---|---|---|---|---|---|---|---|")
    ratios = []
    for name in options.sets:
        path = Path(options.data) / f"{name}.npz"
        if not path.exists():
            print(f"| {name} | {path.name} is missing: see docs/data.md |")
            continue
        with np.load(path) as archive:
            X, y = archive["X"].astype(np.float64), archive["y"].astype(np.float64)
        table, landmarks = compare(X, y, range(options.seeds))
        error, seconds, peer_error, peer_seconds = np.median(table, axis=0)
        ratios.append(float(np.median(table[:, 0] / table[:, 2])))
        faster = float(np.median(table[:, 3] / table[:, 1]))
        print(
            f"| {name} | {int(0.9 * len(X)):,} | {int(np.median(landmarks))} | {error:.4f} | {peer_error:.4f} "
            f"| {ratios[-1]:.3f} | {seconds:.2f} | {peer_seconds:.2f} | {faster:.2f} |",
            flush=True,
        )
    if ratios:
        print(f"\nGeometric mean of the ratios: {np.exp(np.mean(np.log(ratios))):.3f}")


if __name__ == "__main__":
    main()
