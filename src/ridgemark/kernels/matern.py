"""The Matern kernels of smoothness 1/2, 3/2 and 5/2, with `r = |x - z|/bandwidth`, or `|P'(x - z)|` for a metric P."""

from __future__ import annotations

from ridgemark.backends import Array, Backend
from ridgemark.kernels.distances import FEW_IF_SINGULAR, Form
from ridgemark.kernels.stationary import RadialKernel

_EXPONENT_LIMIT = 700.0  # exp(-700) is close to the smallest normal number


class Matern12(RadialKernel):
    """Matern kernel of smoothness 1/2, the exponential kernel: `k(x, z) = exp(-r)`."""

    # The derivative by r^2 is -k/(2 r), so a rounding error e of r^2 near zero becomes one of sqrt(e).
    _form = Form(factor=1.0, few=FEW_IF_SINGULAR, singular=True, growth=(2.0, 1.0))

    def _profile(self, distances: Array, backend: Backend) -> Array:
        distance = backend.sqrt_(distances)
        distance *= -1.0
        return backend.exp_(distance)

    def _log_derivative(self, rho: Array, backend: Backend) -> Array:
        return -0.5 / backend.sqrt_(1.0 * rho)


class Matern32(RadialKernel):
    """Matern kernel of smoothness 3/2: `k(x, z) = (1 + sqrt(3) r) exp(-sqrt(3) r)`."""

    _form = Form(factor=3.0, steepest=0.64, growth=(1.5, 2.0))

    def _profile(self, distances: Array, backend: Backend) -> Array:
        scaled = backend.sqrt_(distances)
        return _times_exponential(1.0 + scaled, scaled, backend)

    def _log_derivative(self, rho: Array, backend: Backend) -> Array:
        return -1.5 / (1.0 + backend.sqrt_(3.0 * rho))


class Matern52(RadialKernel):
    """Matern kernel of smoothness 5/2: `k(x, z) = (1 + sqrt(5) r + 5 r^2/3) exp(-sqrt(5) r)`."""

    _form = Form(factor=5.0, steepest=0.63, growth=(5.0 / 6.0, 2.0))

    def _profile(self, distances: Array, backend: Backend) -> Array:
        polynomial = 1.0 + distances / 3.0
        scaled = backend.sqrt_(distances)
        polynomial += scaled
        return _times_exponential(polynomial, scaled, backend)

    def _log_derivative(self, rho: Array, backend: Backend) -> Array:
        linear = 1.0 + backend.sqrt_(5.0 * rho)
        return (-5.0 / 6.0) * linear / (linear + rho * (5.0 / 3.0))


def _times_exponential(polynomial: Array, scaled: Array, backend: Backend) -> Array:
    """Return `polynomial exp(-scaled)`, zero where the exponential is, in the memory of `scaled`."""
    vanishing = scaled > _EXPONENT_LIMIT
    scaled *= -1.0
    backend.exp_(scaled)
    # The polynomial may be infinite where the exponential is zero; the product is zero.
    polynomial[vanishing] = 0.0
    scaled *= polynomial
    return scaled
