"""Kernels of the difference of two rows that are one at zero: Gaussian, Matern, power exponential, Laplacian."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ridgemark.backends import Array, Backend, Floats, Indices, backend_of
from ridgemark.errors import ParameterError
from ridgemark.kernels.base import Kernel, bandwidths, same_for_all
from ridgemark.kernels.distances import (
    FAR,
    FEW_FEATURES,
    FEW_IF_SINGULAR,
    DistanceForm,
    PreparedLandmarks,
    distances,
    prepare_landmarks,
    rounding_of_values,
)
from ridgemark.kernels.gradient import Gradient, SignTerm, Term
from ridgemark.kernels.projection import Projection

_NEGLIGIBLE = 100.0  # exp(-100) is about 1e-44
_EXPONENT_LIMIT = 750.0  # exp(-750) is zero


class StationaryKernel(Kernel):
    """`k(x, z) = profile(factor distance(x, z))` with `profile(0) = 1`; `_form` holds the factor and the distance.

    A subclass defines the form and the profile.
    """

    bandwidth: Any
    constant_diagonal = 1.0
    _form = DistanceForm()

    def diagonal(self, rows: Any, indices: Indices | None = None) -> Array:
        return same_for_all(1.0, rows)

    def _prepare(self, landmarks: Any, indices: Indices | None, backend: Backend) -> Any:
        return prepare_landmarks(landmarks, self.bandwidth, self._form, backend, type(self).__name__)

    def _block(self, rows: Any, prepared: Any, out: Array | None, backend: Backend) -> Array:
        return self._profile(distances(rows, prepared, out, backend), backend)

    def _entry_error(self, rows: Any, prepared: Any, backend: Backend) -> Floats:
        return rounding_of_values(rows, prepared, backend)

    @abstractmethod
    def _profile(self, distances: Array, backend: Backend) -> Array:
        """Overwrite distances (times the factor) by kernel values."""


def prepare_in_metric(
    landmarks: Any, bandwidth: Any, metric: Any, form: DistanceForm, backend: Backend, owner: str
) -> PreparedLandmarks:
    """Prepare landmarks for distances in units of the bandwidth, or by the metric P that replaces it."""
    if metric is None:
        return prepare_landmarks(landmarks, bandwidth, form, backend, owner)
    if not np.array_equal(bandwidth, 1.0):
        raise ParameterError(
            f"{owner}: bandwidth and metric exclude each other, got bandwidth={bandwidth!r} and a metric of "
            f"shape {np.shape(metric)}; divide the metric by the bandwidth and leave bandwidth out"
        )
    projection = Projection.of(landmarks, metric, backend, owner)
    points = projection.apply(landmarks, backend)
    return replace(prepare_landmarks(points, 1.0, form, backend, owner), projection=projection)


class RadialKernel(StationaryKernel):
    """`k(x, z) = phi(rho)`, `rho = |P'(x - z)|^2`, `phi(0) = 1`.

    `bandwidth` stands for `P = I/bandwidth`, or `P = diag(1/bandwidth)` with one bandwidth per feature; `metric` is P
    itself, of shape (n_features, r).
    """

    def __init__(self, bandwidth: Any = 1.0, metric: Any = None) -> None:
        self.bandwidth = bandwidth
        self.metric = metric

    @property
    def accepts_sparse(self) -> bool:  # type: ignore[override]
        return self.metric is None

    def value_and_derivative(self, squared_distances: Array, rounding: Any = 0.0) -> tuple[Array, Array]:
        """Return `phi(rho)` and `dphi/drho` for an array of squared distances rho.

        Parameters
        ----------
        squared_distances : array
            `rho = |P'(x - z)|^2 >= 0`: divided by the squared bandwidth, and not multiplied by any factor.
        rounding : float or array
            The rounding error of rho. Some families have an unbounded derivative near zero (Matern12, and
            PowerExponential with an exponent below 2); their derivative is returned as 0 where rho is at most this,
            since it is multiplied by (x - z)(x - z)', which vanishes there.
        """
        rho, backend = squared_distances, backend_of(squared_distances)
        with np.errstate(all="ignore"):
            value = self._profile(self._form.factor * rho, backend)
        return value, self.derivative(value, rho, rounding)

    def derivative(self, value: Array, rho: Array, rounding: Any) -> Array:
        """Return `dphi/drho` where `phi(rho)` is known."""
        backend = backend_of(rho)
        with np.errstate(all="ignore"):
            derivative = value * self._log_derivative(rho, backend)
        if self._form.singular:
            smallest = float(np.finfo(backend.precision(rho)).tiny)
            derivative[(rho <= rounding) | (rho < smallest)] = 0.0
        return derivative

    def gradient(self, rows: Floats, landmarks: Floats) -> Gradient:
        """Return `dk(x, z)/dx = 2 phi'(rho) P P'(x - z)`; zero where phi' is unbounded and x = z."""
        backend = backend_of(rows)
        centre = backend.median(landmarks)  # differences of columns far from zero keep their digits
        x, z, back = self._points(rows - centre, landmarks - centre)
        prepared = prepare_landmarks(z, 1.0, DistanceForm(singular=True), backend, type(self).__name__)
        _, slope = self.value_and_derivative(distances(x, prepared, None, backend))
        return Gradient([Term(2.0 * slope, back(x), -back(z))])

    def _points(self, rows: Any, landmarks: Any) -> tuple[Any, Any, Callable[[Any], Any]]:
        """Return rows and landmarks multiplied by P', and the product with P."""
        backend = backend_of(rows)
        if self.metric is None:
            widths = backend.from_host(bandwidths(self.bandwidth, rows.shape[1], type(self).__name__))
            return rows / widths, landmarks / widths, lambda values: values / widths
        matrix = backend.from_host(np.asarray(self.metric, dtype=np.float64))
        return rows @ matrix, landmarks @ matrix, lambda values: values @ matrix.T

    def _prepare(self, landmarks: Any, indices: Indices | None, backend: Backend) -> Any:
        return prepare_in_metric(landmarks, self.bandwidth, self.metric, self._form, backend, type(self).__name__)

    def _dense_only(self) -> str:
        return type(self).__name__ + ("" if self.metric is None else " with a metric")

    @abstractmethod
    def _log_derivative(self, rho: Array, backend: Backend) -> Array:
        """Return `phi'(rho)/phi(rho)` as a new array, finite for infinite rho; a float if it is the same for all."""


