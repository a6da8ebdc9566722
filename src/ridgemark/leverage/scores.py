"""Scores of all rows from a few landmarks: at least the paper's approximation, at most a posterior variance."""

import math
from typing import ClassVar

import numpy as np
import scipy.linalg

from ridgemark.backends import NUMPY, Array, Backend, Floats, backend_of, one_blas_thread
from ridgemark.errors import ParameterError
from ridgemark.kernels import CrossKernel, Kernel
from ridgemark.leverage.brackets import Bracket, ScoreBracket
from ridgemark.linalg import EPS, check_range, cholesky_, copy_with_ridge, inverse_triangle_, sent, symmetric_eigen
from ridgemark.losses import Moments
from ridgemark.operators import CrossTask, NystromFactor, cross_block, diagonal_block
from ridgemark.passes import RowPasses, Task, Workspace
from ridgemark.rows import Block, row_weights

_RELIABLE = 1e-6  # largest relative rounding error at which a feature is still used


def posterior_variance(
    kernel: Kernel, rows: Block, landmarks: Block, sampling_weights: Floats, scaled_ridge: float
) -> Floats:
    """Return `w_i (K_ii - k_i'(W + n lambda D^-1)^-1 k_i)`, D the landmarks' weights times `sampling_weights`."""
    return _variance(rows, *_posterior(kernel, landmarks, sampling_weights, scaled_ridge))


class PosteriorScores(Task):
    """`posterior_variance / scaled_ridge`, at most 1, for rows of the weights given along; zero for weight zero."""

    what: ClassVar[str] = "leverage scores"
    cross_kernel: CrossKernel
    factor: Floats
    scaled_ridge: float

    @property
    def width(self) -> int:
        return 2 * self.cross_kernel.n_landmarks

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        backend, weights = workspace.backend, block.along[0]
        wanted = weights != 0
        scores, numbers = backend.zeros((block.n_rows,)), block.indices[backend.to_host(wanted)]
        if len(numbers):
            part = Block(0, block.features[wanted], None, weights[wanted], numbers)
            variance = _variance(part, self.cross_kernel, self.factor)
            scores[wanted] = backend.within(variance / self.scaled_ridge, 0.0, 1.0)
        return scores


def posterior_scores(
    passes: RowPasses, kernel: Kernel, landmarks: Block, sampling_weights: Floats, scaled_ridge: float, weights: Floats
) -> Floats:
    """Return `posterior_variance / scaled_ridge`, at most 1, in one pass; zero for rows of weight zero."""
    cross_kernel, factor = _posterior(kernel, landmarks, sampling_weights, scaled_ridge)
    passes.count_entries(int(np.count_nonzero(weights)) * landmarks.n_rows)
    return passes.map(PosteriorScores(cross_kernel, factor, scaled_ridge), along=(weights,))


def landmark_spectrum(kernel: Kernel, landmarks: Block, sampling_weights: Floats) -> Floats:
    """Return the eigenvalues, descending, of `D^1/2 W D^1/2`: an estimate of those of the kernel of all rows."""
    root = np.sqrt(row_weights(landmarks) * sampling_weights)
    among = kernel.bind(landmarks.features, landmarks.indices).symmetric_block(landmarks.features)
    values, _ = symmetric_eigen(root[:, None] * among * root)
    return np.asarray(values)


def posterior_factor(landmark_kernel: Floats, weights: Floats, scaled_ridge: float) -> Floats:
    """Return N, upper triangular, with `N N' = (W + n lambda D^-1)^-1`, from `D^1/2 W D^1/2 + n lambda I`."""
    root = np.sqrt(weights)
    scaled = check_range(root[:, None] * landmark_kernel * root)
    triangle = cholesky_(copy_with_ridge(sent(scaled), scaled_ridge))
    if triangle is not None:
        inverse = inverse_triangle_(triangle)
        return root[:, None] * backend_of(inverse).to_host(inverse)
    # The ridge is below the rounding of W. This way is slower and never fails.
    eigenvalues, vectors = symmetric_eigen(scaled)
    full = root[:, None] * vectors / np.sqrt(eigenvalues + scaled_ridge)
    return scipy.linalg.rq(full, mode="r", check_finite=False)


