"""Whether leverage scores serve the log loss, plain or with the weights of its curvature.

For each set: 1,000 rows, columns standardised, Gaussian kernel with the median bandwidth, lambda by leave-one-out log
loss, two classes. Exact kernel logistic regression has all rows as landmarks. Landmarks are drawn without replacement,
with probabilities in proportion to the scores of K, to those of `D^1/2 K D^1/2` with the curvature D at the exact
solution, or equal ones; plain scores are taken at the ridge over the mean of D, so that both kinds have about the same
sum. Printed is the geometric mean over the draws of the RMS distance of the probabilities from the exact ones.

Run: python benchmarks/logistic.py --data FOLDER (or set RIDGEMARK_DATA)
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler

from ridgemark import NystromClassifier, exact
from ridgemark.kernels import Gaussian
from ridgemark.losses import RidgeSolution, class_loss
from ridgemark.operators import nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.solvers import Newton
from ridgemark.tuning import median_distance

ROWS, DRAWS, FACTORS = 1000, 10, (1, 2, 4)
SETS: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "electricity": ("electricity", lambda y: y == np.unique(y)[1]),
    "covtype-1": ("covtype100k", lambda y: y == 1),
    "cal-housing above the median": ("cal-housing", lambda y: y > np.median(y)),
}


def rows_of(folder: Path, name: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return standardised rows and labels."""
    file, labels = SETS[name]
    with np.load(folder / f"{file}.npz") as archive:
        X, y = archive["X"].astype(np.float64), labels(archive["y"])
    chosen = np.random.default_rng(seed).permutation(len(X))[:ROWS]
    X = X[chosen]
    return StandardScaler().fit_transform(X[:, X.std(axis=0) > 0]), y[chosen]


def probabilities(X: np.ndarray, y: np.ndarray, kernel: Gaussian, landmarks: np.ndarray, ridge: float) -> np.ndarray:
    """Return the fitted probabilities of kernel logistic regression from these rows as landmarks."""
    factor = nystrom_factor(kernel, X[landmarks], landmarks)
    newton = Newton(RowPasses(ArrayRows(X, y[:, None].astype(float))), factor, class_loss(2), True)
    found = newton.solve(ridge, RidgeSolution(np.zeros((factor.rank, 1)), np.zeros(1))).solution
    return 1.0 / (1.0 + np.exp(-(factor.features(X) @ found.coefficients + found.intercept)[:, 0]))


def measure(folder: Path, name: str) -> list[str]:
    """Return a line of the table for every number of landmarks."""
    X, y = rows_of(folder, name)
    kernel = Gaussian(median_distance(X))
    ridge = NystromClassifier(kernel, n_landmarks=ROWS, selection="uniform", random_state=0).fit(X, y).scaled_ridge_
    truth = probabilities(X, y, kernel, np.arange(ROWS), ridge)
    curvature, K = truth * (1.0 - truth), exact.kernel_matrix(X, kernel)
    scores = {
        "uniform": np.ones(ROWS),
        "plain": exact.leverage_scores(K, ridge / curvature.mean()),
        "curvature": exact.leverage_scores(exact.weighted_kernel(K, curvature), ridge),
    }
    dimension, lines = float(scores["curvature"].sum()), []
    for factor in FACTORS:
        p, cells = round(factor * dimension), []
        for one in scores.values():
            distances = []
            for seed in range(DRAWS):
                rng = np.random.default_rng(seed)
                drawn = np.sort(rng.choice(ROWS, p, replace=False, p=one / one.sum()))
                away = probabilities(X, y, kernel, drawn, ridge) - truth
                distances.append(np.sqrt(np.mean(away**2)))
            cells.append(f"{np.exp(np.mean(np.log(distances))):.2e}")
        lines.append(f"| {name} | {p} ({factor} d_eff) | " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("RIDGEMARK_DATA"), required="RIDGEMARK_DATA" not in os.environ)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    options = parser.parse_args()
    print("| set | landmarks | uniform | plain scores | curvature's weights |\n|---|---|---|---|---|")
    for name in options.sets:
        print("\n".join(measure(Path(options.data), name)), flush=True)


if __name__ == "__main__":
    main()
