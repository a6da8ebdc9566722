"""Closed-form leave-one-out: residuals of every row for all ridges of a path, or for one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils import gen_batches

from ridgemark.backends import NUMPY, Floats, Indices
from ridgemark.operators import NystromFactor
from ridgemark.passes import RowPasses, Workspace
from ridgemark.passes.whole_groups import group_sizes
from ridgemark.rows import Block, RowGroups, find_distinct, group_rows, row_hashes, row_weights
from ridgemark.solvers import LandmarkFit, RidgeInverse, RidgeTask, ridges_form
from ridgemark.solvers.groups import GroupSystem, kept_root, kept_share
from ridgemark.solvers.landmark_fit import CentredMoments

MOST_PULLS = 4096  # groups
_LONG = 4096  # rows; a larger group is processed in parts
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
    pulls : GroupPulls or None
        Of rows that leave in groups: what some of the groups add to the coefficients.
    leverage : array of shape (n, n_targets) or None
        t_i, where it was computed for the ridges chosen alone, and rows do not leave in groups.
    """

    residuals: Annotated[Floats, "(n, t)"]
    potential: Annotated[Floats, "(n, t)"]
    weights: Annotated[Floats, "(n)", ">= 0"]
    size_sums: Annotated[Floats, "(_, t)"]
    pulls: GroupPulls | None = field(default=None, compare=False)
    leverage: Floats | None = field(default=None, compare=False)


@dataclass(frozen=True, eq=False)
class GroupPulls:
    """Of some groups `Bc'W r` and `sum w r`, r their residuals without the group: F^-1 times it leaves with the group.

    Attributes
    ----------
    groups : array of shape (g,)
        The groups' numbers, ascending.
    features : array of shape (g, rank, n_targets)
        `Bc'W r`, Bc the centred features of the group's rows.
    constants : array of shape (g, n_targets)
        `sum w r`.
    """

    groups: Indices
    features: Floats
    constants: Floats


def leave_one_out(passes: RowPasses, fit: LandmarkFit) -> LeaveOneOut:
    """Return residuals and potentials in one pass, for every target at its own ridge.

    Where rows have labels of groups, see `GroupsLeftOut`. Otherwise a group g of rows with equal features is left out
    with all its weight W_g. With
    `t_g = 1/sum w + c_g' (Bc'WBc + n lambda)^-1 c_g`, c_g its centred features (without an intercept, no 1/sum w and
    no centring), `h_g = W_g t_g`, and ybar_g its weighted mean target, the rows with other features predict
    `f - h_g/(1 - h_g) (ybar_g - f)`: as a refit does.
    """
    return left_out_at(passes, fit.factor, fit.centred, fit.inverse, fit.scaled_ridge, fit.target_origin)


def left_out_at(
    passes: RowPasses,
    factor: NystromFactor,
    centred: CentredMoments,
    inverse: RidgeInverse,
    scaled_ridge: Floats,
    origin: Floats,
    groups: RowGroups | None = None,
) -> LeaveOneOut:
    """Return the same from the parts of a fit; the inverse is for one ridge, or for that of every target."""
    different, first, chosen = np.unique(scaled_ridge, return_index=True, return_inverse=True)
    if inverse.factors.shape[1] > len(different):
        inverse = replace(inverse, factors=inverse.factors[:, first])
    form = ridges_form(factor, centred, inverse, different, origin)
    if passes.leaves_groups:
        return _groups_left_out(passes, GroupsChosen(**form, chosen=chosen), inverse)
    task = ChosenLeftOut(**form, chosen=chosen)
    results, sums = passes.map_and_reduce(task, _along(passes, groups))
    left_out = left_out_results(passes, centred, inverse, results[:, 0], results[:, 1], sums)
    return replace(left_out, leverage=results[:, 2])


