"""What every way of choosing landmarks is given, and what it answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends.threads import one_blas_thread
from ridgemark.distinct import DistinctRows
from ridgemark.errors import DataError, NumericalError, ParameterError
from ridgemark.kernels import Kernel
from ridgemark.kernels.base import count_rows
from ridgemark.leverage import ScoreBracket, score_bracket
from ridgemark.linalg import check_range
from ridgemark.moments import Moments
from ridgemark.nystrom import NystromFactor, nystrom_factor
from ridgemark.parameters import Parameterised
from ridgemark.passes import RowPasses
from ridgemark.sampling import Draw, draw_distinct

Floats = NDArray[np.float64]

PILOT = 500  # rows of a pilot when not given


@dataclass(frozen=True)
class Landmarks:
    """The landmarks chosen, and what was learnt on the way."""

    points: Any  # (p, d) rows
    indices: NDArray[np.intp] | None  # their row numbers; None for points that are no training rows
    draw: Draw | None = None  # over the candidates, where the landmarks were drawn
    scores: ScoreBracket | None = None  # where scores were computed


@dataclass(frozen=True)
class Pilot:
    """Rows drawn to learn about all of them, with the sums over all rows of their features."""

    factor: NystromFactor
    moments: Moments
    counts: Floats  # for how many training rows each pilot row stands: as many as equal it

    def scores(self, passes: RowPasses, scaled_ridge: float, distinct: DistinctRows) -> ScoreBracket:
        """Score all rows at this ridge, in one more pass."""
        groups = distinct.of_rows(distinct.totals(passes.row_counts())) if distinct.has_repeats else None
        return score_bracket(passes, self.factor, self.moments, scaled_ridge, self.counts, len(self.counts), groups)


@dataclass
class Problem:
    """The rows, the kernel and the ridge for which landmarks are wanted.

    `ridge` is n lambda, or how to find it from a pilot's moments, which is done when it is first asked for; scores are
    taken at `risk_tolerance` times it, as Theorem 3 asks.
    """

    passes: RowPasses
    distinct: DistinctRows  # the candidates
    kernel: Kernel
    ridge: float | Callable[[Moments], float]
    risk_tolerance: float = 0.1
    failure_probability: float = 0.05
    target_origin: Floats | None = None  # where the pilot's moments measure targets from
    pilots: dict[int, Pilot] = field(default_factory=dict)
    found: dict[tuple[int, int], ScoreBracket] = field(default_factory=dict)

    def take(self, candidates: NDArray[np.intp], **found: Any) -> Landmarks:
        """Return the rows at these positions among the candidates as landmarks."""
        indices = self.distinct.indices[candidates]
        return Landmarks(self.passes.take(indices).features, indices, **found)

    def scaled_ridge(self, rng: np.random.Generator) -> float:
        """Return n lambda: the one given, or the one that suits the pilot best."""
        if not isinstance(self.ridge, float):
            self.ridge = self.ridge(self.pilot(PILOT, rng).moments)
        return self.ridge

    def sketch_ridge(self, rng: np.random.Generator) -> float:
        """Return `risk_tolerance * scaled_ridge`, the paper's n lambda epsilon, at which scores are taken."""
        scaled_ridge = self.scaled_ridge(rng)
        ridge = self.risk_tolerance * scaled_ridge
        if not 1e-300 < ridge < 1e300:
            msg = (
                f"risk_tolerance times n lambda, the ridge at which scores are taken, leaves the floating-point range, "
                f"got {self.risk_tolerance:g} times {scaled_ridge:g}; choose a risk_tolerance nearer to 1"
            )
            raise NumericalError(msg)
        return ridge

    def pilot(self, n_pilot: int, rng: np.random.Generator) -> Pilot:
        """Return the pilot of this size, drawn once by the kernel's diagonal."""
        if n_pilot not in self.pilots:
            smallest = self.risk_tolerance * self.ridge if isinstance(self.ridge, float) else None
            self.pilots[n_pilot] = first_pilot(
                self.passes, self.kernel, smallest, n_pilot, rng, self.distinct, self.target_origin
            )
        return self.pilots[n_pilot]

    def scores(self, n_pilot: int, refine: int, rng: np.random.Generator) -> ScoreBracket:
        """Return score brackets at `risk_tolerance * scaled_ridge` from a pilot, computed once."""
        key = (n_pilot, refine)
        if key not in self.found:
            ridge = self.sketch_ridge(rng)
            pilot = self.pilot(n_pilot, rng)
            self.found[key] = refined_scores(self.passes, self.kernel, ridge, pilot, refine, rng, self.distinct)
        return self.found[key]

    def at(self, scaled_ridge: float) -> Problem:
        """Return the same problem at another ridge; pilots, which know no ridge, are kept."""
        return replace(self, ridge=scaled_ridge, found={})


