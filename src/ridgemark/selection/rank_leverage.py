"""Landmarks drawn by leverage relative to the best rank-k subspace, exactly, for small data."""

import numpy as np

from ridgemark import exact
from ridgemark.parameters import positive_count
from ridgemark.sampling import draw_distinct
from ridgemark.selection.base import Landmarks, Problem, Selection


class RankLeverage(Selection):
    """Scores of Gittens and Mahoney: row sums of squares of the k leading eigenvectors of K (needs all of K).

    Parameters
    ----------
    rank : int, optional
        k; by default the number of landmarks.
    """

    def __init__(self, rank: int | None = None) -> None:
        self.rank = rank

    def _choose(self, problem: Problem, n_landmarks: int, rng: np.random.Generator) -> Landmarks:
        source = problem.passes.source
        rows = problem.passes.take(np.arange(source.n_rows))
        K = exact.kernel_matrix(rows.features, problem.kernel)
        if rows.weights is not None:
            K = exact.weighted_kernel(K, rows.weights)
        problem.passes.count_entries(source.n_rows**2)
        rank = n_landmarks if self.rank is None else positive_count(self.rank, "rank")
        scores = exact.rank_leverage_scores(K, min(rank, source.n_rows))
        draw = draw_distinct(problem.distinct.totals(scores), n_landmarks, rng)
        return problem.take(draw.indices, draw=draw)
