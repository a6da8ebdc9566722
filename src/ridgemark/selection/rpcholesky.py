"""Landmarks by randomly pivoted Cholesky (Chen et al. 2022), accelerated by rejection (Epperly et al. 2024)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np
import scipy.linalg
from scipy.linalg import blas

from ridgemark.backends import Array, Floats, Indices
from ridgemark.kernels import CrossKernel, Kernel
from ridgemark.linalg import EPS, rounded, solve_triangle
from ridgemark.operators import CrossTask, check_diagonal, cross_block, kernel_diagonal
from ridgemark.parameters import positive_count
from ridgemark.passes import RowPasses, Workspace
from ridgemark.rows import Block
from ridgemark.sampling import draw_sequence, draw_with_replacement
from ridgemark.selection.base import Landmarks, Pivots, Problem, Selection

_ROUNDING = 1e-13  # a residual below this share of K_ii is rounding error: the row lies in the landmarks' span
_FEWEST_PROPOSALS = 200  # with oversampling: fewer estimate the decrease of the trace poorly, and save little time
_OPEN = 0.1  # a proposal can become a landmark if the round's landmarks leave more than this share of its residual

Keep = Callable[[Floats], tuple[list[int], Floats]]  # from the proposals' residual kernel: positions kept, their factor


class RPCholesky(Selection):
    """Draw each landmark with probability proportional to the residual of `K_ii` given the landmarks before it.

    Proposals are drawn a block at a time from the residual diagonal, and each is accepted with the probability that
    gives the sequence the distribution of the plain method. The n x p factor is kept where it fits into the memory
    budget, and otherwise recomputed block by block. There are fewer landmarks than requested if these explain all rows
    up to rounding.

    With oversampling, a round keeps those of its proposals that together explain most of the residuals of all its
    proposals. Since proposals are drawn by the residuals, this estimates which landmarks lower `tr (K - L)` most, as
    k-means++ keeps the best of several draws. The landmarks then lie less often at the edge of the rows' range.

    Parameters
    ----------
    block : int, optional
        Proposals in a round (with oversampling: landmarks in a round); by default a tenth of the landmarks, between 10
        and 200.
    oversampling : int, default=1
        Proposals per landmark. 1 is the plain method. With more, at least 200 proposals are drawn in a round.
    """

    def __init__(self, block: int | None = None, oversampling: int = 1) -> None:
        self.block = block
        self.oversampling = oversampling

    def _choose(self, problem: Problem, n_landmarks: int, rng: np.random.Generator) -> Landmarks:
        default = min(200, max(10, n_landmarks // 10))
        block = default if self.block is None else positive_count(self.block, "block")
        distinct = problem.distinct
        lengths = distinct.totals(check_diagonal(kernel_diagonal(problem.passes, problem.kernel)))
        factor = _PivotedFactor(problem.passes, problem.kernel, n_landmarks)
        residual = lengths.copy()
        while factor.size < n_landmarks and residual.max() > 0:
            before = factor.size
            proposals, keep = self._propose(residual, block, n_landmarks - before, rng)
            residual -= distinct.totals(factor.extend(distinct.indices[proposals], keep))
            residual[residual < _ROUNDING * lengths] = 0.0
            # Landmarks have the residual zero; if rounding made all proposals fail, they get it too.
            residual[distinct.kind[factor.chosen[before:]] if factor.size > before else proposals] = 0.0
        chosen = distinct.kind[np.array(factor.chosen, dtype=np.intp)]
        order = np.argsort(np.argsort(chosen))
        return problem.take(np.sort(chosen), pivots=factor.pivots(order))

    def _propose(self, residual: Floats, block: int, missing: int, rng: np.random.Generator) -> tuple[Indices, Keep]:
        """Return the proposals of a round, and the function that keeps some of them as landmarks."""
        oversampling = positive_count(self.oversampling, "oversampling")
        if oversampling == 1:
            # Near the end few landmarks are missing: more than twice as many proposals would be wasted.
            proposals = draw_sequence(residual, min(block, 2 * missing), rng)
            return proposals, partial(_accept, most=missing, rng=rng)
        draw = draw_with_replacement(residual, max(_FEWEST_PROPOSALS, oversampling * block), rng)
        return draw.indices, partial(_most_explaining, counts=draw.counts, most=min(block, missing))


class NewCoordinates(CrossTask):
    """The rows' coordinates for some new landmarks, to which the kernel is bound, and last their squared lengths.

    The coordinates are `(k_new - F old') N`; those for the earlier landmarks, F, are given along.
    """

    what: ClassVar[str] = "randomly pivoted Cholesky"
    old: Floats  # (new, size): the new landmarks' coordinates so far
    inverse: Floats  # N, (new, new)

    @property
    def width(self) -> int:
        return self.cross_kernel.n_landmarks + self.old.shape[1]

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        backend, columns = workspace.backend, cross_block(self.cross_kernel, block, workspace)
        if self.old.shape[1]:
            columns -= backend.matmul(self.earlier(block), self.old.T, out=workspace.array("explained", columns.shape))
        coordinates = backend.empty((block.n_rows, len(self.inverse) + 1))
        new = backend.matmul(columns, self.inverse, out=coordinates[:, :-1])
        coordinates[:, -1] = backend.squared_norms(new)
        return coordinates

    def earlier(self, block: Block) -> Floats:
        """Return F at the rows of a block."""
        return block.along[0]


class RecomputedCoordinates(NewCoordinates):
    """The same where F is not kept: from the kernel with all landmarks so far; returns squared lengths only."""

    landmarks: CrossKernel  # bound to the landmarks so far
    triangle: Floats  # lower Cholesky factor of their kernel

    @property
    def kernel_entries(self) -> int:
        return self.cross_kernel.n_landmarks + self.landmarks.n_landmarks

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        return super().__call__(block, workspace)[:, -1]

    def earlier(self, block: Block) -> Floats:
        return _coordinates(self.landmarks, self.triangle, block)


@dataclass
class _PivotedFactor:
    """The rows' coordinates F in the landmarks' span, grown a block at a time: `F F' = L`."""

    passes: RowPasses
    kernel: Kernel
    capacity: int
    chosen: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        n_rows = self.passes.source.n_rows
        # F, followed by a column with the squared lengths of the rows' newest coordinates.
        self._cache = np.empty((n_rows, self.capacity + 1)) if self.passes.holds(self.capacity + 1) else None
        self._triangle = np.zeros((self.capacity, self.capacity))  # lower Cholesky factor of the landmark kernel
        self._landmarks: CrossKernel | None = None  # bound to those chosen, where F is not kept

    @property
    def size(self) -> int:
        return len(self.chosen)

    def pivots(self, order: Indices) -> Pivots | None:
        """Return the factor where it is kept and well conditioned, for landmarks at these positions."""
        if self._cache is None or not self.size:
            return None
        triangle = self._triangle[: self.size, : self.size].T
        pivots = np.diagonal(triangle) ** 2
        if pivots.min() <= self.size * EPS * pivots.max():
            return None
        return Pivots(order, triangle, self._cache[:, : self.size])

    def extend(self, proposals: Indices, keep: Keep) -> Floats:
        """Keep some proposals as landmarks; return the decrease of every row's (weighted) residual."""
        taken = self.passes.take(proposals)
        self.passes.count_entries(taken.n_rows**2)
        coordinates = self._coordinates_of(taken)
        among = self.kernel.bind(taken.features, taken.indices).symmetric_block(taken.features)
        accepted, triangle = keep(among - coordinates @ coordinates.T)
        if not accepted:
            return np.zeros(self.passes.source.n_rows)
        new = Block(0, taken.features[accepted], None, None, taken.indices[accepted])
        fall = self._add_columns(self.kernel.bind(new.features, new.indices), coordinates[accepted], triangle)
        start, stop = self.size, self.size + len(accepted)
        self._triangle[start:stop, :start] = coordinates[accepted]
        self._triangle[start:stop, start:stop] = triangle
        self.chosen.extend(int(i) for i in new.indices)
        if self._cache is None:
            rows = self.passes.take(np.array(self.chosen))
            self._landmarks = self.kernel.bind(rows.features, rows.indices)
        return fall

    def _add_columns(self, cross_kernel: CrossKernel, old: Floats, triangle: Floats) -> Floats:
        """Extend F where it is kept; return the weighted squared lengths of the new coordinates."""
        # A product with the small inverse runs in several threads at a time; scipy's triangular solve does not.
        inverse = np.ascontiguousarray(scipy.linalg.solve_triangular(triangle, np.eye(len(triangle)), lower=True).T)
        weights, start, stop = self.passes.row_counts(), self.size, self.size + len(triangle)
        if self._cache is not None:
            task = NewCoordinates(cross_kernel, old, inverse)
            self.passes.map(task, along=(self._cache[:, :start],), out=self._cache[:, start : stop + 1])
            return weights * self._cache[:, stop]
        if self._landmarks is None:
            return weights * self.passes.map(NewCoordinates(cross_kernel, old, inverse))[:, -1]
        earlier = self._triangle[:start, :start]
        return weights * self.passes.map(RecomputedCoordinates(cross_kernel, old, inverse, self._landmarks, earlier))

    def _coordinates_of(self, rows: Block) -> Floats:
        """Return F at some rows, from the cache or from the kernel."""
        if self._cache is not None:
            return self._cache[rows.indices, : self.size]
        if self._landmarks is None:
            return np.empty((rows.n_rows, 0))
        return _coordinates(self._landmarks, self._triangle[: self.size, : self.size], rows)