class Laplacian(StationaryKernel):
    """Laplacian kernel `k(x, z) = exp(-sum_j |x_j - z_j| / bandwidth_j)`.

    It is not a function of the Euclidean distance, so it takes no metric. The exponential of the Euclidean distance is
    `Matern12`.
    """

    _form = DistanceForm(power=1, factor=-1.0, difference_limit=math.inf)

    def __init__(self, bandwidth: Any = 1.0) -> None:
        self.bandwidth = bandwidth

    def gradient(self, rows: Floats, landmarks: Floats) -> Gradient:
        """Return `dk/dx_j = -k sign(x_j - z_j)/bandwidth_j`, with `sign(0) = 0`."""
        widths = bandwidths(self.bandwidth, rows.shape[1], "Laplacian")
        return Gradient([SignTerm(-self.bind(landmarks)(rows), rows, landmarks, np.full(rows.shape[1], widths))])

    def _profile(self, distances: Array, backend: Backend) -> Array:
        return backend.exp_(distances)


class Gaussian(RadialKernel):
    """Gaussian kernel `k(x, z) = exp(-|x - z|^2 / (2 bandwidth^2))`.

    Parameters
    ----------
    bandwidth : float or array of shape (n_features,), default=1.0
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

    _form = DistanceForm(factor=-0.5, steepest=0.61, growth=(0.5, 2.0))

    def _profile(self, distances: Array, backend: Backend) -> Array:
        return backend.exp_(distances)

    def _log_derivative(self, rho: Array, backend: Backend) -> Array:
        return -0.5


class PowerExponential(RadialKernel):
    """Power exponential kernel `k(x, z) = exp(-r^exponent)`, `r = |x - z|/bandwidth`.

    An exponent of 1 gives Matern12; 2 gives the Gaussian with bandwidth `bandwidth/sqrt(2)`.

    Parameters
    ----------
    bandwidth : float or array of shape (n_features,), default=1.0
        As for the Gaussian kernel.
    exponent : float, default=1.0
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
    def _form(self) -> DistanceForm:  # type: ignore[override]
        q = self._checked_exponent()
        # |dk/dr^2| <= (q/2) r^(q - 2). For r >= X/4 this times X^2 is at most (q/2) 4^(2 - q) X^q; times X r, if q < 1,
        # at most (q/2) 4^(1 - q) X^q.
        coefficient = q / 2.0 * 4.0 ** (2.0 - q)
        limit = FEW_IF_SINGULAR if q < 2 else FEW_FEATURES
        form = DistanceForm(difference_limit=limit, far=_far(q), singular=q < 2, growth=(coefficient, q))
        return form if q >= 1 else replace(form, steepest=math.inf, growth=(1.25 * coefficient, q))

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
        raise ParameterError(f"PowerExponential: exponent must be a number above 0 and at most 2, got {value!r}")


