"""The Bernoulli kernel of the paper's synthetic experiment."""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from ridgemark.backends import Array, Backend, Floats, Indices, backend_of
from ridgemark.errors import DataError, ParameterError
from ridgemark.kernels.base import Kernel, same_for_all, unit_roundoff
from ridgemark.kernels.gradient import Gradient, Term

_HIGHEST_ORDER = 8  # above it the kernel equals one cosine to machine precision


class Bernoulli(Kernel):
    """Bernoulli kernel `k(x, z) = (-1)^(order-1) B_{2 order}({x - z}) / (2 order)!` of one input.

    `B` is the Bernoulli polynomial and `{t}` the fractional part. The functions of this kernel have period one, zero
    mean, and `order` square-integrable derivatives. The paper writes beta for the order and omits the sign; without
    it the kernel is negative semidefinite for even orders.

    Parameters
    ----------
    order : int, default=2
        From 1 to 8.
    """

    def __init__(self, order: int = 2) -> None:
        self.order = order

    def diagonal(self, rows: Any, indices: Indices | None = None) -> Array:
        self._check_one_feature(rows)
        return same_for_all(self.constant_diagonal, rows)

    @property
    def constant_diagonal(self) -> float:  # type: ignore[override]
        return self._coefficients()[-1]

    def _prepare(self, landmarks: Any, indices: Indices | None, backend: Backend) -> Any:
        self._check_one_feature(landmarks)
        return landmarks[:, 0], self._coefficients()

    def _block(self, rows: Any, prepared: Any, out: Array | None, backend: Backend) -> Array:
        self._check_one_feature(rows)
        points, coefficients = prepared
        return _polynomial(_turns(rows, points, backend), coefficients)

    def gradient(self, rows: Floats, landmarks: Floats) -> Gradient:
        """Return `dk/dx = (-1)^(order-1) B_{2 order - 1}({x - z}) / (2 order - 1)!`; zero at the kink of order 1."""
        backend = backend_of(rows)
        points, coefficients = self._prepare(landmarks, None, backend)
        degree, turns = len(coefficients) - 1, _turns(rows, points, backend)
        slope = _polynomial(turns, [(degree - k) * value for k, value in enumerate(coefficients[:-1])])
        if degree == 2:
            slope[turns == 0.0] = 0.0
        return Gradient([Term(slope, backend.xp.ones_like(rows), backend.xp.zeros_like(landmarks))])

    def _entry_error(self, rows: Any, prepared: Any, backend: Backend) -> Floats:
        points, coefficients = prepared
        # x - z has an error of u |x - z|, and the kernel's derivative is at most 8 k(x, x) for every order.
        left, right = (np.abs(backend.to_host(side)).astype(np.float64) for side in (rows[:, 0], points))
        distance = left + right.max(initial=0.0) + 1.0
        summed = (2.0 * len(coefficients) + 2.0) * sum(map(abs, coefficients)) / coefficients[-1]
        return unit_roundoff(backend.precision(rows)) * (8.0 * distance + summed)

    def _coefficients(self) -> list[float]:
        """Return the polynomial's coefficients, highest power first: `B_m(t) = sum_k C(m, k) B_k t^(m-k)`."""
        order = self.order
        whole = isinstance(order, int | np.integer) and not isinstance(order, bool)
        if not whole or not 1 <= order <= _HIGHEST_ORDER:
            raise ParameterError(f"Bernoulli: order must be an integer from 1 to {_HIGHEST_ORDER}, got {order!r}")
        degree = 2 * int(order)
        factor = (-1) ** (order - 1) / math.factorial(degree)
        return [factor * math.comb(degree, k) * float(b) for k, b in enumerate(_bernoulli_numbers(degree))]

    def _check_one_feature(self, rows: Any) -> None:
        if rows.shape[1] != 1:
            raise DataError(f"Bernoulli takes rows of one feature, got {rows.shape[1]}; select one column")


def _turns(rows: Array, points: Array, backend: Backend) -> Array:
    """Return the fractional part of `x - z`."""
    turns = rows[:, 0, None] - points[None, :]
    turns -= backend.xp.floor(turns)
    return turns


def _polynomial(at: Array, coefficients: list[float]) -> Array:
    """Return the polynomial with these coefficients, two or more, highest power first."""
    values = at * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        values *= at
        values += coefficient
    return values


def _bernoulli_numbers(last: int) -> list[Fraction]:
    """Return `B_0 .. B_last` by `sum_{k<=m} C(m+1, k) B_k = 0`, in fractions: in floats the recurrence loses digits."""
    numbers = [Fraction(1)]
    for m in range(1, last + 1):
        numbers.append(-sum((math.comb(m + 1, k) * b for k, b in enumerate(numbers)), Fraction(0)) / (m + 1))
    return numbers
