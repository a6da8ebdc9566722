"""The pilot: rows drawn by the kernel's diagonal, through which all rows are scored (paper, section 3.5)."""

import math
from dataclasses import dataclass, replace

import numpy as np

from ridgemark.backends import Floats
from ridgemark.kernels import Kernel
from ridgemark.leverage import ScoreBracket, residual_dimension, score_bracket
from ridgemark.linalg import symmetric_eigen
from ridgemark.losses import Moments, loss_sums
from ridgemark.operators import NystromFactor, check_diagonal, kernel_diagonal, nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.rows.distinct import DistinctRows
from ridgemark.sampling import draw_distinct

PILOT = 500
"""Rows of a pilot when no number is given."""

_NEGLIGIBLE = 1e-18  # ridge relative to tr K that no score in double precision depends on
_RIDGE_ACCURACY = 1e-3  # of the logarithm of a ridge found by bisection


@dataclass(frozen=True, eq=False)
class Pilot:
    """Some rows as landmarks, with the sums of their features over all rows."""

    factor: NystromFactor
    moments: Moments
    counts: Floats  # the total weight of the training rows equal to each pilot row
    passes: RowPasses  # the rows
    distinct: DistinctRows

    def ridge_at_dimension(self, dimension: float) -> float:
        """Return the n gamma at which the upper bound on d_eff equals `dimension`, by bisection and without a pass.

        `d_eff(gamma) <= sum_j s_j/(s_j + n gamma) + tr E/(n gamma + tr E/(m - r))`, s_j the eigenvalues of `B'B`, r
        their number, m that of distinct rows and E = K - L. Where d_eff stays below `dimension` for every ridge, a
        negligible ridge is returned.
        """
        moments, (spectrum, _) = self.moments, symmetric_eigen(self.moments.gram)

        def largest_dimension(scaled_ridge: float) -> float:
            rest = residual_dimension(moments.trace_residual / scaled_ridge, len(self.distinct) - len(spectrum))
            return float((spectrum / (spectrum + scaled_ridge)).sum()) + rest

        # d_eff is at most tr K/(n gamma).
        upper = math.log(moments.trace_kernel / dimension)
        lower = upper + math.log(_NEGLIGIBLE)
        while upper - lower > _RIDGE_ACCURACY:
            middle = (lower + upper) / 2
            lower, upper = (middle, upper) if largest_dimension(math.exp(middle)) > dimension else (lower, middle)
        return math.exp(upper)

    def scores(self, scaled_ridge: float) -> ScoreBracket:
        """Score all rows at this ridge, in one more pass."""
        passes, distinct = self.passes, self.distinct
        groups = distinct.of_rows(distinct.totals(passes.row_counts())) if distinct.has_repeats else None
        drawn = self.counts, len(self.counts)
        return score_bracket(passes, self.factor, self.moments, scaled_ridge, *drawn, groups, len(distinct))

    def refined_scores(self, scaled_ridge: float, refine: int, rng: np.random.Generator) -> ScoreBracket:
        """Score all rows; `refine` times draw the pilot again by the scores found, two passes each."""
        scores, drawn = self.scores(scaled_ridge), (self.passes, self.factor.cross_kernel.kernel, self.distinct)
        for _ in range(refine):
            again = draw_pilot(*drawn, len(self.counts), rng, smallest_ridge=scaled_ridge, weights=scores.upper)
            scores = replace(again.scores(scaled_ridge), refined=True)
        return scores


def draw_pilot(
    passes: RowPasses,
    kernel: Kernel,
    distinct: DistinctRows,
    n_pilot: int,
    rng: np.random.Generator,
    *,
    smallest_ridge: float | None = None,
    target_origin: Floats | None = None,
    weights: Floats | None = None,
) -> Pilot:
    """Draw different rows and sum their features over all rows.

    Parameters
    ----------
    passes, kernel, distinct
        The rows, the kernel, and which rows are equal.
    n_pilot : int
        Rows to draw.
    rng : Generator
        The source of randomness.
    smallest_ridge : float, optional
        The smallest n lambda that the sums will be used with, where it is known: it may save work.
    target_origin : array of shape (targets,), optional
        Subtracted from the targets in the sums.
    weights : array of shape (n,), optional
        Probabilities of rows up to a factor; by default the kernel's diagonal (paper, section 3.5, step 1).
    """
    if weights is None:
        weights = check_diagonal(kernel_diagonal(passes, kernel))
    drawn = draw_distinct(distinct.totals(weights), n_pilot, rng).indices
    del weights  # n numbers, not needed any more
    rows = passes.take(distinct.indices[drawn])
    factor = nystrom_factor(kernel, rows.features, rows.indices, stays=True)
    counts = distinct.totals(passes.row_counts())[drawn]
    sums = loss_sums(passes, factor, target_origin, smallest_ridge)
    return Pilot(factor.on_host(), sums, counts, passes, distinct)
