"""Weights and the intercept on one side of an operator: `P W^1/2`."""

from __future__ import annotations

import numpy as np

from ridgemark.backends import Floats


class Weighting:
    """`P W^1/2` for vectors with one entry for each row.

    W holds the weights of the rows. With an intercept P projects onto what is orthogonal to the weighted constant
    `W^1/2 1`; without one it is the identity. Ridge regression with weights and an intercept is ridge regression with
    the kernel `P W^1/2 K W^1/2 P` and the targets `P W^1/2 y`.
    """

    def __init__(self, weights: Floats, fit_intercept: bool) -> None:
        self.roots = np.sqrt(weights)[:, None]
        self.length = float(np.linalg.norm(self.roots))  # the root of the total weight
        self._constant = self.roots / self.length if fit_intercept else np.zeros_like(self.roots)

    def project(self, vectors: Floats) -> Floats:
        """Return `P V`."""
        # Contiguous columns are summed in pairs, so the rounding error does not grow with n.
        sums = np.ascontiguousarray((self._constant * vectors).T).sum(axis=1)
        return vectors - self._constant * sums

    def __call__(self, vectors: Floats) -> Floats:
        """Return `P W^1/2 V`."""
        return self.project(self.roots * vectors)

    def transpose(self, vectors: Floats) -> Floats:
        """Return `W^1/2 P V`."""
        return self.roots * self.project(vectors)
