"""Derivatives of kernel values by the columns of a row, without an array of rows x landmarks x columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ridgemark.backends import Array, Floats, backend_of


@dataclass(frozen=True, eq=False)
class Term:
    """`slope(x_i, z_m) (u_i + v_m)`: what one part of a kernel contributes to `dk(x_i, z_m)/dx`."""

    slope: Array  # (rows, p)
    u: Array  # (rows, d)
    v: Array  # (p, d)

    def of_functions(self, coefficients: Array) -> Array:
        n_landmarks, n_features = self.v.shape
        pulls = (self.v[:, :, None] * coefficients[:, None, :]).reshape(n_landmarks, -1)
        by_landmarks = (self.slope @ pulls).reshape(len(self.slope), n_features, -1)
        return by_landmarks + self.u[:, :, None] * (self.slope @ coefficients)[:, None, :]

    def sums(self, weights: Array) -> Array:
        return self.slope.T @ (weights[:, None] * self.u) + self.v * (self.slope.T @ weights)[:, None]

    def times(self, factor: float | Array) -> Term:
        return replace(self, slope=self.slope * factor)

    def column(self, number: int) -> Array:
        return self.slope * (self.u[:, number, None] + self.v[:, number])


@dataclass(frozen=True, eq=False)
class SignTerm:
    """`slope(x_i, z_m) sign(x_ij - z_mj) / width_j`: that of a kernel of absolute differences.

    Where `x_ij = z_mj` the sign is zero: the mean of the derivatives on both sides.
    """

    slope: Array  # (rows, p)
    rows: Array  # (rows, d)
    landmarks: Array  # (p, d)
    widths: Floats  # (d,), on the host

    def of_functions(self, coefficients: Array) -> Array:
        return self._stacked(self.column(j) @ coefficients for j in range(len(self.widths)))

    def sums(self, weights: Array) -> Array:
        return self._stacked(weights @ self.column(j) for j in range(len(self.widths)))

    def times(self, factor: float | Array) -> SignTerm:
        return replace(self, slope=self.slope * factor)

    def column(self, number: int) -> Array:
        signs = backend_of(self.rows).xp.sign(self.rows[:, number, None] - self.landmarks[:, number])
        signs *= self.slope
        signs /= float(self.widths[number])
        return signs

    def _stacked(self, columns: Iterable[Array]) -> Array:
        return backend_of(self.rows).xp.stack(list(columns), axis=1)


@dataclass(frozen=True, eq=False)
class MappedTerm:
    """A term of a kernel of mapped rows `t(x)`, times the slopes `t_j'(x_ij)` of the columns' map."""

    term: Term | SignTerm | MappedTerm
    slopes: Array  # (rows, d)

    def of_functions(self, coefficients: Array) -> Array:
        return self.term.of_functions(coefficients) * self.slopes[:, :, None]

    def sums(self, weights: Array) -> Array:
        columns = (self.column(j).T @ weights for j in range(self.slopes.shape[1]))
        return backend_of(self.slopes).xp.stack(list(columns), axis=1)

    def column(self, number: int) -> Array:
        return self.term.column(number) * self.slopes[:, number, None]

    def times(self, factor: float | Array) -> MappedTerm:
        return replace(self, term=self.term.times(factor))


@dataclass(frozen=True, eq=False)
class Gradient:
    """`dk(x_i, z_m)/dx` of every row and landmark, a sum of terms."""

    terms: Sequence[Term | SignTerm | MappedTerm]

    def of_functions(self, coefficients: Array) -> Array:
        """Return the gradients of `f(x) = sum_m a_m k(x, z_m)`, one for each column of a: (rows, d, targets)."""
        return sum(term.of_functions(coefficients) for term in self.terms)

    def sums(self, weights: Array) -> Array:
        """Return `sum_i w_i dk(x_i, z_m)/dx` for every landmark, shape (p, d)."""
        return sum(term.sums(weights) for term in self.terms)

    def column(self, number: int) -> Array:
        """Return `dk(x_i, z_m)/dx_j` for one column j, shape (rows, p)."""
        return sum(term.column(number) for term in self.terms)

    def times(self, factor: float | Array) -> Gradient:
        """Return the gradient of the kernel times a number, or of `factor(x_i, z_m) k` with this factor held fixed."""
        return Gradient([term.times(factor) for term in self.terms])

    def after_map(self, slopes: Array) -> Gradient:
        """Return the gradient by the columns before their map, whose slopes at the rows these are."""
        return Gradient([MappedTerm(term, slopes) for term in self.terms])

    def __add__(self, other: Gradient) -> Gradient:
        return Gradient([*self.terms, *other.terms])
