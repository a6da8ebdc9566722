"""Closed-form leave-one-out: residuals of every row for all ridges of a path, or for one."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import gen_batches

from ridgemark.backends import NUMPY, Array, Floats, Indices, backend_of
from ridgemark.operators import CrossTask, NystromFactor, cross_block, diagonal_block
from ridgemark.passes import RowPasses, Workspace
from ridgemark.rows import Block, RowGroups, find_distinct, group_rows, row_hashes, row_weights
from ridgemark.solvers import SpectralSolver

_SQUARED_AT_ONCE = 256  # rows: their squares stay in the processor's cache


@dataclass(frozen=True)
class LeaveOneOut:
    """Leave-one-out residuals and potentials of distinct rows, for fixed landmarks and fixed `scaled_ridge`.

    Attributes
    ----------
    residuals : array of shape (n, n_targets)
        `y_i` minus its prediction from all rows with other features, in cells of a table from all other rows (see
        `RowPasses.left_out`); for a row of weight zero, which is not in the fit, from all rows.
    potential : array of shape (n, n_targets)
        `w_i ((K_ii - L_ii)/(n lambda) + t_i/(1 - h_i))`, with t and h as in `leave_one_out`: the variance of the
        prediction for row i from all rows with other features, in units of the variance of its noise. Large where a
        row is far from all others. The same for targets of the same ridge.
    weights : array of shape (n,)
        In units of their mean; the noise variance of row i is the mean noise variance over its weight.
    size_sums : array of shape (rank, n_targets)
        `B'W|r|`, r the residuals: what regression of their sizes on the features B needs.
    """

    residuals: Floats
    potential: Floats
    weights: Floats
    size_sums: Floats


def leave_one_out(
    passes: RowPasses,
    factor: NystromFactor,
    solver: SpectralSolver,
    scaled_ridge: Floats,
    target_origin: Floats,
    groups: RowGroups | None = None,
) -> LeaveOneOut:
    """Return residuals and potentials in one pass, for every target at its own `scaled_ridge`.

    A group g of rows with equal features is left out with all its weight W_g. With
    `t_g = 1/sum w + c_g' (Bc'WBc + n lambda)^-1 c_g`, c_g its centred features (without an intercept, no 1/sum w and
    no centring), `h_g = W_g t_g`, and ybar_g its weighted mean target, the rows with other features predict
    `f - h_g/(1 - h_g) (ybar_g - f)`: as a refit does.
    """
    different, chosen = np.unique(scaled_ridge, return_inverse=True)
    task = ChosenLeftOut(**left_out_parts(factor, solver, different, target_origin), chosen=chosen)
    both, sums = passes.map_and_reduce(task, _along(groups or passes.left_out_groups()))
    return left_out_results(passes, solver, both[:, 0], both[:, 1], sums)


def left_out_results(
    passes: RowPasses, solver: SpectralSolver, residuals: Floats, potential: Floats, sums: Floats
) -> LeaveOneOut:
    """Return the results of all rows, with the sums of features that are centred and rotated as the solver's."""
    weights = passes.row_counts()
    size_sums = solver.rotation @ sums + np.outer(solver.feature_mean, weights @ np.abs(residuals))
    return LeaveOneOut(residuals, potential, weights * (np.count_nonzero(weights) / weights.sum()), size_sums)


def path_errors(
    passes: RowPasses, parts: dict[str, Any], groups: RowGroups | None
) -> tuple[Floats, tuple[Floats, Floats] | None]:
    """Return the weighted mean squared residual of every ridge and target, from the `left_out_parts`.

    Where that fits into memory return also what `LeftOut` gives for all rows.
    """
    total, (_, n_values) = passes.total_weight, parts["fits"].shape
    if passes.beyond_memory:
        return passes.reduce(LeftOutErrors(**parts), along_partition) / total, None
    along = _along(groups or passes.left_out_groups())
    if passes.holds(4 * (n_values + len(parts["scaled_ridges"]))):
        results, sums = passes.map_and_reduce(LeftOut(**parts), along)
        return np.einsum("i,igt->gt", passes.row_counts(), results[:, :, :-1] ** 2) / total, (results, sums)
    return passes.reduce(LeftOutErrors(**parts), along) / total, None


def _along(groups: RowGroups) -> tuple[Floats, ...]:
    return (groups.weights,) if groups.gaps is None else (groups.weights, groups.gaps)


def along_partition(blocks: Iterable[Block]) -> tuple[Floats, ...]:
    """Return what `_along` does, with the groups of equal rows of one partition; equal rows elsewhere do not count."""
    found = [(row_hashes(block), row_weights(block), block.targets) for block in blocks]
    hashes, weights, targets = (np.concatenate(values) for values in zip(*found, strict=True))
    distinct = find_distinct(hashes, weights)
    return _along(group_rows(distinct, weights, targets if distinct.has_repeats else None))


def left_out_parts(
    factor: NystromFactor, solver: SpectralSolver, scaled_ridges: Floats, origin: Floats
) -> dict[str, Any]:
    """Return the fields of `LeftOut`."""
    inverse = solver.inverse(scaled_ridges)
    fits = inverse[:, :, None] * solver.rotated[:, None, :]
    return {
        "cross_kernel": factor.cross_kernel,
        "rotate": factor.combine(solver.rotation),
        "offset": solver.feature_mean @ solver.rotation,
        "inverse": inverse,
        "fits": fits.reshape(len(inverse), len(scaled_ridges) * len(origin)),
        "target_mean": origin + solver.target_mean,
        "scaled_ridges": scaled_ridges,
        "share_of_constant": 1.0 / solver.total_weight if solver.fit_intercept else 0.0,
    }