def _groups_left_out(passes: RowPasses, task: GroupsChosen, inverse: RidgeInverse) -> LeaveOneOut:
    """Return the results of rows that leave in groups, with pulls of as many groups as a quarter of memory holds."""
    rank, n_targets = len(inverse.root), len(task.target_mean)
    count = min(MOST_PULLS, max(100, passes.budget // (32 * rank * n_targets)))
    wanted = np.zeros(len(passes.left_out()), dtype=bool)
    wanted[passes.groups_at_random()[:count]] = True
    numbers = passes.left_out().kind
    both, pieces = passes.map_and_reduce(task, (numbers, (numbers >= 0) & wanted[numbers]))
    groups, features, constants = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    order = np.argsort(groups)
    turned = features[order].transpose(1, 0, 2)
    features = inverse.of_features(turned.reshape(rank, -1)).reshape(turned.shape).transpose(1, 0, 2)
    weights = passes.row_counts()
    unit = np.count_nonzero(weights) / weights.sum()
    nothing = np.zeros((rank, n_targets))
    pulls = GroupPulls(groups[order], features, constants[order])
    return LeaveOneOut(both[:, 0], both[:, 1], weights * unit, nothing, pulls)


def left_out_results(
    passes: RowPasses,
    centred: CentredMoments,
    inverse: RidgeInverse,
    residuals: Floats,
    potential: Floats,
    sums: Floats,
) -> LeaveOneOut:
    """Return the results of all rows, with the sums of features that are centred and in the coordinates of a root."""
    weights = passes.row_counts()
    size_sums = inverse.of_features(sums) + np.outer(centred.feature_mean, weights @ np.abs(residuals))
    return LeaveOneOut(residuals, potential, weights * (np.count_nonzero(weights) / weights.sum()), size_sums)


def left_out_errors(passes: RowPasses, fit: LandmarkFit) -> Floats:
    """Return the weighted mean squared residual of every target, for a fit of one ridge; it holds no residuals."""
    form = ridges_form(fit.factor, fit.centred, fit.inverse, fit.scaled_ridge[:1], fit.target_origin)
    return path_errors(passes, form, None)[0][0]


def path_errors(
    passes: RowPasses, parts: dict[str, Any], groups: RowGroups | None
) -> tuple[Floats, tuple[Floats, Floats] | None]:
    """Return the weighted mean squared residual of every ridge and target, from the `ridges_form`.

    Where that fits into memory, and rows do not leave in groups, return also what `LeftOut` gives for all rows.
    """
    total, (_, n_values) = passes.total_weight, parts["fits"].shape
    errors = (GroupErrors if passes.leaves_groups else LeftOutErrors)(**parts)
    if passes.beyond_memory:
        return passes.reduce(errors, numbers_in_partition if passes.has_groups else along_partition) / total, None
    along = _along(passes, groups)
    if not passes.leaves_groups and passes.holds(4 * (n_values + len(parts["scaled_ridge"]))):
        results, sums = passes.map_and_reduce(LeftOut(**parts), along)
        return np.einsum("i,igt->gt", passes.row_counts(), results[:, :, :-1] ** 2) / total, (results, sums)
    return passes.reduce(errors, along) / total, None


def _along(passes: RowPasses, groups: RowGroups | None = None) -> tuple[Any, ...]:
    if passes.leaves_groups:
        return (passes.left_out().kind,)
    return _sums_of(groups or passes.left_out_groups())


def _sums_of(groups: RowGroups) -> tuple[Floats, ...]:
    return (groups.weights,) if groups.gaps is None else (groups.weights, groups.gaps)


def along_partition(blocks: Iterable[Block]) -> tuple[Floats, ...]:
    """Return what `_along` does, with the groups of equal rows of one partition; equal rows elsewhere do not count."""
    of_blocks = [(row_hashes(block), row_weights(block), block.targets) for block in blocks]
    hashes, weights, targets = (np.concatenate(values) for values in zip(*of_blocks, strict=True))
    distinct = find_distinct(hashes, weights)
    return _sums_of(group_rows(distinct, weights, targets if distinct.has_repeats else None))


def numbers_in_partition(blocks: Iterable[Block]) -> tuple[Indices]:
    """Return what `_along` does, for the groups of one partition, which has all their rows."""
    of_blocks = [(block.groups, row_weights(block)) for block in blocks]
    labels, weights = (np.concatenate(values) for values in zip(*of_blocks, strict=True))
    return (find_distinct(labels, weights).kind,)


class LeftOut(RidgeTask):
    """A block's residuals for all ridges and targets, and last its potentials, by the formulas of `leave_one_out`.

    They have shape (rows, ridges, targets + 1). A second result is `R'Bc'W|r|`: products of their sizes with the
    features in the coordinates of the root R, shape (rank, ridges, targets). Given along are the weights of the rows'
    groups and, where rows are equal, the gaps of their targets from the groups' means.
    """

    what: ClassVar[str] = "leave-one-out"

    @property
    def width(self) -> int:
        return super().width + self.fits.shape[1] + len(self.scaled_ridge)

    def __call__(self, block: Block, workspace: Workspace) -> Any:
        results, coordinates = self.left_out(block, workspace)
        return results, size_sums(coordinates, block, results[:, :, :-1])

    def left_out(self, block: Block, workspace: Workspace) -> tuple[Floats, Floats]:
        """Return the residuals with the potentials, and the features in the coordinates of the root."""
        return self.with_leverage(block, workspace)[:2]

    def with_leverage(self, block: Block, workspace: Workspace) -> tuple[Floats, Floats, Floats]:
        """Return what `left_out` does, and t_i at every ridge, shape (rows, ridges)."""
        n_rows, n_ridges, n_targets = block.n_rows, len(self.scaled_ridge), len(self.target_mean)
        coordinates, lengths, squares = self.coordinates(block, workspace)
        unexplained, backend = self.unexplained(block, squares)[:, None], workspace.backend
        results = backend.empty((n_rows, n_ridges, n_targets + 1))
        results[:, :, :-1] = (block.targets - self.target_mean)[:, None, :]
        results[:, :, :-1] -= (coordinates @ self.fits).reshape(n_rows, n_ridges, n_targets)
        own, weights = row_weights(block)[:, None], block.along[0][:, None]
        leverage = backend.empty((n_rows, n_ridges))
        for rows in gen_batches(n_rows, _SQUARED_AT_ONCE if backend is NUMPY else n_rows):
            leverage[rows] = coordinates[rows] ** 2 @ self.inverse.factors
        leverage += self.share_of_constant
        kept = kept_share(leverage, lengths[:, None], weights, self.share_of_constant, self.scaled_ridge)
        pull = 1.0 / kept - 1.0  # h/(1 - h)
        results[:, :, :-1] /= kept[:, :, None]
        if len(block.along) > 1:
            results[:, :, :-1] += pull[:, :, None] * block.along[1][:, None, :]
        results[:, :, -1] = own * unexplained / self.scaled_ridge + backend.ratio(own, weights) * pull
        return results, coordinates, leverage


class LeftOutErrors(LeftOut):
    """The weighted sum of squared residuals for every ridge and target."""

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        squares = self.left_out(block, workspace)[0][:, :, :-1] ** 2
        return workspace.backend.xp.einsum("i,igt->gt", row_weights(block), squares)


class ChosenLeftOut(LeftOut):
    """Residuals, potentials and leverages at each target's own ridge, (rows, 3, targets), and the sums of `LeftOut`."""

    chosen: Indices

    def __call__(self, block: Block, workspace: Workspace) -> tuple[Floats, Floats]:
        results, coordinates, leverage = self.with_leverage(block, workspace)
        both = at_chosen(results, self.chosen)
        values = workspace.backend.xp.stack([*both, leverage[:, self.chosen]], axis=1)
        return values, size_sums(coordinates, block, both[0])


class GroupsLeftOut(LeftOut):
    """As `LeftOut`, each row without all rows of its group; given along is the number of each row's group.

    `GroupSystem` has the formula. `wants_variance` says whether potentials are complete.
    """

    on_device: ClassVar[bool] = False
    of_groups: ClassVar[bool] = True
    wants_variance: ClassVar[bool] = True

    @property
    def width(self) -> int:
        return super().width + self.kernel_entries

    @abstractmethod
    def __call__(self, block: Block, workspace: Workspace) -> Any:
        """Return what a pass needs of the residuals."""

    def left_out(self, block: Block, workspace: Workspace) -> tuple[Floats, Floats]:
        """Return the residuals with the potentials, and the features in the coordinates of the root.

        A group of very many rows is processed in parts; then the features are those of the last part.
        """
        sizes = group_sizes(block.along[0])
        if len(sizes) == 1 and block.n_rows > max(_LONG, len(self.inverse.root)):
            return self._in_parts(block, workspace)
        results, coordinates, root = self._in_fit(block, workspace)
        shrunk = workspace.array("shrunk", (block.n_rows, coordinates.shape[1] + 1))
        for k in range(len(self.scaled_ridge)):
            np.multiply(coordinates, np.sqrt(self.inverse.factors[:, k]), out=shrunk[:, :-1])
            shrunk[:, -1] = np.sqrt(self.share_of_constant)
            shrunk *= root
            system = GroupSystem.of(shrunk, sizes)
            left_out = system.solve(root * results[:, k, :-1])
            results[:, k, :-1] = np.where(root > 0.0, left_out / np.where(root > 0.0, root, 1.0), results[:, k, :-1])
            if self.wants_variance:
                results[:, k, -1] += system.variance()
        return results, coordinates

    def _in_fit(self, block: Block, workspace: Workspace) -> tuple[Floats, Floats, Floats]:
        """Return the residuals of the fit with the first part of the potentials, coordinates, and roots of weights."""
        coordinates, _, squares = self.coordinates(block, workspace)
        n_rows, n_ridges, n_targets = block.n_rows, len(self.scaled_ridge), len(self.target_mean)
        weights = row_weights(block)[:, None]
        results = np.empty((n_rows, n_ridges, n_targets + 1))
        results[:, :, :-1] = (block.targets - self.target_mean)[:, None, :]
        results[:, :, :-1] -= (coordinates @ self.fits).reshape(n_rows, n_ridges, n_targets)
        results[:, :, -1] = weights * self.unexplained(block, squares)[:, None] / self.scaled_ridge
        return results, coordinates, np.sqrt(weights)

    def _in_parts(self, block: Block, workspace: Workspace) -> tuple[Floats, Floats]:
        """Return the same for one group of very many rows, of which parts are in memory.

        A first walk over the parts sums `[c 1]'W [c 1]` and `[c 1]'W e`; a second one leaves the rows out.
        """
        gram: Any = 0.0
        pulled: Any = 0.0
        for part in block.parts(_LONG):
            results, coordinates, root = self._in_fit(part, workspace)
            weighted = root * np.column_stack([coordinates, np.ones(part.n_rows)])
            gram = gram + weighted.T @ weighted
            pulled = pulled + np.tensordot(weighted, root[:, :, None] * results[:, :, :-1], (0, 0))
        constant = np.full((1, len(self.scaled_ridge)), np.sqrt(self.share_of_constant))
        scales = np.vstack([np.sqrt(self.inverse.factors), constant])
        roots = [kept_root(scale[:, None] * gram * scale) * scale for scale in scales.T]
        moves = [root.T @ (root @ pulled[:, k]) for k, root in enumerate(roots)]
        every = []
        for part in block.parts(_LONG):
            results, coordinates, root = self._in_fit(part, workspace)
            rows = np.column_stack([coordinates, np.ones(part.n_rows)])
            for k, (move, inverse) in enumerate(zip(moves, roots, strict=True)):
                results[:, k, :-1] += rows @ move
                if self.wants_variance:
                    results[:, k, -1] += ((root * rows @ inverse.T) ** 2).sum(axis=1)
            every.append(results)
        return np.concatenate(every), coordinates


class GroupErrors(LeftOutErrors, GroupsLeftOut):
    """As `LeftOutErrors`, for groups."""

    wants_variance: ClassVar[bool] = False


class GroupsChosen(GroupsLeftOut):
    """Residuals and potentials at each target's own ridge, shape (rows, 2, targets), and pulls of some groups.

    A second result is a list of one triple: numbers of groups, `C'W r` with C the features in the coordinates of the
    root, and `sum w r`. Given along, second, is whether a row's group is one of these.
    """

    chosen: Indices

    def __call__(self, block: Block, workspace: Workspace) -> tuple[Floats, list[tuple[Indices, Floats, Floats]]]:
        results, coordinates = self.left_out(block, workspace)
        both, sizes = at_chosen(results, self.chosen), group_sizes(block.along[0])
        if len(coordinates) < block.n_rows:
            return np.stack(both, axis=1), self._pulls_in_parts(block, workspace, both[0])
        starts = np.cumsum(sizes) - sizes
        numbers, wanted = (values[starts] for values in block.along)
        weighted, rows = row_weights(block)[:, None] * both[0], np.repeat(wanted, sizes)
        pulls = np.zeros((np.count_nonzero(wanted), coordinates.shape[1], weighted.shape[1]))
        if len(pulls):
            features, starts = coordinates[rows], np.cumsum(sizes[wanted]) - sizes[wanted]
            for t, of_target in enumerate(weighted[rows].T):
                pulls[:, :, t] = np.add.reduceat(features * of_target[:, None], starts)
        constants = np.add.reduceat(weighted, np.cumsum(sizes) - sizes)[wanted]
        return np.stack(both, axis=1), [(numbers[wanted], pulls, constants)]

    def _pulls_in_parts(
        self, block: Block, workspace: Workspace, residuals: Floats
    ) -> list[tuple[Indices, Floats, Floats]]:
        """Return the pulls of one group whose features are not in memory together."""
        numbers, wanted = (values[:1] for values in block.along)
        if not wanted[0]:
            return []
        weighted, first = row_weights(block)[:, None] * residuals, 0
        pulls = np.zeros((len(self.inverse.root), residuals.shape[1]))
        for part in block.parts(_LONG):
            last = first + part.n_rows
            pulls += self.coordinates(part, workspace)[0].T @ weighted[first:last]
            first = last
        return [(numbers, pulls[None], weighted.sum(axis=0)[None])]


def at_chosen(results: Floats, chosen: Indices) -> tuple[Floats, Floats]:
    """Pick residuals and potentials at each target's ridge from those at all ridges."""
    return results[:, chosen, np.arange(len(chosen))], results[:, chosen, -1]


def size_sums(features: Floats, block: Block, residuals: Floats) -> Floats:
    """Return `C'W|r|` for the features C of a block and residuals r of any shape."""
    weighted = abs(residuals.reshape(block.n_rows, -1)) * row_weights(block)[:, None]
    # `(W'C)'`, as BLAS multiplies a few columns faster from the left.
    return (weighted.T @ features).T.reshape(features.shape[1], *residuals.shape[1:])
