"""Landmarks by randomly pivoted Cholesky (Chen et al. 2022), accelerated by rejection (Epperly et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ridgemark.kernels import Kernel
from ridgemark.passes import RowPasses
from ridgemark.rows import DEFAULT_MEMORY_BUDGET, Block, row_weights
from ridgemark.sampling import draw_sequence
from ridgemark.selection.base import Landmarks, Problem, Selection, check_diagonal, positive_count

Floats = NDArray[np.float64]

_ROUNDING = 1e-13  # a residual below this share of K_ii is rounding: the row lies in the landmarks' span


class RPCholesky(Selection):
    """Draw each landmark with probability proportional to what the landmarks before it leave of `K_ii`.

    Proposals are drawn a block at a time from the residual diagonal, and each is accepted with the probability that
    makes the sequence one of the plain method. The n x p factor is kept where half the memory budget holds it, and
    otherwise recomputed block by block. Fewer landmarks than asked result when their span reaches every row to
    rounding.

    Parameters
    ----------
    block : int, optional
        Proposals in a round; by default a tenth of the landmarks, between 10 and 200.
    """

    def __init__(self, block: int | None = None) -> None:
        self.block = block

    def _choose(self, problem: Problem, n_landmarks: int, rng: np.random.Generator) -> Landmarks:
        default = min(200, max(10, n_landmarks // 10))
        block = default if self.block is None else positive_count(self.block, "block")
        distinct = problem.distinct
        lengths = distinct.totals(check_diagonal(problem.passes.diagonal(problem.kernel)))
        factor = _PivotedFactor(problem.passes, problem.kernel, n_landmarks)
        residual = lengths.copy()
        while factor.size < n_landmarks and residual.max() > 0:
            # Few are left to find at the end: proposals beyond twice that would be thrown away.
            size = min(block, 2 * (n_landmarks - factor.size))
            proposals = draw_sequence(residual, size, rng)
            before = factor.size
            residual -= distinct.totals(factor.extend(distinct.indices[proposals], n_landmarks - before, rng))
            residual[residual < _ROUNDING * lengths] = 0.0
            # A landmark has nothing left; and where rounding refused all proposals, neither have they.
            residual[distinct.kind[factor.chosen[before:]] if factor.size > before else proposals] = 0.0
        return problem.take(np.sort(distinct.kind[np.array(factor.chosen, dtype=np.intp)]))


@dataclass
class _PivotedFactor:
    """The rows' coordinates F in the landmarks' span, grown a block at a time: `F F' = L`."""

    passes: RowPasses
    kernel: Kernel
    capacity: int
    chosen: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        source = self.passes.source
        budget = DEFAULT_MEMORY_BUDGET if self.passes.memory_budget is None else self.passes.memory_budget
        fits = 8 * source.n_rows * self.capacity <= budget // 2
        self._cache = np.empty((source.n_rows, self.capacity)) if fits else None
        self._triangle = np.zeros((self.capacity, self.capacity))  # lower Cholesky factor of the landmark kernel

    @property
    def size(self) -> int:
        return len(self.chosen)

    def extend(self, proposals: NDArray[np.intp], most: int, rng: np.random.Generator) -> Floats:
        """Accept some proposals as landmarks; return by how much every row's (weighted) residual falls."""
        taken = self.passes.take(proposals)
        self.passes.n_kernel_evaluations += taken.n_rows**2
        known = self._coordinates(taken)
        overlap = _square(self.kernel, taken) - known @ known.T
        accepted, triangle = _accept(overlap, most, rng)
        if not accepted:
            return np.zeros(self.passes.source.n_rows)
        new = Block(0, taken.features[accepted], None, None, taken.indices[accepted])
        cross_kernel, old = self.kernel.against(new.features, new.indices), known[accepted]
        start, stop = self.size, self.size + len(accepted)
        # A product with the small inverse runs in several threads at a time; scipy's triangular solve does not.
        inverse = scipy.linalg.solve_triangular(triangle, np.eye(len(accepted)), lower=True).T

        def of_block(block: Block) -> Floats:
            columns = self.passes.cross_block(cross_kernel, block)
            if start:
                scratch = self.passes.scratch.array("explained", columns.shape)
                columns -= np.matmul(self._coordinates(block), old.T, out=scratch)
            columns = np.matmul(columns, inverse, out=self.passes.scratch.array("columns", columns.shape))
            if self._cache is not None:
                self._cache[block.start : block.start + block.n_rows, start:stop] = columns
            return row_weights(block) * np.einsum("ij,ij->i", columns, columns)

        evaluated = len(accepted) + (start if self._cache is None else 0)
        fall = self.passes.map("randomly pivoted Cholesky", of_block, self.capacity, evaluated)
        self._triangle[start:stop, :start] = old
        self._triangle[start:stop, start:stop] = triangle
        self.chosen.extend(int(i) for i in new.indices)
        self._landmarks = self.passes.take(np.array(self.chosen)) if self._cache is None else None
        return fall

    def _coordinates(self, rows: Block) -> Floats:
        """Return F at some rows, from the cache or from the kernel."""
        if self.size == 0:
            return np.empty((rows.n_rows, 0))
        if self._cache is not None:
            return _rows_of(self._cache, rows)[:, : self.size]
        assert self._landmarks is not None
        cross = self.kernel.against(self._landmarks.features, self._landmarks.indices)(rows.features)
        triangle = self._triangle[: self.size, : self.size]
        return scipy.linalg.solve_triangular(triangle, cross.astype(np.float64).T, lower=True, check_finite=False).T


def _rows_of(cache: Floats, rows: Block) -> Floats:
    # A slice is no copy; only scattered rows need one.
    return cache[rows.start : rows.start + rows.n_rows] if rows.taken is None else cache[rows.taken]


def _square(kernel: Kernel, rows: Block) -> Floats:
    block: Any = kernel.against(rows.features, rows.indices)(rows.features).astype(np.float64)
    return (block + block.T) / 2


def _accept(overlap: Floats, most: int, rng: np.random.Generator) -> tuple[list[int], Floats]:
    """Run through the proposals: accept one with the share of its residual that earlier ones left.

    Returns the accepted positions and the Cholesky factor of their residual kernel.
    """
    residual = overlap.copy()
    first = np.diagonal(overlap).copy()
    columns: list[Floats] = []
    accepted: list[int] = []
    for i in range(len(residual)):
        left = residual[i, i]
        if len(accepted) == most or not left > _ROUNDING * first[i] or rng.random() * first[i] >= left:
            continue
        column = residual[:, i] / np.sqrt(left)
        residual -= np.outer(column, column)
        accepted.append(i)
        columns.append(column)
    if not accepted:
        return accepted, np.empty((0, 0))
    triangle = np.tril(np.stack(columns, axis=1)[accepted])
    return accepted, triangle
