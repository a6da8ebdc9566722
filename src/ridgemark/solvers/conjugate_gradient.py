"""The preconditioned conjugate gradient, for several right sides at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Columns = NDArray[np.intp]
"""Which right sides the columns of an array belong to."""

Outcome = Literal["converged", "stagnated", "out of products"]

# Steps without a smaller bound after which a column is given up: its matrix is beyond its preconditioner.
_PATIENCE = 100
# A residual of which rounding is this share, by two ways of computing it, cannot be made smaller.
_ROUNDING_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class GradientStep:
    """Where the columns stood after some products with the matrix; one that has stopped keeps its last bounds."""

    n_products: int
    bounds: Floats  # (bounds, columns)


@dataclass(frozen=True, eq=False)
class GradientSolution:
    """The best iterate of every column, by the bound that stops, and the way there."""

    solution: Floats  # (n, columns)
    residual: Floats  # (n, columns): right - A solution
    bounds: Floats  # (bounds, columns), of this solution
    history: tuple[GradientStep, ...]
    outcomes: tuple[Outcome, ...]  # one for each column

    @property
    def n_products(self) -> int:
        """Products with the matrix, that of the starting residual included."""
        return self.history[-1].n_products


def conjugate_gradient(
    product: Callable[[Floats, Columns], Floats],
    precondition: Callable[[Floats, Columns], Floats],
    bound: Callable[[Floats, Floats, Columns], Floats],
    right: Floats,
    start: Floats,
    tol: Floats,
    max_products: int,
) -> GradientSolution:
    """Solve `A x = b` for every column b of `right` by conjugate gradients, each column with scalars of its own.

    Every step asks for one product with the directions and the iterates side by side. So each residual is
    `b - A x - step A d` from products just made, never carried along: a bound computed from it holds for the iterate,
    and how far it is from the residual foretold a step before is the rounding that it contains. A column stops when
    its first bound is at most `tol`; when half its residual is rounding, or nothing improved for long ("stagnated");
    or when the products are spent. The best iterate is what it ends with.

    Parameters
    ----------
    product : callable
        `A V`, given V and the right sides that its columns belong to.
    precondition : callable
        `M^-1 V`, likewise.
    bound : callable
        What is known of the error, shape (bounds, columns), from the residual r and `M^-1 r`; the first row, which
        must be a norm of r alone, is the one that stops.
    right, start : array of shape (n, columns)
        The right sides and where to start.
    tol : array of shape (columns,)
        What the first bound must reach.
    max_products : int
        Most products with A, that of the starting residual included.
    """
    descent = _Descent(product, precondition, bound, right, start, tol)
    while len(descent.running) and descent.n_products < max_products:
        descent.step()
    return GradientSolution(
        descent.best_x, descent.best_r, descent.best, tuple(descent.history), tuple(descent.outcomes)
    )


class _Descent:
    """The columns on their way: x the iterates, r their residuals, `z = M^-1 r`, d the directions."""

    def __init__(self, product: Any, precondition: Any, bound: Any, right: Floats, start: Floats, tol: Floats) -> None:
        n_columns = right.shape[1]
        self.product, self.precondition, self.bound = product, precondition, bound
        self.right, self.tol = right, tol
        self.running = np.arange(n_columns)
        self.outcomes: list[Outcome] = ["out of products"] * n_columns
        self.history: list[GradientStep] = []
        self.waited = np.zeros(n_columns, dtype=int)  # steps since the last better one
        self.x = start.copy()
        self.r = right - product(self.x, self.running)
        self.d, self.r_before, self.rz_before = np.zeros_like(self.x), self.r.copy(), np.ones(n_columns)
        self.best_x, self.best_r = self.x.copy(), self.r.copy()
        self.n_products = 1
        self.z = precondition(self.r, self.running)
        self.best = bound(self.r, self.z, self.running)
        self.history.append(GradientStep(1, self.best.copy()))
        self._stop(self.best[0] <= tol, "converged")

    def step(self) -> None:
        """Move every running column along its direction, and look where that leads."""
        on = self.running
        rz = self._turn()
        images = self.product(np.hstack([self.d[:, on], self.x[:, on]]), np.tile(on, 2))
        of_d, of_x = np.split(images, 2, axis=1)
        again = self.right[:, on] - of_x
        difference = again - self.r[:, on]
        rounding = self.bound(difference, np.zeros_like(difference), on)[0]
        curvature = np.sum(self.d[:, on] * of_d, axis=0)
        moves = (rz > 0) & (curvature > 0) & (rounding < _ROUNDING_SHARE * self.history[-1].bounds[0, on])
        step = np.divide(rz, curvature, out=np.zeros_like(rz), where=moves)
        self.x[:, on] += step * self.d[:, on]
        self.r[:, on] = again - step * of_d
        self.n_products += 1
        self._stop(~moves, "stagnated")
        self._look()

    def _turn(self) -> Floats:
        """Set the new directions; return `r'z`."""
        on = self.running
        r, z = self.r[:, on], self.z[:, on]
        rz = np.sum(r * z, axis=0)
        # Polak and Ribiere's form: a preconditioner that rounding makes inexact costs steps, not convergence.
        turn = np.sum((r - self.r_before[:, on]) * z, axis=0) / self.rz_before[on]
        self.d[:, on] = z + np.maximum(turn, 0.0) * self.d[:, on]
        self.r_before[:, on], self.rz_before[on] = r, rz
        return rz

    def _look(self) -> None:
        """Bound the errors of the running columns, keep the best, and stop those that are done."""
        on, latest = self.running, self.history[-1].bounds.copy()
        r = self.r[:, on]
        z = self.z[:, on] = self.precondition(r, on)
        latest[:, on] = self.bound(r, z, on)
        self.history.append(GradientStep(self.n_products, latest))
        better = on[latest[0, on] < self.best[0, on]]
        self.best[:, better] = latest[:, better]
        self.best_x[:, better], self.best_r[:, better] = self.x[:, better], self.r[:, better]
        self.waited[on] += 1
        self.waited[better] = 0
        self._stop(self.waited[on] >= _PATIENCE, "stagnated")
        self._stop(self.best[0, self.running] <= self.tol[self.running], "converged")

    def _stop(self, done: NDArray[np.bool_], outcome: Outcome) -> None:
        for column in self.running[done]:
            self.outcomes[column] = outcome
        self.running = self.running[~done]