def _coordinates(landmarks: CrossKernel, triangle: Array, rows: Block) -> Array:
    cross = landmarks.backend.double(landmarks(rows.features))
    return solve_triangle(triangle.T, cross.T, transposed=True).T


def _accept(overlap: Floats, most: int, rng: np.random.Generator) -> tuple[list[int], Floats]:
    """Accept each proposal with a probability equal to the share of its residual that earlier ones do not explain.

    Returns the accepted positions and the Cholesky factor of their residual kernel.
    """
    residual = overlap.copy()
    first = np.diagonal(overlap).copy()
    columns: list[Floats] = []
    accepted: list[int] = []
    for i in range(len(residual)):
        remaining = residual[i, i]
        if len(accepted) == most or not remaining > _ROUNDING * first[i] or rng.random() * first[i] >= remaining:
            continue
        column = residual[:, i] / np.sqrt(remaining)
        residual -= np.outer(column, column)
        accepted.append(i)
        columns.append(column)
    if not accepted:
        return accepted, np.empty((0, 0))
    return accepted, np.tril(np.stack(columns, axis=1)[accepted])


def _most_explaining(overlap: Floats, counts: Indices, most: int) -> tuple[list[int], Floats]:
    """Keep the proposals that explain most of the residuals of all proposals, one after the other.

    A landmark i lowers tr E, E = K - L, by `sum_j E_ij^2 / E_ii`. Of q proposals drawn with probabilities
    `E_jj / tr E`, c_j are row j, so `(tr E / q) sum_j c_j E_ij^2 / (E_ii E_jj)` is an unbiased estimate. With
    `R = D^-1/2 E D^-1/2`, D the diagonal of E, the next landmark has the largest `sum_j c_j R_ij^2 / R_ii`, and R is
    reduced by what it explains. Returns the positions kept and the Cholesky factor of their residual kernel.
    """
    lengths = np.sqrt(np.maximum(np.diagonal(overlap), 0.0))
    inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    cosines = np.clip(inverse[:, None] * overlap * inverse, -1.0, 1.0)  # R at first; rounding may exceed 1
    remaining = np.diagonal(cosines).copy()  # the diagonal of R
    sums = cosines**2 @ counts  # sum_j c_j R_ij^2
    columns = np.empty((most, len(cosines)))  # R = cosines - columns' columns
    kept: list[int] = []
    while len(kept) < most and remaining.max() > _OPEN:
        gains = np.divide(sums, remaining, out=np.zeros_like(sums), where=remaining > _OPEN)
        i = int(np.argmax(rounded(gains)))  # rounding error must not choose among equal gains
        earlier = columns[: len(kept)]
        column = (cosines[i] - earlier[:, i] @ earlier) / np.sqrt(remaining[i])
        weighted = counts * column
        # R (c column); the product with a symmetric matrix reads half of it.
        products = blas.dsymv(1.0, cosines.T, weighted) - (earlier @ weighted) @ earlier
        sums -= 2 * column * products - column**2 * (column @ weighted)
        remaining -= column**2
        remaining[i] = 0.0
        columns[len(kept)] = column
        kept.append(i)
    return kept, np.tril(lengths[kept, None] * columns[: len(kept), kept].T)
