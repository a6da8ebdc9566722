"""The choice among levels, and then among families, by the rows that judge."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ridgemark.backends import Floats
from ridgemark.tuning.descent import Gain
from ridgemark.tuning.metrics import Metrics, PerFeature
from ridgemark.tuning.pairs import is_radial, with_metric
from ridgemark.tuning.record import Level, TriedKernel
from ridgemark.tuning.search import Found, Search, Shared, family_name

LEVELS = ("shared", "per_feature", "metric")
_LEAST_GAIN = {"per_feature": 0.002, "metric": 0.005}  # share of the judged error that a level must save
_WORTH_ANOTHER = 0.005  # share of it that a family which is not a function of the distance must save


@dataclass(frozen=True, eq=False)
class Choice:
    """The kernel chosen, for rows in units of their columns, and what it was compared with."""

    family: Any
    metrics: Metrics
    metric: Floats
    asked: bool  # whether the level was asked for
    levels: tuple[Level, ...] = ()
    compared: tuple[TriedKernel, ...] = ()

    @property
    def kernel(self) -> Any:
        """The kernel for rows in units of their columns."""
        return with_metric(self.family, self.metric)

    @property
    def level(self) -> str:
        """The level of the metric."""
        return next((one.level for one in reversed(self.levels) if one.taken), "shared")

    @property
    def reason(self) -> str:
        """Why the last level taken was taken, in words."""
        last = next((one for one in reversed(self.levels) if one.taken), None)
        if last is None or last.level == "shared":
            return "no further level lowers the judged error enough"
        if self.asked:
            return "it was asked for"
        return (
            f"it lowers the judged error by {last.gain:.1%}, and predicts {last.better:.0%} of the judging rows better"
        )


def choose(
    search: Search, larger: Search, families: list[Shared], found: list[Found], levels: Sequence[str], doublings: float
) -> Choice:
    """Return the best level, then the best family for its metric, then the better of that and of other families.

    Families at one bandwidth come best first. `larger` judges with more rows and landmarks; `doublings` of these
    landmarks give those of the fit.
    """
    first = next((one for one in families if is_radial(one.family)), families[0])
    own = [one for one in found if is_radial(one.shared.family) == is_radial(first.family)]
    choice = _choose_level(search, first, own, levels)
    judges = replace(larger, all_judge=choice.level == "shared")
    family, factor, compared = judges.compare([one.family for one in families], choice.family, choice.metric, doublings)
    choice = replace(choice, family=family, metric=choice.metric / factor, compared=compared)
    rivals = [one for one in found if one not in own]
    if not rivals:
        return choice
    return _choose_family(larger, choice, min(rivals, key=lambda one: one.candidate.judged_error), doublings)


def _choose_level(search: Search, shared: Shared, found: Sequence[Found], levels: Sequence[str]) -> Choice:
    """Return the metric to take, and how each level was judged.

    Each further level must save its least share of the error of the level taken before it, and not by chance:
    leave-one-out of rows that were tuned on is optimistic.
    """
    d = search.tuning.features.shape[1]
    choice = Choice(shared.family, PerFeature(d), np.eye(d) / shared.width, asked=len(levels) == 1)
    current = search.judged(choice.kernel)
    error = float(np.sqrt(current.mean()))
    judged = [Level("shared", family_name(shared.family), error, 0.0, 0.0, 0.0, "shared" in levels)]
    for level in LEVELS[1:]:
        of_level = [one for one in found if one.metrics.level == level]
        if level not in levels or not of_level:
            continue
        best = min(of_level, key=lambda one: one.candidate.judged_error)
        gain = Gain.of(best.candidate.judged, current)
        taken = gain.exceeds(_LEAST_GAIN[level]) or not any(one.taken for one in judged)
        judged.append(_judged(best, best.candidate.judged_error, gain, taken))
        if taken:
            choice = replace(choice, family=best.shared.family, metrics=best.metrics, metric=best.candidate.metric)
            current = best.candidate.judged
    return replace(choice, levels=tuple(judged))


def _choose_family(search: Search, choice: Choice, rival: Found, doublings: float) -> Choice:
    """Return the rival, a family with its own bandwidths, if it saves a share of the error, and not by chance.

    Against a kernel with one bandwidth per feature or a matrix one standard error is enough, since that kernel adapts
    to noise as easily. Families that are not of the distance gain more from many rows and landmarks than others, so
    `search` has many of both.
    """
    family, factor, compared = search.compare([], rival.shared.family, rival.candidate.metric, doublings)
    other = replace(choice, family=family, metrics=rival.metrics, metric=rival.candidate.metric / factor)
    judged = search.judged(other.kernel)
    gain = Gain.of(judged, search.judged(choice.kernel))
    alike = choice.level != "shared" and gain.share > _WORTH_ANOTHER and gain.standard_errors > 1.0
    taken = alike or gain.exceeds(_WORTH_ANOTHER)
    levels = (*choice.levels, _judged(rival, float(np.sqrt(judged.mean())), gain, taken))
    both = (*compared, *choice.compared) if taken else (*choice.compared, *compared)
    return replace(other if taken else choice, levels=levels, compared=both)


def _judged(found: Found, error: float, gain: Gain, taken: bool) -> Level:
    kernel = found.record.kernel
    return Level(found.metrics.level, kernel, error, gain.share, gain.standard_errors, gain.better, taken)
