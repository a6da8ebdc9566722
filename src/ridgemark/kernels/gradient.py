"""Derivatives of kernel values by the columns of a row, without an array of rows x landmarks x columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ridgemark.backends import Floats


@dataclass(frozen=True, eq=False)
class Term:
    """`slope(x_i, z_m) (u_i + v_m)`: what one part of a kernel contributes to `dk(x_i, z_m)/dx`."""

    slope: Floats  # (rows, p)
    u: Floats  # (rows, d)
    v: Floats  # (p, d)


@dataclass(frozen=True, eq=False)
class Gradient:
    """`dk(x_i, z_m)/dx` of every row and landmark, a sum of terms."""

    terms: Sequence[Term]

    def of_functions(self, coefficients: Floats) -> Floats:
        """Return the gradients of `f(x) = sum_m a_m k(x, z_m)`, one for each column of a: (rows, d, targets)."""
        return np.asarray(sum(_of_functions(term, coefficients) for term in self.terms))

    def sums(self, weights: Floats) -> Floats:
        """Return `sum_i w_i dk(x_i, z_m)/dx` for every landmark, shape (p, d)."""
        parts = (t.slope.T @ (weights[:, None] * t.u) + t.v * (t.slope.T @ weights)[:, None] for t in self.terms)
        return np.asarray(sum(parts))

    def column(self, number: int) -> Floats:
        """Return `dk(x_i, z_m)/dx_j` for one column j, shape (rows, p)."""
        return np.asarray(sum(t.slope * (t.u[:, number, None] + t.v[:, number]) for t in self.terms))

    def times(self, factor: float | Floats) -> Gradient:
        """Return the gradient of the kernel times a number, or of `factor(x_i, z_m) k` with this factor held fixed."""
        return Gradient([replace(term, slope=term.slope * factor) for term in self.terms])

    def __add__(self, other: Gradient) -> Gradient:
        return Gradient([*self.terms, *other.terms])


def _of_functions(term: Term, coefficients: Floats) -> Floats:
    n_landmarks, n_features = term.v.shape
    pulls = (term.v[:, :, None] * coefficients[:, None, :]).reshape(n_landmarks, -1)
    by_landmarks = (term.slope @ pulls).reshape(len(term.slope), n_features, -1)
    return by_landmarks + term.u[:, :, None] * (term.slope @ coefficients)[:, None, :]
