"""What leaving out whole groups of rows does: the block form of leave-one-out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ridgemark.backends import Array, Floats, Indices, backend_of
from ridgemark.backends.blas import inverse_triangle

_ALIKE = 1.25  # groups factored together differ in size by this factor at most
_MANY = 16  # rows of a triangle that is inverted alone, as such, faster than with others as a matrix
_LEAST_KEPT = 1e-12  # smallest eigenvalue of I - AA'; only rounding makes it smaller


@dataclass(frozen=True, eq=False)
class _Alike:
    """Groups of about one size: their rows among all, their sizes, their A, and R with `R'R = (I - AA')^-1`.

    Where a group has more rows than A has columns, R'R is the inverse of `I - A'A`, and that of `I - AA'` is
    `I + A R'R A'`. Smaller groups end in rows of zeros.
    """

    rows: slice
    sizes: Indices
    features: Floats  # (groups, rows, columns)
    root: Floats

    @property
    def is_long(self) -> bool:
        """Whether groups have more rows than A has columns."""
        return self.features.shape[1] > self.features.shape[2]

    def solved(self, values: Floats) -> Floats:
        """Return the inverse times some values of these rows."""
        values = _by_group(values, self.sizes)
        if self.is_long:
            solved = values + self.features @ (_turned(self.root) @ (self.root @ (_turned(self.features) @ values)))
        else:
            solved = _turned(self.root) @ (self.root @ values)
        return _in_rows(solved, self.sizes)

    def removed(self, reached: Floats, values: Floats) -> Floats:
        """Return `C (I - A'A)^-1 C'v` for the rows C of the groups."""
        reached = _by_group(reached, self.sizes)
        pulled = _turned(reached) @ _by_group(values, self.sizes)
        if self.is_long:
            pulled = _turned(self.root) @ (self.root @ pulled)
        else:
            own = _turned(self.root) @ (self.root @ (self.features @ pulled))
            pulled = pulled + _turned(self.features) @ own
        return _in_rows(reached @ pulled, self.sizes)

    def variance(self) -> Floats:
        """Return the diagonal of the inverse minus 1."""
        if self.is_long:
            return _in_rows(((self.features @ _turned(self.root)) ** 2).sum(axis=2), self.sizes)
        return _in_rows((self.root**2).sum(axis=1) - 1.0, self.sizes)


@dataclass(frozen=True, eq=False)
class GroupSystem:
    """`I - A A'` for the rows A of every group, factored.

    For features c of the rows in coordinates in which the inverse of ridge regression is D, with weights W,
    `A = W^1/2 [c D^1/2, 1/sqrt(sum w)]` (without an intercept no last column) and e the residuals of the fit, the
    residuals r of the rows without their group are `W^1/2 r = (I - AA')^-1 W^1/2 e`; and the diagonal of this inverse,
    minus 1, is the variance of the predictions from the other groups, times the weights.
    """

    parts: Sequence[_Alike]

    @classmethod
    def of(cls, shrunk: Floats, sizes: Indices) -> GroupSystem:
        """Return the system of groups whose rows follow each other, with sizes that ascend, in double precision."""
        return cls([_factored(rows, together, shrunk) for rows, together in _alike(sizes)])

    def solve(self, values: Floats) -> Floats:
        """Return the inverse times some values of all rows."""
        return np.concatenate([part.solved(values[part.rows]) for part in self.parts])

    def variance(self) -> Floats:
        """Return the diagonal of the inverse minus 1."""
        return np.concatenate([part.variance() for part in self.parts])

    def removed(self, reached: Floats, values: Floats) -> Floats:
        """Return `C (I - A'A)^-1 C'v` for the rows C and the values v of every group; rows of A may be zero."""
        return np.concatenate([part.removed(reached[part.rows], values[part.rows]) for part in self.parts])

    def sums(self, values: Floats) -> Floats:
        """Return `A_g'v_g` for the values of all rows, shape (groups, columns of A, values)."""
        return np.concatenate(
            [_turned(part.features) @ _by_group(values[part.rows], part.sizes) for part in self.parts]
        )

    def products(self, values: Floats, of_groups: Floats) -> Floats:
        """Return `sum_k v_ik s_gk` for every row i, g its group; s has the shape of `sums`."""
        products, first = [], 0
        for part in self.parts:
            own = _turned(of_groups[first : first + len(part.sizes)])
            products.append(_in_rows(_by_group(values[part.rows], part.sizes) @ own, part.sizes))
            first += len(part.sizes)
        return np.concatenate(products)


def _factored(rows: slice, sizes: Indices, shrunk: Floats) -> _Alike:
    features = _by_group(shrunk[rows], sizes)
    turned = _turned(features)
    short = features.shape[1] <= features.shape[2]
    products = (features @ turned if short else turned @ features).astype(np.float64, copy=False)
    return _Alike(rows, sizes, features, _kept_roots(products))


def kept_share(leverage: Array, lengths: Array, weights: Array, constant: float, scaled_ridge: float | Array) -> Array:
    """Return `1 - W_g t_g` with `t_g = 1/sum w + c_g'(Bc'WBc + n lambda)^-1 c_g`; 1 where there is no other row.

    It is raised to its lower bound `rest n lambda/(n lambda + W_g |c_g|^2/rest)`, `rest = 1 - W_g/sum w`; only
    rounding can make it smaller. `leverage` is t_g, `lengths` |c_g|^2, and `constant` 1/sum w, or 0 without intercept.
    """
    backend, rest = backend_of(leverage), 1.0 - weights * constant
    others = rest > 1e-12
    length = weights * lengths / backend.xp.where(others, rest, 1.0)
    floor = backend.at_least(rest * scaled_ridge / (scaled_ridge + length), np.finfo(np.float64).tiny)
    return backend.xp.where(others, backend.at_least(1.0 - weights * leverage, floor), 1.0)


def kept_root(product: Floats) -> Floats:
    """Return R with `R'R = (I - M)^-1` for a matrix M below I, which is overwritten."""
    return _kept_roots(product[None])[0]


def _kept_roots(products: Floats) -> Floats:
    """Return the same for a stack of matrices."""
    np.negative(products, out=products)
    np.einsum("kii->ki", products)[...] += 1.0
    try:
        return _inverses(np.linalg.cholesky(products).astype(np.float64, copy=False))
    except np.linalg.LinAlgError:  # by rounding
        values, vectors = np.linalg.eigh(products)
        roots: Floats = _turned(vectors) / np.sqrt(np.maximum(values, _LEAST_KEPT))[:, :, None]
        return roots


def _inverses(triangles: Floats) -> Floats:
    """Return the inverses of lower triangles."""
    if triangles.shape[1] < _MANY:
        return np.linalg.inv(triangles).astype(np.float64, copy=False)
    return np.stack([inverse_triangle(triangle.T).T for triangle in triangles])


def _alike(sizes: Indices) -> Iterator[tuple[slice, Indices]]:
    """Yield the rows of groups of about one size, and their sizes."""
    ends, first = np.concatenate([[0], np.cumsum(sizes)]), 0
    while first < len(sizes):
        last = int(np.searchsorted(sizes, int(_ALIKE * sizes[first]), side="right"))
        yield slice(int(ends[first]), int(ends[last])), sizes[first:last]
        first = last


def _by_group(values: Floats, sizes: Indices) -> Floats:
    """Return rows as an array (groups, largest size, columns), in which smaller groups end in rows of zeros."""
    most = int(sizes.max())
    if (sizes == most).all():
        return values.reshape(len(sizes), most, *values.shape[1:])
    padded = np.zeros((len(sizes), most, *values.shape[1:]), values.dtype)
    padded[np.arange(most) < sizes[:, None]] = values
    return padded


def _in_rows(padded: Floats, sizes: Indices) -> Floats:
    """Return what `_by_group` made as rows again."""
    most = padded.shape[1]
    return padded[np.arange(most) < sizes[:, None]]


def _turned(matrices: Floats) -> Floats:
    return matrices.transpose(0, 2, 1)
