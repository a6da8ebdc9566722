"""The median distance between rows, the bandwidth to start from."""

from typing import Any

import numpy as np
from scipy import sparse

from ridgemark.backends import NUMPY
from ridgemark.kernels.distances import Form, distances, prepare_landmarks

ROWS = 1000  # whose pairwise distances give the median


def median_distance(rows: Any) -> float:
    """Return the median Euclidean distance between different rows, of the first thousand; 1 when there are not two."""
    rows = rows[:ROWS]
    count = rows.shape[0]
    if count < 2:
        return 1.0
    rows = rows.astype(np.float64)
    # In units of a typical entry, so that typical squares neither overflow nor underflow.
    entries = np.abs(rows.data if sparse.issparse(rows) else rows)
    unit = float(np.median(entries[entries > 0])) if (entries > 0).any() else 1.0
    prepared = prepare_landmarks(rows, unit, Form(singular=True), NUMPY, "median")
    squared = distances(rows, prepared, None, NUMPY)
    distance = unit * float(np.sqrt(np.median(squared[np.triu_indices(count, k=1)])))
    return distance if 0 < distance < np.inf else 1.0
