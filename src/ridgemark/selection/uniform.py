"""Landmarks drawn uniformly over distinct rows."""

import numpy as np

from ridgemark.sampling import draw_uniformly
from ridgemark.selection.base import Landmarks, Problem, Selection


class Uniform(Selection):
    """Every distinct row of positive weight is equally likely; a repeated row is never chosen twice."""

    def _choose(self, problem: Problem, n_landmarks: int, rng: np.random.Generator) -> Landmarks:
        draw = draw_uniformly(len(problem.distinct), n_landmarks, rng)
        return problem.take(draw.indices, draw=draw)
