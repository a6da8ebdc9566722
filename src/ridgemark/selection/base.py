"""The interface of landmark selections: the problem they are given and the landmarks they return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Floats
from ridgemark.backends.threads import one_blas_thread
from ridgemark.errors import NumericalError, ParameterError
from ridgemark.kernels import Kernel
from ridgemark.kernels.base import count_rows
from ridgemark.leverage import ScoreBracket
from ridgemark.parameters import Parameterised, positive_count
from ridgemark.passes import RowPasses
from ridgemark.rows import Block, DistinctRows
from ridgemark.sampling import Draw
from ridgemark.selection.pilot import Pilot, draw_pilot


@dataclass(frozen=True, eq=False)
class Pivots:
    """The features of all rows that pivoted Cholesky computed: `F F' = L`, `F = C R^-1` for landmarks in its order."""

    order: NDArray[np.intp]  # (p,): positions of landmarks
    triangle: Floats  # (p, p): R, upper triangular
    features: Floats  # (n, p): F


@dataclass(frozen=True, eq=False)
class Landmarks:
    """The landmarks chosen, and what was computed to choose them."""

    points: Any  # (p, d) rows
    indices: NDArray[np.intp] | None  # their row numbers; None for points that are not training rows
    draw: Draw | None = None  # over the candidates, where the landmarks were drawn
    scores: ScoreBracket | None = None  # where scores were computed
    pivots: Pivots | None = None  # where they are held


@dataclass(frozen=True, eq=False)
class Problem:
    """The rows, the kernel and the ridge for which landmarks are wanted.

    Scores are taken at `risk_tolerance` times the ridge, as Theorem 3 asks, unless a selection takes another ridge.
    """

    passes: RowPasses
    distinct: DistinctRows  # the candidates
    kernel: Kernel
    scaled_ridge: float | None  # n lambda; None where neither the selection nor the number of landmarks depends on it
    risk_tolerance: float = 0.1
    failure_probability: float = 0.05
    pilots: dict[int, Pilot] = field(default_factory=dict)  # those drawn so far, by size
    _scores: dict[tuple[int, int, float], ScoreBracket] = field(default_factory=dict)

    def take(self, candidates: NDArray[np.intp], **computed: Any) -> Landmarks:
        """Return the rows at these positions among the candidates as landmarks."""
        indices = self.distinct.indices[candidates]
        return Landmarks(self.passes.take(indices).features, indices, **computed)

    def rows(self, candidates: NDArray[np.intp]) -> Block:
        """Return the rows at these positions among the candidates, each with the weight of all rows equal to it."""
        weights = self.distinct.totals(self.passes.row_counts())[candidates]
        return replace(self.passes.take(self.distinct.indices[candidates]), weights=weights)

    @property
    def sketch_ridge(self) -> float:
        """`risk_tolerance * scaled_ridge`, the paper's n lambda epsilon."""
        if self.scaled_ridge is None:
            raise ParameterError("this selection needs a ridge; give one to the Problem")
        ridge = self.risk_tolerance * self.scaled_ridge
        if not 1e-300 < ridge < 1e300:
            raise NumericalError(
                f"risk_tolerance times n lambda, the ridge at which scores are taken, leaves the floating-point range, "
                f"got {self.risk_tolerance:g} times {self.scaled_ridge:g}; choose a risk_tolerance nearer to 1"
            )
        return ridge

    def pilot(self, n_pilot: int, rng: np.random.Generator) -> Pilot:
        """Return a pilot of this size, drawn once."""
        if n_pilot not in self.pilots:
            self.pilots[n_pilot] = draw_pilot(
                self.passes, self.kernel, self.distinct, n_pilot, rng, smallest_ridge=self.sketch_ridge
            )
        return self.pilots[n_pilot]

    def scores(
        self, n_pilot: int, refine: int, rng: np.random.Generator, scaled_ridge: float | None = None
    ) -> ScoreBracket:
        """Return the scores from a pilot of this size, at `sketch_ridge` unless a ridge is given, computed once."""
        ridge = self.sketch_ridge if scaled_ridge is None else scaled_ridge
        key = (n_pilot, refine, ridge)
        if key not in self._scores:
            self._scores[key] = self.pilot(n_pilot, rng).refined_scores(ridge, refine, rng)
        return self._scores[key]

    def at(self, scaled_ridge: float) -> Problem:
        """Return the same problem at another ridge; pilots do not depend on the ridge and are kept."""
        return replace(self, scaled_ridge=scaled_ridge, _scores={})


class Selection(Parameterised, ABC):
    """A way of choosing landmarks."""

    needs_ridge: ClassVar[bool] = False  # whether the choice depends on the ridge

    def own_count(self) -> int | None:
        """Return the number of landmarks where the selection itself fixes it, otherwise None."""
        return None

    def choose(self, problem: Problem, n_landmarks: int, rng: np.random.Generator) -> Landmarks:
        """Choose `n_landmarks` different landmarks, at most as many as there are distinct rows."""
        wanted = min(positive_count(n_landmarks, "n_landmarks"), len(problem.distinct))
        with one_blas_thread():
            landmarks = self._choose(problem, wanted, rng)
        if not count_rows(landmarks.points):
            raise NumericalError(
                "no row can be a landmark, as k(x, x) is zero up to rounding for every row tried; "
                "rescale the columns (standardise them) or choose a kernel with a larger bandwidth"
            )
        return landmarks

    @abstractmethod
    def _choose(self, problem: Problem, n_landmarks: int, rng: np.random.Generator) -> Landmarks:
        """Choose the landmarks; BLAS runs one thread, and `n_landmarks` is at most the number of distinct rows."""
