"""A walk along the ridges to the one of the smallest error."""

from collections.abc import Callable, Sequence

import numpy as np

_STRIDES = (2, 1)  # over the ridges searched: a half and a quarter of a decade
_WORTH = 1e-3  # relative gain for which another step along the ridges is taken


def walk_downhill(
    evaluate: Callable[[int], float],
    start: int,
    count: int,
    least_gain: float = 0.0,
    smooth: bool = True,
    strides: Sequence[int] = _STRIDES,
) -> None:
    """Evaluate positions from 0 to count - 1, beginning at `start`, until no neighbour of the best is much better.

    Neighbours are first two positions away, then one, or as the strides say; closer ones only where those differ. The
    smaller ridge is tried first. Small ridges are slow: once three positions are known, a neighbour is tried only where
    the parabola through the three nearest ones promises a gain, unless errors are not `smooth`. A gain must exceed
    `least_gain`.
    """
    errors: dict[int, float] = {}

    def seen(k: int) -> float:
        if k not in errors:
            errors[k] = evaluate(k)
        return errors[k]

    def promised(k: int, here: int) -> float:
        nearest = sorted(errors, key=lambda position: abs(position - here))[:3]
        return (
            -np.inf
            if len(nearest) < 3 or not smooth
            else float(_parabola(nearest, [errors[position] for position in nearest], k))
        )

    def better(here: int, stride: int) -> int | None:
        enough = min(seen(here) / (1.0 + _WORTH), seen(here) - least_gain)
        for k in (here + stride, here - stride):
            if 0 <= k < count and (k in errors or promised(k, here) < enough) and seen(k) < enough:
                return k
        return None

    here = start
    for stride in strides:
        while (neighbour := better(here, stride)) is not None:
            here = neighbour
        beside = [k for k in (here, here + stride, here - stride) if k in errors]
        lowest = min(errors[k] for k in beside)
        if max(errors[k] for k in beside) <= max((1.0 + _WORTH) * lowest, lowest + least_gain):
            return
        here = min(beside, key=lambda k: errors[k])


def _parabola(at: list[int], values: list[float], where: int) -> float:
    """Return the value of the parabola through three points."""
    a, b, c = (float(position - where) for position in at)
    fa, fb, fc = values
    return fa * b * c / ((a - b) * (a - c)) + fb * a * c / ((b - a) * (b - c)) + fc * a * b / ((c - a) * (c - b))
