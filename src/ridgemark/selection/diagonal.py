"""Landmarks drawn by the kernel's diagonal: squared length sampling."""

import numpy as np

from ridgemark.operators import check_diagonal, kernel_diagonal
from ridgemark.sampling import draw_distinct
from ridgemark.selection.base import Landmarks, Problem, Selection


class Diagonal(Selection):
    """Rows are drawn with probability proportional to `K_ii` (paper, section 3.5); uniform for stationary kernels.

    Equal rows count together: a row that occurs m times is m times as likely.
    """

    def _choose(self, problem: Problem, n_landmarks: int, rng: np.random.Generator) -> Landmarks:
        lengths = check_diagonal(kernel_diagonal(problem.passes, problem.kernel))
        draw = draw_distinct(problem.distinct.totals(lengths), n_landmarks, rng)
        return problem.take(draw.indices, draw=draw)
