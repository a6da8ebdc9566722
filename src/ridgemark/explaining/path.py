"""Path integrals: contributions of columns from the gradient along straight lines from the background."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ridgemark.backends import Floats, Indices
from ridgemark.explaining.shapley import Rule, gauss_legendre
from ridgemark.kernels import Kernel

_TILE = 512  # rows whose gradients are taken at once


@dataclass(frozen=True, eq=False)
class PathIntegrals:
    """`phi_j = (x_j - b_j) int_0^1 df/dx_j(b + t (x - b)) dt` for every feature j, averaged over background rows b.

    These are Aumann-Shapley values, which have the same sum as Shapley values, for every kernel with derivatives.
    """

    parts: tuple[tuple[float, Kernel], ...]  # with their weights
    points: Floats  # (p, features), as the kernel sees them
    dual_coef: Floats  # (p, outputs)
    starts: Indices  # (columns,): where the features of each column start
    rows: Floats  # (b, features): the background
    weights: Floats  # (b,), with the sum one

    accurate: ClassVar[float] = 3e-4  # error of a contribution, as a share of the sum of sizes, that is small enough

    rules: ClassVar[tuple[Rule, ...]] = tuple((np.float64, n) for n in (3, 4, 6, 8, 12, 16))
    finest: ClassVar[Rule] = (np.float64, 48)

    def values(self, rows: Floats, rule: Rule) -> Floats:
        """Return the contributions at some rows, shape (rows, columns, outputs)."""
        nodes, shares = gauss_legendre(rule[1])
        n_features, n_outputs = rows.shape[1], self.dual_coef.shape[1]
        total, weights = np.zeros((len(rows), n_features, n_outputs)), np.outer(self.weights, shares).ravel()
        for row, out in zip(rows, total, strict=True):
            change = row - self.rows
            places = (self.rows[:, None] + nodes[:, None] * change[:, None]).reshape(-1, n_features)
            along = np.repeat(change, len(nodes), axis=0) * weights[:, None]
            for first in range(0, len(places), _TILE):
                tile = slice(first, first + _TILE)
                for weight, part in self.parts:
                    slopes: Any = part.gradient(places[tile], self.points).of_functions(weight * self.dual_coef)
                    out += np.einsum("ij,ijt->jt", along[tile], slopes)
        return np.add.reduceat(total, self.starts, axis=1)
