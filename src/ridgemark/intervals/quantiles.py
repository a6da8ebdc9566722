"""Quantiles over calibration rows, counted by weight."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ridgemark.backends import Floats
from ridgemark.errors import ParameterError
from ridgemark.parameters import real_number


def quantile_levels(coverages: Sequence[Any], n_distinct: int) -> list[float]:
    """Return for each coverage the share of G distinct rows, counted by weight: `ceil(coverage (G + 1))/G`."""
    levels = []
    for coverage in coverages:
        if not 0 < real_number(coverage) < 1:
            raise ParameterError(f"coverage must be a number between 0 and 1, both excluded, got {coverage!r}")
        wanted = math.ceil(coverage * (n_distinct + 1) - 1e-9)
        if wanted > n_distinct:
            raise ParameterError(
                f"coverage {coverage:g} needs at least {math.ceil(coverage / (1 - coverage) - 1e-9)} distinct "
                f"calibration rows, got {n_distinct}; ask for less coverage or give more rows"
            )
        levels.append(wanted / n_distinct)
    return levels


def quantiles(values: Floats, weights: Floats, levels: Sequence[float]) -> Floats:
    """Return weighted quantiles of each line, shape (lines, levels).

    A quantile is the smallest value such that it and the values below have at least the share `level` of the weight.
    """
    count = len(weights)
    if (weights == weights[0]).all():
        same = [math.ceil(level * count - 1e-9 * count) - 1 for level in levels]
        return np.asarray(np.partition(values, same, axis=1)[:, same])
    order = np.argsort(values, axis=1)
    shares = np.cumsum(weights[order], axis=1)
    shares[:, -1] = np.inf
    ordered = np.take_along_axis(values, order, axis=1)
    enough = [(level - 1e-9) * weights.sum() for level in levels]
    places = np.stack([(shares >= least).argmax(axis=1) for least in enough], axis=1)
    return np.asarray(np.take_along_axis(ordered, places, axis=1))
