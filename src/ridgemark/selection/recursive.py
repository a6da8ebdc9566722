"""Landmarks by recursive ridge leverage scores (Musco and Musco 2017)."""

import math
from typing import ClassVar

import numpy as np

from ridgemark.backends import Floats, Indices
from ridgemark.leverage.scores import landmark_spectrum, posterior_scores
from ridgemark.sampling import Draw, draw_distinct
from ridgemark.selection.base import Landmarks, Problem, Selection


class Recursive(Selection):
    """Score a random half of the rows by landmarks drawn from a half of these, recursively.

    The number of rows doubles from level to level, and each level's rows are scored with the landmarks drawn from the
    previous level: `(K_ii - k_i'(W + r D^-1)^-1 k_i)/r`, D the inverse sampling probabilities. The ridge r is the one
    for which p landmarks suffice, the sum of the level's eigenvalues beyond the first k over k, k = p/(4 log p), and
    never below n lambda epsilon. The first level's landmarks are drawn uniformly; if p is at least half of the rows,
    these landmarks are a random half of the rows. Kernel evaluations are those of two passes; each level reads all
    rows.
    """

    needs_ridge: ClassVar[bool] = True

    def _choose(self, problem: Problem, n_landmarks: int, rng: np.random.Generator) -> Landmarks:
        order = rng.permutation(len(problem.distinct))
        sizes = [len(order)]
        # The last level is drawn uniformly, so there must be another above it, unless all rows are wanted.
        while sizes[-1] > 2 * n_landmarks or n_landmarks < len(order) == sizes[-1]:
            sizes.append(sizes[-1] // 2)
        draw = draw_distinct(_indicator(order[: sizes[-1]], len(order)), n_landmarks, rng)
        least = problem.sketch_ridge
        for size in reversed(sizes[:-1]):
            scores = _level_scores(problem, draw, order[:size], least)
            # A score that rounds to zero must not exclude its row from the draw.
            draw = draw_distinct(np.maximum(scores, 1e-300 * _indicator(order[:size], len(order))), n_landmarks, rng)
        return problem.take(draw.indices, draw=draw)


def _indicator(level: Indices, n_candidates: int) -> Floats:
    weights = np.zeros(n_candidates)
    weights[level] = 1.0
    return weights


def _level_scores(problem: Problem, draw: Draw, level: Indices, least: float) -> Floats:
    """Score the candidates of one level by the landmarks drawn from the level before; others get zero."""
    distinct, passes, kernel = problem.distinct, problem.passes, problem.kernel
    landmarks = problem.rows(draw.indices)
    # The inverse of each landmark's probability of being among the landmarks.
    sampling_weights = 1.0 / draw.chances
    spectrum = landmark_spectrum(kernel, landmarks, sampling_weights)
    passes.count_entries(len(spectrum) ** 2)
    leading = math.ceil(len(spectrum) / (4 * math.log(max(2, len(spectrum)))))
    ridge = max(float(spectrum[leading:].sum()) / leading, least)
    # The first of equal rows is scored, with the weight of all of them.
    weights = np.zeros(len(distinct.kind))
    weights[distinct.indices[level]] = distinct.totals(passes.row_counts())[level]
    return posterior_scores(passes, kernel, landmarks, sampling_weights, ridge, weights)[distinct.indices]