def explained_(cross: Array, factor: Array, backend: Backend = NUMPY) -> Array:
    """Return `|N'k_i|^2` of every row, overwriting the kernel values."""
    return backend.squared_norms(backend.times_triangle_(cross, factor))


def _posterior(
    kernel: Kernel, landmarks: Block, sampling_weights: Floats, scaled_ridge: float
) -> tuple[CrossKernel, Floats]:
    cross_kernel = kernel.bind(landmarks.features, landmarks.indices)
    among, weights = cross_kernel.symmetric_block(landmarks.features), row_weights(landmarks) * sampling_weights
    return cross_kernel, posterior_factor(among, weights, scaled_ridge)


def _variance(rows: Block, cross_kernel: CrossKernel, factor: Array) -> Array:
    backend = cross_kernel.backend
    explained = explained_(backend.double(cross_kernel(rows.features)), factor, backend)
    return row_weights(rows) * backend.at_least(diagonal_block(cross_kernel, rows) - explained, 0.0)


@one_blas_thread()
def score_bracket(
    passes: RowPasses,
    factor: NystromFactor,
    moments: Moments,
    scaled_ridge: float,
    landmark_weights: Floats | None,
    n_draws: int,
    group_weights: Floats | None = None,
    n_distinct: int | None = None,
) -> ScoreBracket:
    """Score every row from a factor and its moments, in one more pass of O(n p^2).

    With `B'B = V diag(s) V'` and `c_i = V' b_i`:

    - lower, the paper's eq. (9): `sum_j c_ij^2/(s_j + n lambda)`;
    - upper, posterior variance given fewer points: `(K_ii - k_i'(W + n lambda D^-1)^-1 k_i)/(n lambda)`, D the
      weights of the landmarks, which must be different training rows; and
      `lower + (tr(K - L)/(n lambda)) |(I - H) e_i|^2` with H = L(L + n lambda)^-1; the smaller of the two, at most 1.

    `landmark_weights` is None when the landmarks are not training rows: then only the second upper bound holds.
    `group_weights` is needed where rows are equal, and holds for every row the weight of all rows equal to it: these
    are scored as one row of that weight, and each gets its share by weight. `n_distinct` counts distinct rows.
    """
    if not 0 < scaled_ridge < math.inf:
        raise ParameterError(f"scaled_ridge (n times lambda) must be positive and finite, got {scaled_ridge!r}")
    rank = moments.n_rows if n_distinct is None else n_distinct
    task = _score_task(factor, moments, scaled_ridge, landmark_weights, rank)
    along = () if group_weights is None else (group_weights,)
    lower, upper = passes.map(task, along).T  # views of one array: copies would double the memory
    total, weights = float(lower.sum()), passes.weights()
    most = max(total, min(float(upper.sum()), total * (1.0 + task.excess) + task.residual_dimension))
    cost = n_draws, passes.n_passes, passes.n_kernel_evaluations
    return ScoreBracket(lower, upper, scaled_ridge, Bracket(total, most), weights, moments.trace_kernel, *cost)


class Scores(CrossTask):
    """A block's lower and upper scores, shape (rows, 2); the weights of groups of equal rows may be given along."""

    what: ClassVar[str] = "leverage scores"
    arrays: ClassVar[int] = 2
    to_lower: Floats  # (p, rank): from kernel values to features in the coordinates of V
    to_upper: Floats | None  # (p, p): the posterior's factor; None where landmarks are not training rows
    sums: Floats  # (rank, 2): factors of squared features for the lower score and the diagonal of H^2
    excess: float  # relative rounding error by which squared features may be too large
    gap: float  # bound on `tr(K - L)/(n lambda)`
    residual_dimension: float  # the most that K - L adds to d_eff
    rounding: float  # relative rounding error of the posterior variance
    scaled_ridge: float

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        cross, own = cross_block(self.cross_kernel, block, workspace), row_weights(block)
        weights = block.along[0] if block.along else own
        backend, xp = workspace.backend, workspace.backend.xp
        features = workspace.array("features", (block.n_rows, self.to_lower.shape[1]))
        squares = xp.square(backend.matmul(cross, self.to_lower, out=features), out=features)
        lower, squared = (squares @ self.sums).T * weights
        upper = lower + self.gap * (1.0 + self.excess) ** 2 * backend.at_least(1.0 - 2.0 * lower + squared, 0.0)
        lower /= 1.0 + self.excess
        if self.to_upper is not None:
            explained = weights * explained_(cross, self.to_upper, backend)
            largest = weights * diagonal_block(self.cross_kernel, block) * (1.0 + self.rounding)
            upper = xp.minimum(upper, (largest - explained) / self.scaled_ridge)
        lower, upper = backend.within(lower, 0.0, 1.0), backend.within(upper, -math.inf, 1.0)
        upper[weights == 0] = 0.0
        return xp.stack([lower, xp.maximum(lower, upper)], axis=1) * backend.ratio(own, weights)[:, None]


