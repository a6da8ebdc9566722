"""Landmarks by recursive ridge leverage scores (Musco and Musco 2017)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ridgemark.kernels import Kernel
from ridgemark.leverage import posterior_scores
from ridgemark.passes import RowPasses
from ridgemark.sampling import Draw, draw_distinct
from ridgemark.selection.base import Landmarks, Problem, Selection

Floats = NDArray[np.float64]


class Recursive(Selection):
    """Score a random half of the rows by landmarks from a random half of that half, and so on down.

    Level by level the rows double, and each level's rows are scored by the landmarks drawn from the level before:
    `(K_ii - k_i'(W + n lambda D^-1)^-1 k_i)/(n lambda)`, D the inverse sampling probabilities. Kernel evaluations are
    those of two passes; each level reads all rows.
    """

    def _choose(self, problem: Problem, n_landmarks: int, rng: np.random.Generator) -> Landmarks:
        distinct, ridge = problem.distinct, problem.risk_tolerance * problem.scaled_ridge
        order = rng.permutation(len(distinct))
        size = len(order)
        sizes = [size]
        while size > max(2 * n_landmarks, 2):
            size //= 2
            sizes.append(size)
        level = order[: sizes[-1]]
        draw = draw_distinct(_indicator(level, len(distinct)), n_landmarks, rng)
        for count in reversed(sizes[:-1]):
            level = order[:count]
            scores = _level_scores(problem.passes, problem.kernel, problem, draw, level, ridge)
            draw = draw_distinct(scores, n_landmarks, rng)
        return problem.take(draw.indices, draw=draw)


def _indicator(level: NDArray[np.intp], n_candidates: int) -> Floats:
    weights = np.zeros(n_candidates)
    weights[level] = 1.0
    return weights


def _level_scores(
    passes: RowPasses, kernel: Kernel, problem: Problem, draw: Draw, level: NDArray[np.intp], scaled_ridge: float
) -> Floats:
    """Score the candidates of one level; others get zero."""
    distinct = problem.distinct
    landmarks = passes.source.take(distinct.indices[draw.indices])
    # A landmark stands for the rows it was drawn instead of: one over its probability of being among the landmarks.
    inclusion = np.minimum(1.0, draw.n_draws * draw.probabilities[draw.indices])
    wanted = _indicator(level, len(distinct)) > 0
    wanted_rows = np.append(wanted, False)[distinct.kind]  # kind -1, absent, picks the appended False
    scores = posterior_scores(passes, kernel, landmarks, 1.0 / inclusion, scaled_ridge, wanted_rows)
    return distinct.totals(scores)
