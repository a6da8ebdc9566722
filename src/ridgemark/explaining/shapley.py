"""Shapley values of kernels that are products over columns, by quadrature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ridgemark.backends import Floats, Indices
from ridgemark.explaining.factors import ColumnSum, ProductTerm

_MOST_NODES = 32
_TILE = 2**16  # numbers that stay in the processor's cache
Rule = tuple[Any, int]  # precision and number of nodes


@dataclass(frozen=True, eq=False)
class Shapley:
    """Interventional Shapley values of `f(x) = sum_z c_z k(x, z)`, k the products over columns and linear parts.

    With `a_j` and `b_j` the factors of column j for row x and background row b,
    `phi_j = sum_z c_z int_0^1 (a_j - b_j) prod_{l != j} ((1 - t) b_l + t a_l) dt`; Gauss-Legendre with ceil(d/2) nodes
    is exact for d columns.
    """

    kernel: ColumnSum
    points: Floats  # (p, features), as the kernel sees them
    dual_coef: Floats  # (p, outputs)
    starts: Indices  # (columns,): where the features of each column start
    rows: Floats  # (b, features): the background, as the kernel sees it
    weights: Floats  # (b,), with the sum one

    accurate: ClassVar[float] = 1e-6  # error of a contribution, as a share of the sum of sizes, that is small enough

    @property
    def rules(self) -> list[Rule]:
        """Precisions and numbers of nodes, the fastest first; the last one is exact for at most 64 columns."""
        last = self.finest[1]
        single = [(np.float32, n) for n in (1, 2, 3, 4, 6, 8) if n <= last]
        return [*single, *((np.float64, n) for n in (3, 4, 6, 8, 12) if n < last), self.finest]

    @property
    def finest(self) -> Rule:
        """The rule that others are compared with."""
        return np.float64, min(-(-len(self.starts) // 2), _MOST_NODES)

    def values(self, rows: Floats, rule: Rule) -> Floats:
        """Return the contributions at some rows, shape (rows, columns, outputs)."""
        total = np.zeros((len(rows), len(self.starts), self.dual_coef.shape[1]))
        for weight, linear in self.kernel.linear:
            slopes = np.asarray(linear.gradient(self.rows[:1], self.points).of_functions(self.dual_coef))[0]
            change = (rows - self.weights @ self.rows)[:, :, None] * slopes
            total += weight * np.add.reduceat(change, self.starts, axis=1)
        for term in self.kernel.products:
            self._add_product(term, rows, rule, total)
        return total

    def _add_product(self, term: ProductTerm, rows: Floats, rule: Rule, total: Floats) -> None:
        """Add the contributions of one product over columns; each tile of points is compared with all pairs of rows."""
        step = max(1, _TILE // len(self.starts))
        nodes, shares = gauss_legendre(rule[1])
        for first in range(0, len(self.points), step):
            points = self.points[first : first + step]
            here, there = (
                np.maximum(term.by_column(some, points, self.starts).astype(rule[0]), np.finfo(rule[0]).tiny)
                for some in (rows, self.rows)
            )
            coefficients = (term.weight * self.dual_coef[first : first + step]).astype(rule[0])
            ends = [
                (there * rule[0](1.0 - node), rule[0](node), coefficients * share)
                for node, share in zip(nodes, shares.astype(rule[0]), strict=True)
            ]
            change, mixed = np.empty_like(here[0]), np.empty_like(here[0])
            for own, out in zip(here, total, strict=True):
                starts = [own * node for _, node, _ in ends]
                for number, weight in enumerate(self.weights):
                    np.subtract(own, there[number], out=change)
                    for start, (end, _, scaled) in zip(starts, ends, strict=True):
                        np.add(start, end[number], out=mixed)
                        whole = np.multiply.reduce(mixed, axis=0)
                        np.divide(change, mixed, out=mixed)
                        out += weight * (mixed @ (scaled * whole[:, None]))


def gauss_legendre(count: int) -> tuple[Floats, Floats]:
    """Return the nodes and weights of Gauss-Legendre on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1.0) / 2.0, weights / 2.0
