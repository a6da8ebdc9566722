"""Ridge leverage scores as brackets: at least the paper's approximation, at most a posterior variance."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ridgemark import bounds
from ridgemark.backends import NUMPY
from ridgemark.backends.threads import one_blas_thread
from ridgemark.errors import ParameterError
from ridgemark.kernels import CrossKernel, Kernel
from ridgemark.linalg import check_range, symmetric_eigen
from ridgemark.moments import Moments
from ridgemark.nystrom import NystromFactor
from ridgemark.passes import RowPasses
from ridgemark.rows import Block, row_weights

Floats = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_SURE = 1e-6  # share by which rounding may make features too long that still count
_SHARE = 0.3  # of the effective dimension: what "a few rows carry" means in the verdict
_EVEN = 2.0  # carrying it takes at least 1/_EVEN as many rows as even scores would need
_TELLING = 3.0  # a bracket of d_eff wider than this factor says nothing about single rows


class Bracket(NamedTuple):
    """A number known from both sides; equal sides mean it is exact."""

    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class ScoreBracket:
    """Scores `l_i = [K (K + n lambda I)^-1]_ii` from both sides, with the ridge they belong to.

    With weights the scores are those of `W^1/2 K W^1/2`: a row of weight m has what m equal rows have together.

    Attributes
    ----------
    lower, upper : array of shape (n,)
        Bounds that hold for every row; equal when the scores are exact.
    scaled_ridge : float
        n lambda, or lambda times the sum of weights.
    effective_dimension : Bracket
        d_eff, the sum of the scores.
    weights : array of shape (n,) or None
        How many rows each row counts for.
    trace : float
        `tr K`.
    n_draws : int
        Draws of the pilot; 0 when the scores are exact.
    n_passes, n_kernel_evaluations : int
        What the scores cost since the source was opened, without the search for equal rows.
    refined : bool
        Whether the pilot was drawn by earlier scores rather than by the kernel's diagonal.
    """

    lower: Floats
    upper: Floats
    scaled_ridge: float
    effective_dimension: Bracket
    weights: Floats | None
    trace: float
    n_draws: int
    n_passes: int
    n_kernel_evaluations: int
    refined: bool = False

    @property
    def total_weight(self) -> float:
        """The n of the formulas: number of rows, or sum of weights."""
        return float(len(self.lower)) if self.weights is None else float(self.weights.sum())

    @property
    def max_degrees_of_freedom(self) -> Bracket:
        """d_mof, n times the largest score of one row; per unit of weight where there are weights."""
        per_unit = [_per_unit(side, self.weights).max() for side in (self.lower, self.upper)]
        return Bracket(*(self.total_weight * float(score) for score in per_unit))

    @property
    def coherence(self) -> Bracket:
        """`d_mof/d_eff`, between 1 and n: how many times more landmarks uniform sampling may need."""
        d_mof, d_eff = self.max_degrees_of_freedom, self.effective_dimension
        # One unit of weight has at most everything: the n of the bound counts rows as heavy as the lightest.
        lightest = 1.0 if self.weights is None else float(self.weights[self.weights > 0].min())
        most = self.total_weight / lightest
        if not d_eff.lower > 0:
            return Bracket(1.0, most)
        ratios = d_mof.lower / d_eff.upper, d_mof.upper / d_eff.lower
        return Bracket(*(min(max(ratio, 1.0), most) for ratio in ratios))

    def sampling_quality(self, probabilities: Any = None) -> float:
        """Return a beta certified for sampling probabilities: `p_i >= beta l_i/d_eff` for every row.

        By default for the probabilities proportional to `upper`, where beta is `sum(lower)/sum(upper)`; in general
        `min_i p_i sum(lower)/upper_i` (paper, Theorem 3).
        """
        d_eff = float(self.lower.sum())
        if probabilities is None:
            return min(1.0, d_eff / float(self.upper.sum())) if d_eff > 0 else 0.0
        given = np.asarray(probabilities, dtype=np.float64)
        if given.shape != self.upper.shape:
            msg = f"probabilities need one entry for each of the {len(self.upper)} rows, got shape {given.shape}"
            raise ParameterError(msg)
        if not ((given >= 0).all() and abs(given.sum() - 1.0) <= 1e-8):
            msg = f"probabilities must be at least 0 and sum to one, got a sum of {given.sum():.6g}"
            raise ParameterError(msg)
        counts = self.upper > 0
        return min(1.0, float((given[counts] * d_eff / self.upper[counts]).min(initial=math.inf)))

    def theorem_4(self, failure_probability: float = 0.05) -> str:
        """Say what Theorem 4 promises for the pilot's number of draws, in one sentence."""
        if self.n_draws == 0:
            return "The scores are exact."
        if self.refined:
            return "Theorem 4 does not speak of a refined pilot; the bracket holds regardless."
        n = len(self.lower)
        ridge = self.scaled_ridge / n
        epsilon = bounds.theorem_4_epsilon(n, self.n_draws, self.trace, ridge, failure_probability)
        if epsilon < 0.5:
            return (
                f"Theorem 4: with probability {1 - failure_probability:g} every lower score is within "
                f"{bounds.theorem_4_additive_error(epsilon):.3g} of the exact one ({self.n_draws} draws)."
            )
        needed = 16.0 * self.trace / self.scaled_ridge * math.log(n / failure_probability)
        return (
            f"Theorem 4 promises nothing for {self.n_draws} draws at this ridge (it asks for over {needed:.3g} draws "
            f"from {n} rows); the bracket holds regardless."
        )

    def verdict(self) -> str:
        """Say in one line whether landmarks drawn by the scores can beat uniform ones on these rows."""
        lower, upper = self.effective_dimension
        if upper > _TELLING * lower:
            return (
                f"the pilot is too small to tell (effective dimension between {lower:.4g} and {upper:.4g}): "
                "take more landmarks, or refine"
            )
        n = len(self.lower)
        middle = np.sort((self.lower + self.upper) / 2)[::-1]
        few = int(np.searchsorted(np.cumsum(middle), _SHARE * middle.sum())) + 1
        if few * _EVEN >= _SHARE * n:
            return "scores are even: uniform landmarks would do as well"
        rows = "1 row carries" if few == 1 else f"{few} rows carry"
        share = f"{_SHARE:.0%} of the effective dimension"
        return f"{rows} {share} ({few / n:.2%} of the data): uniform sampling would miss them"


