"""The default: randomly pivoted Cholesky where its factor fits into memory, and otherwise leverage scores."""

from dataclasses import replace
from operator import attrgetter
from typing import ClassVar

import numpy as np

from ridgemark.passes import BlockFunction, RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.selection.base import Landmarks, Problem, Selection
from ridgemark.selection.leverage import Leverage
from ridgemark.selection.rpcholesky import RPCholesky

PIVOTS = RPCholesky(oversampling=3)


class Auto(Selection):
    """`RPCholesky(oversampling=3)` where the rows and its factor fit into the memory budget; else `Leverage`.

    The rows and the factor are `n (d + p)` numbers. At equal p, randomly pivoted Cholesky came closest to exact on most
    data sets measured, with oversampling closer than without, and takes less time than the sums of a fit. It takes
    about fifteen passes, so the rows of a file are read into memory first. Leverage scores take five passes and no
    memory that grows with `n p`. The choice depends on the sizes alone, so a file and an array of the same rows have
    the same landmarks. A fit that tunes its kernel draws landmarks uniformly if these predict the judging rows better
    by 1% or more: `tuning_.uniform_landmarks`.
    """

    needs_ridge: ClassVar[bool] = True

    def _choose(self, problem: Problem, n_landmarks: int, rng: np.random.Generator) -> Landmarks:
        source, budget = problem.passes.source, problem.passes.budget
        if 8 * source.n_rows * (source.n_features + n_landmarks + 1) > budget:
            return Leverage()._choose(problem, n_landmarks, rng)
        if not getattr(source, "reads_ahead", False):
            landmarks = PIVOTS._choose(problem, n_landmarks, rng)
        else:
            held = _held(problem.passes)
            landmarks = PIVOTS._choose(replace(problem, passes=held), n_landmarks, rng)
            problem.passes.count_entries(held.n_kernel_evaluations)
        return _filled_up(landmarks, problem, n_landmarks, rng)


def _filled_up(landmarks: Landmarks, problem: Problem, n_landmarks: int, rng: np.random.Generator) -> Landmarks:
    """Add rows at random where fewer landmarks explain all rows; rows that come later may need them."""
    assert landmarks.indices is not None
    chosen = problem.distinct.kind[landmarks.indices]
    if len(chosen) == n_landmarks:
        return landmarks
    others = rng.permutation(np.setdiff1d(np.arange(len(problem.distinct)), chosen))
    return problem.take(np.sort(np.concatenate([chosen, others[: n_landmarks - len(chosen)]])))


def _held(passes: RowPasses) -> RowPasses:
    """Return passes over the rows of a file in memory, read in one pass."""
    source = passes.source
    rows = np.empty((source.n_rows, source.n_features), source.dtype)
    passes.map(BlockFunction("rows", attrgetter("features")), out=rows)
    return RowPasses(ArrayRows(rows, None, passes.weights()), passes.memory_budget, passes.progress)
