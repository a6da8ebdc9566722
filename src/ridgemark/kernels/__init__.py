"""Kernels: positive semidefinite functions of two rows, with the formulas of the theory page."""

from typing import Any

from ridgemark.errors import ParameterError
from ridgemark.kernels.algebra import Product, Scaled, Sum
from ridgemark.kernels.base import CrossKernel, Kernel
from ridgemark.kernels.bernoulli import Bernoulli
from ridgemark.kernels.columns import ColumnMap
from ridgemark.kernels.given import Custom, Precomputed
from ridgemark.kernels.inner_product import Cosine, Linear, Polynomial
from ridgemark.kernels.mixture import Mixture
from ridgemark.kernels.stationary import (
    Gaussian,
    Laplacian,
    Matern12,
    Matern32,
    Matern52,
    PowerExponential,
    RadialKernel,
)

__all__ = [
    "Bernoulli",
    "ColumnMap",
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
    "Mixture",
    "Polynomial",
    "PowerExponential",
    "Precomputed",
    "Product",
    "RadialKernel",
    "Scaled",
    "Sum",
    "make_kernel",
]

NAMED: dict[str, type[Kernel]] = {
    "auto": Gaussian,  # where no tuning chooses the family
    "gaussian": Gaussian,
    "rbf": Gaussian,  # scikit-learn's name
    "laplacian": Laplacian,
    "matern12": Matern12,
    "matern32": Matern32,
    "matern52": Matern52,
    "power_exponential": PowerExponential,
    "linear": Linear,
    "polynomial": Polynomial,
    "cosine": Cosine,
    "bernoulli": Bernoulli,
    "precomputed": Precomputed,
}


def make_kernel(kernel: Any, bandwidth: Any = None) -> Kernel:
    """Return the kernel for a name, a callable or a Kernel; `bandwidth` is that of a kernel given by name."""
    if bandwidth is not None and not has_bandwidth(kernel):
        raise ParameterError(
            f"bandwidth={bandwidth!r} cannot be set for kernel={kernel!r}; a bandwidth can be given beside the name of "
            "a kernel that has one, or inside a Kernel object"
        )
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel) and not isinstance(kernel, type):
        return Custom(kernel)
    if not isinstance(kernel, str) or kernel not in NAMED:
        raise ParameterError(f"kernel must be one of {', '.join(NAMED)}, a Kernel or a callable(X, Z), got {kernel!r}")
    return NAMED[kernel](**({} if bandwidth is None else {"bandwidth": bandwidth}))


def has_bandwidth(kernel: Any) -> bool:
    """Return whether the kernel is given by name and has a bandwidth."""
    return isinstance(kernel, str) and kernel in NAMED and "bandwidth" in NAMED[kernel]._get_param_names()
