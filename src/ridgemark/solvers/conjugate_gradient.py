"""The preconditioned conjugate gradient, for several right sides at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Columns = NDArray[np.intp]
"""Which right sides the columns of an array belong to."""
Operator = Callable[[Floats, Columns], Floats]

Outcome = Literal["converged", "stagnated", "out of products"]

# Products in which the residual lost less than a tenth, after which a column is given up.
_PATIENCE = 100
# A residual of which rounding is this share, by two ways of computing it, cannot be made smaller.
_ROUNDING_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class GradientStep:
    """Where the columns stood after some products with the matrix; one that has stopped keeps its last entries."""

    n_products: int
    residual: Floats  # (columns,): |r|
    energy: Floats  # (columns,): r'M^-1 r


@dataclass(frozen=True, eq=False)
class GradientSolution:
    """What was found, and the way there."""

    solution: Floats  # (n, columns)
    history: tuple[GradientStep, ...]
    outcomes: tuple[Outcome, ...]  # one for each column

    @property
    def reached(self) -> GradientStep:
        """The residuals of the solution."""
        return self.history[-1]


def conjugate_gradient(
    product: Operator, precondition: Operator, right: Floats, tol: Floats, max_products: int
) -> GradientSolution:
    """Solve `A x = b` for every column b of `right`, from zero, each column with scalars of its own.

    Every step asks for one product, with the directions d and the iterates x side by side. So beside the residual that
    conjugate gradients carry along there is at every step `b - A x - step A d` from products just made: what is
    concluded from it holds, and how far the two are apart is rounding. Conjugate gradients minimise the error in the
    norm of A, and their residuals rise and fall; what is returned is the combination of the iterates so far of least
    residual (minimal residual smoothing), which only falls and costs no product.

    A column stops when its residual is at most `tol`; when half of it is rounding, or nothing improved for long
    ("stagnated"); or when the products are spent.

    Parameters
    ----------
    product : callable
        `A V`, given V and the right sides that its columns belong to.
    precondition : callable
        `M^-1 V`, likewise.
    right : array of shape (n, columns)
        The right sides.
    tol : array of shape (columns,)
        What the norms of the residuals must reach.
    max_products : int
        Most products with A.
    """
    descent = _Descent(product, precondition, right, tol)
    while len(descent.running) and descent.n_products < max_products:
        descent.step()
    return GradientSolution(descent.smooth.x, tuple(descent.history), tuple(descent.outcomes))


@dataclass
class _Iterates:
    """Iterates x, their residuals `r = b - A x`, and `z = M^-1 r`; each of shape (n, columns)."""

    x: Floats
    r: Floats
    z: Floats

    def copy(self) -> _Iterates:
        return _Iterates(self.x.copy(), self.r.copy(), self.z.copy())

    def approach(self, other: _Iterates, columns: Columns) -> None:
        """Move some columns on the lines towards the other iterates to where the residual is least."""
        gap = other.r[:, columns] - self.r[:, columns]
        length = _dots(gap, gap)
        share = -_dots(self.r[:, columns], gap) / np.where(length > 0, length, 1.0)
        for mine, theirs in ((self.x, other.x), (self.r, other.r), (self.z, other.z)):
            mine[:, columns] += share * (theirs[:, columns] - mine[:, columns])


class _Descent:
    """The columns on their way."""

    def __init__(self, product: Operator, precondition: Operator, right: Floats, tol: Floats) -> None:
        n_columns = right.shape[1]
        self.product, self.precondition, self.right, self.tol = product, precondition, right, tol
        self.running = np.arange(n_columns)
        self.outcomes: list[Outcome] = ["out of products"] * n_columns
        self.now = _Iterates(np.zeros_like(right), right.copy(), np.array(precondition(right, self.running)))
        self.seen = self.now.r.copy()  # the residuals from products just made; those of `now` are carried along
        self.smooth = self.now.copy()
        self.directions = np.zeros_like(right)
        self.r_before, self.rz_before = right.copy(), np.ones(n_columns)
        self.history: list[GradientStep] = []
        self.n_products = 0
        self._look()

    def step(self) -> None:
        """Move every running column along its direction, and look where that leads."""
        on, now = self.running, self.now
        rz = self._turn()
        d = self.directions[:, on]
        of_d, of_x = np.split(self.product(np.hstack([d, now.x[:, on]]), np.tile(on, 2)), 2, axis=1)
        self.n_products += 1
        again = self.right[:, on] - of_x
        rounding = _norms(again - now.r[:, on])
        curvature = _dots(d, of_d)
        moves = (rz > 0) & (curvature > 0) & (rounding < _ROUNDING_SHARE * _norms(again))
        self._stop(~moves, "stagnated")
        on, step = self.running, rz[moves] / curvature[moves]
        now.x[:, on] += step * d[:, moves]
        now.r[:, on] -= step * of_d[:, moves]
        now.z[:, on] = self.precondition(now.r[:, on], on)
        self.seen[:, on] = again[:, moves] - step * of_d[:, moves]
        self.smooth.approach(replace(now, r=self.seen), on)
        self._look()

    def _turn(self) -> Floats:
        """Set the new directions; return `r'z`."""
        on = self.running
        r, z = self.now.r[:, on], self.now.z[:, on]
        # Polak and Ribiere's form: a preconditioner that rounding makes inexact costs steps, not convergence.
        turn = _dots(r - self.r_before[:, on], z) / self.rz_before[on]
        self.directions[:, on] = z + np.maximum(turn, 0.0) * self.directions[:, on]
        self.r_before[:, on], self.rz_before[on] = r, _dots(r, z)
        return self.rz_before[on]

    def _look(self) -> None:
        """Record the residuals, and stop the columns that are done."""
        r, z = self.smooth.r, self.smooth.z
        self.history.append(GradientStep(self.n_products, _norms(r), np.maximum(_dots(r, z), 0.0)))
        latest = self.history[-1].residual
        self._stop(latest[self.running] <= self.tol[self.running], "converged")
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
