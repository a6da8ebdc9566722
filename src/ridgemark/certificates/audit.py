"""The audit: how far from exact this fit is for this y, by one product with K, or on a sample of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.certificates.ascent import ascend
from ridgemark.certificates.dual import ROUNDING, FittedRows, Meter, between, fitted_rows, function_size
from ridgemark.certificates.record import Certificate, issue
from ridgemark.certificates.trace import feature_rounding
from ridgemark.errors import ParameterError
from ridgemark.passes import RowPasses, row_weights
from ridgemark.rows import Block
from ridgemark.sampling import draw_sequence
from ridgemark.solvers import LandmarkFit

Floats = NDArray[np.float64]

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

        |d|^2 <= n lambda r'(K + n lambda)^-1 r = min over functions v of |r - v(X)|^2 + n lambda |v|^2.

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
    meter = Meter(passes)
    rows = fitted_rows(passes, fit)
    if n * (n + 1) // 2 <= kernel_entries:
        bound, inputs = _whole(passes, fit, rows, landmark_indices)
        return issue("audit", fit, bound, meter.read(), inputs)
    bound, inputs = _sampled(passes, fit, rows, int(kernel_entries) // n, failure_probability, rng)
    return issue("audit", fit, bound, meter.read(), inputs, failure_probability=failure_probability)


def _whole(
    passes: RowPasses, fit: LandmarkFit, rows: FittedRows, landmark_indices: NDArray[np.intp] | None
) -> tuple[Floats, dict[str, Any]]:
    total, scaled_ridge = rows.total_weight, fit.scaled_ridge
    product = passes.kernel_product(fit.factor.cross_kernel.kernel, rows.dual)
    residual = rows.centred(product - rows.values)
    inner = (rows.dual * residual).sum(axis=0) - (fit.dual_coef * rows.unsolved).sum(axis=0)
    gap = scaled_ridge * (np.maximum(inner, 0.0) + ROUNDING * rows.size**2) / total
    gain, improved = ascend(passes, fit, rows, product, residual, landmark_indices)
    closed = scaled_ridge * (np.maximum(inner - gain, 0.0) + ROUNDING * improved**2) / total
    towards = _regression(passes, fit, rows.weights[:, None] * residual)
    rest = residual - rows.centred(passes.predict(fit.factor, towards, np.zeros(len(scaled_ridge))))
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
    """Return the landmarks' coefficients of the ridge regression on them of values given times their weights."""
    solver, whitener = fit.solver, fit.factor.whitener
    rotated = solver.rotation.T @ (whitener.T @ passes.cross_product(fit.factor.cross_kernel, weighted))
    return whitener @ (solver.rotation @ (rotated / (solver.spectrum[:, None] + fit.scaled_ridge)))


def _sampled(
    passes: RowPasses, fit: LandmarkFit, rows: FittedRows, size: int, rho: float, rng: np.random.Generator
) -> tuple[Floats, dict[str, Any]]:
    """Bound |r| from rows drawn with `q_i = E_ii/tr E`, E = K - L (weighted); the intercept only makes |r| smaller.

    `r = E a` up to what the fit leaves unsolved, so `r_i^2 <= E_ii a'r <= E_ii |a| |r|` and `r_i^2/q_i` lies between 0
    and `tr(E) |a| |r|`. Of m such numbers of mean `Q = |r|^2`, the average Q^ has, with probability 1 - rho,
    `Q <= Q^ + sqrt(2 tr(E) |a| log(1/rho)/m) Q^(3/4)`: the largest root bounds Q. Then with `G <= |y - f| |r|` as in
    `audit`.
    """
    total, scaled_ridge = rows.total_weight, fit.scaled_ridge
    residual_diagonal = _residual_diagonal(passes, fit)
    trace = float(residual_diagonal.sum())
    drawn = draw_sequence(residual_diagonal, size, rng)
    chosen, position = np.unique(drawn, return_inverse=True)
    product = passes.kernel_rows_product(fit.factor.cross_kernel.kernel, chosen, rows.dual)
    weights, probability = rows.weights[chosen][:, None], (residual_diagonal[chosen] / trace)[:, None]
    seen = weights * (product - rows.values[chosen]) ** 2 / probability
    unsolved = fit.factor.whitener.T @ rows.unsolved
    features = fit.factor.features(passes.take(chosen).features)
    passes.n_kernel_evaluations += features.shape[0] * fit.factor.cross_kernel.n_landmarks
    slack = ROUNDING * np.sqrt(rows.diagonal[chosen])[:, None] * rows.size + np.sqrt(weights) * np.abs(
        features @ unsolved
    )
    average = seen[position].mean(axis=0)
    widened = (np.sqrt(average) + np.sqrt((slack**2 / probability)[position].mean(axis=0))) ** 2
    length = np.sqrt(total) * rows.rms_left / scaled_ridge
    spread = np.sqrt(2.0 * trace * length * np.log(len(scaled_ridge) / rho) / size)
    from_sample = np.sqrt(_largest_root(widened, spread) / total)
    rounding = ROUNDING * (np.sqrt(rows.mean_diagonal) * rows.size + np.abs(fit.intercept))
    rounding += np.sqrt(np.maximum((unsolved * (fit.moments.gram @ unsolved)).sum(axis=0), 0.0) / total)
    gap = rows.rms_left * from_sample
    closed = between(gap, rows.scaled_primal(scaled_ridge))
    square = np.minimum(between(from_sample**2, gap), closed)
    return np.sqrt(square + rows.offset**2) + rounding, {
        "sampled_rows": size,
        "energy_bound": from_sample.tolist(),
        "energy_estimate": np.sqrt(average / total).tolist(),
        "gap_bound": np.sqrt(gap).tolist(),
        "rounding": rounding.tolist(),
        "duality_gap": (total * ((rounding + np.sqrt(closed)) ** 2 + rows.offset**2)).tolist(),
        "trace_residual": trace,
        "rms_left": rows.rms_left.tolist(),
    }


def _residual_diagonal(passes: RowPasses, fit: LandmarkFit) -> Floats:
    """Return `w_i (K_ii - |b_i|^2)` for every row, raised by its rounding so that none is too small."""
    factor = fit.factor
    kernel, width = factor.cross_kernel.kernel, factor.cross_kernel.n_landmarks
    first, second = feature_rounding(factor)

    def of_block(block: Block) -> Floats:
        features = np.matmul(
            passes.cross_block(factor.cross_kernel, block),
            factor.whitener,
            out=passes.scratch.array("features", (block.n_rows, factor.rank)),
        )
        diagonal = kernel.diagonal(block.features, block.indices).astype(np.float64)
        np.abs(features, out=features)
        rounded = diagonal + 2.0 * np.sqrt(diagonal) * (features @ first)
        np.square(features, out=features)
        rounded += features @ second
        return row_weights(block) * (np.maximum(diagonal - features.sum(axis=1), 0.0) + ROUNDING * rounded)

    return passes.map("residual diagonal", of_block, width, width)


def _largest_root(average: Floats, spread: Floats) -> Floats:
    """Return the largest root of `Q = average + spread Q^(3/4)`, from above: every step bounds it."""
    root = spread + average**0.25
    for _ in range(200):
        root = (average + spread * root**3) ** 0.25
    return root**4
