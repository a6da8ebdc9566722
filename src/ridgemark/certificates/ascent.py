"""A better dual point than the residuals: the few rows that matter most are solved for together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ridgemark.certificates.dual import FittedRows
from ridgemark.leverage import posterior_factor
from ridgemark.linalg import sum_rounding
from ridgemark.passes import RowPasses
from ridgemark.solvers import LandmarkFit

Floats = NDArray[np.float64]

_MOST_ROWS = 300  # solved for beside the landmarks: more hardly change the bound
_SHARE = 0.1  # and at most this share of all rows


@dataclass(frozen=True, eq=False)
class Ascent:
    """A dual point `alpha - x`, `x = eta alpha + xi`, per target."""

    gain: Floats  # (t,): of the duality gap, in units of the scaled ridge
    moved: Floats  # (t,): root mean square of `s x/w`, how far the point is from the residuals of f
    eta: Floats  # (t,)
    xi_sizes: Floats  # (n, t): |xi_i| |k(., x_i)|
    among_rounding: Floats  # (t,): by which share products among the chosen rows err

    def rounding(self, inner_rounding: Floats, lost: Floats) -> Floats:
        """Return the rounding of `alpha'r - gain`, from that of alpha'r and that of r at each row."""
        along, size = 1.0 + np.abs(self.eta), self.xi_sizes.sum(axis=0)
        return (
            along**2 * inner_rounding + 2.0 * along * (self.xi_sizes * lost).sum(axis=0) + self.among_rounding * size**2
        )


def ascend(
    passes: RowPasses,
    fit: LandmarkFit,
    rows: FittedRows,
    product: Floats,
    residual: Floats,
    landmark_indices: NDArray[np.intp] | None,
) -> Ascent:
    """Return a dual point that closes a part of the duality gap.

    Moving from alpha to `alpha - x` closes `n lambda` times

        2 x'r - x'(K + n lambda W^-1) x,   r = K alpha - f,

    of the gap. x ranges over the multiples of alpha and the rows with the largest `r_i^2/(k(x_i, x_i) + n lambda/w_i)`,
    and the landmarks' rows where these are known. All it takes are the products at hand and the kernel of those rows
    with each other. A row that the landmarks miss altogether, which leaves a gap of any size, is solved for by this.
    """
    gain, moved, eta, among_rounding = np.zeros((4, len(fit.scaled_ridge)))
    ascent = Ascent(gain, moved, eta, np.zeros_like(rows.dual), among_rounding)
    present = np.flatnonzero(rows.weights)
    known = np.empty(0, dtype=np.intp) if landmark_indices is None else landmark_indices
    count = min(_MOST_ROWS, math.ceil(_SHARE * len(present)))
    for t, scaled_ridge in enumerate(fit.scaled_ridge):
        single = rows.weights * residual[:, t] ** 2 / (rows.diagonal + scaled_ridge)
        first = present[np.argsort(-single[present], kind="stable")[:count]]
        image = product[:, t] + rows.left[:, t]
        _improve(ascent, passes, fit, rows, t, image, residual[:, t], np.union1d(first, known))
    return ascent


def _improve(
    ascent: Ascent,
    passes: RowPasses,
    fit: LandmarkFit,
    rows: FittedRows,
    target: int,
    image: Floats,
    residual: Floats,
    chosen: NDArray[np.intp],
) -> None:
    """Maximise over `x = eta alpha + xi` with xi on the chosen rows; image is `(K + n lambda W^-1) alpha`.

    For fixed eta the best xi is `M^-1 (r - eta image)` on those rows, M their part of `K + n lambda W^-1`, and sums to
    zero where there is an intercept. What is written down is evaluated at the x found, whatever rounding did to it.
    """
    alpha, weights, scaled_ridge = rows.dual[:, target], rows.weights[chosen], float(fit.scaled_ridge[target])
    part = passes.take(chosen)
    cross_kernel = fit.factor.cross_kernel.kernel.against(part.features, chosen)
    block = cross_kernel(part.features).astype(np.float64)
    among = (block + block.T) / 2
    passes.n_kernel_evaluations += len(chosen) ** 2
    factor = posterior_factor(among, weights, scaled_ridge)
    ones = factor.T @ np.ones(len(chosen))

    def solve(values: Floats) -> Floats:
        rotated = factor.T @ values
        if fit.fit_intercept:
            rotated -= ones * (ones @ rotated) / (ones @ ones)
        return factor @ rotated

    near, along = residual[chosen], image[chosen]
    by_residual, by_image = solve(near), solve(along)
    slope, curvature = float(alpha @ residual), float(alpha @ image)
    left = curvature - float(along @ by_image)
    eta = (slope - float(along @ by_residual)) / left if left > 1e-8 * curvature else 0.0
    xi = by_residual - eta * by_image
    if fit.fit_intercept:  # to the last digit: what is left of the sum meets the mean of r, which may be large
        cheapest = np.argmin(np.diagonal(among) + scaled_ridge / weights)
        for _ in range(2):
            xi[cheapest] -= xi.sum()
    quadratic = eta**2 * curvature + 2 * eta * float(xi @ along)
    quadratic += float(xi @ among @ xi) + scaled_ridge * float(xi**2 @ (1.0 / weights))
    gain = 2 * (eta * slope + float(xi @ near)) - quadratic
    if gain > 0:
        moved = eta * rows.left[:, target]
        moved[chosen] += scaled_ridge * xi / weights
        ascent.gain[target], ascent.eta[target] = gain, eta
        ascent.moved[target] = np.sqrt(rows.weights @ moved**2 / rows.total_weight)
        ascent.xi_sizes[chosen, target] = rows.lengths[chosen] / np.sqrt(weights) * np.abs(xi)
        ascent.among_rounding[target] = 2.0 * sum_rounding(len(chosen)) + cross_kernel.landmark_error
