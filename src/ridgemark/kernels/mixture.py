"""The mixture: radial kernels that share one metric, beside other kernels such as a Laplacian or a linear one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ridgemark.backends import Array, Backend, Floats, Indices
from ridgemark.errors import ParameterError
from ridgemark.kernels.base import Kernel, positive, row_tiles, unit_roundoff
from ridgemark.kernels.columns import ColumnMap
from ridgemark.kernels.distances import DistanceForm, PreparedLandmarks, distances, rounding_of_values
from ridgemark.kernels.gradient import Gradient
from ridgemark.kernels.stationary import Matern, RadialKernel, prepare_in_metric
from ridgemark.parameters import real_number

_TILE_ENTRIES = 2**16  # values whose parts are added up in the processor's cache
_LONGEST = 1e15  # lengths in units of the metric: their squares must be numbers of single precision


@dataclass(frozen=True)
class MixtureLandmarks:
    """What the parts of a mixture prepare of the landmarks."""

    radial: PreparedLandmarks | None
    others: list[Any]


class Mixture(Kernel):
    """`k(x, z) = sum_m v_m phi_m(|P'(x - z)|^2/l_m^2) + sum_k u_k k_k(x, z)`, every weight positive.

    The radial parts share the metric P, so one product gives the distances of all of them, and values are added up
    block by block in the processor's cache.

    Parameters
    ----------
    radial : list of kernels of the distance
        The phi_m; the bandwidth of each is its length l_m, in units of the shared metric.
    others : list of kernels
        The k_k, for example a `Laplacian` or a `Linear`.
    weights : list of positive numbers
        The v_m, then the u_k.
    bandwidth : float or array of shape (n_features,), default=1.0
        The shared metric as `P = diag(1/bandwidth)`.
    metric : array of shape (n_features, r), optional
        The shared metric P itself; it replaces the bandwidth.
    columns : ColumnMap, optional
        A map of the columns that is applied to rows and landmarks first.

    Examples
    --------
    >>> from ridgemark.kernels import Gaussian, Linear, Mixture
    >>> kernel = Mixture([Gaussian(1.0), Gaussian(3.0)], [Linear()], weights=[0.5, 0.25, 0.25])
    >>> float(kernel([[0.0]], [[1.0]])[0, 0].round(4))
    0.5398
    """

    def __init__(
        self,
        radial: Sequence[Any] = (),
        others: Sequence[Any] = (),
        weights: Sequence[Any] = (),
        bandwidth: Any = 1.0,
        metric: Any = None,
        columns: Any = None,
    ) -> None:
        self.radial = radial
        self.others = others
        self.weights = weights
        self.bandwidth = bandwidth
        self.metric = metric
        self.columns = columns

    @property
    def accepts_sparse(self) -> bool:  # type: ignore[override]
        return self.metric is None and self.columns is None and all(part.accepts_sparse for _, part in self.parts())

    def _dense_only(self) -> str:
        # A mixture of one part may be the tuned form of a kernel that the user gave by name: the message names it.
        dense = (part._dense_only() for _, part in self.parts() if not part.accepts_sparse)
        return next(dense, "Mixture with a metric or a map of columns")

    @property
    def stays_on_host(self) -> bool:  # type: ignore[override]
        return any(part.stays_on_host for _, part in self.parts())

    @property
    def constant_diagonal(self) -> float | None:  # type: ignore[override]
        total = 0.0
        for weight, part in self.parts():
            if part.constant_diagonal is None:
                return None
            total += weight * part.constant_diagonal
        return total

    def parts(self) -> list[tuple[float, Any]]:
        """Return every part with its weight, radial parts with their length as bandwidth; refuse invalid parameters."""
        radial, others, weights = (_listed(getattr(self, name), name) for name in ("radial", "others", "weights"))
        kernels = [*radial, *others]
        weights = [positive(weight, "every one of weights", "Mixture") for weight in weights]
        if len(weights) != len(kernels) or not kernels:
            raise ParameterError(
                f"Mixture: weights must hold one number for each of its {len(kernels)} parts, of which there is at "
                f"least one, got {len(weights)}"
            )
        for part in radial:
            is_radial = isinstance(part, RadialKernel) and part.metric is None
            if not is_radial or not 1.0 / _LONGEST <= real_number(part.bandwidth) <= _LONGEST:
                raise ParameterError(
                    "Mixture: radial must be a list of kernels of the distance with one number as bandwidth, such as "
                    f"Gaussian(2.0), from {1 / _LONGEST:g} to {_LONGEST:g} in units of the metric, which is that of "
                    f"the mixture; got {part!r}"
                )
        for part in others:
            if not isinstance(part, Kernel) or part.pairwise:
                raise ParameterError(f"Mixture: others must be a list of Kernel objects of rows, got {part!r}")
        if self.columns is not None and not isinstance(self.columns, ColumnMap):
            raise ParameterError(f"Mixture: columns must be a ColumnMap, got {self.columns!r}")
        return list(zip(weights, kernels, strict=True))

    def diagonal(self, rows: Any, indices: Indices | None = None) -> Array:
        rows = self.mapped(rows)
        total = 0.0
        for weight, part in self.parts():
            total = weight * part.diagonal(rows) + total
        return total

    def mapped(self, rows: Any) -> Any:
        """Return the rows after the map of their columns."""
        self._check_sparse(rows)
        return rows if self.columns is None else self.columns.apply(rows)

    def centred(self, origin: Floats) -> Mixture:
        """Return the kernel whose linear parts, if they have no origin, are measured from the map of this one."""
        parts = self._other_parts
        mapped = self.mapped(origin[None])[0]
        others = [part.centred(mapped) for _, part in parts]
        return self.changed(others=others) if others != list(self.others) else self

    def gradient(self, rows: Floats, landmarks: Floats) -> Gradient:
        """Return the sum of the parts' derivatives, by the chain rule times the slopes of the columns' map."""
        terms: list[Any] = []
        points, others = self.mapped(rows), self.mapped(landmarks)
        for weight, part in self.separate():
            terms += part.gradient(points, others).times(weight).terms
        gradient = Gradient(terms)
        return gradient if self.columns is None else gradient.after_map(self.columns.slopes(rows))

    def separate(self) -> Iterator[tuple[float, Kernel]]:
        """Return every part with its weight as a kernel of mapped rows, the radial ones with the shared metric."""
        for number, (weight, part) in enumerate(self.parts()):
            if number >= len(self.radial):
                yield weight, part
                continue
            length, parameters = float(part.bandwidth), part.get_params(deep=False)
            if self.metric is None:
                parameters["bandwidth"] = length * np.asarray(self.bandwidth, dtype=np.float64)
            else:
                parameters |= {"bandwidth": 1.0, "metric": np.asarray(self.metric, dtype=np.float64) / length}
            yield weight, type(part)(**parameters)

    def changed(self, **changes: Any) -> Mixture:
        """Return the mixture with other parameters."""
        return Mixture(**(self.get_params(deep=False) | changes))

    @property
    def _other_parts(self) -> list[tuple[float, Any]]:
        return self.parts()[len(self.radial) :]

    @property
    def _form(self) -> DistanceForm:
        """The form of the shared squared distance that suits all radial parts."""
        forms = [part._form for part in self.radial]
        return DistanceForm(
            difference_limit=max(form.difference_limit for form in forms),
            far=max(form.far * float(part.bandwidth) ** 2 for form, part in zip(forms, self.radial, strict=True)),
            singular=any(form.singular for form in forms),
            steepest=max(form.steepest for form in forms),
            shortest=min(float(part.bandwidth) for part in self.radial),
        )

    def _prepare(self, landmarks: Any, indices: Indices | None, backend: Backend) -> MixtureLandmarks:
        self.parts()
        landmarks = self.mapped(landmarks)
        radial = None
        if len(self.radial):
            radial = prepare_in_metric(landmarks, self.bandwidth, self.metric, self._form, backend, "Mixture")
        return MixtureLandmarks(radial, [part._prepare(landmarks, None, backend) for part in self.others])

    def _block(self, rows: Any, prepared: MixtureLandmarks, out: Array | None, backend: Backend) -> Array:
        rows, parts, n_radial = self.mapped(rows), self.parts(), len(self.radial)
        if prepared.radial is None:
            weight, first = parts[0]
            block = first._block(rows, prepared.others[0], out, backend)
            block *= weight
            others = list(zip(parts[1:], prepared.others[1:], strict=True))
        else:
            block = distances(rows, prepared.radial, out, backend)
            others = list(zip(parts[n_radial:], prepared.others, strict=True))
        for tile in row_tiles(block, backend, _TILE_ENTRIES):
            values = block[tile, :]
            if prepared.radial is not None:
                values[...] = sum_of_profiles(parts[:n_radial], values, backend)
            for (weight, part), own in others:
                more = part._block(rows[tile, :], own, None, backend)
                more *= weight
                values += more
        return block

    def _entry_error(self, rows: Any, prepared: MixtureLandmarks, backend: Backend) -> Floats:
        """Return the largest of the parts' own bounds, plus a rounding for each weight and each sum.

        The bounds are relative to `sqrt(k(x, x) k(z, z))`. By the Cauchy-Schwarz inequality that of the mixture is at
        least the weighted sum of the parts' own.
        """
        rows, xp = self.mapped(rows), backend.xp
        bounds = []
        if prepared.radial is not None:
            projected, moved = rows, 0.0
            radial = prepared.radial
            if radial.projection is not None:
                moved = radial.projection.distance_error(rows, backend)
                projected, radial = radial.projection.apply(rows, backend), replace(radial, projection=None)
            for part in self.radial:
                length, form = float(part.bandwidth), replace(part._form, shortest=radial.form.shortest)
                effect = form.steepest * moved / length if form.lipschitz else (moved / length) ** form.growth[1]
                bounds.append(effect + rounding_of_values(projected, replace(radial, form=form), backend, length))
        for part, own in zip(self.others, prepared.others, strict=True):
            bounds.append(backend.from_host(part._entry_error(rows, own, backend)))
        largest = bounds[0]
        for bound in bounds[1:]:
            largest = xp.maximum(largest, bound)
        precision = rows.dtype if sparse.issparse(rows) else backend.precision(rows)
        return largest + (2.0 * len(bounds) + 2.0) * unit_roundoff(precision)

    def _checked(self, rows: Any) -> Any:
        rows = super()._checked(rows)
        if sparse.issparse(rows):
            return rows
        for _, part in self._other_parts:
            rows = part._checked(rows)
        return rows


def sum_of_profiles(parts: Sequence[tuple[float, Any]], rho: Array, backend: Backend) -> Array:
    """Return `sum_m v_m phi_m(rho/l_m^2)`."""
    total = None
    for (weight, _), values in zip(parts, profiles([part for _, part in parts], rho, backend), strict=True):
        values *= weight
        if total is None:
            total = values
        else:
            total += values
    return total


def profiles(radial: Sequence[Any], rho: Array, backend: Backend) -> Iterator[Array]:
    """Yield `phi_m(rho/l_m^2)` of every part; Matern parts share the square root of rho."""
    root = backend.sqrt_(1.0 * rho) if any(isinstance(part, Matern) for part in radial) else rho
    for part in radial:
        scale = part._form.factor / float(part.bandwidth) ** 2
        if isinstance(part, Matern):
            yield part._of_root(root * math.sqrt(scale), backend)
        else:
            yield part._profile(rho * scale, backend)


def _listed(value: Any, name: str) -> list[Any]:
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim == 1):
        return list(value)
    raise ParameterError(f"Mixture: {name} must be a list, got {value!r}")
