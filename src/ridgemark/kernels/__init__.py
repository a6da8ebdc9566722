"""Kernels, as defined in the theory page: what makes two rows alike."""

from __future__ import annotations

from typing import Any

from ridgemark.errors import ParameterError
from ridgemark.kernels.algebra import Product, Scaled, Sum
from ridgemark.kernels.base import CrossKernel, Kernel
from ridgemark.kernels.bernoulli import Bernoulli
from ridgemark.kernels.custom import Custom
from ridgemark.kernels.gaussian import Gaussian
from ridgemark.kernels.inner_product import Cosine, Linear, Polynomial
from ridgemark.kernels.laplacian import Laplacian
from ridgemark.kernels.matern import Matern12, Matern32, Matern52
from ridgemark.kernels.precomputed import Precomputed

__all__ = [
    "Bernoulli",
    "Cosine",
    "CrossKernel",
    "Custom",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "Polynomial",
    "Precomputed",
    "Product",
    "Scaled",
    "Sum",
    "make_kernel",
]

NAMED: dict[str, type[Kernel]] = {
    "gaussian": Gaussian,
    "laplacian": Laplacian,
    "matern12": Matern12,
    "matern32": Matern32,
    "matern52": Matern52,
    "linear": Linear,
    "polynomial": Polynomial,
    "cosine": Cosine,
    "bernoulli": Bernoulli,
    "precomputed": Precomputed,
}


def make_kernel(kernel: Any, bandwidth: Any = None) -> Kernel:
    """Return the kernel meant by a name, a callable or a Kernel; `bandwidth` goes to a kernel given by name."""
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return Custom(kernel)
    if kernel not in NAMED:
        msg = f"kernel must be one of {', '.join(NAMED)}, a Kernel or a callable(X, Z), got {kernel!r}"
        raise ParameterError(msg)
    made = NAMED[kernel]()
    return made.set_params(bandwidth=bandwidth) if bandwidth is not None and has_bandwidth(kernel) else made


def has_bandwidth(kernel: Any) -> bool:
    """Tell whether a kernel given by name has a bandwidth to choose."""
    return kernel in NAMED and "bandwidth" in NAMED[kernel]._names()
