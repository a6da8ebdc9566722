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
    if bandwidth is not None and not has_bandwidth(kernel):
        msg = (
            f"bandwidth={bandwidth!r} was given beside kernel={kernel!r}, which has none to set from here; "
            "give it inside the Kernel object, or leave bandwidth out"
        )
        raise ParameterError(msg)
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel) and not isinstance(kernel, type):
        return Custom(kernel)
    if not isinstance(kernel, str) or kernel not in NAMED:
        msg = f"kernel must be one of {', '.join(NAMED)}, a Kernel or a callable(X, Z), got {kernel!r}"
        raise ParameterError(msg)
    made = NAMED[kernel]()
    return made if bandwidth is None else made.set_params(bandwidth=bandwidth)


def has_bandwidth(kernel: Any) -> bool:
    """Tell whether a kernel given by name has a bandwidth to choose."""
    return isinstance(kernel, str) and kernel in NAMED and "bandwidth" in NAMED[kernel]._names()
