"""Rows drawn from all rows: a sample that is left out to choose a ridge, and the rows whose sums make a system.

The classes of most rows are nearly certain, and their curvature is tiny: a target's system needs few rows, those with
large leverage in it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ridgemark.backends import Array, Floats, Indices
from ridgemark.losses import Loss, thinned
from ridgemark.operators import NystromFactor
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.solvers.curvature import TargetSystems
from ridgemark.solvers.feature_rows import FeatureRows, features_of

_SAMPLED = 8192  # distinct rows that are left out
_SAMPLED_OF_GROUPS, _FEWEST_GROUPS = 4096, 4  # rows that leave in groups, and groups
_PER_DIMENSION, _FEWEST = 8, 256  # a target's system has 256 rows, and 8 more for each effective dimension
_DRAWN_FROM = 2**16  # distinct rows from which those of a system are drawn, where features are not held
_PROBES = 16  # random vectors that estimate leverages


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Some rows of a fit, in random order: the order of hashes."""

    passes: RowPasses
    factor: NystromFactor
    loss: Loss
    fit_intercept: bool
    held: FeatureRows | None  # the features of all rows, where memory has room

    def with_loss(self, loss: Loss, passes: RowPasses) -> DrawnRows:
        """Return the same rows with another loss, and with the targets of these passes; features are shared."""
        other = replace(self, loss=loss, passes=passes)
        other.__dict__["sampled"] = self.sampled
        return other

    @cached_property
    def sample(self) -> RowPasses:
        """At most 8,192 distinct rows, each with the weight and mean target of its equals; single rows in cells.

        Where rows leave in groups, the single rows of whole groups: at least four, and then at most 4,096 rows.
        """
        return self._drawn(_SAMPLED)

    @cached_property
    def by_group(self) -> tuple[Indices, Indices]:
        """The rows of the sample sorted by group, the smallest groups first, and the sizes of the groups."""
        rows = self.passes.single_rows()[: self.sample.source.n_rows]
        _, which, sizes = np.unique(self.passes.left_out().kind[rows], return_inverse=True, return_counts=True)
        return np.lexsort((which, sizes[which])), np.sort(sizes)

    @cached_property
    def sampled(self) -> FeatureRows:
        """The features of the sample, in memory where the memory budget has room for them too."""
        rows, taken = features_of(self.sample, self.factor), 4 * self.passes.source.n_rows if self.held else 0
        fits = (taken + 8 * self.sample.source.n_rows) * self.factor.rank <= rows.room
        return rows.held("float64") if fits else rows

    @cached_property
    def members(self) -> tuple[Floats, Floats, Indices | None]:
        """Targets, weights, and position in the sample of the rows that are left out with each row of the sample.

        Where the loss is linear in the targets, or no rows are equal, these are the rows of the sample.
        """
        alone = self.passes.leaves_groups or not self.passes.left_out().has_repeats
        if self.loss.linear_in_targets or alone:
            return self.sample.targets(), self.sample.row_counts(), None
        rows, group = self.single_rows
        return self.passes.targets()[rows], self.passes.row_counts()[rows], group

    @cached_property
    def single_rows(self) -> tuple[Indices, Indices]:
        """Numbers of all rows that equal one of the sample, and the position of each in the sample."""
        if self.passes.leaves_groups:
            count = self.sample.source.n_rows
            return self.passes.single_rows()[:count], np.arange(count)
        kind = self.passes.left_out().kind
        rows = np.flatnonzero((kind >= 0) & (kind < self.sample.source.n_rows))
        return rows, kind[rows]

    def group_sums(self, loss: Loss, predictor: Floats) -> tuple[Floats, Floats]:
        """Return the sums of slopes (m, t) and curvatures (m,) over the rows left out with each row of the sample."""
        targets, weights, group = self.members
        predictor = predictor if group is None else predictor[group]
        slopes = weights[:, None] * loss.slopes(targets, predictor)
        curvature = weights * loss.leaving_out().curvature(targets, predictor)
        if group is None:
            return slopes, curvature
        count = self.sample.source.n_rows
        summed = np.stack(
            [np.bincount(group, column, count).astype(float) for column in (*slopes.T, curvature)], axis=1
        )
        return summed[:, :-1], summed[:, -1]

    @property
    def n_systems(self) -> int:
        """One for each target; or one of mean curvature for all, if those take more than half of the memory budget."""
        t = self.passes.source.n_targets
        return t if 8 * t * (self.factor.rank + 1) ** 2 <= self.passes.budget // 2 else 1

    def curvature(self, targets: Array, predictor: Array) -> Array:
        """Return the curvature of rows in each system, shape (rows, systems)."""
        if self.n_systems < predictor.shape[1]:
            return self.loss.curvature(targets, predictor)[:, None]
        return self.loss.curvature_diagonal(targets, predictor)

    def systems(self, vectors: Floats, scaled_ridge: float, nearby: TargetSystems) -> TargetSystems:
        """Return the systems of a point: rows are drawn by their leverage in the systems of a point nearby."""
        rows, places, counts, targets = self._candidates
        there = rows.backend.from_host(targets)
        curvature = rows.backend.to_host(self.curvature(there, rows.values(vectors)[places]))
        weights = counts[:, None] * np.asfortranarray(curvature)  # it is read by columns
        leverages = self._leverages(weights, nearby)
        dimensions = np.minimum(leverages.sum(axis=0), self.factor.rank)
        drawn = thinned(weights, leverages, [_FEWEST + round(_PER_DIMENSION * dimension) for dimension in dimensions])
        blocks = np.stack([rows.gram(column[column > 0], places[column > 0]) for column in drawn.T])
        return TargetSystems(blocks, drawn[: self.sample.source.n_rows], self.fit_intercept, scaled_ridge)

    def _leverages(self, weights: Floats, systems: TargetSystems) -> Floats:
        """Estimate `d_ik z_i'F_k F_k'z_i`, with d_ik the weights, as `d_ik |G'F_k'z_i|^2`, at most 1.

        G has random columns, with the identity as expected value of `G G'`: a few give the order of magnitude.
        """
        rows, places, *_ = self._candidates
        probes = np.random.default_rng(0).normal(size=(self.factor.rank + 1, _PROBES)) / np.sqrt(_PROBES)
        leverages = np.empty_like(weights)
        for k, probed in enumerate(systems.times(probes)):
            reached = rows.backend.to_host(rows.backend.squared_norms(rows.values(probed)))[places]
            # A leverage beyond the floating-point range counts as 1.
            leverages[:, k] = np.fmin(weights[:, k] * reached, 1.0)
        return leverages

    @cached_property
    def _candidates(self) -> tuple[FeatureRows, Indices, Floats, Floats]:
        """The rows from which those of a target's system are drawn: features, positions, weights and targets.

        If the features of all rows are held, all rows are candidates. Otherwise at most 65,536 distinct rows are, of
        which the sample comes first; their weights are raised to the total weight of all rows.
        """
        if self.held:
            places = self.passes.units_left_out()[0]
            return self.held, places, self.passes.units_left_out()[1].weights[places], self.passes.targets()[places]
        rows, sample = self.sampled, self.sample
        if self.passes.n_left_out > _SAMPLED:
            sample = self._drawn(_DRAWN_FROM)
            rows = features_of(sample, self.factor)
        counts = sample.row_counts()
        raised = self.passes.row_counts().sum() / counts.sum() * counts
        return rows, np.arange(len(counts)), raised, sample.targets()

    def _drawn(self, most: int) -> RowPasses:
        passes, (units, groups) = self.passes, self.passes.units_left_out()  # in random order
        if passes.leaves_groups and most == _SAMPLED:
            most = _whole(passes.left_out().kind[units])
        taken = passes.take_groups(units[:most], groups)
        labels = taken.groups if passes.leaves_groups else None
        return RowPasses(ArrayRows(taken.features, taken.targets, taken.weights, labels), passes.memory_budget)


def _whole(groups: Indices) -> int:
    """Return how many rows, sorted by group, make whole groups: four, or as many as have at most 4,096 rows."""
    ends = np.append(np.flatnonzero(np.diff(groups)) + 1, len(groups))
    within = int(np.searchsorted(ends, _SAMPLED_OF_GROUPS, side="right"))
    return int(ends[min(max(within, _FEWEST_GROUPS), len(ends)) - 1])
