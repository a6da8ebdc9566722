"""Landmarks drawn by ridge leverage scores: the paper's method."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ridgemark.sampling import draw_distinct, draw_with_replacement
from ridgemark.selection.base import Landmarks, Problem, Selection, positive_count
from ridgemark.selection.pilot import PILOT


class Leverage(Selection):
    """Score every row from a pilot drawn by the kernel's diagonal, then draw proportionally to the upper scores.

    Scores are taken at lambda epsilon, epsilon being `risk_tolerance`. With upper scores no row gets probability zero
    because the pilot has no row near it, and `8 (sum(upper) + 1/6) log(n/rho)` draws satisfy Theorem 3.

    Parameters
    ----------
    n_pilot : int, optional
        Landmarks of the pilot; by default 500.
    refine : int, default=0
        How many times the pilot is drawn again by the scores found.
    replace : bool, default=False
        Draw with replacement as in the paper; repeats are merged and their weights kept in the record, so fewer
        landmarks than draws may result.
    """

    needs_ridge: ClassVar[bool] = True

    def __init__(self, n_pilot: int | None = None, refine: int = 0, replace: bool = False) -> None:
        self.n_pilot = n_pilot
        self.refine = refine
        self.replace = replace

    def _choose(self, problem: Problem, n_landmarks: int, rng: np.random.Generator) -> Landmarks:
        pilot = PILOT if self.n_pilot is None else positive_count(self.n_pilot, "n_pilot")
        refine = 0 if self.refine == 0 else positive_count(self.refine, "refine")
        scores = problem.scores(pilot, refine, rng)
        draw_rows = draw_with_replacement if self.replace else draw_distinct
        draw = draw_rows(problem.distinct.totals(scores.upper), n_landmarks, rng)
        return problem.take(draw.indices, draw=draw, scores=scores)
