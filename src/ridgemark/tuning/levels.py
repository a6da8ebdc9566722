"""The choice among levels by the rows that judge."""

from collections.abc import Sequence

import numpy as np

from ridgemark.tuning.descent import Gain
from ridgemark.tuning.record import Level
from ridgemark.tuning.search import Found, Search, Shared

LEVELS = ("shared", "per_feature", "metric")
_LEAST_GAIN = {"per_feature": 0.002, "metric": 0.005}  # share of the judged error that a level must save


def choose_level(
    search: Search, shared: Shared, found: Sequence[Found], levels: Sequence[str]
) -> tuple[Found | None, tuple[Level, ...], str]:
    """Return the metric to take, None for the shared bandwidth; how each level was judged; and why this one.

    Each further level must save its least share of the error of the level taken before it, and not by chance:
    leave-one-out of rows that were tuned on is optimistic.
    """
    chosen: Found | None = None
    current = search.judge_shared(shared)
    judged = [Level("shared", float(np.sqrt(current.mean())), 0.0, 0.0, 0.0, "shared" in levels)]
    for level in LEVELS[1:]:
        of_level = [one for one in found if one.metrics.level == level]
        if level not in levels or not of_level:
            continue
        best = min(of_level, key=lambda one: one.candidate.judged_error)
        gain = Gain.of(best.candidate.judged, current)
        taken = gain.exceeds(_LEAST_GAIN[level]) or (chosen is None and "shared" not in levels)
        found_error = best.candidate.judged_error
        judged.append(Level(level, found_error, gain.share, gain.standard_errors, gain.better, taken))
        if taken:
            chosen, current = best, best.candidate.judged
    return chosen, tuple(judged), _reason(judged, len(levels) == 1)


def _reason(judged: Sequence[Level], asked: bool) -> str:
    """Return in words why the last level taken was taken."""
    taken = [one for one in judged if one.taken]
    if not taken or taken[-1].level == "shared":
        return "no further level lowers the judged error enough"
    if asked:
        return "it was asked for"
    last = taken[-1]
    return f"it lowers the judged error by {last.gain:.1%}, and predicts {last.better:.0%} of the judging rows better"
