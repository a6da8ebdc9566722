"""Which level of the metric is taken: one bandwidth, one for each feature, or a matrix."""

from collections.abc import Sequence

from ridgemark.tuning.coordinates import LEVELS
from ridgemark.tuning.descent import Gain
from ridgemark.tuning.record import Level
from ridgemark.tuning.search import DescentResult

_LEAST_GAIN = {"shared": 0.0, "per_feature": 0.002, "metric": 0.005}  # share of the error that a level must save


def choose_level(results: Sequence[DescentResult]) -> tuple[DescentResult, tuple[Level, ...]]:
    """Return the descent to take, and how each level was judged.

    Each further level must save its least share of the error of the level taken before it, and not by chance:
    leave-one-out of rows that were tuned on is optimistic.
    """
    taken, judged = None, []
    for level in LEVELS:
        of_level = [result for result in results if result.level == level]
        if not of_level:
            continue
        best = min(of_level, key=lambda result: result.candidate.judged_error)
        error = best.candidate.judged_error
        if taken is None:
            judged.append(Level(level, error, 0.0, 0.0, 0.0, True))
            taken = best
            continue
        gain = Gain.of(best.candidate.judged, taken.candidate.judged)
        worth = gain.exceeds(_LEAST_GAIN[level])
        judged.append(Level(level, error, gain.share, gain.standard_errors, gain.better, worth))
        taken = best if worth else taken
    assert taken is not None
    return taken, tuple(judged)


def reason_for(levels: Sequence[Level], asked: bool) -> str:
    """Return why the last level taken was taken, in words."""
    if asked:
        return "it was asked for"
    last = next(level for level in reversed(levels) if level.taken)
    if last.gain == 0.0:
        return "no further level lowers the judged error enough"
    return f"it lowers the judged error by {last.gain:.1%}, and predicts {last.better:.0%} of the judging rows better"
