"""The audit: how far from exact this fit is for this y, by one product with K, or on a sample of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.certificates.ascent import ascend
from ridgemark.certificates.dual import FittedRows, Meter, closest, fitted_rows
from ridgemark.certificates.record import Certificate, check_failure_probability, issue
from ridgemark.certificates.rounding import factor_rounding, function_size, landmark_rounding
from ridgemark.certificates.sampled import sampled
from ridgemark.errors import ParameterError
from ridgemark.linalg import sum_rounding
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
    `d = n lambda (K + n lambda)^-1 r` for whatever f, and for every function v

        |d| <= (p + sqrt(p^2 + n lambda |v|^2))/2,   p = |r - v(X)|.

    (An eigenvalue t of K counts with `n lambda/(t + n lambda)` in p and with `sqrt(n lambda t)/(t + n lambda)` in v.)
    Two functions are at hand: v_L, the regression of r on the landmarks, whose `E^2 = p^2 + n lambda |v_L|^2` is the
    *energy*; and `h = sum_i alpha_i k(., x_i) - f`, whose values are r itself, so that `|d| <= sqrt(G)/2` with the
    *duality gap* `G = n lambda |h|^2`, the primal value at f less the dual value at alpha. The two are orthogonal when
    f solves the landmark problem; what is not orthogonal is added. The best `(1 - t) v_L + t h` is taken.

    From the other side, alpha is first improved on the rows that matter most (see `ascend`; better where the row
    numbers of the landmarks are given). With the gap G' and a dual point e away from the residuals the bound is
    `(|e| + sqrt(G'))/2` (see `FittedRows`). The smaller of the two is the bound.

    Nothing here takes f to be solved to the last digit, and the rounding of every sum and kernel value is added.

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
    total, scaled_ridge, summed = rows.total_weight, fit.scaled_ridge, sum_rounding(len(rows.dual))
    product, lost = passes.kernel_product_and_error(fit.factor.cross_kernel.kernel, rows.dual, rows.sizes)
    residual = rows.centred(product - rows.values)
    lost += summed * rows.sizes.sum(axis=0) + rows.share[:, None] * rows.function_size
    inner = (rows.dual * residual).sum(axis=0) - (fit.dual_coef * rows.unsolved).sum(axis=0)
    inner_rounding = (rows.sizes * lost).sum(axis=0) + rows.function_size * rows.unsolved_rounding
    inner_rounding += summed * rows.size**2
    gap = scaled_ridge * (np.maximum(inner, 0.0) + inner_rounding) / total
    ascent = ascend(passes, fit, rows, product, residual, landmark_indices)
    ascended = np.maximum(inner - ascent.gain, 0.0) + ascent.rounding(inner_rounding, lost)
    closed = np.minimum(gap, scaled_ridge * ascended / total)
    by_energy, energy, added = _by_energy(passes, fit, rows, residual, gap)
    added += rows.rms(rows.lengths[:, None] * lost)
    by_gap = (ascent.moved + np.sqrt(closed)) / 2
    bound = np.minimum(by_energy + added, by_gap)
    rounding = np.where(by_energy + added < by_gap, added, 0.0) + 2.0 * rows.value_rounding
    return np.sqrt(bound**2 + rows.offset**2) + 2.0 * rows.value_rounding, {
        "energy_bound": (energy + added).tolist(),
        "gap_bound": np.minimum(np.sqrt(gap) / 2, by_gap).tolist(),
        "rounding": rounding.tolist(),
        "duality_gap": (total * (closed + rows.offset**2)).tolist(),
        "rms_left": rows.rms_left.tolist(),
    }


def _by_energy(
    passes: RowPasses, fit: LandmarkFit, rows: FittedRows, residual: Floats, gap: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the bound between v_L and h, that of v_L alone, and what the rounding of v_L adds to both.

    Where zero for v_L does better, as where the regression is rounding, that is taken.
    """
    total, scaled_ridge, share = rows.total_weight, fit.scaled_ridge, landmark_rounding(fit.factor)
    towards = _regression(passes, fit, rows.weights[:, None] * residual)
    rest = residual - rows.centred(passes.cross_values(fit.factor.cross_kernel, towards))
    size = function_size(fit, towards)
    norm = (towards * (fit.factor.landmark_kernel @ towards)).sum(axis=0)
    norm += (2.0 * share + fit.factor.cross_kernel.landmark_error) * size**2
    part, plain = np.sqrt(rows.weights @ rest**2 / total), np.sqrt(rows.weights @ residual**2 / total)
    energy = part**2 + scaled_ridge * norm / total
    aslant = np.abs((towards * rows.unsolved).sum(axis=0)) + size * (rows.unsolved_rounding + share * rows.size)
    added = np.sqrt(rows.diagonal @ rows.share**2 / total) * size
    between = closest(part, energy, gap, scaled_ridge * aslant / total)
    from_zero = closest(plain, plain**2, gap)
    useless = between + added >= from_zero
    alone = np.where(useless, plain, (part + np.sqrt(energy)) / 2)
    return np.where(useless, from_zero, between), alone, np.where(useless, 0.0, added)


def _regression(passes: RowPasses, fit: LandmarkFit, weighted: Floats) -> Floats:
    """Return the landmarks' coefficients of the ridge regression on them of values given times their weights.

    Without features that may be rounding: any function serves the bound, and their coefficients are huge.
    """
    solver, whitener = fit.solver, fit.factor.whitener
    rotated = solver.rotation.T @ (whitener.T @ passes.cross_product(fit.factor.cross_kernel, weighted))
    coefficients = solver.rotation @ (rotated / (solver.spectrum[:, None] + fit.scaled_ridge))
    coefficients[factor_rounding(fit.factor) > _UNSURE] = 0.0
    return whitener @ coefficients
