"""The audit: how far from exact this fit is for this y, by one product with K, or on a sample of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.certificates.ascent import ascend
from ridgemark.certificates.dual import ROUNDING, FittedRows, Meter, between, fitted_rows, function_size
from ridgemark.certificates.record import Certificate, check_failure_probability, issue
from ridgemark.certificates.sampled import sampled
from ridgemark.certificates.trace import feature_rounding
from ridgemark.errors import ParameterError
from ridgemark.operators import Cross, KernelMatrix
from ridgemark.passes import RowPasses
from ridgemark.solvers import LandmarkFit

Floats = NDArray[np.float64]

_UNSURE = 0.1  # of the square of a feature that may be rounding

KERNEL_ENTRIES = 4_000_000_000
"""Kernel entries an audit may evaluate unless told otherwise: about a minute; the whole of K up to 89,000 rows."""


def audit(
    passes: RowPasses,
    fit: LandmarkFit,
    *,
    rng: np.random.Generator,
    landmark_indices: NDArray[np.intp] | None = None,
    kernel_entries: int = KERNEL_ENTRIES,
    failure_probability: float = 0.05,
) -> Certificate:
    """Bound the distance of the fitted values to exact kernel ridge regression with the same kernel and ridge.

    Deterministic, by one product with K, where half of K's entries are within `kernel_entries`; otherwise on as many
    rows as that allows, with probability `1 - failure_probability` for all targets together.

    With `alpha = (y - f)/(n lambda)` and `r = K alpha - f` (weighted and centred where the fit is), the distance is
    `d = n lambda (K + n lambda)^-1 r` for whatever f, and

    `|d|^2 <= n lambda r'(K + n lambda)^-1 r`, which is the least over functions v of `|r - v(X)|^2 + n lambda |v|^2`.

    Any v gives a bound. Two are at hand: v_L, the regression of r on the landmarks, gives the *energy* E^2; and
    `h = sum_i alpha_i k(., x_i) - f`, whose values are r itself, gives the *duality gap* `G = n lambda |h|^2`, the
    primal value at f less the dual value at alpha. The best `v = (1 - t) v_L + t h` gives, as the two are orthogonal
    when f solves the landmark problem, `E^2 G/(E^2 + G)`: less than either. What is not orthogonal is added.

    From the other side, `|d|^2 + n lambda |f_K - f|^2` is the primal value at f less the optimal one, so at most the
    gap to any dual point: alpha is first improved on the rows that matter most (see `ascend`; better where the row
    numbers of the landmarks are given). The smaller of the two is the bound.

    Nothing here takes f to be solved to the last digit, and the rounding of every sum is allowed for.

    Raises
    ------
    DataError
        When these are not the rows the model was fitted on.
    """
    n = passes.source.n_rows
    if not kernel_entries >= n:
        msg = f"kernel_entries must allow for at least one row of {n} kernel entries, got {kernel_entries!r}"
        raise ParameterError(msg)
    check_failure_probability(failure_probability)
    meter = Meter(passes)
    rows = fitted_rows(passes, fit)
    if n * (n + 1) // 2 <= kernel_entries:
        bound, inputs = _whole(passes, fit, rows, landmark_indices)
        return issue("audit", fit, bound, meter.read(), inputs)
    bound, inputs = sampled(passes, fit, rows, int(kernel_entries) // n, failure_probability, rng)
    return issue("audit", fit, bound, meter.read(), inputs, failure_probability=failure_probability)


def _whole(
    passes: RowPasses, fit: LandmarkFit, rows: FittedRows, landmark_indices: NDArray[np.intp] | None
) -> tuple[Floats, dict[str, Any]]:
    total, scaled_ridge = rows.total_weight, fit.scaled_ridge
    product = KernelMatrix(passes, fit.factor.cross_kernel.kernel) @ rows.dual
    residual = rows.centred(product - rows.values)
    inner = (rows.dual * residual).sum(axis=0) - (fit.dual_coef * rows.unsolved).sum(axis=0)
    gap = scaled_ridge * (np.maximum(inner, 0.0) + ROUNDING * rows.size**2) / total
    gain, improved = ascend(passes, fit, rows, product, residual, landmark_indices)
    closed = scaled_ridge * (np.maximum(inner - gain, 0.0) + ROUNDING * improved**2) / total
    towards = _regression(passes, fit, rows.weights[:, None] * residual)
    rest = residual - rows.centred(Cross(passes, fit.factor.cross_kernel) @ towards)
    size = function_size(fit, towards)
    norm = (towards * (fit.factor.landmark_kernel @ towards)).sum(axis=0) + ROUNDING * size**2
    energy = (rows.weights @ rest**2 + scaled_ridge * norm) / total
    aslant = np.abs((towards * rows.unsolved).sum(axis=0)) + ROUNDING * size * rows.size
    plain = rows.weights @ residual**2 / total
    useless = energy >= plain  # where the regression is rounding
    energy, aslant = np.where(useless, plain, energy), np.where(useless, 0.0, aslant)
    rounding = ROUNDING * (np.sqrt(rows.mean_diagonal) * (rows.size + size) + np.abs(fit.intercept))
    square = np.minimum(between(energy, gap, scaled_ridge * aslant / total), closed)
    return np.sqrt(square + rows.offset**2) + rounding, {
        "energy_bound": np.sqrt(energy).tolist(),
        "gap_bound": np.sqrt(np.minimum(gap, closed)).tolist(),
        "rounding": rounding.tolist(),
        "duality_gap": (total * (np.minimum(gap, closed) + rows.offset**2)).tolist(),
        "rms_left": rows.rms_left.tolist(),
    }


def _regression(passes: RowPasses, fit: LandmarkFit, weighted: Floats) -> Floats:
    """Return the landmarks' coefficients of the ridge regression on them of values given times their weights.

    Without features that may be rounding: any function serves the bound, and their coefficients are huge.
    """
    solver, whitener = fit.solver, fit.factor.whitener
    rotated = solver.rotation.T @ (whitener.T @ (Cross(passes, fit.factor.cross_kernel).T @ weighted))
    coefficients = solver.rotation @ (rotated / (solver.spectrum[:, None] + fit.scaled_ridge))
    coefficients[ROUNDING * feature_rounding(fit.factor)[1] > _UNSURE] = 0.0
    return whitener @ coefficients
