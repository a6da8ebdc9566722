"""A better dual point than the residuals: the few rows that matter most are solved for together."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ridgemark.certificates.dual import FittedRows
from ridgemark.leverage import posterior_factor
from ridgemark.passes import RowPasses
from ridgemark.solvers import LandmarkFit

Floats = NDArray[np.float64]

_MOST_ROWS = 300  # solved for beside the landmarks: more hardly change the bound
_SHARE = 0.1  # and at most this share of all rows


def ascend(
    passes: RowPasses,
    fit: LandmarkFit,
    rows: FittedRows,
    product: Floats,
    residual: Floats,
    landmark_indices: NDArray[np.intp] | None,
) -> tuple[Floats, Floats]:
    """Return how much of the duality gap a better dual point closes, and that point's size, both per target.

    Moving from alpha to `alpha - x` closes `n lambda` times

        2 x'r - x'(K + n lambda W^-1) x,   r = K alpha - f,

    of the gap. x ranges over the multiples of alpha and the rows with the largest `r_i^2/(k(x_i, x_i) + n lambda/w_i)`,
    and the landmarks' rows where these are known. All it takes are the products at hand and the kernel of those rows
    with each other. A row that the landmarks miss altogether, which leaves a gap of any size, is solved for by this.
    """
    gain, size = np.zeros(len(fit.scaled_ridge)), rows.size.copy()
    present = np.flatnonzero(rows.weights)
    known = np.empty(0, dtype=np.intp) if landmark_indices is None else landmark_indices
    count = min(_MOST_ROWS, math.ceil(_SHARE * len(present)))
    for t, scaled_ridge in enumerate(fit.scaled_ridge):
        single = rows.weights * residual[:, t] ** 2 / (rows.diagonal + scaled_ridge)
        first = present[np.argsort(-single[present], kind="stable")[:count]]
        image = product[:, t] + rows.left[:, t]
        gained, larger = _gain(passes, fit, rows, t, image, residual[:, t], np.union1d(first, known))
        if gained > 0:
            gain[t], size[t] = gained, larger
    return gain, size


def _gain(
    passes: RowPasses,
    fit: LandmarkFit,
    rows: FittedRows,
    target: int,
    image: Floats,
    residual: Floats,
    chosen: NDArray[np.intp],
) -> tuple[float, float]:
    """Maximise over `x = eta alpha + xi` with xi on the chosen rows; image is `(K + n lambda W^-1) alpha`.

    For fixed eta the best xi is `M^-1 (r - eta image)` on those rows, M their part of `K + n lambda W^-1`, and sums to
    zero where there is an intercept. What is returned is evaluated at the x found, whatever rounding did to it.
    """
    alpha, weights, scaled_ridge = rows.dual[:, target], rows.weights[chosen], float(fit.scaled_ridge[target])
    part = passes.take(chosen)
    among = fit.factor.cross_kernel.kernel.against(part.features, chosen).symmetric_block(part.features)
    passes.count_entries(len(chosen) ** 2)
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
    size = np.sqrt(rows.diagonal[chosen] / weights) @ np.abs(xi)
    return 2 * (eta * slope + float(xi @ near)) - quadratic, float((1 + abs(eta)) * rows.size[target] + size)