def exact_bracket(scores: Floats, scaled_ridge: float, trace: float, weights: Floats | None = None) -> ScoreBracket:
    """Return exact scores as a bracket without width."""
    total = float(scores.sum())
    n = len(scores)
    return ScoreBracket(scores, scores, scaled_ridge, Bracket(total, total), weights, trace, 0, 1, n * n)


@one_blas_thread()
def score_bracket(
    passes: RowPasses,
    factor: NystromFactor,
    moments: Moments,
    scaled_ridge: float,
    landmark_weights: Floats | None,
    n_draws: int,
) -> ScoreBracket:
    """Score every row from a factor and its moments, in one more pass of O(n p^2).

    With `B'B = V diag(s) V'` and `c_i = V' b_i`:

    - lower, the paper's eq. (9): `sum_j c_ij^2/(s_j + n lambda)`;
    - upper, posterior variance given fewer points: `(K_ii - k_i'(W + n lambda D^-1)^-1 k_i)/(n lambda)`, D the
      weights of the landmarks, which must be different training rows; and
      `lower + (tr(K - L)/(n lambda)) |(I - H) e_i|^2` with H = L(L + n lambda)^-1; the smaller of the two, at most 1.

    `landmark_weights` is None when the landmarks are not training rows: then only the second holds.
    """
    if not 0 < scaled_ridge < math.inf:
        msg = f"scaled_ridge (n times lambda) must be positive and finite, got {scaled_ridge!r}"
        raise ParameterError(msg)
    n_sure, excess = _sure_features(factor)
    lengths = np.diagonal(moments.gram)
    # The residual trace of rows that lie in the landmarks' span is rounding; allow for it.
    unexplained = moments.trace_residual + 8 * _EPS * moments.trace_kernel
    left, surplus = unexplained + lengths[n_sure:].sum(), excess * lengths[:n_sure].sum()
    gap = (left + surplus) / scaled_ridge
    sure = moments.gram[:n_sure, :n_sure]
    of_block = _block_scores(passes, factor, sure, excess, scaled_ridge, gap, landmark_weights)
    width = factor.cross_kernel.n_landmarks
    sides = passes.map("leverage scores", of_block, 2 * width, width)
    lower, upper = sides.T  # one array, two views: a copy would double what a long file's scores take
    total = float(lower.sum())
    # K - L vanishes at landmarks that are rows, so that its rank is that of the other rows.
    rank = moments.n_rows - (0 if landmark_weights is None else n_sure)
    most = total * (1.0 + excess) + residual_dimension(float(left) / scaled_ridge, rank) + float(surplus) / scaled_ridge
    return ScoreBracket(
        lower,
        upper,
        scaled_ridge,
        Bracket(total, max(total, min(float(upper.sum()), most))),
        passes.weights(),
        moments.trace_kernel,
        n_draws,
        passes.n_passes,
        passes.n_kernel_evaluations,
    )


