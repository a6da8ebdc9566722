"""A walk along the ridges to the one of the smallest error."""

from collections.abc import Callable

import numpy as np

_STRIDES = (2, 1)  # over the ridges searched: a half and a quarter of a decade
_WORTH = 1e-3  # relative gain for which another step along the ridges is taken


def walk_downhill(evaluate: Callable[[int], float], start: int, count: int, least_gain: float = 0.0) -> None:
    """Evaluate positions from 0 to count - 1, beginning at `start`, until no neighbour of the best is much better.

    Neighbours are first two positions away, then one; closer ones only where those differ. The smaller ridge is tried
    first, as a walk begins at a large one. Small ridges are slow: once three positions are known, a neighbour is tried
    only where the parabola through the three nearest ones promises a gain. A gain must exceed `least_gain`.
    """
    known: dict[int, float] = {}

    def seen(k: int) -> float:
        if k not in known:
            known[k] = evaluate(k)
        return known[k]

    def promised(k: int, here: int) -> float:
        nearest = sorted(known, key=lambda one: abs(one - here))[:3]
        return -np.inf if len(nearest) < 3 else float(_parabola(nearest, [known[one] for one in nearest], k))

    def better(here: int, stride: int) -> int | None:
        enough = min(seen(here) / (1.0 + _WORTH), seen(here) - least_gain)
        for k in (here + stride, here - stride):
            larger = min(known) - stride
            if len(known) == 2 and larger >= 0:
                seen(larger)
            if 0 <= k < count and (k in known or promised(k, here) < enough) and seen(k) < enough:
                return k
        return None

    here = start
    for stride in _STRIDES:
        while (found := better(here, stride)) is not None:
            here = found
        beside = [k for k in (here, here + stride, here - stride) if k in known]
        lowest = min(known[k] for k in beside)
        if max(known[k] for k in beside) <= max((1.0 + _WORTH) * lowest, lowest + least_gain):
            return
        here = min(beside, key=lambda k: known[k])


def _parabola(at: list[int], values: list[float], where: int) -> float:
    """Return the value of the parabola through three points."""
    a, b, c = (float(one - where) for one in at)
    fa, fb, fc = values
    return fa * b * c / ((a - b) * (a - c)) + fb * a * c / ((b - a) * (b - c)) + fc * a * b / ((c - a) * (c - b))
