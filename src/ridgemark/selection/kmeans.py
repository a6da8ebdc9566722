"""Landmarks at the centres of clusters."""

import numpy as np
from scipy import sparse

from ridgemark.errors import DataTypeError
from ridgemark.parameters import positive_count
from ridgemark.sampling import draw_uniformly
from ridgemark.selection.base import Landmarks, Problem, Selection


class KMeans(Selection):
    """Cluster a sample of the rows by k-means; landmarks are the centres, which are not training rows.

    Such landmarks have no row numbers, and score brackets are wider.

    Parameters
    ----------
    n_sample : int, default=50_000
        Rows clustered, drawn uniformly over distinct rows.
    """

    def __init__(self, n_sample: int = 50_000) -> None:
        self.n_sample = n_sample

    def _choose(self, problem: Problem, n_landmarks: int, rng: np.random.Generator) -> Landmarks:
        size = max(positive_count(self.n_sample, "n_sample"), n_landmarks)
        draw = draw_uniformly(len(problem.distinct), size, rng)
        rows = problem.take(draw.indices).points
        if sparse.issparse(rows):
            raise DataTypeError("KMeans makes dense centres and does not accept sparse rows; choose another selection")
        from sklearn.cluster import MiniBatchKMeans  # slow to import, and rarely needed

        seed = int(rng.integers(2**31))
        cluster = MiniBatchKMeans(n_landmarks, random_state=seed, n_init=1, batch_size=4096, max_iter=20)
        centres = cluster.fit(rows).cluster_centers_.astype(rows.dtype)
        return Landmarks(np.unique(centres, axis=0), None)
