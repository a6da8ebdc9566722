"""Seconds of one fit against rows, landmarks and features, one at a time, with the exponent that fits them.

Uniform landmarks, Gaussian kernel, a given ridge: one pass. Rows are float32 in a memory map, never held. Every round
goes through all sizes; shown are medians over the rounds.

Run: python benchmarks/scaling.py [--rows 100000 1000000 10000000]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from contenders import in_turn, synthetic_rows

from ridgemark import NystromRidge

PIECE = 250_000


def write_rows(folder: Path, rows: int, features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a memory map of rows, and their targets, made piece by piece."""
    path = folder / f"{features}.npy"
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, features))
    y = np.empty(rows, dtype=np.float32)
    for start in range(0, rows, PIECE):
        X[start : start + PIECE], y[start : start + PIECE] = synthetic_rows(min(PIECE, rows - start), features, start)
    X.flush()
    return np.load(path, mmap_mode="r"), y


def model(p: int, features: int) -> NystromRidge:
    """Return the fit that is timed; the bandwidth grows as distances do."""
    return NystromRidge(
        bandwidth=float(np.sqrt(2 * features)), ridge=1e-6, n_landmarks=p, selection="uniform", random_state=0
    )


def exponent(sizes: list[int], seconds: np.ndarray) -> float:
    """Return the slope of log seconds against log size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def against(what: str, sizes: list[int], calls: dict[str, Any], repeats: int) -> dict[str, Any]:
    """Time the calls in turn, print them and the exponent."""
    taken = in_turn(calls, repeats)
    seconds = np.array([np.median(taken[name]) for name in calls])
    found = {"against": what, "sizes": sizes, "seconds": seconds.tolist(), "exponent": exponent(sizes, seconds)}
    points = ", ".join(f"{size:,}: {one:.2f} s" for size, one in zip(sizes, seconds, strict=True))
    print(f"| {what} | {points} | {found['exponent']:.2f} |", flush=True)
    return found


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--landmarks", type=int, nargs="+", default=[500, 1000, 2000, 4000])
    parser.add_argument("--features", type=int, nargs="+", default=[5, 20, 80])
    parser.add_argument("--rows-for-landmarks", type=int, default=200_000)
    parser.add_argument("--landmarks-for-rows", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the records here")
    options = parser.parse_args(arguments)
    p, n = options.landmarks_for_rows, options.rows_for_landmarks
    print("| against | seconds | exponent |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        X, y = write_rows(Path(folder), max(*options.rows, n), 20)
        rows = {str(size): (lambda size=size: model(p, 20).fit(X[:size], y[:size])) for size in options.rows}
        records = [against(f"rows (20 features, {p} landmarks)", options.rows, rows, options.repeats)]
        landmarks = {str(size): (lambda size=size: model(size, 20).fit(X[:n], y[:n])) for size in options.landmarks}
        what = f"landmarks ({n:,} rows of 20 features)"
        records.append(against(what, options.landmarks, landmarks, options.repeats))
        by_features = {d: write_rows(Path(folder), n, d) for d in options.features}
        features = {str(d): (lambda d=d, Xy=Xy: model(p, d).fit(*Xy)) for d, Xy in by_features.items()}
        what = f"features ({n:,} rows, {p} landmarks)"
        records.append(against(what, options.features, features, options.repeats))
    if options.json:
        options.json.write_text(json.dumps(records, indent=1), encoding="utf-8")
    return records


if __name__ == "__main__":
    main()
