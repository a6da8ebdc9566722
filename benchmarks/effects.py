"""How often standard errors of effects hold: of averages over the rows, and of the effects at single points.

`python benchmarks/effects.py` draws rows and noise again and again in six designs, in two of which the size of the
noise depends on the columns, and counts

- how often the average over the *population* is within 1.96 standard errors of `effects_summary().average`, where rows
  and noise are new in every repeat;
- how often the mean of `effects(X)` over the repeats is within 1.96 standard errors of it, where the rows are the same
  in every repeat and the noise is new.

`--json FILE` writes the numbers with the bias beside them, in units of y per unit of the column.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ridgemark import NystromRidge

WITHIN = 1.96  # standard errors
POINTS = 40  # at which effects are computed
POPULATION = 400_000  # rows that stand for it


@dataclass(frozen=True)
class Design:
    """A population of rows, with the size of the noise in each."""

    n: int
    rows: Callable
    signal: Callable  # of the rows
    slopes: Callable  # its derivatives, shape (n, d)
    noise: Callable  # standard deviation at each row

    def data(self, rng, X=None):
        """Return rows, new ones if none are given, and targets with new noise."""
        X = self.rows(rng, self.n) if X is None else X
        return X, self.signal(X) + self.noise(X) * rng.normal(size=len(X))


def normal(rng, n):
    return rng.normal(size=(n, 3))


def uneven(rng, n):
    """Few rows on one side, many on the other."""
    return np.c_[rng.gamma(2.0, 0.7, n) - 1.4, rng.normal(size=n)]


def smooth(X):
    return X[:, 0] + 1.5 * np.tanh(X[:, 1])


def smooth_slopes(X):
    values = np.zeros_like(X)
    values[:, 0], values[:, 1] = 1.0, 1.5 / np.cosh(X[:, 1]) ** 2
    return values


def product(X):
    return np.sin(X[:, 0]) + 0.5 * X[:, 0] * X[:, 1]


def product_slopes(X):
    values = np.zeros_like(X)
    values[:, 0], values[:, 1] = np.cos(X[:, 0]) + 0.5 * X[:, 1], 0.5 * X[:, 0]
    return values


def equal(size):
    return lambda X: np.full(len(X), size)


DESIGNS = {
    "smooth, 150 rows": Design(150, normal, smooth, smooth_slopes, equal(0.5)),
    "smooth, 400 rows": Design(400, normal, smooth, smooth_slopes, equal(0.5)),
    "product, 300 rows": Design(300, normal, product, product_slopes, equal(0.5)),
    "uneven rows, 300": Design(300, uneven, smooth, smooth_slopes, equal(0.5)),
    "noise grows, 150 rows": Design(150, normal, smooth, smooth_slopes, lambda X: 0.5 * np.exp(X[:, 0] / 2)),
    "noise at both ends, 300 rows": Design(
        300, normal, product, product_slopes, lambda X: 0.2 + 0.4 * np.abs(X[:, 0] * X[:, 1])
    ),
}


def fitted(X, y):
    return NystromRidge("gaussian", bandwidth="median", random_state=0).fit(X, y)


def of_averages(design, repeats):
    """Return, for each column, coverage of the population's average, bias, and mean error over the true deviation."""
    truth = design.slopes(design.rows(np.random.default_rng(2**31), POPULATION)).mean(axis=0)
    found = [fitted(*design.data(np.random.default_rng(seed))).effects_summary() for seed in range(repeats)]
    averages, errors = (np.array([getattr(one, name)[:, 0] for one in found]) for name in ("average", "standard_error"))
    return summary(averages, errors, truth, averages - truth)


def of_points(design, repeats):
    """Return, for each column, coverage of the estimator's own mean at the points, and its bias there."""
    rng = np.random.default_rng(2**31)
    X, points = design.rows(rng, design.n), design.rows(rng, POINTS)
    found = [
        fitted(*design.data(np.random.default_rng(seed), X)).effects(points, return_std=True) for seed in range(repeats)
    ]
    values, errors = (np.array([one[k] for one in found]) for k in (0, 1))
    return summary(values, errors, values.mean(axis=0), values - design.slopes(points))


def summary(values, errors, truth, off):
    """Return means over everything but the columns, which are last."""
    others = tuple(range(values.ndim - 1))
    return {
        "coverage": (np.abs(values - truth) <= WITHIN * errors).mean(axis=others).tolist(),
        "bias": off.mean(axis=others).tolist(),
        "error_over_deviation": (errors.mean(axis=0) / values.std(axis=0)).mean(axis=others[:-1]).tolist(),
    }


def measured(name, repeats):
    design = DESIGNS[name]
    return {"average": of_averages(design, repeats), "points": of_points(design, repeats)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=500)
    parser.add_argument("--json", help="file to write")
    given = parser.parse_args()
    results = {}
    for name in DESIGNS:
        results[name] = measured(name, given.repeats)
        for kind, numbers in results[name].items():
            shown = (f"{key} " + " ".join(f"{x:7.3f}" for x in values) for key, values in numbers.items())
            print(f"{name:30} {kind:8} " + "   ".join(shown), flush=True)
    if given.json:
        text = json.dumps({"repeats": given.repeats, "designs": results}, indent=2)
        Path(given.json).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
