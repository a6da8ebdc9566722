"""Which solver takes less work, as numbers that can be asked for."""

from __future__ import annotations

from typing import Literal, NamedTuple

_ENTRY = 200.0  # operations, beside 2 for each feature, that one kernel value takes
_PRODUCTS = 60  # with B'WB until the gradient has converged
_FACTORS = 2.0  # operations over p^3 of the Cholesky factors and inverses for one ridge
_EIGEN = 20.0  # and of the eigendecomposition for many
_CLOSE = 1.2  # ratio from which one solver is preferred for its cost alone


class SolverCost(NamedTuple):
    """Floating-point operations of either solver."""

    direct: float
    gradient: float


def solver_cost(n_rows: int, n_landmarks: int, n_features: int, n_targets: int = 1, n_ridges: int = 1) -> SolverCost:
    """Count the operations of both solvers for n rows, p landmarks, d features, t targets and r ridges.

    With an entry of the kernel at `e = 2 d + 200` operations (an exponential takes as long as some 200 of a product):

    - direct: C whitened by a triangle and its products with itself, `n p (e + 2 p)`, and Cholesky factors, `2 p^3`;
      many ridges take an eigendecomposition instead, `20 p^3`, and one more pass, and cost nothing besides;
    - gradient: a Cholesky factor, `p^3/3`, and for every ridge a preconditioner, `2 p^3/3`, and 60 products of
      `n p e + (4 n p + 4 p^2) 2 t`, directions and iterates side by side.

    Examples
    --------
    >>> cost = solver_cost(36_000, 10_000, 8)
    >>> cost.gradient < cost.direct
    True
    """
    n, p, entry = float(n_rows), float(n_landmarks), 2.0 * n_features + _ENTRY
    one_pass = n * p * (entry + 2 * p)
    direct = one_pass + _FACTORS * p**3 if n_ridges == 1 else 2 * one_pass + _EIGEN * p**3
    product = n * p * entry + (4 * n * p + 4 * p**2) * 2 * n_targets
    gradient = p**3 / 3 + n_ridges * (2 * p**3 / 3 + _PRODUCTS * product)
    return SolverCost(direct, gradient)


def choose_solver(
    n_rows: int, n_landmarks: int, n_features: int, n_targets: int = 1, n_ridges: int = 1
) -> Literal["direct", "gradient"]:
    """Return the solver of less work; the direct one where both are close, as it leaves nothing to converge.

    Examples
    --------
    >>> choose_solver(36_000, 1_000, 8), choose_solver(36_000, 10_000, 8)
    ('direct', 'gradient')
    """
    cost = solver_cost(n_rows, n_landmarks, n_features, n_targets, n_ridges)
    return "gradient" if _CLOSE * cost.gradient < cost.direct else "direct"
