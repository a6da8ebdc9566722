"""Quantiles over calibration rows, counted by weight."""

import math
from collections.abc import Sequence
from typing import Any

from ridgemark.backends import Array, backend_of
from ridgemark.errors import ParameterError
from ridgemark.parameters import real_number


def check_coverage(coverage: Any) -> None:
    """Raise an error unless the coverage lies between 0 and 1."""
    if not 0 < real_number(coverage) < 1:
        raise ParameterError(f"coverage must be a number between 0 and 1, both excluded, got {coverage!r}")


def rows_needed(coverage: float) -> int:
    """Return the fewest distinct rows G for intervals of this coverage: the least with `coverage (G + 1) <= G`."""
    return math.ceil(coverage / (1 - coverage) - 1e-9)


def quantile_levels(coverages: Sequence[Any], n_distinct: int, what: str = "distinct calibration rows") -> list[float]:
    """Return for each coverage the share of G distinct rows, or groups, by weight: `ceil(coverage (G + 1))/G`."""
    levels = []
    for coverage in coverages:
        check_coverage(coverage)
        wanted = math.ceil(coverage * (n_distinct + 1) - 1e-9)
        if wanted > n_distinct:
            raise ParameterError(
                f"coverage {coverage:g} needs at least {rows_needed(coverage)} {what}, got {n_distinct}; ask for less "
                "coverage or give more rows"
            )
        levels.append(wanted / n_distinct)
    return levels


def quantiles(values: Array, weights: Array, levels: Sequence[float]) -> Array:
    """Return weighted quantiles of each line, shape (lines, levels).

    A quantile is the smallest value such that it and the values below have at least the share `level` of the weight.
    """
    count, backend, xp = len(weights), backend_of(values), backend_of(values).xp
    if bool((weights == weights[0]).all()):
        return backend.ordered(values.T, [math.ceil(level * count - 1e-9 * count) - 1 for level in levels]).T
    order, lines = xp.argsort(values, axis=1), xp.arange(len(values), device=backend.device)
    shares = weights[order].cumsum(1)
    shares[:, -1] = math.inf
    enough = [(level - 1e-9) * float(weights.sum()) for level in levels]
    places = [backend.count(shares < least, axis=1) for least in enough]
    return xp.stack([values[lines, order[lines, place]] for place in places], axis=1)


def quantiles_beyond(values: Array, weights: Array, coverages: Sequence[float], own: Array) -> Array:
    """Return weighted quantiles of each line, where one more value, infinity, has a weight of its own in every line.

    A quantile is the smallest value such that it and the values below have at least the share `coverage` of all weight,
    that of infinity included; shape (lines, coverages).
    """
    backend, xp = backend_of(values), backend_of(values).xp
    order, lines = xp.argsort(values, axis=1), xp.arange(len(values), device=backend.device)
    reached, total = weights[order].cumsum(1), float(weights.sum())
    ordered = xp.concat(
        [values[lines[:, None], order], xp.full((len(values), 1), math.inf, dtype=values.dtype)], axis=1
    )
    ends = []
    for coverage in coverages:
        enough = coverage * (total + own) - 1e-9 * total
        ends.append(ordered[lines, backend.count(reached < enough[:, None], axis=1)])
    return xp.stack(ends, axis=1)
