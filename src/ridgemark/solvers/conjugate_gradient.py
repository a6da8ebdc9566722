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
Rounding = Callable[[Floats, Columns], Floats]
"""Bounds the norm of the rounding error of a product with each column; at least 128 unit roundoffs of `|A| |v|`."""

Outcome = Literal["converged", "stagnated", "out of products"]

# Products in which the residual lost less than a tenth, after which a column is given up.
_PATIENCE = 100
# A residual of which rounding is this share, by two ways of computing it, cannot be made smaller.
_ROUNDING_SHARE = 0.5
# A residual below this share of the allowance for rounding makes the bound on the true residual hardly smaller.
_DROWNED = 0.1
# Updates of iterates and residuals round less than this share of what a product does.
_UPDATE_SHARE = 1.0 / 32.0


@dataclass(frozen=True, eq=False)
class GradientStep:
    """Where the columns stood after some products with the matrix; one that has stopped keeps its last entries."""

    n_products: int
    residual: Floats  # (columns,): |r|
    energy: Floats  # (columns,): r'M^-1 r
    rounding: Floats  # (columns,): bound on the distance of r from the true residual; zero where none was asked for


@dataclass(frozen=True, eq=False)
class GradientSolution:
    """What was found, and the way there."""

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
    """Solve `A x = b` for every column b of `right`, from zero, each column with scalars of its own.

    Every step asks for one product, with the directions d and the iterates x side by side. So beside the residual that
    conjugate gradients carry along there is at every step `b - A x - step A d` from products just made: what is
    concluded from it holds, and how far the two are apart is rounding. Conjugate gradients minimise the error in the
    norm of A, and their residuals rise and fall; what is returned is the combination of the iterates so far of least
    residual (minimal residual smoothing), which only falls and costs no product.

    A column stops when its residual, with the allowance for rounding, is at most `tol`; when half of the residual is
    rounding, or a tenth of it is below the allowance, or nothing improved for long ("stagnated"); or when the products
    are spent.

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
    rounding : callable, optional
        What to allow for rounding in a product. The allowance for the residual returned is summed up on the way.
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
        """Move some columns on the lines towards the other iterates to where the residual is least."""
        gap = other.r[:, columns] - self.r[:, columns]
        length = _dots(gap, gap)
        share = -_dots(self.r[:, columns], gap) / np.where(length > 0, length, 1.0)
        for mine, theirs in ((self.x, other.x), (self.r, other.r), (self.z, other.z)):
            mine[:, columns] += share * (theirs[:, columns] - mine[:, columns])
        self.rounding[columns] *= np.abs(1.0 - share)
        self.rounding[columns] += np.abs(share) * other.rounding[columns]


class _Descent:
    """The columns on their way."""

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
        now.rounding[on] = self.rounding(now.x[:, on], on) + step * self.rounding(d[:, moves], on)
        now.x[:, on] += step * d[:, moves]
        now.r[:, on] -= step * of_d[:, moves]
        now.z[:, on] = self.precondition(now.r[:, on], on)
        self.seen[:, on] = again[:, moves] - step * of_d[:, moves]
        self.smooth.approach(replace(now, r=self.seen), on)
        self.smooth.rounding[on] += _UPDATE_SHARE * self.rounding(self.smooth.x[:, on], on)
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
        latest, rounding = _norms(r), self.smooth.rounding.copy()
        self.history.append(GradientStep(self.n_products, latest, np.maximum(_dots(r, z), 0.0), rounding))
        self._stop((latest + rounding <= self.tol)[self.running], "converged")
        self._stop((latest < _DROWNED * rounding)[self.running], "stagnated")
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
