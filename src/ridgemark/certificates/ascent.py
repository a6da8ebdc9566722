"""A better dual point than the residuals: optimal over the few rows with the largest defects."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ridgemark.backends import Floats, Indices
from ridgemark.certificates.dual import FittedRows
from ridgemark.leverage import posterior_factor
from ridgemark.linalg import sum_rounding

_MOST_ROWS = 300  # rows optimised in addition to the landmarks: more hardly change the bound
_SHARE = 0.1  # and at most this share of all rows


@dataclass(frozen=True, eq=False)
class Ascent:
    """A dual point `alpha - x`, `x = eta alpha + xi`, per target."""

    gain: Floats  # (t,): decrease of the duality gap, in units of the scaled ridge
    moved: Floats  # (t,): root mean square of `s x/w`, the distance of the point from the residuals of f
    eta: Floats  # (t,)
    xi_sizes: Floats  # (n, t): |xi_i| |k(., x_i)|
    among_rounding: Floats  # (t,): relative error of products among the chosen rows

    def rounding(self, inner_rounding: Floats, product_error: Floats) -> Floats:
        """Return the rounding error of `alpha'r - gain`, from those of alpha'r and of r at each row."""
        along, size = 1.0 + np.abs(self.eta), self.xi_sizes.sum(axis=0)
        return (
            along**2 * inner_rounding
            + 2.0 * along * (self.xi_sizes * product_error).sum(axis=0)
            + self.among_rounding * size**2
        )


def ascend(rows: FittedRows, product: Floats, defect: Floats, landmark_indices: Indices | None) -> Ascent:
    """Return a dual point with a smaller duality gap.

    Moving from alpha to `alpha - x` decreases the gap by `n lambda` times

        2 x'r - x'(K + n lambda W^-1) x,   with the defect r = K alpha - f.

    x is a multiple of alpha plus a vector on the rows with the largest `r_i^2/(k(x_i, x_i) + n lambda/w_i)` and, where
    they are known, on the rows of the landmarks. This needs only the products computed already and the kernel of those
    rows with each other. It removes the gap of a row far from all landmarks, which may be arbitrarily large.
    """
    gain, moved, eta, among_rounding = np.zeros((4, len(rows.offset)))
    ascent = Ascent(gain, moved, eta, np.zeros_like(rows.dual), among_rounding)
    present = np.flatnonzero(rows.weights)
    known = np.empty(0, dtype=np.intp) if landmark_indices is None else landmark_indices
    count = min(_MOST_ROWS, math.ceil(_SHARE * len(present)))
    for t, scaled_ridge in enumerate(rows.fit.scaled_ridge):
        single = rows.weights * defect[:, t] ** 2 / (rows.diagonal + scaled_ridge)
        first = present[np.argsort(-single[present], kind="stable")[:count]]
        image = product[:, t] + rows.residual[:, t]
        _improve(ascent, rows, t, image, defect[:, t], np.union1d(first, known))
    return ascent


def _improve(ascent: Ascent, rows: FittedRows, target: int, image: Floats, defect: Floats, chosen: Indices) -> None:
    """Maximise over `x = eta alpha + xi` with xi on the chosen rows; image is `(K + n lambda W^-1) alpha`.

    For fixed eta the best xi is `M^-1 (r - eta image)` on those rows, M their part of `K + n lambda W^-1`; it sums to
    zero where there is an intercept. The gain is evaluated at the computed x, so it includes the rounding error of x.
    """
    fit, alpha, weights = rows.fit, rows.dual[:, target], rows.weights[chosen]
    scaled_ridge, part = float(fit.scaled_ridge[target]), rows.passes.take(chosen)
    cross_kernel = fit.factor.cross_kernel.kernel.bind(part.features, chosen)
    among = cross_kernel.symmetric_block(part.features)
    rows.passes.count_entries(len(chosen) ** 2)
    factor = posterior_factor(among, weights, scaled_ridge)
    ones = factor.T @ np.ones(len(chosen))

    def solve(values: Floats) -> Floats:
        rotated = factor.T @ values
        if fit.fit_intercept:
            rotated -= ones * (ones @ rotated) / (ones @ ones)
        return factor @ rotated

    defect_there, image_there = defect[chosen], image[chosen]
    by_defect, by_image = solve(defect_there), solve(image_there)
    slope, curvature = float(alpha @ defect), float(alpha @ image)
    schur = curvature - float(image_there @ by_image)
    eta = (slope - float(image_there @ by_defect)) / schur if schur > 1e-8 * curvature else 0.0
    xi = by_defect - eta * by_image
    if fit.fit_intercept:  # to the last digit: the gain contains sum(xi) times the mean of r, which may be large
        cheapest = np.argmin(np.diagonal(among) + scaled_ridge / weights)
        for _ in range(2):
            xi[cheapest] -= xi.sum()
    quadratic = eta**2 * curvature + 2 * eta * float(xi @ image_there)
    quadratic += float(xi @ among @ xi) + scaled_ridge * float(xi**2 @ (1.0 / weights))
    gain = 2 * (eta * slope + float(xi @ defect_there)) - quadratic
    if gain > 0:
        moved = eta * rows.residual[:, target]
        moved[chosen] += scaled_ridge * xi / weights
        ascent.gain[target], ascent.eta[target] = gain, eta
        ascent.moved[target] = np.sqrt(rows.weights @ moved**2 / rows.total_weight)
        ascent.xi_sizes[chosen, target] = rows.lengths[chosen] / np.sqrt(weights) * np.abs(xi)
        ascent.among_rounding[target] = 2.0 * sum_rounding(len(chosen)) + cross_kernel.landmark_error