def residual_dimension(ratio: float, rank: int) -> float:
    """Return the most that K - L adds to d_eff: `tr E (E + n lambda)^-1`, E of this rank, `ratio = tr E/(n lambda)`.

    `d_eff(K) <= d_eff(L) + d_eff(E)` for E = K - L, as `t/(t + n lambda)` is concave and zero at zero; by the same
    concavity d_eff(E) is largest where all eigenvalues of E are equal: `ratio/(1 + ratio/rank)`.
    """
    return ratio / (1.0 + ratio / max(rank, 1))


def _block_scores(
    passes: RowPasses,
    factor: NystromFactor,
    gram: Floats,
    excess: float,
    scaled_ridge: float,
    gap: float,
    landmark_weights: Floats | None,
) -> Callable[[Block], Floats]:
    """Return the function that gives a block's lower and upper scores, shape (rows, 2).

    `gram` is that of the first features, which are sure; `excess` is how much rounding may have added to them.
    """
    spectrum, rotation = symmetric_eigen(gram, NUMPY)
    # More noise only raises a posterior variance: with W's rounding added to the ridge the bound holds as computed.
    rounding = 8 * _EPS * len(factor.landmark_kernel)
    noise = scaled_ridge + rounding * _largest(factor.landmark_kernel, landmark_weights)
    towards_lower = factor.whitener[:, : len(gram)] @ rotation
    towards_upper = posterior_factor(factor.landmark_kernel, landmark_weights, noise)
    # Sums of squares by one thin product: the lower score, and the diagonal of H^2.
    shrink = 1.0 / (spectrum + scaled_ridge)
    sums = np.stack([shrink, (spectrum * shrink) * shrink], axis=1)
    kernel = factor.cross_kernel.kernel

    def of_block(block: Block) -> Floats:
        cross = passes.cross_block(factor.cross_kernel, block)
        values = np.matmul(cross, towards_lower, out=passes.scratch.array("features", (block.n_rows, len(gram))))
        np.square(values, out=values)
        weights = row_weights(block)
        lower, squared = (values @ sums).T * weights
        upper = lower + gap * (1.0 + excess) ** 2 * np.maximum(1.0 - 2.0 * lower + squared, 0.0)
        lower /= 1.0 + excess
        if landmark_weights is not None:
            diagonal = kernel.diagonal(block.features, block.indices).astype(np.float64)
            explained = weights * _explained(cross, towards_upper)
            posterior = (weights * diagonal * (1.0 + rounding) - explained) / scaled_ridge
            np.minimum(upper, posterior, out=upper)
        np.clip(lower, 0.0, 1.0, out=lower)
        np.minimum(upper, 1.0, out=upper)
        upper[weights == 0] = 0.0
        return np.stack([lower, np.maximum(lower, upper)], axis=1)

    return of_block


def _sure_features(factor: NystromFactor) -> tuple[int, float]:
    """Return how many of the first features are sure, and by which share `B B'` of these may exceed L.

    The factor is that of W + E, E the rounding of W and of its factor, some `8 eps |W_jj|`: on the first q landmarks
    kept `B B' <= L/(1 - |E| |W_q^-1|)`, and |W_q^-1| is at most the sum of squares of the triangle's first q columns.
    With those kept last, of which others leave little more than rounding, it would exceed K by anything. Divided by
    one plus the excess it does not exceed K, and its scores are lower bounds.
    """
    scale = float(np.diagonal(factor.landmark_kernel).max(initial=0.0))
    excess = 8 * _EPS * scale * np.cumsum(np.einsum("ij,ij->j", factor.triangle, factor.triangle))
    n_sure = int(np.searchsorted(excess, _SURE, side="right"))
    return n_sure, float(excess[n_sure - 1]) if n_sure else 0.0


def posterior_variance(
    kernel: Kernel, rows: Block, landmarks: Block, sampling_weights: Floats, scaled_ridge: float
) -> Floats:
    """Return `w_i (K_ii - k_i'(W + n lambda D^-1)^-1 k_i)`, D the landmarks' weights times `sampling_weights`."""
    cross_kernel, factor = _posterior(kernel, landmarks, sampling_weights, scaled_ridge)
    return _block_posterior(rows, cross_kernel, factor)


