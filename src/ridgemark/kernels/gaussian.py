"""The Gaussian kernel."""

from __future__ import annotations

from ridgemark.backends import Array, Backend
from ridgemark.kernels.stationary import StationaryKernel


class Gaussian(StationaryKernel):
    """Gaussian kernel `k(x, z) = exp(-|x - z|^2 / (2 bandwidth^2))`.

    Parameters
    ----------
    bandwidth : float or array of shape (n_features,)
        The length over which the function varies; per feature, `|x - z|^2/bandwidth^2` is
        `sum_j ((x_j - z_j)/bandwidth_j)^2`.

    Examples
    --------
    >>> from ridgemark.kernels import Gaussian
    >>> float(Gaussian(bandwidth=1.0)([[0.0]], [[2.0]])[0, 0].round(4))
    0.1353
    """

    _factor = -0.5
    _slope = 0.5

    def _profile(self, distances: Array, backend: Backend) -> Array:
        return backend.exp_(distances)
