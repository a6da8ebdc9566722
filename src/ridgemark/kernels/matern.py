"""The Matern kernels of smoothness 1/2, 3/2 and 5/2, with `r = |(x - z)/bandwidth|`."""

from __future__ import annotations

from ridgemark.backends import Array, Backend
from ridgemark.kernels.stationary import StationaryKernel

_EXPONENT_LIMIT = 700.0  # exp(-700) is the last that is a normal number


class Matern12(StationaryKernel):
    """Matern kernel of smoothness 1/2, the exponential kernel: `k(x, z) = exp(-r)`."""

    # A kernel with a kink at zero turns a rounding error e of r^2 into one of sqrt(e).
    _accurate_near_zero = True

    def _profile(self, distances: Array, backend: Backend) -> Array:
        distance = backend.sqrt_(distances)
        distance *= -1.0
        return backend.exp_(distance)


class Matern32(StationaryKernel):
    """Matern kernel of smoothness 3/2: `k(x, z) = (1 + sqrt(3) r) exp(-sqrt(3) r)`."""

    _factor = 3.0
    _slope = 1.5

    def _profile(self, distances: Array, backend: Backend) -> Array:
        scaled = backend.sqrt_(distances)
        return _times_exponential(1.0 + scaled, scaled, backend)


class Matern52(StationaryKernel):
    """Matern kernel of smoothness 5/2: `k(x, z) = (1 + sqrt(5) r + 5 r^2/3) exp(-sqrt(5) r)`."""

    _factor = 5.0
    _slope = 5.0 / 6.0

    def _profile(self, distances: Array, backend: Backend) -> Array:
        polynomial = 1.0 + distances / 3.0
        scaled = backend.sqrt_(distances)
        polynomial += scaled
        return _times_exponential(polynomial, scaled, backend)


def _times_exponential(polynomial: Array, scaled: Array, backend: Backend) -> Array:
    """Return `polynomial exp(-scaled)`, zero where the exponential is, in the memory of `scaled`."""
    vanishing = scaled > _EXPONENT_LIMIT
    scaled *= -1.0
    backend.exp_(scaled)
    # Far out the polynomial may be infinite where the exponential is zero; their product is zero.
    polynomial[vanishing] = 0.0
    scaled *= polynomial
    return scaled
