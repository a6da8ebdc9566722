"""Values of a mixture for every pair of rows and landmarks, and derivatives of functions of these values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ridgemark.backends import Array, Floats, backend_of
from ridgemark.kernels import Laplacian, Linear, Mixture
from ridgemark.kernels.base import row_tiles
from ridgemark.kernels.mixture import profiles
from ridgemark.tuning.coordinates import Slopes


@dataclass(frozen=True, eq=False)
class ScratchArrays:
    """Arrays that every evaluation overwrites: to allocate new memory takes as long as some of the sums."""

    arrays: dict[str, Array] = field(default_factory=dict)

    def array(self, name: str, shape: tuple[int, ...], like: Array) -> Array:
        """Return the array of this name, of any contents."""
        held = self.arrays.get(name)
        if held is None or held.shape != shape or held.dtype != like.dtype:
            held = self.arrays[name] = backend_of(like).empty(shape, like=like)
        return held

    def copy(self, name: str, values: Array) -> Array:
        """Return the array of this name with these values."""
        held = self.array(name, values.shape, values)
        held[...] = values
        return held


@dataclass(frozen=True, eq=False)
class Pairs:
    """Kernel values `k(x_i, z_m)`; the first rows x are the landmarks z."""

    kernel: Mixture
    rows: Array  # (n, d)
    landmarks: Array  # (p, d)
    values: Array  # (n, p)
    squares: Array  # rho; None without radial parts
    rounding: float  # of rho
    parts: list[Array]  # the values of every part, without their weights

    @classmethod
    def of(cls, kernel: Mixture, rows: Array, n_landmarks: int, space: ScratchArrays) -> Pairs:
        """Return the values of a mixture, in the arrays of a workspace."""
        landmarks, backend, weights = rows[:n_landmarks], backend_of(rows), [weight for weight, _ in kernel.parts()]
        squares, rounding, shape, n_radial = None, 0.0, (len(rows), n_landmarks), len(kernel.radial)
        values, *parts = (space.array(f"values {k}", shape, rows) for k in range(1 + len(weights)))
        for part, own in zip(kernel.others, parts[n_radial:], strict=True):
            _write_other(part, rows, landmarks, own)
        if n_radial:
            squares = space.array("squares", shape, rows)
            rounding = _write_squares(*_projected(kernel, rows, landmarks), squares)
        for tile in row_tiles(values, backend):
            if squares is not None:
                for own, profile in zip(parts, profiles(kernel.radial, squares[tile], backend), strict=False):
                    own[tile] = profile
            values[tile] = weights[0] * parts[0][tile]
            for weight, own in zip(weights[1:], parts[1:], strict=True):
                values[tile] += weight * own[tile]
        return cls(kernel, rows, landmarks, values, squares, rounding, parts)

    def slopes(self, by_values: Array, ridge: float) -> Slopes:
        """Return all derivatives for `G = dE/dk`, shape (n, p), which is overwritten."""
        kernel, n_radial, backend = self.kernel, len(self.kernel.radial), backend_of(by_values)
        of_weights, widths = np.array([backend.inner(own, by_values) for own in self.parts]), None
        for weight, part, own in zip(kernel.weights[n_radial:], kernel.others, self.parts[n_radial:], strict=True):
            if isinstance(part, Laplacian):
                own *= by_values
                sums = backend.to_host(absolute_sums(own, self.rows, self.landmarks))
                widths = float(weight) * sums / np.asarray(part.bandwidth)
        lengths, outer = np.zeros(n_radial), np.zeros(0)
        if n_radial:
            lengths = self._by_length(by_values)
            outer = self._outer(by_values)
        return Slopes(ridge, of_weights, lengths, outer, widths)

    def _by_length(self, by_values: Array) -> Floats:
        """Return dE/dlog l of the radial parts, and overwrite G by `G sum_m v_m phi_m'(rho/l_m^2)/l_m^2`.

        `dE/dlog l_m = -2 v_m <G, phi_m' rho/l_m^2>`.
        """
        radial = self.kernel.parts()[: len(self.kernel.radial)]
        lengths, backend = np.zeros(len(radial)), backend_of(by_values)
        for tile in row_tiles(by_values, backend):
            squares, derivatives, total = self.squares[tile], by_values[tile], 0.0
            weighted = derivatives * squares
            for m, ((weight, part), own) in enumerate(zip(radial, self.parts, strict=False)):
                over = 1.0 / float(part.bandwidth) ** 2
                slope = part.derivative(own[tile], squares * over, self.rounding * over)
                slope *= weight * over
                lengths[m] -= 2.0 * backend.inner(slope, weighted)
                total = slope + total
            derivatives *= total
        return lengths

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
    for tile in row_tiles(weights, backend) if others else ():
        tile_weights, tile_rows = weights[tile], rows[tile]
        distances = backend.empty(tile_weights.shape, like=tile_weights)
        for j, column in zip(others, columns, strict=True):
            xp.subtract(tile_rows[:, j][:, None], column, out=distances)
            sums[j] += backend.inner(xp.abs(distances, out=distances), tile_weights)
    return sums


def _write_other(part: Any, rows: Array, landmarks: Array, out: Array) -> None:
    """Write the values of a part that does not share the distance."""
    backend, widths = backend_of(rows), part.widths if isinstance(part, Linear) else part.bandwidth
    widths = backend.from_host(np.asarray(widths), like=rows)
    if isinstance(part, Linear):
        backend.matmul(rows / widths, (landmarks / widths).T, out=out)
        return
    backend.differences(rows / widths, landmarks / widths, 1, None, out=out)
    out *= -1.0
    backend.exp_(out)


def _projected(kernel: Mixture, rows: Array, landmarks: Array) -> tuple[Array, Array]:
    """Return `P'x` and `P'z`."""
    backend = backend_of(rows)
    if kernel.metric is None:
        widths = backend.from_host(np.asarray(kernel.bandwidth), like=rows)
        return rows / widths, landmarks / widths
    matrix = backend.from_host(np.asarray(kernel.metric), like=rows)
    return rows @ matrix, landmarks @ matrix


def _write_squares(left: Array, right: Array, out: Array) -> float:
    """Write rho of every pair of projected points, and return its rounding error; the first on the left are the right.

    It is that of the product form, below which a distance is not known to differ from zero.
    """
    left_norms, right_norms, backend = (left**2).sum(axis=1), (right**2).sum(axis=1), backend_of(out)
    backend.matmul(-2.0 * left, right.T, out=out)
    for tile in row_tiles(out, backend):
        squares = out[tile]
        squares += left_norms[tile, None]
        squares += right_norms
        backend.clip_(squares, lowest=0.0)
    backend.diagonal(out[: len(right)])[...] = 0.0
    largest = float(left_norms.max() + right_norms.max())
    return 2.0 * (left.shape[1] + 6.0) * float(np.finfo(backend.precision(out)).eps) * largest
