"""Coverage and width of intervals, and what standard deviations are worth, on held-out halves of real data.

For every split: fit on half of the rows with the defaults, and ask for intervals on the other half; then the way with
a guarantee: choose on a quarter, add another quarter with the ridge given, and calibrate on that. Prints coverage at
90% (mean, least and most over the splits), the mean width of intervals that follow the noise over that of intervals of
one width, and the error where the standard deviation is in its top tenth over that in its bottom tenth.

Run: python benchmarks/intervals.py --data FOLDER (or set RIDGEMARK_DATA); see docs/data.md for the files.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path

import numpy as np

from ridgemark import NystromRidge
from ridgemark.errors import RidgeEdgeWarning

SETS = ("elevators", "protein", "cal-housing", "kin40k")
COVERAGE = 0.9


def coverage(model: NystromRidge, X: np.ndarray, y: np.ndarray, adaptive: bool = True) -> tuple[float, float]:
    """Return the share of the targets in their intervals, and the mean width."""
    lower, upper = model.predict_interval(X, COVERAGE, adaptive).T
    return float(np.mean((lower <= y) & (y <= upper))), float(np.mean(upper - lower))


def spread(model: NystromRidge, X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return RMSE in the top tenth of std over that in the bottom tenth, and the smallest std."""
    mean, std = model.predict(X, return_std=True)
    order = np.argsort(std)
    tenth = len(order) // 10
    errors = [np.sqrt(np.mean((y - mean)[part] ** 2)) for part in (order[-tenth:], order[:tenth])]
    return float(errors[0] / errors[1]), float(std.min())


def one_split(X: np.ndarray, y: np.ndarray, seed: int, n_landmarks: int | str) -> list[float]:
    order = np.random.default_rng(seed).permutation(len(X))
    first, second, rest = np.split(order, [len(X) // 4, len(X) // 2])
    train = np.r_[first, second]
    scale = X[train].mean(axis=0), np.where(X[train].std(axis=0) > 0, X[train].std(axis=0), 1.0)
    X = (X - scale[0]) / scale[1]
    plain = NystromRidge(bandwidth="median", n_landmarks=n_landmarks, random_state=seed).fit(X[train], y[train])
    sure = NystromRidge(bandwidth="median", n_landmarks=n_landmarks, random_state=seed).fit(X[first], y[first])
    sure.set_params(ridge=sure.ridge_).partial_fit(X[second], y[second]).calibrate(X[second], y[second])
    assert sure.calibration_.guaranteed
    held, width = coverage(plain, X[rest], y[rest])
    constant_held, constant_width = coverage(plain, X[rest], y[rest], adaptive=False)
    sure_held, _ = coverage(sure, X[rest], y[rest])
    return [held, constant_held, sure_held, width / constant_width, *spread(plain, X[rest], y[rest])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("RIDGEMARK_DATA"), help="folder with NAME.npz files")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--landmarks", type=int, default=None, help='number of landmarks; "auto" when not given')
    parser.add_argument("--sets", nargs="+", default=SETS)
    options = parser.parse_args()
    if not options.data:
        sys.exit("give --data FOLDER or set RIDGEMARK_DATA; docs/data.md says where the files come from")
    warnings.simplefilter("ignore", RidgeEdgeWarning)
    print("| set | rows | coverage | of one width | guaranteed way | width ratio | error ratio by std | smallest std |")
    print("|---|---|---|---|---|---|---|---|")
    for name in options.sets:
        path = Path(options.data) / f"{name}.npz"
        if not path.exists():
            print(f"| {name} | {path.name} is missing: see docs/data.md |")
            continue
        with np.load(path) as archive:
            X, y = archive["X"].astype(np.float64), archive["y"].astype(np.float64)
        y = (y - y.mean()) / y.std()
        table = np.array([one_split(X, y, seed, options.landmarks or "auto") for seed in range(options.splits)])
        cells = [f"{t.mean():.1%} ({t.min():.1%} to {t.max():.1%})" for t in table[:, :3].T]
        print(
            f"| {name} | {len(X) // 2:,} | {' | '.join(cells)} "
            f"| {table[:, 3].mean():.3f} | {table[:, 4].mean():.2f} | {table[:, 5].min():.2g} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
