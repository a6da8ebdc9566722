"""Landmarks given by the user."""

from typing import Any

import numpy as np
from sklearn.utils import check_array

from ridgemark.errors import ParameterError
from ridgemark.kernels.base import count_rows
from ridgemark.rows import dense
from ridgemark.selection.base import Landmarks, Problem, Selection


class Given(Selection):
    """Landmarks given as points, or as the numbers of training rows.

    Parameters
    ----------
    points : array of shape (p, n_features), optional
        The landmarks themselves; repeated points are used once.
    indices : array of shape (p,), optional
        Row numbers in the training data; repeats are used once. Exactly one of the two is given.
    """

    def __init__(self, points: Any = None, indices: Any = None) -> None:
        self.points = points
        self.indices = indices

    def _choose(self, problem: Problem, n_landmarks: int, rng: np.random.Generator) -> Landmarks:
        source, landmarks = problem.passes.source, self._given()
        if self.indices is not None:
            rows = source.take(landmarks)
            kinds = problem.distinct.kind[rows.indices]
            _, first = np.unique(kinds[kinds >= 0], return_index=True)
            indices = rows.indices[kinds >= 0][np.sort(first)]
            if not len(indices):
                raise ParameterError(f"none of the {rows.n_rows} rows given has a positive weight; landmarks need one")
            return Landmarks(problem.passes.take(indices).features, indices)
        if landmarks.shape[1] != source.n_features:
            raise ParameterError(f"landmarks need the rows' {source.n_features} features, got shape {landmarks.shape}")
        _, first = np.unique(dense(landmarks), axis=0, return_index=True)
        return Landmarks(landmarks[np.sort(first)], None)

    def own_count(self) -> int:
        return count_rows(self._given())

    def _given(self) -> Any:
        """Return the points as a matrix of finite numbers, or the row numbers as a vector."""
        if (self.points is None) == (self.indices is None):
            raise ParameterError("Given needs either points or indices, and not both")
        try:
            if self.indices is None:
                landmarks = check_array(self.points, accept_sparse="csr", dtype=np.float64, ensure_min_samples=0)
            else:
                landmarks = np.atleast_1d(np.asarray(self.indices))
        except (TypeError, ValueError) as error:
            what = "points must be a 2-d array of finite numbers" if self.indices is None else "indices must be a list"
            raise ParameterError(f"Given: {what}; {error}") from error
        if count_rows(landmarks) == 0:
            raise ParameterError("Given needs at least one landmark, got none")
        return landmarks
