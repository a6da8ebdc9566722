"""The audit: a bound on the distance from exact for this y, by one product with K or with a sample of its rows."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ridgemark.backends import Floats, Indices
from ridgemark.certificates.dual import FittedRows, best_mixture
from ridgemark.certificates.record import Certificate, check_failure_probability, issue
from ridgemark.certificates.rounding import factor_rounding
from ridgemark.errors import ParameterError
from ridgemark.leverage import posterior_factor
from ridgemark.linalg import sum_rounding
from ridgemark.operators import Cross, FeatureTask, KernelMatrix, NystromFactor, diagonal_block, feature_block
from ridgemark.passes import RowPasses, Workspace
from ridgemark.rows import Block, row_weights
from ridgemark.sampling import draw_sequence
from ridgemark.solvers import LandmarkFit
from ridgemark.solvers.rounding import landmark_rounding

_LARGEST_ERROR = 0.1  # v_L uses a feature only if the relative rounding error of its square is at most this

KERNEL_ENTRIES = 4_000_000_000
"""Default limit on the kernel entries of an audit: about a minute; all of K up to 89,000 rows."""
_MOST_ROWS = 300  # rows optimised in addition to the landmarks: more hardly change the bound
_SHARE = 0.1  # and at most this share of all rows
_UNDERFLOW = float(np.finfo(np.float64).tiny)  # a sum of squares loses less than this to underflow


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
    of as many rows as that allows, with probability `1 - failure_probability` for all targets together. Rows on the
    workers of Dask are always sampled.

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
        raise ParameterError(
            f"kernel_entries must allow for at least one row of {n} kernel entries, got {kernel_entries!r}"
        )
    check_failure_probability(failure_probability)
    rows = FittedRows(passes, fit)
    if n * (n + 1) // 2 <= kernel_entries and not passes.remote:
        bound, inputs = _whole(rows, landmark_indices)
        return issue("audit", fit, bound, rows.cost, inputs)
    bound, inputs = sampled(rows, min(n, int(kernel_entries) // n), failure_probability, rng)
    return issue("audit", fit, bound, rows.cost, inputs)


def _whole(rows: FittedRows, landmark_indices: Indices | None) -> tuple[Floats, dict[str, Any]]:
    total, scaled_ridge = rows.total_weight, rows.fit.scaled_ridge
    product, product_error, defect, inner, inner_rounding = whole_defect(rows)
    lost = _UNDERFLOW * (1.0 + scaled_ridge / total)
    gap = scaled_ridge * (np.maximum(inner, 0.0) + inner_rounding) / total + lost
    ascent = ascend(rows, product, defect, landmark_indices)
    shifted = 2.0 * (1.0 + np.abs(ascent.eta)) * ascent.xi_sum * mean_rounding(rows, product)
    ascended = np.maximum(inner - ascent.gain, 0.0) + ascent.rounding(inner_rounding, product_error) + shifted
    smaller_gap = np.minimum(gap, scaled_ridge * ascended / total + lost)
    by_energy, energy, added = _by_energy(rows, defect, gap)
    added += rows.rms(rows.lengths[:, None] * product_error) + np.sqrt(lost)
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


def whole_defect(rows: FittedRows) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return `K alpha`, its error, `r = K alpha - f`, the squared norm of h per target, and its rounding error."""
    fit = rows.fit
    summed, kernel_matrix = sum_rounding(len(rows.dual)), KernelMatrix(rows.passes, fit.factor.cross_kernel.kernel)
    product, product_error = kernel_matrix.product_and_error(rows.dual, rows.sizes)
    defect = rows.centred(product - rows.values)
    product_error += summed * rows.sizes.sum(axis=0) + rows.share[:, None] * rows.function_size
    inner = (rows.dual * defect).sum(axis=0) - (fit.dual_coef * rows.unsolved).sum(axis=0)
    inner_rounding = (rows.sizes * product_error).sum(axis=0) + rows.function_size * rows.unsolved_rounding
    inner_rounding += summed * rows.size**2 + np.abs(rows.dual).sum(axis=0) * mean_rounding(rows, product)
    return product, product_error, defect, inner, inner_rounding


def mean_rounding(rows: FittedRows, product: Floats) -> Floats:
    """Return the rounding error, per target, of the mean that centring subtracts from the defect `K alpha - f`.

    Where `k(x, x)` differs by orders of magnitude, the mean may exceed the defect of a row, and its rounding error
    that of the row. Coefficients sum to zero up to the same error, relative to the sum of their sizes.
    """
    values = product - rows.values
    return 2.0 * sum_rounding(len(values)) * np.abs(values - rows.centred(values)).max(axis=0)


