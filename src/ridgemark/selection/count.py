"""The number of landmarks."""

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from ridgemark import bounds
from ridgemark.leverage import Bracket
from ridgemark.selection.base import Problem, Selection
from ridgemark.selection.pilot import PILOT

ALL_ROWS_UP_TO = 500  # with at most this many distinct rows all are landmarks: the exact solution is cheap
FEWEST = 100
_MOST_WORK = 275_000_000_000  # n p^2 + 4 p^3 at most: 2,000 landmarks for 60,000 rows, about 20 s on two cores
_USUAL_SAVING, _FACTORS = 0.05, (0.5, 2.0)  # share of the error saved by twice the landmarks; limits of its effect
_MATRICES = 6  # p x p float64 arrays that a fit holds at a time
_BY_DIMENSION, _AT_LEAST = " per effective dimension", f"at least {FEWEST}"  # rules


@dataclass(frozen=True)
class LandmarkCount:
    """A number of landmarks and the rule it comes from.

    Attributes
    ----------
    n_landmarks : int
        The number.
    rule : str
        Which rule decided.
    effective_dimension : Bracket or None
        d_eff at lambda epsilon, where it was estimated.
    theorem_3 : int or None
        The number of draws for which Theorem 3 bounds the risk; often more than there are rows.
    """

    n_landmarks: Annotated[int, "> 0"]
    rule: str
    effective_dimension: Bracket | None = None
    theorem_3: int | None = None

    @property
    def may_grow(self) -> bool:
        """Whether a smaller ridge would ask for more landmarks."""
        return self.rule.endswith(_BY_DIMENSION) or self.rule == _AT_LEAST


def count_landmarks(
    n_landmarks: Any,
    problem: Problem,
    rng: np.random.Generator,
    selection: Selection | None = None,
    saved_by_doubling: float | None = None,
    per_dimension: float = 2.0,
    work: float = 1.0,
) -> LandmarkCount:
    """Return the number of landmarks: that of the selection, the one given, or for "auto" one from d_eff.

    "auto" takes all distinct rows when there are at most 500. Otherwise it takes `per_dimension` landmarks for each
    effective dimension d_eff(lambda epsilon), the geometric mean of its bracket; the paper has two. The number is at
    least 100. It is at most each of these: the count of Theorem 3; what the memory budget holds; what the work
    `n p^2 + 4 p^3 <= 2.75e11`, times the factor `work`, allows (at least 500, the size of the pilot, which takes as
    long); and n, the number of distinct rows. Where tuning measured what share of its error a small model saves by
    twice the landmarks, the work is in proportion to it: 2.75e11 for 5%, and from half to twice as much.
    """
    available = len(problem.distinct)
    own = None if selection is None else selection.own_count()
    if own is not None:
        return LandmarkCount(own, "given with the landmarks")
    if not (isinstance(n_landmarks, str) and n_landmarks == "auto"):
        return LandmarkCount(min(int(n_landmarks), available), "given")
    if available <= ALL_ROWS_UP_TO:
        return LandmarkCount(available, f"all {available} distinct rows")
    scores = problem.scores(PILOT, 0, rng)
    lower, upper = scores.effective_dimension
    # Equal rows count as one row of more weight, so n is the number of distinct rows.
    theorem = bounds.theorem_3_count(available, float(scores.upper.sum()), problem.failure_probability)
    wanted = math.ceil(per_dimension * math.sqrt(max(lower, 1.0) * max(upper, 1.0)))
    work *= most_work(saved_by_doubling)
    rules = {
        f"{per_dimension:g}{_BY_DIMENSION}": wanted,
        "Theorem 3": theorem,
        "memory budget": memory_limit(problem.passes.budget),
        "n p^2 + 4 p^3 <= " + f"{work:.3g}".replace("e+", "e"): work_limit(problem.passes.source.n_rows, work),
        "all distinct rows": available,
    }
    rule, count = min(rules.items(), key=lambda item: item[1])
    if count < FEWEST:
        rule, count = _AT_LEAST, min(FEWEST, available)
    return LandmarkCount(count, rule, scores.effective_dimension, theorem)


def most_work(saved_by_doubling: float | None) -> float:
    """Return the largest work of a fit, in proportion to the share of the error that twice the landmarks save."""
    factor = 1.0 if saved_by_doubling is None else float(np.clip(saved_by_doubling / _USUAL_SAVING, *_FACTORS))
    return _MOST_WORK * factor


def work_limit(n_rows: int, most: float = _MOST_WORK) -> int:
    """Return the largest p with `n p^2 + 4 p^3 <= most`, the order of a fit's operations; at least 500."""
    return max(PILOT, bisect_right(range(1, n_rows + 1), most, key=lambda p: n_rows * p**2 + 4 * p**3))


def memory_limit(memory_budget: int) -> int:
    """Return the largest number of landmarks for which a direct fit stays within the memory budget."""
    return max(1, math.isqrt(memory_budget // (8 * _MATRICES)))