def _score_task(
    factor: NystromFactor, moments: Moments, scaled_ridge: float, landmark_weights: Floats | None, rank: int
) -> Scores:
    n_reliable, excess = _reliable_features(factor)
    lengths = np.diagonal(moments.gram)
    # The residual trace of rows in the landmarks' span is rounding error; allow for it.
    unexplained = moments.trace_residual + 8 * EPS * moments.trace_kernel
    residual_trace = float(unexplained + lengths[n_reliable:].sum())
    surplus = float(excess * lengths[:n_reliable].sum())
    # K - L is zero at landmarks that are rows, so its rank is at most the number of other distinct rows.
    rank -= 0 if landmark_weights is None else n_reliable
    spectrum, rotation = symmetric_eigen(moments.gram[:n_reliable, :n_reliable])
    # More noise only raises a posterior variance, so the rounding error of W is added to the ridge.
    rounding = 8 * EPS * len(factor.landmark_kernel)
    to_upper = None
    if landmark_weights is not None:
        largest = float(np.diagonal(factor.landmark_kernel) @ landmark_weights)  # at least the largest eigenvalue
        to_upper = posterior_factor(factor.landmark_kernel, landmark_weights, scaled_ridge + rounding * largest)
    shrink = 1.0 / (spectrum + scaled_ridge)
    to_lower = factor.whitener[:, :n_reliable] @ rotation
    sums = np.stack([shrink, (spectrum * shrink) * shrink], axis=1)
    gap = (residual_trace + surplus) / scaled_ridge
    dimension = residual_dimension(residual_trace / scaled_ridge, rank) + surplus / scaled_ridge
    return Scores(factor.cross_kernel, to_lower, to_upper, sums, excess, gap, dimension, rounding, scaled_ridge)


def residual_dimension(ratio: float, rank: int) -> float:
    """Return the most that K - L adds to d_eff: `tr E (E + n lambda)^-1`, E of this rank, `ratio = tr E/(n lambda)`.

    `d_eff(K) <= d_eff(L) + d_eff(E)` for E = K - L, as `t/(t + n lambda)` is concave and zero at zero; by the same
    concavity d_eff(E) is largest where all eigenvalues of E are equal: `ratio/(1 + ratio/rank)`.
    """
    return ratio / (1.0 + ratio / max(rank, 1))


def _reliable_features(factor: NystromFactor) -> tuple[int, float]:
    """Return how many of the first features are reliable, and the relative error by which their `B B'` may exceed L.

    The factor is that of W + E, E the rounding error of W and of its factor, some `8 eps |W_jj|`: on the first q
    landmarks kept `B B' <= L/(1 - |E| |W_q^-1|)`, and |W_q^-1| is at most the sum of squares of the triangle's first q
    columns. The landmarks kept last, which the others explain nearly to rounding, could make `B B'` exceed K by any
    amount. Divided by one plus the excess, `B B'` does not exceed K, and its scores are lower bounds.
    """
    scale = float(np.diagonal(factor.landmark_kernel).max(initial=0.0))
    excess = 8 * EPS * scale * np.cumsum(np.einsum("ij,ij->j", factor.triangle, factor.triangle))
    n_reliable = int(np.searchsorted(excess, _RELIABLE, side="right"))
    return n_reliable, float(excess[n_reliable - 1]) if n_reliable else 0.0