def _far(exponent: float) -> float:
    """Return the squared distance from which on `exp(-r^exponent)` is negligible."""
    power = 2.0 / exponent
    return math.inf if power * math.log10(_NEGLIGIBLE) > 300 else max(FAR, _NEGLIGIBLE**power)


class Matern(RadialKernel):
    """`k(x, z) = polynomial(s) exp(-s)`, `s = sqrt(factor) |x - z|/bandwidth`; a subclass defines the polynomial."""

    def _profile(self, distances: Array, backend: Backend) -> Array:
        return self._of_root(backend.sqrt_(distances), backend)

    def _of_root(self, scaled: Array, backend: Backend) -> Array:
        """Overwrite s by kernel values."""
        backend.clip_(scaled, highest=_EXPONENT_LIMIT)  # the polynomial stays finite where the exponential is zero
        polynomial = self._polynomial(scaled)
        scaled *= -1.0
        backend.exp_(scaled)
        if polynomial is not None:
            scaled *= polynomial
        return scaled

    @abstractmethod
    def _polynomial(self, scaled: Array) -> Array | None:
        """Return the polynomial as a new array; None if it is one."""


class Matern12(Matern):
    """Matern kernel of smoothness 1/2, the exponential kernel: `k(x, z) = exp(-r)`."""

    # The derivative by r^2 is -k/(2 r), so a rounding error e of r^2 near zero becomes one of sqrt(e).
    _form = DistanceForm(factor=1.0, difference_limit=FEW_IF_SINGULAR, singular=True, growth=(2.0, 1.0))

    def _polynomial(self, scaled: Array) -> None:
        return None

    def _log_derivative(self, rho: Array, backend: Backend) -> Array:
        return -0.5 / backend.sqrt_(1.0 * rho)


class Matern32(Matern):
    """Matern kernel of smoothness 3/2: `k(x, z) = (1 + sqrt(3) r) exp(-sqrt(3) r)`."""

    _form = DistanceForm(factor=3.0, steepest=0.64, growth=(1.5, 2.0))

    def _polynomial(self, scaled: Array) -> Array:
        return 1.0 + scaled

    def _log_derivative(self, rho: Array, backend: Backend) -> Array:
        return -1.5 / (1.0 + backend.sqrt_(3.0 * rho))


class Matern52(Matern):
    """Matern kernel of smoothness 5/2: `k(x, z) = (1 + sqrt(5) r + 5 r^2/3) exp(-sqrt(5) r)`."""

    _form = DistanceForm(factor=5.0, steepest=0.63, growth=(5.0 / 6.0, 2.0))

    def _polynomial(self, scaled: Array) -> Array:
        polynomial = scaled / 3.0
        polynomial += 1.0
        polynomial *= scaled
        polynomial += 1.0
        return polynomial

    def _log_derivative(self, rho: Array, backend: Backend) -> Array:
        s = backend.sqrt_(5.0 * rho)
        return (-5.0 / 6.0) / (1.0 + (s / 3.0) * (1.0 - 1.0 / (1.0 + s)))