def posterior_scores(
    passes: RowPasses,
    kernel: Kernel,
    landmarks: Block,
    sampling_weights: Floats,
    scaled_ridge: float,
    wanted: NDArray[np.bool_],
) -> Floats:
    """Return `posterior_variance / scaled_ridge`, at most 1, for the wanted rows and zero for others, in one pass."""
    cross_kernel, factor = _posterior(kernel, landmarks, sampling_weights, scaled_ridge)

    def of_block(block: Block) -> Floats:
        scores = np.zeros(block.n_rows)
        chosen = np.flatnonzero(wanted[block.indices])
        if len(chosen):
            part = Block(0, block.features[chosen], None, row_weights(block)[chosen], block.indices[chosen])
            scores[chosen] = np.minimum(_block_posterior(part, cross_kernel, factor) / scaled_ridge, 1.0)
        return scores

    passes.n_kernel_evaluations += int(np.count_nonzero(wanted)) * landmarks.n_rows
    return passes.map("leverage scores", of_block, 2 * landmarks.n_rows, 0)


def landmark_spectrum(kernel: Kernel, landmarks: Block, sampling_weights: Floats) -> Floats:
    """Return the eigenvalues, descending, of `D^1/2 W D^1/2`: an estimate of those of the kernel of all rows."""
    block = kernel.against(landmarks.features, landmarks.indices)(landmarks.features).astype(np.float64)
    root = np.sqrt(row_weights(landmarks) * sampling_weights)
    values, _ = symmetric_eigen(root[:, None] * ((block + block.T) / 2) * root, NUMPY)
    return np.asarray(values)


def _posterior(
    kernel: Kernel, landmarks: Block, sampling_weights: Floats, scaled_ridge: float
) -> tuple[CrossKernel, Floats]:
    cross_kernel = kernel.against(landmarks.features, landmarks.indices)
    block = cross_kernel(landmarks.features).astype(np.float64)
    weights = row_weights(landmarks) * sampling_weights
    return cross_kernel, posterior_factor((block + block.T) / 2, weights, scaled_ridge)


def _block_posterior(rows: Block, cross_kernel: CrossKernel, factor: Floats) -> Floats:
    cross = cross_kernel(rows.features).astype(np.float64, copy=False)
    diagonal = cross_kernel.kernel.diagonal(rows.features, rows.indices).astype(np.float64)
    return row_weights(rows) * np.maximum(diagonal - _explained(cross, factor), 0.0)


def _explained(cross: Floats, posterior: Floats) -> Floats:
    """Return `|N'k_i|^2` of every row, overwriting the kernel values."""
    values = NUMPY.times_triangle_(cross, posterior)
    return np.einsum("ij,ij->i", values, values)


def posterior_factor(landmark_kernel: Floats, weights: Floats | None, scaled_ridge: float) -> Floats:
    """Return N, upper triangular, with `N N' = (W + n lambda D^-1)^-1`, from `D^1/2 W D^1/2 + n lambda I`."""
    if weights is None:
        return np.empty((len(landmark_kernel), 0))
    root = np.sqrt(weights)
    scaled = check_range(root[:, None] * landmark_kernel * root)
    try:
        triangle = scipy.linalg.cholesky(scaled + scaled_ridge * np.eye(len(scaled)), lower=True, check_finite=False)
        identity = np.diag(root)
        return scipy.linalg.solve_triangular(triangle, identity, lower=True, check_finite=False).T
    except np.linalg.LinAlgError:  # a ridge below the rounding of W: slower, and always there
        eigenvalues, vectors = symmetric_eigen(scaled, NUMPY)
        full = root[:, None] * vectors / np.sqrt(eigenvalues + scaled_ridge)
        return scipy.linalg.rq(full, mode="r", check_finite=False)


def _largest(landmark_kernel: Floats, weights: Floats | None) -> float:
    """Return the trace of `D^1/2 W D^1/2`, a bound on its largest eigenvalue."""
    diagonal = np.diagonal(landmark_kernel)
    return float(diagonal.sum() if weights is None else diagonal @ weights)


def _per_unit(scores: Floats, weights: Floats | None) -> Floats:
    if weights is None:
        return scores
    return np.divide(scores, weights, out=np.zeros_like(scores), where=weights > 0)
