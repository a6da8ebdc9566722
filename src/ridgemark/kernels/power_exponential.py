"""The power exponential kernel, between Matern12 and the Gaussian and rougher than both."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ridgemark.backends import Array, Backend
from ridgemark.errors import ParameterError
from ridgemark.kernels.distances import FAR, FEW_FEATURES, FEW_IF_SINGULAR, Form
from ridgemark.kernels.stationary import RadialKernel

_NEGLIGIBLE = 100.0  # exp(-100) is about 1e-44


class PowerExponential(RadialKernel):
    """Power exponential kernel `k(x, z) = exp(-r^exponent)`, `r = |x - z|/bandwidth`.

    An exponent of 1 gives Matern12; 2 gives the Gaussian with bandwidth `bandwidth/sqrt(2)`.

    Parameters
    ----------
    bandwidth : float or array of shape (n_features,)
        As for the Gaussian kernel.
    exponent : float
        Above 0 and at most 2, for which the kernel is positive definite in any number of features.
    metric : array of shape (n_features, r), optional
        A matrix P: `r = |P'(x - z)|`. It replaces the bandwidth.

    Examples
    --------
    >>> from ridgemark.kernels import PowerExponential
    >>> float(PowerExponential(exponent=1.5)([[0.0]], [[4.0]])[0, 0].round(6))
    0.000335
    """

    def __init__(self, bandwidth: Any = 1.0, exponent: Any = 1.0, metric: Any = None) -> None:
        super().__init__(bandwidth, metric)
        self.exponent = exponent

    @property
    def _form(self) -> Form:  # type: ignore[override]
        q = self._checked_exponent()
        few = FEW_IF_SINGULAR if q < 2 else FEW_FEATURES
        # |dk/dr^2| <= (q/2) r^(q - 2). For r >= X/4 this times X^2 is at most (q/2) 4^(2 - q) X^q; times X r, if q < 1,
        # at most (q/2) 4^(1 - q) X^q.
        coefficient = q / 2.0 * 4.0 ** (2.0 - q)
        if q < 1:
            return Form(few=few, far=_far(q), singular=True, steepest=math.inf, growth=(1.25 * coefficient, q))
        return Form(few=few, far=_far(q), singular=q < 2, growth=(coefficient, q))

    def _profile(self, distances: Array, backend: Backend) -> Array:
        distances **= self._checked_exponent() / 2.0
        distances *= -1.0
        return backend.exp_(distances)

    def _log_derivative(self, rho: Array, backend: Backend) -> Array:
        half = self._checked_exponent() / 2.0
        return -half * rho ** (half - 1.0)

    def _checked_exponent(self) -> float:
        value = self.exponent
        if isinstance(value, int | float | np.number) and not isinstance(value, bool) and 0 < value <= 2:
            return float(value)
        msg = f"PowerExponential: exponent must be a number above 0 and at most 2, got {value!r}"
        raise ParameterError(msg)


def _far(exponent: float) -> float:
    """Return the squared distance from which on `exp(-r^exponent)` is negligible."""
    power = 2.0 / exponent
    return math.inf if power * math.log10(_NEGLIGIBLE) > 300 else max(FAR, _NEGLIGIBLE**power)
