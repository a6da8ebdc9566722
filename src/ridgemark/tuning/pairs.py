"""Values of a mixture for every pair of rows and landmarks, and derivatives of functions of these values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgemark.backends import Array, Floats, backend_of
from ridgemark.kernels import Laplacian, Linear, Mixture
from ridgemark.kernels.base import row_tiles
from ridgemark.kernels.mixture import profiles
from ridgemark.tuning.coordinates import Slopes
from ridgemark.tuning.scratch import Scratch


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
    space: Scratch

    @classmethod
    def of(cls, kernel: Mixture, rows: Array, n_landmarks: int, space: Scratch) -> Pairs:
        """Return the values of a mixture, in the arrays of a workspace."""
        landmarks, backend, weights = rows[:n_landmarks], backend_of(rows), [weight for weight, _ in kernel.parts()]
        squares, rounding, shape, n_radial = None, 0.0, (len(rows), n_landmarks), len(kernel.radial)
        values, *parts = (space.array(f"values {k}", shape, rows) for k in range(1 + len(weights)))
        if n_radial:
            squares, projected = space.array("squares", shape, rows), _projected(kernel, rows)
            norms = (projected**2).sum(axis=1)
            rounding = _rounding(projected, norms, n_landmarks)

        def write(part: slice) -> None:
            for other, own in zip(kernel.others, parts[n_radial:], strict=True):
                _write_other(other, rows[part], landmarks, own[part])
            if squares is not None:
                _write_squares(projected, norms, part, squares[part])
            own_values, own_parts = values[part], [own[part] for own in parts]
            for tile in row_tiles(own_values, backend):
                if squares is not None:
                    by_part = profiles(kernel.radial, squares[part][tile], backend)
                    for own, profile in zip(own_parts, by_part, strict=False):
                        own[tile] = profile
                own_values[tile] = weights[0] * own_parts[0][tile]
                for weight, own in zip(weights[1:], own_parts[1:], strict=True):
                    own_values[tile] += weight * own[tile]

        space.over_rows(rows, write)
        return cls(kernel, rows, landmarks, values, squares, rounding, parts, space)

    def slopes(self, by_values: Array, ridge: float) -> Slopes:
        """Return all derivatives for `G = dE/dk`, shape (n, p), which is overwritten."""
        kernel, n_radial, backend = self.kernel, len(self.kernel.radial), backend_of(by_values)
        laplacians = [isinstance(part, Laplacian) for part in kernel.others]
        two_valued = TwoValued.of(self.rows) if any(laplacians) else None

        def derive(part: slice) -> list[Any]:
            own_values, own_parts = by_values[part], [own[part] for own in self.parts]
            sums: list[Any] = [np.array([backend.inner(own, own_values) for own in own_parts])]
            for is_laplacian, own in zip(laplacians, own_parts[n_radial:], strict=True):
                if is_laplacian and two_valued is not None:
                    own *= own_values
                    sums.append(backend.to_host(absolute_sums(own, self.rows[part], self.landmarks, two_valued)))
            if n_radial:
                sums += [self._by_length(own_values, part), self._outer(own_values, part)]
            return sums

        of_weights, *others = (sum(values) for values in zip(*self.space.over_rows(by_values, derive), strict=True))
        widths, lengths, outer = None, np.zeros(0), np.zeros(0)
        for weight, other, is_laplacian in zip(kernel.weights[n_radial:], kernel.others, laplacians, strict=True):
            if is_laplacian:
                widths = float(weight) * others.pop(0) / np.asarray(other.bandwidth)
        if n_radial:
            lengths, outer = others
        return Slopes(ridge, of_weights, lengths, outer, widths)

    def _by_length(self, by_values: Array, part: slice) -> Floats:
        """Return dE/dlog l of the radial parts for some rows, and overwrite G by `G sum_m v_m phi_m'(rho/l_m^2)/l_m^2`.

        `dE/dlog l_m = -2 v_m <G, phi_m' rho/l_m^2>`.
        """
        radial = list(zip(self.kernel.weights, self.kernel.radial, strict=False))
        lengths, backend = np.zeros(len(radial)), backend_of(by_values)
        own_squares, own_parts = self.squares[part], [own[part] for own in self.parts]
        for tile in row_tiles(by_values, backend):
            squares, derivatives, total = own_squares[tile], by_values[tile], 0.0
            weighted = derivatives * squares
            for m, ((weight, kernel), own) in enumerate(zip(radial, own_parts, strict=False)):
                over = 1.0 / float(kernel.bandwidth) ** 2
                slope = kernel.derivative(own[tile], squares * over, self.rounding * over)
                slope *= weight * over
                lengths[m] -= 2.0 * backend.inner(slope, weighted)
                total = slope + total
            derivatives *= total
        return lengths

    def _outer(self, weights: Array, part: slice) -> Floats:
        """Return `S = sum_im A_im (x_i - z_m)(x_i - z_m)'` for some rows; its diagonal where the metric is diagonal."""
        rows, landmarks, backend = self.rows[part], self.landmarks, backend_of(weights)
        pulled, by_row, by_landmark = weights @ landmarks, weights.sum(axis=1), weights.sum(axis=0)
        if self.kernel.metric is None:
            diagonal = by_row @ rows**2 + by_landmark @ landmarks**2 - 2.0 * (rows * pulled).sum(axis=0)
            return backend.to_host(diagonal)
        mixed = rows.T @ pulled
        own = rows.T @ (by_row[:, None] * rows) + landmarks.T @ (by_landmark[:, None] * landmarks)
        return backend.to_host(own - mixed - mixed.T)


@dataclass(frozen=True, eq=False)
class TwoValued:
    """The columns that have at most two values, such as indicators, and these values."""

    columns: Array  # (d,), bool
    low: Array  # (d,)
    width: Array  # (d,): the difference of the two values, 1 where there is one

    @classmethod
    def of(cls, rows: Array) -> TwoValued:
        """Find the columns of two values."""
        xp = backend_of(rows).xp
        low, high = xp.min(rows, axis=0), xp.max(rows, axis=0)
        two = xp.all((rows == low) | (rows == high), axis=0)
        return cls(two, low, xp.where(high > low, high - low, 1.0))


def absolute_sums(weights: Array, rows: Array, landmarks: Array, two_valued: TwoValued) -> Array:
    """Return `sum_im A_im |x_ij - z_mj|` for every column j.

    A column of two values is `u = 0` or 1 in units of their difference, and `|u - v|` is `u + v - 2uv`: all such
    columns take one product.
    """
    backend, two, low = backend_of(rows), two_valued.columns, two_valued.low
    xp = backend.xp
    u, v = rows[:, two] - low[two], landmarks[:, two] - low[two]
    sums = xp.zeros_like(low)
    width = two_valued.width[two]
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


def _projected(kernel: Mixture, rows: Array) -> Array:
    """Return `P'x`."""
    backend = backend_of(rows)
    if kernel.metric is None:
        return rows / backend.from_host(np.asarray(kernel.bandwidth), like=rows)
    return rows @ backend.from_host(np.asarray(kernel.metric), like=rows)


def _rounding(projected: Array, norms: Array, n_landmarks: int) -> float:
    """Return the rounding error of rho in the product form, below which a distance is not known to differ from zero."""
    largest = float(norms.max() + norms[:n_landmarks].max())
    precision = backend_of(projected).precision(projected)
    return 2.0 * (projected.shape[1] + 6.0) * float(np.finfo(precision).eps) * largest


def _write_squares(projected: Array, norms: Array, part: slice, out: Array) -> None:
    """Write rho of some projected points and the landmarks, which are the first points."""
    backend, n_landmarks = backend_of(out), out.shape[1]
    backend.matmul(-2.0 * projected[part], projected[:n_landmarks].T, out=out)
    for tile in row_tiles(out, backend):
        squares = out[tile]
        squares += norms[part][tile, None]
        squares += norms[:n_landmarks]
        backend.clip_(squares, lowest=0.0)
    themselves = slice(part.start, min(part.stop, n_landmarks))
    if themselves.start < themselves.stop:
        backend.diagonal(out[: themselves.stop - themselves.start, themselves])[...] = 0.0
