"""The choice of a solver by its number of operations."""

import math
from typing import Literal, NamedTuple

from ridgemark.errors import ParameterError
from ridgemark.parameters import real_number

_ENTRY = 200.0  # operations for one kernel value, besides 2 for each feature
# Products with B'WB until conjugate gradients converge: `8 + 45/(1 + q/p)`, for q rows in the preconditioner besides
# the landmarks; measured for ridges of 1e-5 to 1e-9 on made-up rows, also with long tails.
_FEWEST_PRODUCTS, _SAVED_PRODUCTS = 8.0, 45.0
_MOST_ROWS = 8  # of the preconditioner, for each landmark
_DEFERRED = 8  # rows per landmark from which on whitening is deferred
LANDMARKS_BEFORE_GRADIENT = 2000  # landmarks that choose the ridge where the gradient solver has many more
_FACTORS = 2.0  # operations, in units of p^3, of the Cholesky factors and inverses
_CLOSE = 1.2  # the gradient must be cheaper by this factor to be chosen


class SolverCost(NamedTuple):
    """Floating-point operations of both solvers."""

    direct: float
    gradient: float


def solver_cost(n_rows: int, n_landmarks: int, n_features: int, n_targets: int = 1) -> SolverCost:
    """Count the operations of both solvers for n rows, p landmarks, d features and t targets.

    A kernel value takes `e = 2 d + 200` operations (an exponential takes as long as 200 operations of a product):

    - direct: C and its Gram matrix, `n p (e + p)`, where `n < 8 p` whitened by a triangle, `n p (e + 2 p)`, and
      Cholesky factors, `2 p^3`;
    - gradient: the sums of 2,000 landmarks that choose the ridge; a Cholesky factor and its inverse, `2 p^3/3`; a
      preconditioner from q rows and the landmarks, `(q + p) p (e + 2 p)`; its Cholesky factor, `p^3/3`; and
      `8 + 45/(1 + q/p)` products of `n p e + (4 n p + 4 p^2) 2 t`, for directions and iterates together.

    Examples
    --------
    >>> cost = solver_cost(36_000, 10_000, 8)
    >>> cost.gradient < cost.direct
    True
    """
    for name, count in (("n_rows", n_rows), ("n_landmarks", n_landmarks), ("n_features", n_features)):
        if not real_number(count) >= 1:
            raise ParameterError(f"{name} must be a number of at least 1, got {count!r}")
    n, p, entry = float(n_rows), float(n_landmarks), 2.0 * n_features + _ENTRY

    def sums(rows: float, landmarks: float) -> float:
        return rows * landmarks * (entry + (1 if rows >= _DEFERRED * landmarks else 2) * landmarks)

    product = n * p * entry + (4 * n * p + 4 * p**2) * 2 * n_targets
    sampled = rows_of_preconditioner(n_rows, n_landmarks)
    n_products = _FEWEST_PRODUCTS + _SAVED_PRODUCTS / (1 + sampled / p)
    before = sums(n, min(n_landmarks, LANDMARKS_BEFORE_GRADIENT)) + 2 * p**3 / 3 + sums(sampled + p, p)
    return SolverCost(sums(n, p) + _FACTORS * p**3, before + p**3 / 3 + n_products * product)


def rows_of_preconditioner(n_rows: int, n_landmarks: int) -> int:
    """Return q, the rows besides the landmarks that the preconditioner of the gradient solver is made of.

    About the least of `2 q p^2`, its work, and `45 n p e/(1 + q/p)`, that of the products it saves; from p to 8 p.
    """
    best = math.sqrt(_SAVED_PRODUCTS * _ENTRY / 2 * n_rows) - n_landmarks
    return int(min(max(best, n_landmarks), _MOST_ROWS * n_landmarks, max(0, n_rows - n_landmarks)))


def choose_solver(n_rows: int, n_landmarks: int, n_features: int, n_targets: int = 1) -> Literal["direct", "gradient"]:
    """Return the cheaper solver; the direct one where the costs are close, as it does not iterate.

    Up to 2,000 landmarks, all of which would choose the ridge, the gradient solver sums what the direct one does.

    Examples
    --------
    >>> choose_solver(36_000, 1_000, 8), choose_solver(36_000, 10_000, 8)
    ('direct', 'gradient')
    """
    if n_landmarks <= LANDMARKS_BEFORE_GRADIENT:
        return "direct"
    cost = solver_cost(n_rows, n_landmarks, n_features, n_targets)
    return "gradient" if _CLOSE * cost.gradient < cost.direct else "direct"
