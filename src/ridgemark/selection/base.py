"""What every way of choosing landmarks is given, and what it answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends.threads import one_blas_thread
from ridgemark.errors import DataError, ParameterError
from ridgemark.kernels import Kernel
from ridgemark.leverage import ScoreBracket, score_bracket
from ridgemark.linalg import check_range
from ridgemark.nystrom import nystrom_factor
from ridgemark.parameters import Parameterised
from ridgemark.passes import DistinctRows, RowPasses
from ridgemark.sampling import Draw, draw_distinct

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Landmarks:
    """The landmarks chosen, and what was learnt on the way."""

    points: Any  # (p, d) rows
    indices: NDArray[np.intp] | None  # their row numbers; None for points that are no training rows
    draw: Draw | None = None  # over the candidates, where the landmarks were drawn
    scores: ScoreBracket | None = None  # where scores were computed


@dataclass
class Problem:
    """The rows, the kernel and the ridge for which landmarks are wanted.

    `scaled_ridge` is n lambda; scores are taken at `risk_tolerance` times it, as Theorem 3 asks.
    """

    passes: RowPasses
    distinct: DistinctRows  # the candidates
    kernel: Kernel
    scaled_ridge: float
    risk_tolerance: float = 0.1
    failure_probability: float = 0.05
    pilot: dict[tuple[int, int], ScoreBracket] = field(default_factory=dict)

    def take(self, candidates: NDArray[np.intp], **found: Any) -> Landmarks:
        """Return the rows at these positions among the candidates as landmarks."""
        indices = self.distinct.indices[candidates]
        return Landmarks(self.passes.take(indices).features, indices, **found)

    def scores(self, n_pilot: int, refine: int, rng: np.random.Generator) -> ScoreBracket:
        """Return score brackets at `risk_tolerance * scaled_ridge` from a pilot, computed once."""
        key = (n_pilot, refine)
        if key not in self.pilot:
            ridge = self.risk_tolerance * self.scaled_ridge
            self.pilot[key] = pilot_scores(self.passes, self.kernel, ridge, n_pilot, refine, rng, self.distinct)
        return self.pilot[key]


class Selection(Parameterised, ABC):
    """A way of choosing landmarks."""

    def own_count(self) -> int | None:
        """Return how many landmarks the selection brings by itself; None where it takes as many as asked."""
        return None

    def choose(self, problem: Problem, n_landmarks: int, rng: np.random.Generator) -> Landmarks:
        """Choose `n_landmarks` different landmarks, at most as many as there are distinct rows."""
        wanted = min(positive_count(n_landmarks, "n_landmarks"), len(problem.distinct))
        with one_blas_thread():
            return self._choose(problem, wanted, rng)

    @abstractmethod
    def _choose(self, problem: Problem, n_landmarks: int, rng: np.random.Generator) -> Landmarks:
        """Choose, with BLAS at one thread and a number of landmarks known to be possible."""


def pilot_scores(
    passes: RowPasses,
    kernel: Kernel,
    scaled_ridge: float,
    n_pilot: int,
    refine: int,
    rng: np.random.Generator,
    distinct: DistinctRows,
) -> ScoreBracket:
    """Score all rows from a pilot drawn by the kernel's diagonal (paper, section 3.5).

    `refine` times the pilot is drawn again, by the scores found. Two passes for the pilot and two for each repeat.
    """
    scores = _scores_from(check_diagonal(passes.diagonal(kernel)), passes, kernel, scaled_ridge, n_pilot, rng, distinct)
    for _ in range(refine):
        again = _scores_from(scores.upper, passes, kernel, scaled_ridge, n_pilot, rng, distinct)
        scores = replace(again, refined=True)
    return scores


def _scores_from(
    weights: Floats,
    passes: RowPasses,
    kernel: Kernel,
    scaled_ridge: float,
    n_pilot: int,
    rng: np.random.Generator,
    distinct: DistinctRows,
) -> ScoreBracket:
    """Draw a pilot by these weights of the rows, and score all rows from it."""
    drawn = draw_distinct(distinct.totals(weights), n_pilot, rng).indices
    del weights  # as long as the data, and of no more use
    pilot = passes.take(distinct.indices[drawn])
    factor = nystrom_factor(kernel, pilot.features, pilot.indices)
    # Equal rows are all training rows: a landmark counts for as many as there are.
    counts = distinct.totals(passes.row_counts())[drawn]
    moments = passes.moments(factor, scaled_ridge=scaled_ridge)
    return score_bracket(passes, factor, moments, scaled_ridge, counts, len(drawn))


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