def _by_energy(rows: FittedRows, defect: Floats, gap: Floats) -> tuple[Floats, Floats, Floats]:
    """Return two bounds of `audit`, by the best mixture of v_L and h and by v_L alone, and the rounding error of v_L.

    The caller adds the rounding error to both bounds. Where v = 0 gives a smaller bound than v_L, the results are those
    of v = 0, without rounding error. That happens where the regression is mostly rounding error.
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
    whitener = fit.factor.whitener
    coefficients = fit.inverse.solve(whitener.T @ sums)
    coefficients[factor_rounding(fit.factor) > _LARGEST_ERROR] = 0.0
    return whitener @ coefficients


def sampled_defect(
    rows: FittedRows, size: int, rho: float, rng: np.random.Generator
) -> tuple[Floats, Floats, float, Floats]:
    """Bound the root mean square of `E a` as in `sampled`; return also its estimate, tr E, and `B'a - c`."""
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
    return from_sample, np.sqrt(average / total), trace, unsolved


def sampled(rows: FittedRows, size: int, rho: float, rng: np.random.Generator) -> tuple[Floats, dict[str, Any]]:
    """Bound |r| from rows drawn with `q_i = E_ii/tr E`, E = K - L (weighted). Centring only makes |r| smaller.

    `r = E a` up to the error of the landmark solution, so `r_i^2 <= E_ii a'r <= E_ii |a| |r|` and `r_i^2/q_i` lies
    between 0 and `tr(E) |a| |r|`. The average Q^ of m such numbers with mean `Q = |r|^2` satisfies, with probability
    `1 - rho`, `Q <= Q^ + sqrt(2 tr(E) |a| log(1/rho)/m) Q^(3/4)`: the largest root bounds Q. The rest is as in `audit`
    with `G <= |y - f| |r|`, v_L = 0, and multiples of a as the other dual points.
    """
    fit, total = rows.fit, rows.total_weight
    from_sample, estimate, trace, unsolved = sampled_defect(rows, size, rho, rng)
    rounding = 2.0 * rows.value_rounding + np.sqrt(_UNDERFLOW * (1.0 + fit.scaled_ridge / total))
    rounding += np.sqrt(np.maximum((unsolved * (fit.moments.gram @ unsolved)).sum(axis=0), 0.0) / total)
    gap = rows.rms_residual * from_sample
    bound = np.minimum(
        best_mixture(from_sample, from_sample**2, gap), best_mixture(rows.rms_residual, rows.primal, gap)
    )
    return np.sqrt(bound**2 + rows.offset**2) + rounding, {
        "sampled_rows": size,
        "energy_bound": from_sample.tolist(),
        "energy_estimate": estimate.tolist(),
        "gap_bound": (np.sqrt(gap) / 2).tolist(),
        "rounding": rounding.tolist(),
        "duality_gap": (total * ((rounding + np.sqrt(np.minimum(gap, rows.primal))) ** 2 + rows.offset**2)).tolist(),
        "trace_residual": trace,
        "rms_left": rows.rms_residual.tolist(),
        "failure_probability": rho,
    }


def _residual_diagonal(passes: RowPasses, factor: NystromFactor) -> Floats:
    """Return `w_i (K_ii - |b_i|^2)` for every row, raised by its rounding error so that it is never too small.

    Each feature contributes its square minus the rounding error of the square, but not less than zero.
    """
    reliable, sizes = 1.0 - factor_rounding(factor), 2.0 * factor.feature_sizes
    return passes.map(ResidualDiagonal(factor, reliable, sizes, landmark_rounding(factor)))


class ResidualDiagonal(FeatureTask):
    """The diagonal of `_residual_diagonal`."""

    what: ClassVar[str] = "residual diagonal"
    arrays: ClassVar[int] = 2
    reliable: Floats  # (rank,): one minus the relative rounding error that the factor brings to each feature
    sizes: Floats  # (rank,): twice the size of each feature, to which its rounding error is relative
    summed: float  # relative rounding error of sums over landmarks

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        backend = workspace.backend
        features = abs(feature_block(self.factor, block, workspace))
        diagonal = diagonal_block(self.factor.cross_kernel, block)
        share = self.summed + self.factor.kept_kernel.entry_error(block.features)
        certain = features * self.reliable
        certain -= (backend.xp.sqrt(diagonal) * share)[:, None] * self.sizes
        explained = backend.xp.einsum("ij,ij->i", features, backend.clip_(certain, lowest=0.0))
        return row_weights(block) * (backend.at_least(diagonal - explained, 0.0) + 2.0 * share * diagonal)


def _largest_root(average: Floats, spread: Floats) -> Floats:
    """Return the largest root of `Q = average + spread Q^(3/4)`, iterated from above: every iterate is a bound."""
    root = spread + average**0.25
    for _ in range(200):
        root = (average + spread * root**3) ** 0.25
    return root**4


@dataclass(frozen=True, eq=False)
class Ascent:
    """A dual point `alpha - x`, `x = eta alpha + xi`, per target."""

    gain: Floats  # (t,): decrease of the duality gap, in units of the scaled ridge
    moved: Floats  # (t,): root mean square of `s x/w`, the distance of the point from the residuals of f
    eta: Floats  # (t,)
    xi_sizes: Floats  # (n, t): |xi_i| |k(., x_i)|
    xi_sum: Floats  # (t,): sum of |xi_i|
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
    gain, moved, eta, xi_sum, among_rounding = np.zeros((5, len(rows.offset)))
    ascent = Ascent(gain, moved, eta, np.zeros_like(rows.dual), xi_sum, among_rounding)
    present = np.flatnonzero(rows.weights)
    landmark_rows = np.empty(0, dtype=np.intp) if landmark_indices is None else landmark_indices
    count = min(_MOST_ROWS, math.ceil(_SHARE * len(present)))
    for t, scaled_ridge in enumerate(rows.fit.scaled_ridge):
        single = rows.weights * defect[:, t] ** 2 / (rows.diagonal + scaled_ridge)
        first = present[np.argsort(-single[present], kind="stable")[:count]]
        image = product[:, t] + rows.residual[:, t]
        _improve(ascent, rows, t, image, defect[:, t], np.union1d(first, landmark_rows))
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
        ascent.xi_sum[target] = np.abs(xi).sum()
        ascent.among_rounding[target] = 2.0 * sum_rounding(len(chosen)) + cross_kernel.landmark_error
