"""One fit with given landmarks and ridge, against the bare work it contains and against scikit-learn.

Prints seconds and ratios, medians of interleaved repeats in one process. Run: python benchmarks/fit.py
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.linalg.blas import dsyrk
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from ridgemark import NystromRidge

BLOCK = 4096


def synthetic_rows(n: int, n_features: int = 20, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)


def floor(X: np.ndarray, Z: np.ndarray, bandwidth: float) -> None:
    """Do the least any one-pass fit does: kernel block by one product, exponential, symmetric update."""
    rows = np.c_[X, (X * X).sum(axis=1), np.ones(len(X))]
    landmarks = np.c_[2 * Z, -np.ones(len(Z)), -(Z * Z).sum(axis=1)] / (2 * bandwidth**2)
    gram = np.zeros((len(Z), len(Z)), order="F")
    for start in range(0, len(X), BLOCK):
        block = np.matmul(rows[start : start + BLOCK], landmarks.T)
        np.exp(block, out=block)
        gram = dsyrk(1.0, block.T, beta=1.0, c=gram, overwrite_c=1)


def seconds(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--landmarks", type=int, nargs="+", default=[500, 1000])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    X, y = synthetic_rows(options.rows)
    bandwidth, ridge = 5.0, 1e-6
    print(f"{options.rows} x {X.shape[1]} float64 rows, Gaussian kernel, median of {options.repeats}")
    print(f"{'p':>6} {'floor s':>9} {'ridgemark s':>12} {'scikit-learn s':>15} {'over floor':>11} {'times faster':>13}")
    for p in options.landmarks:
        Z = X[np.random.default_rng(1).choice(len(X), p, replace=False)]
        ours = NystromRidge(bandwidth=bandwidth, ridge=ridge, n_landmarks=p, selection="uniform", random_state=0)
        peer = make_pipeline(
            Nystroem(gamma=1 / (2 * bandwidth**2), n_components=p, random_state=0),
            Ridge(alpha=ridge * len(X), solver="cholesky"),
        )
        calls = (lambda Z=Z: floor(X, Z, bandwidth), lambda m=ours: m.fit(X, y), lambda m=peer: m.fit(X, y))
        times = np.median([[seconds(call) for call in calls] for _ in range(options.repeats)], axis=0)
        print(
            f"{p:>6} {times[0]:>9.2f} {times[1]:>12.2f} {times[2]:>15.2f} {times[1] / times[0]:>11.2f} "
            f"{times[2] / times[1]:>13.2f}"
        )


if __name__ == "__main__":
    main()