class Selection(Parameterised, ABC):
    """A way of choosing landmarks."""

    def own_count(self) -> int | None:
        """Return how many landmarks the selection brings by itself; None where it takes as many as asked."""
        return None

    def choose(self, problem: Problem, n_landmarks: int, rng: np.random.Generator) -> Landmarks:
        """Choose `n_landmarks` different landmarks, at most as many as there are distinct rows."""
        wanted = min(positive_count(n_landmarks, "n_landmarks"), len(problem.distinct))
        with one_blas_thread():
            landmarks = self._choose(problem, wanted, rng)
        if not count_rows(landmarks.points):
            msg = (
                "no row can be a landmark, as the kernel of every row tried with itself is zero to rounding; "
                "rescale the columns (standardise them) or choose a kernel with a larger bandwidth"
            )
            raise NumericalError(msg)
        return landmarks

    @abstractmethod
    def _choose(self, problem: Problem, n_landmarks: int, rng: np.random.Generator) -> Landmarks:
        """Choose, with BLAS at one thread and a number of landmarks known to be possible."""


def first_pilot(
    passes: RowPasses,
    kernel: Kernel,
    scaled_ridge: float | None,
    n_pilot: int,
    rng: np.random.Generator,
    distinct: DistinctRows,
    target_origin: Floats | None = None,
) -> Pilot:
    """Draw a pilot by the kernel's diagonal (paper, section 3.5, step 1); `scaled_ridge` the smallest it will serve."""
    weights = check_diagonal(passes.diagonal(kernel))
    return _pilot(weights, passes, kernel, scaled_ridge, n_pilot, rng, distinct, target_origin)


def refined_scores(
    passes: RowPasses,
    kernel: Kernel,
    scaled_ridge: float,
    pilot: Pilot,
    refine: int,
    rng: np.random.Generator,
    distinct: DistinctRows,
) -> ScoreBracket:
    """Score all rows from the pilot; `refine` times draw it again by the scores found, two passes each."""
    scores = pilot.scores(passes, scaled_ridge, distinct)
    for _ in range(refine):
        again = _pilot(scores.upper, passes, kernel, scaled_ridge, len(pilot.counts), rng, distinct)
        scores = replace(again.scores(passes, scaled_ridge, distinct), refined=True)
    return scores


def _pilot(
    weights: Floats,
    passes: RowPasses,
    kernel: Kernel,
    scaled_ridge: float | None,
    n_pilot: int,
    rng: np.random.Generator,
    distinct: DistinctRows,
    target_origin: Floats | None = None,
) -> Pilot:
    """Draw different rows by these weights, and sum their features over all rows."""
    drawn = draw_distinct(distinct.totals(weights), n_pilot, rng).indices
    del weights  # as long as the data, and of no more use
    rows = passes.take(distinct.indices[drawn])
    factor = nystrom_factor(kernel, rows.features, rows.indices)
    counts = distinct.totals(passes.row_counts())[drawn]
    return Pilot(factor, passes.moments(factor, target_origin, scaled_ridge), counts)


def check_diagonal(weights: Floats) -> Floats:
    """Return the kernel's diagonal, or say that it is zero everywhere and so is the kernel."""
    check_range(weights)
    if weights.min(initial=0.0) < 0:
        msg = "the kernel is negative for a row with itself, so it is not positive semidefinite; check the kernel"
        raise DataError(msg)
    if not weights.max(initial=0.0) > 0:
        msg = (
            "the kernel is zero for every row with itself, so no row can be a landmark; "
            "check the kernel and that the rows are not all zero"
        )
        raise DataError(msg)
    return weights


def positive_count(value: Any, name: str, otherwise: str = "") -> int:
    """Return a number of rows or rounds as a positive int, or say what was got."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 1:
        return int(value)
    msg = f"{name} must be a positive integer{otherwise}, got {value!r}"
    raise ParameterError(msg)
