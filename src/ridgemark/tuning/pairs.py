"""Values of a mixture for every pair of rows and landmarks, and derivatives of functions of these values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from ridgemark.backends import NUMPY, Array, Backend, Floats, backend_of
from ridgemark.kernels import Laplacian, Linear, Mixture
from ridgemark.kernels.mixture import sum_of_profiles
from ridgemark.tuning.coordinates import Slopes

_TILE_ENTRIES = 2**14  # pairs whose values and derivatives stay in the processor's cache


@dataclass(frozen=True, eq=False)
class Pairs:
    """Kernel values `k(x_i, z_m)`; the first rows x are the landmarks z."""

    kernel: Mixture
    rows: Array  # (n, d)
    landmarks: Array  # (p, d)
    values: Array  # (n, p)
    squares: Array  # rho; None without radial parts
    rounding: float  # of rho
    others: list[Array]  # the values of the other parts, without their weights

    @classmethod
    def of(cls, kernel: Mixture, rows: Array, n_landmarks: int) -> Pairs:
        """Return the values of a mixture."""
        landmarks, backend, parts = rows[:n_landmarks], backend_of(rows), kernel.parts()
        squares, rounding, values = None, 0.0, None
        if len(kernel.radial):
            squares, rounding = _squared_distances(*_projected(kernel, rows, landmarks))
            values = backend.empty(squares.shape, like=squares)
            for tile in tiles(squares, backend):
                values[tile] = sum_of_profiles(parts[: len(kernel.radial)], squares[tile], backend)
        others = [_other(part, rows, landmarks, backend) for part in kernel.others]
        for (weight, _), own in zip(parts[len(kernel.radial) :], others, strict=True):
            if values is None:
                values = weight * own
            else:
                values += weight * own
        return cls(kernel, rows, landmarks, values, squares, rounding, others)

    def slopes(self, by_values: Array, ridge: float) -> Slopes:
        """Return all derivatives for `G = dE/dk`, shape (n, p), which is overwritten."""
        kernel, n_radial = self.kernel, len(self.kernel.radial)
        of_weights, widths = np.zeros(len(kernel.weights)), None
        for k, (part, own) in enumerate(zip(kernel.others, self.others, strict=True), start=n_radial):
            backend = backend_of(own)
            of_weights[k] = backend.inner(own, by_values)
            if isinstance(part, Laplacian):
                own *= by_values
                sums = backend.to_host(absolute_sums(own, self.rows, self.landmarks))
                widths = float(kernel.weights[k]) * sums / np.asarray(part.bandwidth)
        lengths, outer = np.zeros(n_radial), np.zeros(0)
        if n_radial:
            of_weights[:n_radial], lengths = self._by_profile(by_values)
            outer = self._outer(by_values)
        return Slopes(ridge, of_weights, lengths, outer, widths)

    def _by_profile(self, by_values: Array) -> tuple[Floats, Floats]:
        """Return dE/dv and dE/dlog l of the radial parts, and overwrite G by `G sum_m v_m phi_m'(rho/l_m^2)/l_m^2`.

        `dE/dv_m = <G, phi_m>`, and `dE/dlog l_m = -2 v_m <G, phi_m' rho/l_m^2>`.
        """
        radial = self.kernel.parts()[: len(self.kernel.radial)]
        of_weights, of_lengths = np.zeros(len(radial)), np.zeros(len(radial))
        backend = backend_of(by_values)
        for tile in tiles(by_values, backend):
            squares, given, total = self.squares[tile], by_values[tile], 0.0
            for m, (weight, part) in enumerate(radial):
                over = 1.0 / float(part.bandwidth) ** 2
                scaled = squares * over
                value, slope = part.value_and_derivative(scaled, self.rounding * over)
                of_weights[m] += backend.inner(value, given)
                scaled *= slope
                of_lengths[m] -= 2.0 * weight * backend.inner(scaled, given)
                slope *= weight * over
                total = slope + total
            given *= total
        return of_weights, of_lengths

    def _outer(self, weights: Array) -> Floats:
        """Return `S = sum_im A_im (x_i - z_m)(x_i - z_m)'`; its diagonal alone where the metric is diagonal."""
        rows, landmarks, backend = self.rows, self.landmarks, backend_of(weights)
        pulled, by_row, by_landmark = weights @ landmarks, weights.sum(axis=1), weights.sum(axis=0)
        if self.kernel.metric is None:
            diagonal = by_row @ rows**2 + by_landmark @ landmarks**2 - 2.0 * (rows * pulled).sum(axis=0)
            return backend.to_host(diagonal)
        mixed = rows.T @ pulled
        own = rows.T @ (by_row[:, None] * rows) + landmarks.T @ (by_landmark[:, None] * landmarks)
        return backend.to_host(own - mixed - mixed.T)


def tiles(values: Array, backend: Backend) -> Iterator[Any]:
    """Return slices of rows whose values stay in the processor's cache; one of all rows on a device."""
    step = max(1, _TILE_ENTRIES // max(1, values.shape[1])) if backend is NUMPY else max(1, values.shape[0])
    return gen_batches(values.shape[0], step)


def absolute_sums(weights: Array, rows: Array, landmarks: Array) -> Array:
    """Return `sum_im A_im |x_ij - z_mj|` for every column j.

    A column of two values, as of an indicator, is `u = 0` or 1 in units of their difference, and `|u - v|` is
    `u + v - 2uv`: all such columns take one product.
    """
    backend = backend_of(rows)
    xp = backend.xp
    low, high = xp.min(rows, axis=0), xp.max(rows, axis=0)
    two = xp.all((rows == low) | (rows == high), axis=0)
    u, v = rows[:, two] - low[two], landmarks[:, two] - low[two]
    sums = xp.zeros_like(low)
    width = xp.where(high > low, high - low, 1.0)[two]
    sums[two] = u.T @ weights.sum(axis=1) + v.T @ weights.sum(axis=0) - 2.0 * (u * (weights @ v)).sum(axis=0) / width
    others = [int(j) for j in xp.nonzero(~two)[0]]
    columns = landmarks.T[others, :] if others else landmarks.T[:0]
    for tile in tiles(weights, backend) if others else ():
        given, left = weights[tile], rows[tile]
        for j, column in zip(others, columns, strict=True):
            sums[j] += backend.inner(abs(left[:, j][:, None] - column), given)
    return sums


def _other(part: Any, rows: Array, landmarks: Array, backend: Backend) -> Array:
    """Return the values of a part that does not share the distance."""
    if isinstance(part, Linear):
        widths = backend.from_host(np.asarray(part.widths), like=rows)
        return (rows / widths) @ (landmarks / widths).T
    widths = backend.from_host(np.asarray(part.bandwidth), like=rows)
    distances = backend.empty((len(rows), len(landmarks)), like=rows)
    backend.differences(rows / widths, landmarks / widths, 1, None, out=distances)
    distances *= -1.0
    return backend.exp_(distances)


def _projected(kernel: Mixture, rows: Array, landmarks: Array) -> tuple[Array, Array]:
    """Return `P'x` and `P'z`."""
    backend = backend_of(rows)
    if kernel.metric is None:
        widths = backend.from_host(np.asarray(kernel.bandwidth), like=rows)
        return rows / widths, landmarks / widths
    matrix = backend.from_host(np.asarray(kernel.metric), like=rows)
    return rows @ matrix, landmarks @ matrix


def _squared_distances(left: Array, right: Array) -> tuple[Array, float]:
    """Return rho of every pair of projected points, and its rounding error; the first on the left are the right."""
    left_norms, right_norms = (left**2).sum(axis=1), (right**2).sum(axis=1)
    rho = left @ right.T
    rho *= -2.0
    rho += left_norms[:, None]
    rho += right_norms
    backend = backend_of(rho)
    backend.clip_(rho, lowest=0.0)
    backend.diagonal(rho[: len(right)])[...] = 0.0
    # The error of the product form: below it a distance is not known to differ from zero.
    largest = float(left_norms.max() + right_norms.max())
    return rho, 2.0 * (left.shape[1] + 6.0) * float(np.finfo(backend.precision(rho)).eps) * largest
