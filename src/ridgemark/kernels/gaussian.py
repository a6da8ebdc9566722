"""The Gaussian kernel."""

from __future__ import annotations

from ridgemark.backends import Array, Backend
from ridgemark.kernels.distances import Form
from ridgemark.kernels.stationary import RadialKernel


class Gaussian(RadialKernel):
    """Gaussian kernel `k(x, z) = exp(-|x - z|^2 / (2 bandwidth^2))`.

    Parameters
    ----------
    bandwidth : float or array of shape (n_features,)
        The length over which the function varies. With one bandwidth per feature, `|x - z|^2/bandwidth^2` is
        `sum_j ((x_j - z_j)/bandwidth_j)^2`.
    metric : array of shape (n_features, r), optional
        A matrix P: `k(x, z) = exp(-|P'(x - z)|^2 / 2)`. It replaces the bandwidth.

    Examples
    --------
    >>> from ridgemark.kernels import Gaussian
    >>> float(Gaussian(bandwidth=1.0)([[0.0]], [[2.0]])[0, 0].round(4))
    0.1353
    >>> float(Gaussian(metric=[[0.5], [0.0]])([[0.0, 7.0]], [[4.0, 9.0]])[0, 0].round(4))
    0.1353
    """

    _form = Form(factor=-0.5, steepest=0.61, growth=(0.5, 2.0))

    def _profile(self, distances: Array, backend: Backend) -> Array:
        return backend.exp_(distances)

    def _log_derivative(self, rho: Array, backend: Backend) -> Array:
        return -0.5