class LeftOut(CrossTask):
    """A block's residuals for all ridges and targets, and last its potentials, by the formulas of `leave_one_out`.

    They have shape (rows, ridges, targets + 1). A second result is `V'Bc'W|r|`, r the residuals: products of their
    sizes with the features in the solver's coordinates, shape (rank, ridges, targets). Given along are the weights of
    the rows' groups and, where rows are equal, the gaps of their targets from the groups' means.
    """

    what: ClassVar[str] = "leave-one-out"
    rotate: Floats  # (p, rank): from kernel values to features in the solver's coordinates, in one product
    offset: Floats  # (rank,): their mean
    inverse: Floats  # (rank, ridges): `1/(s + n lambda)`
    fits: Floats  # (rank, ridges * targets): coefficients
    target_mean: Floats  # (targets,)
    scaled_ridges: Floats  # (ridges,)
    share_of_constant: float  # 1/sum w with an intercept, otherwise 0

    @property
    def width(self) -> int:
        return self.cross_kernel.n_landmarks + self.fits.shape[1] + len(self.scaled_ridges)

    def __call__(self, block: Block, workspace: Workspace) -> Any:
        results, centred = self.left_out(block, workspace)
        return results, size_sums(centred, block, results[:, :, :-1])

    def left_out(self, block: Block, workspace: Workspace) -> tuple[Floats, Floats]:
        """Return the residuals with the potentials, and the centred features in the solver's coordinates."""
        n_rows, n_ridges, n_targets = block.n_rows, len(self.scaled_ridges), len(self.target_mean)
        backend = workspace.backend
        centred = workspace.array("features", (n_rows, self.rotate.shape[1]))
        backend.matmul(cross_block(self.cross_kernel, block, workspace), self.rotate, out=centred)
        diagonal = diagonal_block(self.cross_kernel, block)
        unexplained = backend.at_least(diagonal - backend.squared_norms(centred), 0.0)[:, None]
        centred -= self.offset
        results = backend.empty((n_rows, n_ridges, n_targets + 1))
        results[:, :, :-1] = (block.targets - self.target_mean)[:, None, :]
        results[:, :, :-1] -= (centred @ self.fits).reshape(n_rows, n_ridges, n_targets)
        own, weights = row_weights(block)[:, None], block.along[0][:, None]
        leverage, lengths = backend.empty((n_rows, n_ridges)), backend.squared_norms(centred)[:, None]
        for rows in gen_batches(n_rows, _SQUARED_AT_ONCE if backend is NUMPY else n_rows):
            leverage[rows] = centred[rows] ** 2 @ self.inverse
        leverage += self.share_of_constant
        kept = kept_share(leverage, lengths, weights, self.share_of_constant, self.scaled_ridges)
        pull = 1.0 / kept - 1.0  # h/(1 - h)
        results[:, :, :-1] /= kept[:, :, None]
        if len(block.along) > 1:
            results[:, :, :-1] += pull[:, :, None] * block.along[1][:, None, :]
        results[:, :, -1] = own * unexplained / self.scaled_ridges + backend.ratio(own, weights) * pull
        return results, centred


class LeftOutErrors(LeftOut):
    """The weighted sum of squared residuals for every ridge and target."""

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        squares = self.left_out(block, workspace)[0][:, :, :-1] ** 2
        return workspace.backend.xp.einsum("i,igt->gt", row_weights(block), squares)


class ChosenLeftOut(LeftOut):
    """Residuals and potentials at each target's own ridge, shape (rows, 2, targets), and sums as those of `LeftOut`."""

    chosen: Indices

    def __call__(self, block: Block, workspace: Workspace) -> tuple[Floats, Floats]:
        results, centred = self.left_out(block, workspace)
        both = at_chosen(results, self.chosen)
        return workspace.backend.xp.stack(both, axis=1), size_sums(centred, block, both[0])


def at_chosen(results: Floats, chosen: Indices) -> tuple[Floats, Floats]:
    """Pick residuals and potentials at each target's ridge from those at all ridges."""
    return results[:, chosen, np.arange(len(chosen))], results[:, chosen, -1]


def size_sums(centred: Floats, block: Block, residuals: Floats) -> Floats:
    """Return `C'W|r|` for the features C of a block and residuals r of any shape."""
    weighted = abs(residuals.reshape(block.n_rows, -1)) * row_weights(block)[:, None]
    # `(W'C)'`, as BLAS multiplies a few columns faster from the left.
    return (weighted.T @ centred).T.reshape(centred.shape[1], *residuals.shape[1:])


def kept_share(leverage: Array, lengths: Array, weights: Array, constant: float, scaled_ridge: float | Array) -> Array:
    """Return `1 - W_g t_g` with `t_g = 1/sum w + c_g'(Bc'WBc + n lambda)^-1 c_g`; 1 where there is no other row.

    It is raised to its lower bound `rest n lambda/(n lambda + W_g |c_g|^2/rest)`, `rest = 1 - W_g/sum w`; only
    rounding can make it smaller. `leverage` is t_g, `lengths` |c_g|^2, and `constant` 1/sum w, or 0 without intercept.
    """
    backend, rest = backend_of(leverage), 1.0 - weights * constant
    others = rest > 1e-12
    length = weights * lengths / backend.xp.where(others, rest, 1.0)
    floor = backend.at_least(rest * scaled_ridge / (scaled_ridge + length), np.finfo(np.float64).tiny)
    return backend.xp.where(others, backend.at_least(1.0 - weights * leverage, floor), 1.0)
