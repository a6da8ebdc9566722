"""The preconditioned conjugate gradient, for several right sides at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Floats, Indices

Columns = Indices
"""The positions, among the right sides, of the columns of an array."""
Operator = Callable[[Floats, Columns], Floats]
Rounding = Callable[[Floats, Columns], Floats]
"""Bounds the norm of the rounding error of a product with each column; at least 128 unit roundoffs of `|A| |v|`."""

Outcome = Literal["converged", "stagnated", "out of products"]

# A column stops when its residual fell by less than a tenth in this many products.
_PATIENCE = 100
# A column stops when two ways of computing its residual differ by this share of it: that part is rounding error.
_ROUNDING_SHARE = 0.5
# A column stops when its residual is below this share of its rounding error: the bound would hardly fall further.
_NEGLIGIBLE = 0.1
# Largest rounding error of the updates of iterates and residuals, relative to that of a product.
_UPDATE_SHARE = 1.0 / 32.0


@dataclass(frozen=True, eq=False)
class GradientStep:
    """The residuals after some products with the matrix; a column that has stopped keeps its last entries."""

    n_products: int
    residual: Floats  # (columns,): |r|
    energy: Floats  # (columns,): r'M^-1 r
    rounding: Floats  # (columns,): bound on the distance of r from the true residual; zero without `rounding`


@dataclass(frozen=True, eq=False)
class GradientSolution:
    """The solution, its residual, and the history of the iteration."""

    solution: Floats  # (n, columns)
    residual: Floats  # (n, columns)
    history: tuple[GradientStep, ...]
    outcomes: tuple[Outcome, ...]  # one for each column

    @property
    def reached(self) -> GradientStep:
        """The residuals of the solution."""
        return self.history[-1]


def conjugate_gradient(
    product: Operator,
    precondition: Operator,
    right: Floats,
    tol: Floats,
    max_products: int,
    rounding: Rounding | None = None,
) -> GradientSolution:
    """Solve `A x = b` for every column b of `right`, from zero, each column with its own step lengths.

    Every step takes one product, with the directions d and the iterates x side by side. So in addition to the recursive
    residual of conjugate gradients every step has the residual `b - A x - step A d` from the latest product.
    Conclusions are drawn from the second; the difference of the two is rounding error. Conjugate gradients minimise the
    error in the norm of A, and their residuals rise and fall. The function returns the combination of the iterates with
    the smallest residual (minimal residual smoothing), which never rises and needs no product.

    A column stops when its residual plus its rounding error is at most `tol` ("converged"); when half of the residual
    is rounding error, when it is below a tenth of its rounding error, or when it hardly fell in 100 products
    ("stagnated"); or after `max_products` ("out of products").

    Parameters
    ----------
    product : callable
        `A V`, given V and the right sides that its columns belong to.
    precondition : callable
        `M^-1 V`, likewise.
    right : array of shape (n, columns)
        The right sides.
    tol : array of shape (columns,)
        Largest norm of each residual.
    max_products : int
        Largest number of products with A.
    rounding : callable, optional
        Bounds the rounding error of a product. The rounding error of the returned residual is summed from it.
    """
    descent = _Descent(product, precondition, right, tol, rounding)
    while len(descent.running) and descent.n_products < max_products:
        descent.step()
    return GradientSolution(descent.smooth.x, descent.smooth.r, tuple(descent.history), tuple(descent.outcomes))


@dataclass
class _Iterates:
    """Iterates x, their residuals `r = b - A x`, and `z = M^-1 r`; each of shape (n, columns)."""

    x: Floats
    r: Floats
    z: Floats
    rounding: Floats  # (columns,): of r

    def copy(self) -> _Iterates:
        return _Iterates(self.x.copy(), self.r.copy(), self.z.copy(), self.rounding.copy())

    def approach(self, other: _Iterates, columns: Columns) -> None:
        """Move some columns to the point of smallest residual on the line to the other iterates."""
        gap = other.r[:, columns] - self.r[:, columns]
        length = _dots(gap, gap)
        share = -_dots(self.r[:, columns], gap) / np.where(length > 0, length, 1.0)
        for mine, theirs in ((self.x, other.x), (self.r, other.r), (self.z, other.z)):
            mine[:, columns] += share * (theirs[:, columns] - mine[:, columns])
        self.rounding[columns] *= np.abs(1.0 - share)
        self.rounding[columns] += np.abs(share) * other.rounding[columns]


class _Descent:
    """The state of the iteration."""

    def __init__(
        self, product: Operator, precondition: Operator, right: Floats, tol: Floats, rounding: Rounding | None
    ) -> None:
        n_columns = right.shape[1]
        self.rounding = rounding or (lambda _, columns: np.zeros(len(columns)))
        self.product, self.precondition, self.right, self.tol = product, precondition, right, tol
        self.running = np.arange(n_columns)
        self.outcomes: list[Outcome] = ["out of products"] * n_columns
        start = np.array(precondition(right, self.running))
        self.now = _Iterates(np.zeros_like(right), right.copy(), start, np.zeros(n_columns))
        self.recomputed = self.now.r.copy()  # residuals from the latest product; those of `now` are recursive
        self.smooth = self.now.copy()
        self.directions = np.zeros_like(right)
        self.r_before, self.rz_before = right.copy(), np.ones(n_columns)
        self.history: list[GradientStep] = []
        self.n_products = 0
        self._record()

    def step(self) -> None:
        """Move every running column along its direction, and record the residuals."""
        on, now = self.running, self.now
        rz = self._update_directions()
        d = self.directions[:, on]
        of_d, of_x = np.split(self.product(np.hstack([d, now.x[:, on]]), np.tile(on, 2)), 2, axis=1)
        self.n_products += 1
        recomputed = self.right[:, on] - of_x
        rounding = _norms(recomputed - now.r[:, on])
        curvature = _dots(d, of_d)
        moves = (rz > 0) & (curvature > 0) & (rounding < _ROUNDING_SHARE * _norms(recomputed))
        self._stop(~moves, "stagnated")
        on, step = self.running, rz[moves] / curvature[moves]
        now.rounding[on] = self.rounding(now.x[:, on], on) + step * self.rounding(d[:, moves], on)
        now.x[:, on] += step * d[:, moves]
        now.r[:, on] -= step * of_d[:, moves]
        now.z[:, on] = self.precondition(now.r[:, on], on)
        self.recomputed[:, on] = recomputed[:, moves] - step * of_d[:, moves]
        self.smooth.approach(replace(now, r=self.recomputed), on)
        self.smooth.rounding[on] += _UPDATE_SHARE * self.rounding(self.smooth.x[:, on], on)
        self._record()

    def _update_directions(self) -> Floats:
        """Set the new directions; return `r'z`."""
        on = self.running
        r, z = self.now.r[:, on], self.now.z[:, on]
        # The form of Polak and Ribiere converges also with a preconditioner that is inexact by rounding.
        beta = _dots(r - self.r_before[:, on], z) / self.rz_before[on]
        self.directions[:, on] = z + np.maximum(beta, 0.0) * self.directions[:, on]
        self.r_before[:, on], self.rz_before[on] = r, _dots(r, z)
        return self.rz_before[on]

    def _record(self) -> None:
        """Record the residuals, and stop the columns that are done."""
        r, z = self.smooth.r, self.smooth.z
        latest, rounding = _norms(r), self.smooth.rounding.copy()
        self.history.append(GradientStep(self.n_products, latest, np.maximum(_dots(r, z), 0.0), rounding))
        self._stop((latest + rounding <= self.tol)[self.running], "converged")
        self._stop((latest < _NEGLIGIBLE * rounding)[self.running], "stagnated")
        if self.n_products > _PATIENCE:
            earlier = self.history[-1 - _PATIENCE].residual
            self._stop(latest[self.running] > 0.9 * earlier[self.running], "stagnated")

    def _stop(self, done: NDArray[np.bool_], outcome: Outcome) -> None:
        for column in self.running[done]:
            self.outcomes[column] = outcome
        self.running = self.running[~done]


def _dots(left: Floats, right: Floats) -> Floats:
    return np.einsum("ij,ij->j", left, right)


def _norms(vectors: Floats) -> Floats:
    return np.sqrt(_dots(vectors, vectors))
