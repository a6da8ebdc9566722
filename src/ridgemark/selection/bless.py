"""Landmarks by bottom-up leverage scores (Rudi, Calandriello, Carratino and Rosasco 2018)."""

import math
from typing import ClassVar

import numpy as np

from ridgemark.errors import ParameterError
from ridgemark.leverage import posterior_variance
from ridgemark.operators import check_diagonal, kernel_diagonal
from ridgemark.parameters import real_number
from ridgemark.sampling import draw_distinct
from ridgemark.selection.base import Landmarks, Problem, Selection

_SMALLEST_FACTOR = 1.1  # some 400 steps from the trace of K to a ridge of 1e-16 times it


class Bless(Selection):
    """Decrease the ridge step by step; at each step score a small sample with the landmarks of the previous step.

    At ridge h the sample has `oversampling * tr K/(n h)` rows, enough for the effective dimension at h, and
    `oversampling` times the sample's effective dimension at h landmarks are kept, at least ten and at most the number
    wanted. Only sampled rows are read, so the cost does not grow with n once n exceeds `tr K/(n lambda epsilon)`.

    Parameters
    ----------
    oversampling : float, default=3.0
        Rows sampled and landmarks kept at each step, per unit of the effective dimension.
    factor : float, default=4.0
        Factor by which the ridge falls at each step; at least 1.1, to bound the number of steps.
    """

    needs_ridge: ClassVar[bool] = True

    def __init__(self, oversampling: float = 3.0, factor: float = 4.0) -> None:
        self.oversampling = oversampling
        self.factor = factor

    def _choose(self, problem: Problem, n_landmarks: int, rng: np.random.Generator) -> Landmarks:
        self._check()
        passes, kernel, distinct = problem.passes, problem.kernel, problem.distinct
        totals = check_diagonal(kernel_diagonal(passes, kernel))
        trace = float(totals.sum())
        lengths = distinct.totals(totals)
        target = problem.sketch_ridge
        ridge = max(trace, target)
        draw = draw_distinct(lengths, min(10, n_landmarks), rng)
        chosen, inclusion = draw.indices, draw.chances
        while True:
            ridge = max(ridge / self.factor, target)
            last = ridge == target
            size = math.ceil(min(self.oversampling * (trace / ridge), float(len(distinct))))
            sample = draw_distinct(lengths, max(size, n_landmarks if last else 10), rng)
            rows, landmarks = problem.rows(sample.indices), problem.rows(chosen)
            scores = np.minimum(posterior_variance(kernel, rows, landmarks, 1.0 / inclusion, ridge) / ridge, 1.0)
            passes.count_entries((rows.n_rows + landmarks.n_rows) * landmarks.n_rows)
            # Horvitz and Thompson: the sample's scores over their inclusion probabilities estimate d_eff.
            dimension = float((scores / sample.chances).sum())
            wanted = max(10.0, self.oversampling * dimension)
            kept = n_landmarks if last else math.ceil(min(wanted, float(n_landmarks)))
            draw = draw_distinct(np.maximum(scores, 1e-300) / sample.chances, kept, rng)
            inclusion = sample.chances[draw.indices] * draw.chances
            chosen = sample.indices[draw.indices]
            if last:
                return problem.take(np.sort(chosen))

    def _check(self) -> None:
        if not 0.0 < real_number(self.oversampling) < np.inf:
            raise ParameterError(f"oversampling must be a positive number, got {self.oversampling!r}")
        if not _SMALLEST_FACTOR <= real_number(self.factor) < np.inf:
            raise ParameterError(f"factor must be a number of at least {_SMALLEST_FACTOR}, got {self.factor!r}")
