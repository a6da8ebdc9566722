"""The median distance between rows, the bandwidth to start from."""

from typing import Any

import numpy as np
from scipy import sparse

from ridgemark.backends import NUMPY
from ridgemark.kernels.distances import DistanceForm, distances, prepare_landmarks

ROWS = 1000  # whose pairwise distances give the median


def median_distance(rows: Any, power: int = 2) -> float:
    """Return the median distance between different rows, of the first thousand; 1 when there are not two.

    It is Euclidean, or for a power of 1 the sum of absolute differences.
    """
    rows = rows[:ROWS]
    count = rows.shape[0]
    if count < 2:
        return 1.0
    rows = rows.astype(np.float64)
    # In units of a typical entry, so that typical squares neither overflow nor underflow.
    entries = np.abs(rows.data if sparse.issparse(rows) else rows)
    unit = float(np.median(entries[entries > 0])) if (entries > 0).any() else 1.0
    form = DistanceForm(singular=True) if power == 2 else DistanceForm(power=1, difference_limit=np.inf)
    powers = distances(rows, prepare_landmarks(rows, unit, form, NUMPY, "median"), None, NUMPY)
    distance = unit * float(np.median(powers[np.triu_indices(count, k=1)])) ** (1.0 / power)
    return distance if 0 < distance < np.inf else 1.0
