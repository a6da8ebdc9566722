"""Cost of leverage scores: time and memory against the number of rows, and each pass against its bare BLAS work.

Run: python benchmarks/scores.py. Prints time ratios per decade, growth of peak memory from 10^5 to 10^6 rows of a
memory-mapped file, and the ratios of the scoring pass and of RPCholesky to the arithmetic they contain.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from ridgemark import leverage_scores, open_rows
from ridgemark.backends.threads import worker_threads
from ridgemark.kernels import Gaussian
from ridgemark.leverage import score_bracket
from ridgemark.losses import loss_sums
from ridgemark.operators import nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.selection import Problem, RPCholesky

BLOCK = 2048


def seconds(call) -> float:
    time.sleep(0.2)  # threads of the BLAS call before wait by spinning, which would be charged to this one
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def medians(calls, repeats: int) -> np.ndarray:
    return np.median([[seconds(call) for call in calls] for _ in range(repeats)], axis=0)


def one_size(path: str) -> None:
    """Score one file; print seconds and peak memory. Runs in a process of its own, for its peak."""
    source = open_rows(path)
    taken = seconds(lambda: leverage_scores(source, bandwidth=4.0, ridge=1e-4, n_landmarks=200, random_state=0))
    print(json.dumps({"seconds": taken, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def growth(sizes: list[int], repeats: int) -> None:
    print("leverage_scores, d = 10, p = 200, float64 memory map: median seconds, peak resident MB")
    before = None
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            path = Path(folder) / f"{n}.npy"
            rows = np.lib.format.open_memmap(path, "w+", np.float64, (n, 10))
            rng = np.random.default_rng(0)
            for start in range(0, n, 100_000):
                rows[start : start + 100_000] = rng.normal(size=(min(100_000, n - start), 10))
            rows.flush()
            del rows
            command = [sys.executable, __file__, "--one", str(path)]
            runs = [json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(repeats)]
            taken, peak = (float(np.median([run[key] for run in runs])) for key in ("seconds", "peak_mb"))
            change = "" if before is None else f"   x{taken / before[0]:.1f} time, {peak - before[1]:+.0f} MB"
            print(f"{n:>9} rows {taken:8.2f} s {peak:8.0f} MB{change}")
            before = taken, peak


def scoring_pass(n: int, sizes: list[int], repeats: int) -> None:
    print(f"scoring pass over {n} x 10 rows: kernel block, exponential and product with a p x 2p matrix, bare and ours")
    X = np.random.default_rng(0).normal(size=(n, 10))
    for p in sizes:
        Z, both = X[:p].copy(), np.random.default_rng(1).normal(size=(p, 2 * p))
        rows = np.c_[X, (X * X).sum(axis=1), np.ones(n)]
        landmarks = np.c_[2 * Z, -np.ones(p), -(Z * Z).sum(axis=1)] / 18.0

        def block(start: int, rows=rows, landmarks=landmarks, both=both) -> np.ndarray:
            values = rows[start : start + BLOCK] @ landmarks.T
            np.exp(values, out=values)
            products = values @ both
            return np.einsum("ij,ij->i", products, products)

        def bare(block=block) -> None:
            workers = worker_threads()
            with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(workers) as pool:
                list(pool.map(block, range(0, n, BLOCK)))

        passes = RowPasses(ArrayRows(X))
        factor = nystrom_factor(Gaussian(3.0), Z, np.arange(p))
        moments = loss_sums(passes, factor)
        ours = lambda f=factor, m=moments, q=passes, p=p: score_bracket(q, f, m, n * 1e-4, np.ones(p), p)  # noqa: E731
        floor, taken = medians([bare, ours], repeats)
        print(f"  p = {p:>5}: bare {floor:.3f} s, ours {taken:.3f} s, ratio {taken / floor:.2f}")


def pivoted_cholesky(n: int, p: int, repeats: int) -> None:
    print(f"RPCholesky, {n} x 8 rows, p = {p}: kernel columns and the n p^2 update, bare and ours")
    X = np.random.default_rng(0).normal(size=(n, 8))
    rows = np.c_[X, (X * X).sum(axis=1), np.ones(n)]
    landmarks = np.c_[2 * X[:p], -np.ones(p), -(X[:p] ** 2).sum(axis=1)] / 18.0
    step = max(1, p // 10)

    def bare() -> None:
        factor = np.empty((n, p))
        for start in range(0, p, step):
            columns = rows @ landmarks[start : start + step].T
            np.exp(columns, out=columns)
            if start:
                columns -= factor[:, :start] @ (1e-3 * factor[:step, :start].T)
            factor[:, start : start + step] = columns

    def ours() -> None:
        passes = RowPasses(ArrayRows(X))
        problem = Problem(passes, passes.distinct_rows(), Gaussian(3.0), n * 1e-6)
        RPCholesky().choose(problem, p, np.random.default_rng(0))

    floor, taken = medians([bare, ours], repeats)
    print(f"  bare {floor:.3f} s, ours {taken:.3f} s, ratio {taken / floor:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if options.one:
        one_size(options.one)
        return
    growth([10_000, 100_000, 1_000_000], options.repeats)
    scoring_pass(100_000, [200, 500, 1000], options.repeats)
    pivoted_cholesky(20_000, 1000, options.repeats)


if __name__ == "__main__":
    main()
