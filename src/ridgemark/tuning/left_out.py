"""Residuals of a sample whose rows leave in groups, and what the gradient of the criterion needs of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ridgemark.backends import Array, Floats, Indices, backend_of
from ridgemark.solvers.groups import GroupSystem


@dataclass(frozen=True, eq=False)
class LeftOutGroups:
    """Rows sorted by group, with `V = (I - AA')^-1` of every group, A scaled by the roots of the weights.

    Letters are those of `SmallSolution`; arrays are on the host.
    """

    order: Indices  # of the rows
    root: Floats  # W^1/2, (n, 1)
    system: GroupSystem  # of W^1/2 [A, 1]; without an intercept no 1
    solved: Floats  # V W^1/2 e = W^1/2 r

    @classmethod
    def of(
        cls, by_group: tuple[Indices, Indices], weights: Floats, whitened: Array, residuals: Array, constant: float
    ) -> LeftOutGroups:
        """Return the residuals, from A and e in the order of the rows, and the rows sorted by group with its sizes."""
        whitened, residuals = (backend_of(part).to_host(part) for part in (whitened, residuals))
        order, sizes = by_group
        root = np.sqrt(weights[order])[:, None]
        shrunk = np.empty((len(order), whitened.shape[1] + 1), whitened.dtype)
        shrunk[:, :-1], shrunk[:, -1] = whitened[order], constant
        shrunk *= root
        system = GroupSystem.of(shrunk, sizes)
        return cls(order, root, system, system.solve(root * residuals[order]))

    @property
    def error(self) -> float:
        """`E = sum w r^2`, the mean over targets."""
        return float((self.solved**2).sum(axis=0).mean())

    @property
    def residuals(self) -> Floats:
        """The residuals r in the order of the rows."""
        return self._in_order(self.solved / self.root)

    def multipliers(self) -> tuple[Floats, Floats, Floats]:
        """Return u, `DA` and `A'DA`, in the order of the rows.

        `u = dE/de = 2 W^1/2 V W^1/2 r/t`, t the number of targets, and D has the blocks `sym((w r)_g u_g')`, summed
        over targets: of a group it needs `A_g'(w r)_g` and `A_g'u_g` alone.
        """
        half = self.system.solve(self.solved) * (2.0 / self.solved.shape[1])  # W^-1/2 u
        of_own, of_half = (self.system.sums(values)[:, :-1] for values in (self.solved, half))
        product = self.system.products(np.hstack([self.solved, half]), np.concatenate([of_half, of_own], axis=2))
        product *= self.root / 2.0
        gram = np.tensordot(of_own, of_half, ((0, 2), (0, 2)))
        return self._in_order(self.root * half), self._in_order(product), (gram + gram.T) / 2.0

    def _in_order(self, values: Floats) -> Floats:
        ordered = np.empty_like(values)
        ordered[self.order] = values
        return ordered
