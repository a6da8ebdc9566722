"""Bandwidths from the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ridgemark.backends import NUMPY
from ridgemark.errors import ParameterError
from ridgemark.kernels import Kernel, has_bandwidth, make_kernel
from ridgemark.kernels.distances import scale_landmarks, squared_distances
from ridgemark.passes import DistinctRows
from ridgemark.rows import RowSource

_MEDIAN_SAMPLE = 1000  # rows whose distances give the median


def choose_kernel(
    kernel: Any, bandwidth: Any, source: RowSource, distinct: DistinctRows, rng: np.random.Generator
) -> Kernel:
    """Return the kernel meant, with its bandwidth: the one given, or "median" over distinct rows.

    A Kernel object carries its own bandwidth, and some kernels have none; giving one beside them is an error.
    """
    by_median = isinstance(bandwidth, str) and bandwidth == "median"
    if isinstance(bandwidth, str) and not by_median:
        msg = f'bandwidth must be "median", a positive number or one per feature, got {bandwidth!r}'
        raise ParameterError(msg)
    if not has_bandwidth(kernel):
        if not by_median:
            msg = (
                f"bandwidth={bandwidth!r} was given beside kernel={kernel!r}, which has none to set "
                "from here; give it inside the Kernel object, or leave bandwidth out"
            )
            raise ParameterError(msg)
        return make_kernel(kernel)
    if by_median:
        sample = rng.choice(distinct.indices, min(_MEDIAN_SAMPLE, len(distinct)), replace=False)
        bandwidth = median_bandwidth(source.take(sample).features)
    return make_kernel(kernel, bandwidth)


def median_bandwidth(rows: Any) -> float:
    """Return the median Euclidean distance between different rows; 1 when there are not two."""
    count = rows.shape[0]
    if count < 2:
        return 1.0
    # Measured in units of the largest entry, so that no square overflows or vanishes.
    unit = float(abs(rows).max()) or 1.0
    squared = squared_distances(rows, scale_landmarks(rows, unit, NUMPY, "median"), None, NUMPY, True)
    distance = unit * float(np.sqrt(np.median(squared[np.triu_indices(count, k=1)])))
    return distance if distance > 0 else 1.0
