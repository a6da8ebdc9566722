"""`(L + s)^-1`, for the weighted and centred Nystrom approximation L."""

from __future__ import annotations

from ridgemark.backends import Floats, Indices
from ridgemark.operators.features import Features
from ridgemark.operators.weighting import Weighting


class ShiftedInverse:
    """`(L + s)^-1 v = (v - B (B'B + s)^-1 B'v)/s` with `L = B B'`, B the features weighted and centred.

    Parameters
    ----------
    features : Features
        B before weighting.
    weighting : Weighting
        `P W^1/2`.
    spectrum, rotation : arrays of shape (rank,) and (rank, rank)
        `B'B = V diag(spectrum) V'`.
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
