"""The preconditioned conjugate gradient, for several right sides at once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ridgemark.backends import Flags, Floats, Indices

Operator = Callable[[Floats, Indices], Floats]
"""Takes V and the positions of its columns among the right sides; returns a product with V."""
Rounding = Callable[[Floats, Indices], Floats]
"""Takes the same; bounds the norm of the rounding error of each column of a product, by 128 u `|A| |v|` or more."""

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
    recompute_every: int = 1,
) -> GradientSolution:
    """Solve `A x = b` for every column b of `right`, from zero, each column with its own step lengths.

    Every step takes one product, with the directions d and the iterates x side by side. So in addition to the recursive
    residual of conjugate gradients every step has the residual `b - A x - step A d` from the latest product.
    The stopping rules use the second; the difference of the two is rounding error. Conjugate gradients minimise the
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
    recompute_every : int, default=1
        One step of this many takes the product with the iterates too. In the others a product has half the size, and
        residuals are the recursive ones: the caller must then measure the residual of the solution.
    """
    rounding = rounding or (lambda _, columns: np.zeros(len(columns)))
    descent = _Descent(product, precondition, right, tol, rounding, recompute_every)
    while len(descent.running) and descent.n_products < max_products:
        descent.step()
    solution, residual = descent.smooth
    return GradientSolution(solution, residual, tuple(descent.history), tuple(descent.outcomes))


@dataclass(eq=False)
class _Descent:
    """The state of the iteration.

    `now`, of shape (3, n, columns), holds iterates x, their residuals `r = b - A x` from the latest product, and
    `z = M^-1 r`; `smooth` holds x and r; `recursive` holds the residuals by the recursion of conjugate gradients.
    """

    product: Operator
    precondition: Operator
    right: Floats
    tol: Floats
    rounding: Rounding
    recompute_every: int

    def __post_init__(self) -> None:
        right, n_columns = self.right, self.right.shape[1]
        self.running = np.arange(n_columns)
        self.outcomes: list[Outcome] = ["out of products"] * n_columns
        self.now = np.stack([np.zeros_like(right), right, self.precondition(right, self.running)])
        self.smooth, self.smooth_rounding = self.now[:2].copy(), np.zeros(n_columns)
        self.x, self.r, self.z = self.now
        self.recursive = right.copy()
        self.directions = np.zeros_like(right)
        self.r_before, self.rz_before = right.copy(), np.ones(n_columns)
        self.history: list[GradientStep] = []
        self.n_products = 0
        self._record()

    def step(self) -> None:
        """Move every running column along its direction, and record the residuals."""
        on = self.running
        rz = self._update_directions()
        d = self.directions[:, on]
        if self.n_products % self.recompute_every == self.recompute_every - 1:
            of_d, of_x = np.split(self.product(np.hstack([d, self.x[:, on]]), np.tile(on, 2)), 2, axis=1)
            recomputed = self.right[:, on] - of_x
        else:
            of_d, recomputed = self.product(d, on), self.recursive[:, on]
        self.n_products += 1
        difference = _norms(recomputed - self.recursive[:, on])
        curvature = _dots(d, of_d)
        moves = (rz > 0) & (curvature > 0) & (difference < _ROUNDING_SHARE * _norms(recomputed))
        self._stop(~moves, "stagnated")
        on, step = self.running, rz[moves] / curvature[moves]
        rounding = self.rounding(self.x[:, on], on) + step * self.rounding(d[:, moves], on)
        self.x[:, on] += step * d[:, moves]
        self.recursive[:, on] -= step * of_d[:, moves]
        self.z[:, on] = self.precondition(self.recursive[:, on], on)
        self.r[:, on] = recomputed[:, moves] - step * of_d[:, moves]
        self._smooth(rounding)
        self._record()

    def _smooth(self, rounding: Floats) -> None:
        """Move the smooth iterates to the point of smallest residual on the line to the present iterates."""
        on = self.running
        gap = self.now[:2, :, on] - self.smooth[:, :, on]
        length = _dots(gap[1], gap[1])
        share = -_dots(self.smooth[1][:, on], gap[1]) / np.where(length > 0, length, 1.0)
        self.smooth[:, :, on] += share * gap
        of_update = _UPDATE_SHARE * self.rounding(self.smooth[0][:, on], on)
        mixed = np.abs(1.0 - share) * self.smooth_rounding[on] + np.abs(share) * rounding
        self.smooth_rounding[on] = mixed + of_update

    def _update_directions(self) -> Floats:
        """Set the new directions; return `r'z`."""
        on = self.running
        r, z = self.recursive[:, on], self.z[:, on]
        # The form of Polak and Ribiere converges also with a preconditioner that is inexact by rounding.
        beta = _dots(r - self.r_before[:, on], z) / self.rz_before[on]
        self.directions[:, on] = z + np.maximum(beta, 0.0) * self.directions[:, on]
        self.r_before[:, on], self.rz_before[on] = r, _dots(r, z)
        return self.rz_before[on]

    def _record(self) -> None:
        """Record the residuals, and stop the columns that are done."""
        latest, rounding = _norms(self.smooth[1]), self.smooth_rounding.copy()
        self.history.append(GradientStep(self.n_products, latest, rounding))
        self._stop((latest + rounding <= self.tol)[self.running], "converged")
        self._stop((latest < _NEGLIGIBLE * rounding)[self.running], "stagnated")
        if self.n_products > _PATIENCE:
            earlier = self.history[-1 - _PATIENCE].residual
            self._stop(latest[self.running] > 0.9 * earlier[self.running], "stagnated")

    def _stop(self, done: Flags, outcome: Outcome) -> None:
        for column in self.running[done]:
            self.outcomes[column] = outcome
        self.running = self.running[~done]


def _dots(left: Floats, right: Floats) -> Floats:
    return np.einsum("ij,ij->j", left, right)


def _norms(vectors: Floats) -> Floats:
    return np.sqrt(_dots(vectors, vectors))
