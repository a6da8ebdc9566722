"""Weights and the intercept on one side of a matrix, `P W^1/2`, and `(L + s)^-1` with both."""

import numpy as np

from ridgemark.backends import Floats, Indices
from ridgemark.operators.row_matrix import Features


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


class ShiftedInverse:
    """`(L + s)^-1 v = (v - B (B'B + s)^-1 B'v)/s` with `L = B B'`, B the features weighted and centred.

    Parameters
    ----------
    features : Features
        B before weighting.
    weighting : Weighting
        `P W^1/2`.
    spectrum, rotation : arrays of shape (q,) and (rank, q)
        `B'B = V diag(spectrum) V'`; features with a zero row in the rotation are left out of L.
    ridges : array of shape (columns,)
        s for each column of v.
    """

    def __init__(
        self, features: Features, weighting: Weighting, spectrum: Floats, rotation: Floats, ridges: Floats
    ) -> None:
        self.features, self.weighting = features, weighting
        self.spectrum, self.rotation, self.ridges = spectrum, rotation, ridges

    def __call__(self, vectors: Floats, columns: Indices | slice = slice(None)) -> Floats:
        """Return `(L + s)^-1 V` for V in the range of P; `columns` says which ridge each column of V has."""
        ridges = self.ridges[columns]
        rotated = self.rotation.T @ (self.features.T @ self.weighting.transpose(vectors))
        inside = self.rotation @ (rotated / (self.spectrum[:, None] + ridges))
        return (vectors - self.weighting(self.features @ inside)) / ridges
