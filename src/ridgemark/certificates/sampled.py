"""The audit on a sample of the rows, where all of K is too much."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.certificates.dual import FittedRows, closest
from ridgemark.certificates.rounding import factor_rounding, feature_sizes, landmark_rounding
from ridgemark.kernels import CrossKernel, Kernel
from ridgemark.linalg import sum_rounding
from ridgemark.passes import RowPasses
from ridgemark.rows import Block, row_weights
from ridgemark.sampling import draw_sequence
from ridgemark.solvers import LandmarkFit

Floats = NDArray[np.float64]


def sampled(
    passes: RowPasses, fit: LandmarkFit, rows: FittedRows, size: int, rho: float, rng: np.random.Generator
) -> tuple[Floats, dict[str, Any]]:
    """Bound |r| from rows drawn with `q_i = E_ii/tr E`, E = K - L (weighted); the intercept only makes |r| smaller.

    `r = E a` up to what the fit leaves unsolved, so `r_i^2 <= E_ii a'r <= E_ii |a| |r|` and `r_i^2/q_i` lies between 0
    and `tr(E) |a| |r|`. Of m such numbers of mean `Q = |r|^2`, the average Q^ has, with probability 1 - rho,
    `Q <= Q^ + sqrt(2 tr(E) |a| log(1/rho)/m) Q^(3/4)`: the largest root bounds Q. Then as in `audit` with
    `G <= |y - f| |r|`, v = 0 for v_L, and multiples of a for other dual points.
    """
    total, scaled_ridge = rows.total_weight, fit.scaled_ridge
    residual_diagonal = _residual_diagonal(passes, fit)
    trace = float(residual_diagonal.sum())
    drawn = draw_sequence(residual_diagonal, size, rng)
    chosen, position = np.unique(drawn, return_inverse=True)
    product, lost = _kernel_rows(passes, fit.factor.cross_kernel.kernel, chosen, rows)
    weights, probability = rows.weights[chosen][:, None], (residual_diagonal[chosen] / trace)[:, None]
    seen = weights * (product - rows.values[chosen]) ** 2 / probability
    unsolved = fit.factor.whitener.T @ rows.unsolved
    features = fit.factor.features(passes.take(chosen).features)
    passes.n_kernel_evaluations += features.shape[0] * fit.factor.cross_kernel.n_landmarks
    lost += sum_rounding(len(rows.dual)) * rows.sizes.sum(axis=0) + rows.share[chosen, None] * rows.function_size
    slack = rows.lengths[chosen, None] * lost
    slack += np.sqrt(weights) * np.abs(features @ unsolved)
    average = seen[position].mean(axis=0)
    widened = (np.sqrt(average) + np.sqrt((slack**2 / probability)[position].mean(axis=0))) ** 2
    length = np.sqrt(total) * rows.rms_left / scaled_ridge
    spread = np.sqrt(2.0 * trace * length * np.log(len(scaled_ridge) / rho) / size)
    from_sample = np.sqrt(_largest_root(widened, spread) / total)
    rounding = 2.0 * rows.value_rounding
    rounding += np.sqrt(np.maximum((unsolved * (fit.moments.gram @ unsolved)).sum(axis=0), 0.0) / total)
    gap = rows.rms_left * from_sample
    primal = rows.scaled_primal(scaled_ridge)
    bound = np.minimum(closest(from_sample, from_sample**2, gap), closest(rows.rms_left, primal, gap))
    return np.sqrt(bound**2 + rows.offset**2) + rounding, {
        "sampled_rows": size,
        "energy_bound": from_sample.tolist(),
        "energy_estimate": np.sqrt(average / total).tolist(),
        "gap_bound": (np.sqrt(gap) / 2).tolist(),
        "rounding": rounding.tolist(),
        "duality_gap": (total * ((rounding + np.sqrt(np.minimum(gap, primal))) ** 2 + rows.offset**2)).tolist(),
        "trace_residual": trace,
        "rms_left": rows.rms_left.tolist(),
    }


def _residual_diagonal(passes: RowPasses, fit: LandmarkFit) -> Floats:
    """Return `w_i (K_ii - |b_i|^2)` for every row, raised by its rounding so that none is too small.

    A feature counts with what is left of its square when its rounding is taken off, and not below zero.
    """
    factor = fit.factor
    kernel, width = factor.cross_kernel.kernel, factor.cross_kernel.n_landmarks
    sure, sizes = 1.0 - factor_rounding(factor), 2.0 * feature_sizes(factor)
    summed = landmark_rounding(factor)

    def of_block(block: Block) -> Floats:
        features = np.abs(passes.feature_block(factor, block))
        diagonal = kernel.diagonal(block.features, block.indices).astype(np.float64)
        share = summed + factor.kept_kernel.entry_error(block.features)
        left = features * sure
        left -= np.outer(np.sqrt(diagonal) * share, sizes)
        explained = np.einsum("ij,ij->i", features, np.maximum(left, 0.0, out=left))
        return row_weights(block) * (np.maximum(diagonal - explained, 0.0) + 2.0 * share * diagonal)

    return passes.map("residual diagonal", of_block, 2 * width, width)


def _kernel_rows(
    passes: RowPasses, kernel: Kernel, chosen: NDArray[np.intp], rows: FittedRows
) -> tuple[Floats, Floats]:
    """Return some rows of `K alpha` and of the rounding of kernel values in them; n kernel entries each."""
    products, errors = [], []
    for part in passes.parts(chosen):
        cross_kernel = kernel.against(part.features, part.indices)

        def of_block(block: Block, cross_kernel: CrossKernel = cross_kernel) -> Floats:
            return cross_kernel.entry_error(block.features)

        products.append(passes.cross_product(cross_kernel, rows.dual))
        errors.append(np.tile(passes.map("rounding", of_block, 1, 0) @ rows.sizes, (part.n_rows, 1)))
    return np.concatenate(products), np.concatenate(errors)


def _largest_root(average: Floats, spread: Floats) -> Floats:
    """Return the largest root of `Q = average + spread Q^(3/4)`, from above: every step bounds it."""
    root = spread + average**0.25
    for _ in range(200):
        root = (average + spread * root**3) ** 0.25
    return root**4
