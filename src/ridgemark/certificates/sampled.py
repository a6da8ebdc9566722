"""The audit on a sample of the rows, where K has too many entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ridgemark.backends import Floats
from ridgemark.certificates.dual import FittedRows, best_mixture
from ridgemark.certificates.rounding import factor_rounding, landmark_rounding
from ridgemark.linalg import sum_rounding
from ridgemark.operators import FeatureTask, KernelMatrix, NystromFactor, diagonal_block, feature_block
from ridgemark.passes import RowPasses, Workspace
from ridgemark.rows import Block, row_weights
from ridgemark.sampling import draw_sequence


def sampled(rows: FittedRows, size: int, rho: float, rng: np.random.Generator) -> tuple[Floats, dict[str, Any]]:
    """Bound |r| from rows drawn with `q_i = E_ii/tr E`, E = K - L (weighted). Centring only makes |r| smaller.

    `r = E a` up to the error of the landmark solution, so `r_i^2 <= E_ii a'r <= E_ii |a| |r|` and `r_i^2/q_i` lies
    between 0 and `tr(E) |a| |r|`. The average Q^ of m such numbers with mean `Q = |r|^2` satisfies, with probability
    `1 - rho`, `Q <= Q^ + sqrt(2 tr(E) |a| log(1/rho)/m) Q^(3/4)`: the largest root bounds Q. The rest is as in `audit`
    with `G <= |y - f| |r|`, v_L = 0, and multiples of a as the other dual points.
    """
    passes, fit, total, scaled_ridge = rows.passes, rows.fit, rows.total_weight, rows.fit.scaled_ridge
    residual_diagonal = _residual_diagonal(passes, fit.factor)
    trace = float(residual_diagonal.sum())
    drawn = draw_sequence(residual_diagonal, size, rng)
    chosen, position = np.unique(drawn, return_inverse=True)
    kernel_matrix = KernelMatrix(passes, fit.factor.cross_kernel.kernel)
    product, product_error = kernel_matrix.rows_product_and_error(chosen, rows.dual, rows.sizes)
    weights, probability = rows.weights[chosen][:, None], (residual_diagonal[chosen] / trace)[:, None]
    terms = weights * (product - rows.values[chosen]) ** 2 / probability
    unsolved = fit.factor.whitener.T @ rows.unsolved
    features = fit.factor.features(passes.take(chosen).features)
    passes.count_entries(features.shape[0] * fit.factor.cross_kernel.n_landmarks)
    product_error += (
        sum_rounding(len(rows.dual)) * rows.sizes.sum(axis=0) + rows.share[chosen, None] * rows.function_size
    )
    slack = rows.lengths[chosen, None] * product_error
    slack += np.sqrt(weights) * np.abs(features @ unsolved)
    average = terms[position].mean(axis=0)
    widened = (np.sqrt(average) + np.sqrt((slack**2 / probability)[position].mean(axis=0))) ** 2
    length = np.sqrt(total) * rows.rms_residual / scaled_ridge
    spread = np.sqrt(2.0 * trace * length * np.log(len(scaled_ridge) / rho) / size)
    from_sample = np.sqrt(_largest_root(widened, spread) / total)
    rounding = 2.0 * rows.value_rounding
    rounding += np.sqrt(np.maximum((unsolved * (fit.moments.gram @ unsolved)).sum(axis=0), 0.0) / total)
    gap = rows.rms_residual * from_sample
    bound = np.minimum(
        best_mixture(from_sample, from_sample**2, gap), best_mixture(rows.rms_residual, rows.primal, gap)
    )
    return np.sqrt(bound**2 + rows.offset**2) + rounding, {
        "sampled_rows": size,
        "energy_bound": from_sample.tolist(),
        "energy_estimate": np.sqrt(average / total).tolist(),
        "gap_bound": (np.sqrt(gap) / 2).tolist(),
        "rounding": rounding.tolist(),
        "duality_gap": (total * ((rounding + np.sqrt(np.minimum(gap, rows.primal))) ** 2 + rows.offset**2)).tolist(),
        "trace_residual": trace,
        "rms_left": rows.rms_residual.tolist(),
    }


def _residual_diagonal(passes: RowPasses, factor: NystromFactor) -> Floats:
    """Return `w_i (K_ii - |b_i|^2)` for every row, raised by its rounding error so that it is never too small.

    Each feature contributes its square minus the rounding error of the square, but not less than zero.
    """
    reliable, sizes = 1.0 - factor_rounding(factor), 2.0 * factor.feature_sizes
    return passes.map(ResidualDiagonal(factor, reliable, sizes, landmark_rounding(factor)))


@dataclass(frozen=True, eq=False)
class ResidualDiagonal(FeatureTask):
    """The diagonal of `_residual_diagonal`."""

    what: ClassVar[str] = "residual diagonal"
    arrays: ClassVar[int] = 2
    reliable: Floats  # (rank,): one minus the relative rounding error that the factor brings to each feature
    sizes: Floats  # (rank,): twice the size of each feature, to which its rounding error is relative
    summed: float  # relative rounding error of sums over landmarks

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        features = np.abs(feature_block(self.factor, block, workspace))
        diagonal = diagonal_block(self.factor.cross_kernel, block)
        share = self.summed + self.factor.kept_kernel.entry_error(block.features)
        certain = features * self.reliable
        certain -= np.outer(np.sqrt(diagonal) * share, self.sizes)
        explained = np.einsum("ij,ij->i", features, np.maximum(certain, 0.0, out=certain))
        return row_weights(block) * (np.maximum(diagonal - explained, 0.0) + 2.0 * share * diagonal)


def _largest_root(average: Floats, spread: Floats) -> Floats:
    """Return the largest root of `Q = average + spread Q^(3/4)`, iterated from above: every iterate is a bound."""
    root = spread + average**0.25
    for _ in range(200):
        root = (average + spread * root**3) ** 0.25
    return root**4
