"""The audit: a bound on the distance from exact for this y, by one product with K or with a sample of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ridgemark.backends import Floats, Indices
from ridgemark.certificates.ascent import ascend
from ridgemark.certificates.dual import FittedRows, best_mixture
from ridgemark.certificates.record import Certificate, check_failure_probability, issue
from ridgemark.certificates.rounding import factor_rounding, landmark_rounding
from ridgemark.certificates.sampled import sampled
from ridgemark.errors import ParameterError
from ridgemark.linalg import sum_rounding
from ridgemark.operators import Cross, KernelMatrix
from ridgemark.passes import RowPasses
from ridgemark.solvers import LandmarkFit

_UNRELIABLE = 0.1  # features whose square may have a larger relative rounding error are left out of v_L

KERNEL_ENTRIES = 4_000_000_000
"""Default limit on the kernel entries of an audit: about a minute; all of K up to 89,000 rows."""


def audit(
    passes: RowPasses,
    fit: LandmarkFit,
    *,
    rng: np.random.Generator,
    landmark_indices: Indices | None = None,
    kernel_entries: int = KERNEL_ENTRIES,
    failure_probability: float = 0.05,
) -> Certificate:
    """Bound the distance of the fitted values to exact kernel ridge regression with the same kernel and ridge.

    Deterministic, by one product with K, where half of K has at most `kernel_entries` entries; otherwise from a sample
    of as many rows as that allows, with probability `1 - failure_probability` for all targets together.

    With `alpha = (y - f)/(n lambda)` and the defect `r = K alpha - f` (weighted and centred where the fit is), the
    distance is `d = n lambda (K + n lambda)^-1 r` for any f, and for every function v

    `|d| <= (p + sqrt(p^2 + n lambda |v|^2))/2` with `p = |r - v(X)|`.

    (An eigenvalue t of K counts with `n lambda/(t + n lambda)` in p and with `sqrt(n lambda t)/(t + n lambda)` in v.)
    Two such functions are used: v_L, the regression of r on the landmarks, whose `E^2 = p^2 + n lambda |v_L|^2` is the
    *energy*; and `h = sum_i alpha_i k(., x_i) - f`, whose values are r itself, so that `|d| <= sqrt(G)/2` with the
    *duality gap* `G = n lambda |h|^2`, the primal value at f minus the dual value at alpha. The two are orthogonal when
    f solves the landmark problem; otherwise a bound on their inner product is added. The bound is the smallest over
    `v = (1 - t) v_L + t h`.

    A second bound improves alpha on the rows with the largest defects (see `ascend`; better where `landmark_indices`
    are given). For a dual point at the distance `|e|` from the residuals and with the gap G' it is
    `(|e| + sqrt(G'))/2` (see `FittedRows`). The smaller of the two is returned.

    f need not solve the landmark problem exactly. The rounding errors of all sums and kernel values are added.

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
    rows = FittedRows(passes, fit)
    if n * (n + 1) // 2 <= kernel_entries:
        bound, inputs = _whole(rows, landmark_indices)
        return issue("audit", fit, bound, rows.cost, inputs)
    bound, inputs = sampled(rows, int(kernel_entries) // n, failure_probability, rng)
    return issue("audit", fit, bound, rows.cost, inputs, failure_probability=failure_probability)


def _whole(rows: FittedRows, landmark_indices: Indices | None) -> tuple[Floats, dict[str, Any]]:
    fit, total, scaled_ridge = rows.fit, rows.total_weight, rows.fit.scaled_ridge
    summed, kernel_matrix = sum_rounding(len(rows.dual)), KernelMatrix(rows.passes, fit.factor.cross_kernel.kernel)
    product, product_error = kernel_matrix.product_and_error(rows.dual, rows.sizes)
    defect = rows.centred(product - rows.values)
    product_error += summed * rows.sizes.sum(axis=0) + rows.share[:, None] * rows.function_size
    inner = (rows.dual * defect).sum(axis=0) - (fit.dual_coef * rows.unsolved).sum(axis=0)
    inner_rounding = (rows.sizes * product_error).sum(axis=0) + rows.function_size * rows.unsolved_rounding
    inner_rounding += summed * rows.size**2
    gap = scaled_ridge * (np.maximum(inner, 0.0) + inner_rounding) / total
    ascent = ascend(rows, product, defect, landmark_indices)
    ascended = np.maximum(inner - ascent.gain, 0.0) + ascent.rounding(inner_rounding, product_error)
    smaller_gap = np.minimum(gap, scaled_ridge * ascended / total)
    by_energy, energy, added = _by_energy(rows, defect, gap)
    added += rows.rms(rows.lengths[:, None] * product_error)
    by_gap = (ascent.moved + np.sqrt(smaller_gap)) / 2
    bound = np.minimum(by_energy + added, by_gap)
    rounding = np.where(by_energy + added < by_gap, added, 0.0) + 2.0 * rows.value_rounding
    return np.sqrt(bound**2 + rows.offset**2) + 2.0 * rows.value_rounding, {
        "energy_bound": (energy + added).tolist(),
        "gap_bound": np.minimum(np.sqrt(gap) / 2, by_gap).tolist(),
        "rounding": rounding.tolist(),
        "duality_gap": (total * (smaller_gap + rows.offset**2)).tolist(),
        "rms_left": rows.rms_residual.tolist(),
    }


def _by_energy(rows: FittedRows, defect: Floats, gap: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the bound by mixtures of v_L and h, the bound by v_L alone, and the rounding error of v_L, to be added.

    v_L is replaced by zero where that gives a smaller bound, as where the regression is mostly rounding error.
    """
    total, scaled_ridge, factor = rows.total_weight, rows.fit.scaled_ridge, rows.fit.factor
    cross, share = Cross(rows.passes, factor.cross_kernel), landmark_rounding(factor)
    coefficients = _regression(rows.fit, cross.T @ (rows.weights[:, None] * defect))
    unexplained = defect - rows.centred(cross @ coefficients)
    size = factor.function_size(coefficients)
    norm = (coefficients * (factor.landmark_kernel @ coefficients)).sum(axis=0)
    norm += (2.0 * share + factor.cross_kernel.landmark_error) * size**2
    part, plain = np.sqrt(rows.weights @ unexplained**2 / total), np.sqrt(rows.weights @ defect**2 / total)
    energy = part**2 + scaled_ridge * norm / total
    overlap = np.abs((coefficients * rows.unsolved).sum(axis=0)) + size * (rows.unsolved_rounding + share * rows.size)
    added = np.sqrt(rows.diagonal @ rows.share**2 / total) * size
    between = best_mixture(part, energy, gap, scaled_ridge * overlap / total)
    from_zero = best_mixture(plain, plain**2, gap)
    zero_is_better = between + added >= from_zero
    alone = np.where(zero_is_better, plain, (part + np.sqrt(energy)) / 2)
    return np.where(zero_is_better, from_zero, between), alone, np.where(zero_is_better, 0.0, added)


def _regression(fit: LandmarkFit, sums: Floats) -> Floats:
    """Return the coefficients, at the landmarks, of the ridge regression of values r, given `C'W r`.

    Features that may be mostly rounding error are left out: any function gives a valid bound, and their coefficients
    would be huge.
    """
    solver, whitener = fit.solver, fit.factor.whitener
    rotated = solver.rotation.T @ (whitener.T @ sums)
    coefficients = solver.rotation @ (rotated / (solver.spectrum[:, None] + fit.scaled_ridge))
    coefficients[factor_rounding(fit.factor) > _UNRELIABLE] = 0.0
    return whitener @ coefficients
