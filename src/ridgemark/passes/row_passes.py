"""Passes over one source: the results of tasks, and facts about the rows that several steps of a fit need."""

import copy
from dataclasses import replace
from operator import attrgetter
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Floats, Indices
from ridgemark.passes.columns import Columns
from ridgemark.passes.engine import TaskRunner
from ridgemark.passes.sample import SampledRows, sample_rows
from ridgemark.passes.task import BlockFunction, Cost, Task, ThreadExecutor, Workspace, prepared
from ridgemark.rows import (
    ArrayRows,
    Block,
    DistinctRows,
    RowGroups,
    RowSource,
    find_distinct,
    group_rows,
    row_hashes,
    row_weights,
)
from ridgemark.rows.base import unit_of_weights
from ridgemark.rows.groups import labelled_rows

# Rows are cells of a table if every column has two values, and at most 20 rows are distinct, each with ten equal rows
# or more on average.
_MOST_CELLS, _ROWS_PER_CELL = 20, 10


class Survey(Task):
    """The hash of every row of a block, and the block's columns; both on the host."""

    what: ClassVar[str] = "distinct rows"

    def __call__(self, block: Block, workspace: Workspace) -> tuple[NDArray[np.uint64], Columns]:
        return row_hashes(block), Columns.of(block.features, row_weights(block))


class RowPasses(TaskRunner):
    """Runs tasks over one source, and keeps facts about its rows: weights, equal rows, columns, a sample."""

    _weights: Floats | None = None
    _targets: Floats | None = None
    _surveyed: tuple[DistinctRows, Columns] | None = None
    _groups: RowGroups | None = None
    _left_out: DistinctRows | None = None
    _labels: NDArray[np.uint64] | None = None
    _sampled: tuple[SampledRows, int, Columns] | None = None

    def with_source(self, source: RowSource) -> Self:
        """Return passes over a source of the same rows with other targets; what is known of the rows is shared."""
        other = copy.copy(self)
        other.source, other.cost, other.executor = source, Cost(), ThreadExecutor()
        other.held, other._room, other._there = None, {}, {}
        other._targets = other._groups = other._sampled = None
        return other

    @property
    def n_distinct(self) -> int:
        """Number of distinct rows; an estimate from the sample beyond the memory budget."""
        return self.sample()[1] if self.beyond_memory else len(self.distinct_rows())

    @property
    def n_left_out(self) -> int:
        """Number of groups that leave-one-out leaves out; of distinct rows where rows have labels of groups.

        It is the number of observations in generalised cross-validation, which knows nothing of groups.
        """
        alone = self.beyond_memory or self.leaves_groups
        return self.n_distinct if alone else len(self.left_out())

    @property
    def leaves_groups(self) -> bool:
        """Whether several rows, of any features, leave together: those with equal labels."""
        return self.has_groups and (self.beyond_memory or self.left_out().has_repeats)

    @property
    def group_labels(self) -> NDArray[np.uint64]:
        """The hash of the label of every row's group; it is kept."""
        if self._labels is None:
            self._labels = self.map(BlockFunction("groups", attrgetter("groups")))
        return self._labels

    @property
    def total_weight(self) -> float:
        """The sum of weights."""
        return self.columns().weight if self.beyond_memory else float(self.row_counts().sum())

    def take(self, indices: Indices) -> Block:
        """Return some rows, in float64."""
        return prepared(self.source.take(indices), self.weight_unit)

    def take_groups(self, indices: Indices, groups: RowGroups | None = None) -> Block:
        """Return some rows, each with the weight and the mean target of its group: of all equal rows, by default."""
        taken, groups = self.take(indices), groups or self.row_groups()
        targets = taken.targets if groups.gaps is None else taken.targets + groups.gaps[indices]
        return replace(taken, targets=targets, weights=groups.weights[indices])

    def targets(self) -> Floats:
        """Return the targets of every row, read-only: they are kept."""
        if self._targets is None:
            self._targets = self.map(BlockFunction("targets", attrgetter("targets")))
            self._targets.flags.writeable = False
        return self._targets

    def weights(self) -> Floats | None:
        """Return the weight of every row; None where rows have none."""
        if self._weights is None and (self.source.has_weights or self.weight_unit != 1.0):
            self._weights = self.map(BlockFunction("weights", row_weights))
        return self._weights

    def normalise_weights(self) -> None:
        """Take as unit of the weights the power of two nearest the mean positive weight.

        Weights are relative. In this unit a factor that is a power of two changes no bit of a result.
        """
        if self.beyond_memory and self.source.has_weights:
            total, count = self.reduce(BlockFunction("weights", _weight_and_count))
            self.weight_unit *= unit_of_weights(np.array([total / count]))
        weights = None if self.beyond_memory else self.weights()
        if weights is not None:
            unit = unit_of_weights(weights)
            self.weight_unit *= unit
            self._weights = weights / unit

    def row_counts(self) -> Floats:
        """Return the weight of every row; ones where rows have none."""
        self.require_memory()
        weights = self.weights()
        return np.ones(self.source.n_rows) if weights is None else weights

    def distinct_rows(self) -> DistinctRows:
        """Find equal rows by a 64-bit hash of their bits.

        Two different rows have the same hash with probability at most n^2/2^64. The result is kept: a second call takes
        no pass.
        """
        return self._survey()[0]

    def columns(self) -> Columns:
        """Return means and extents of the columns, found in the pass that finds equal rows."""
        return self.sample()[2] if self.beyond_memory else self._survey()[1]

    def sample(self) -> tuple[SampledRows, int, Columns]:
        """Return a uniform sample of the distinct rows, an estimate of their number, and the columns; it is kept.

        The sample has the rows with the smallest hashes, so a row is in it with all that equal it; where rows have
        labels of groups, the groups with the smallest ones. It takes one pass, and a second one if so many rows are
        equal that the first found too few distinct rows.
        """
        if self._sampled is None:
            n_groups = getattr(self.source, "n_groups", None)
            run = lambda task: (piece for _, piece, _ in self._run(task, ()))  # noqa: E731
            self._sampled = sample_rows(run, self.source.n_rows, n_groups)
        return self._sampled

    def units_left_out(self) -> tuple[Indices, RowGroups]:
        """Return one row for each group of equal rows that is left out, in random order, and sums over these groups.

        Where rows leave in groups of any rows, all single rows, those of a group one after the other.
        """
        if not self.leaves_groups:
            return self.left_out().indices, self.left_out_groups()
        return self.single_rows(), RowGroups(self.row_counts(), None)

    def single_rows(self) -> Indices:
        """Return the rows of positive weight, sorted by their groups, which are in random order."""
        kind = self.left_out().kind
        place = np.empty(len(self.left_out()), dtype=np.intp)
        place[self.groups_at_random()] = np.arange(len(place))
        rows = np.flatnonzero(kind >= 0)
        return rows[np.argsort(place[kind[rows]], kind="stable")]

    def sample_of_groups(self) -> Self:
        """Return passes over some whole groups, drawn uniformly: 30 of them and 2,048 rows, or 8 and 8,192, or all."""
        left_out = self.left_out()
        sizes = np.cumsum(left_out.totals((left_out.kind >= 0).astype(float))[self.groups_at_random()])
        enough = [np.searchsorted(sizes, n_rows) + 1 for n_rows in (2048, 8192)]
        count = min(max(enough[0], 30), max(enough[1], 8), len(sizes))
        if count == len(sizes):
            return self
        return self.passes_over_rows(np.flatnonzero(np.isin(left_out.kind, self.groups_at_random()[:count])))

    def passes_over_rows(self, rows: Indices) -> Self:
        """Return passes over some rows, in memory."""
        taken = self.take(rows)
        source = ArrayRows(taken.features, taken.targets, taken.weights, taken.groups)
        return type(self)(source, self.memory_budget)

    def groups_at_random(self) -> Indices:
        """Return the groups of `left_out` in the order of their labels' hashes, which knows nothing of their sizes."""
        left_out = self.left_out()
        return np.argsort(self.group_labels[left_out.indices])

    def passes_over_sample(self) -> Self:
        """Return passes over the sample, in memory."""
        rows = self.sample()[0]
        source = ArrayRows(rows.features, rows.targets if self.source.n_targets else None, rows.weights, rows.groups)
        source.feature_names, source.encoder = self.source.feature_names, getattr(self.source, "encoder", None)
        return type(self)(source, self.memory_budget, self.progress)

    def _survey(self) -> tuple[DistinctRows, Columns]:
        self.require_memory()
        if self._surveyed is None:
            weights = self.weights()
            hashes, columns = self.map_and_reduce(Survey())
            self._surveyed = find_distinct(hashes, weights, self.backend), columns
        return self._surveyed

    def row_groups(self) -> RowGroups:
        """Return the groups of equal rows; where rows repeat, with one pass over the targets. The result is kept."""
        if self._groups is None:
            distinct, weights = self.distinct_rows(), self.row_counts()
            repeats = distinct.has_repeats
            self._groups = group_rows(distinct, weights, self.targets().copy()) if repeats else RowGroups(weights, None)
        return self._groups

    def with_groups(self, groups: RowGroups) -> Self:
        """Set the groups of equal rows among all rows, for passes over a sample of these; return the passes."""
        self._groups = groups
        return self

    def left_out(self) -> DistinctRows:
        """Return the groups that leave-one-out leaves out: of equal rows, or of one row each in cells of a table.

        Where rows have labels of groups, these are the groups. Otherwise rows are cells of a table if every column has
        two values, as indicators of categories have, and at most 20 rows are distinct, with ten equal rows or more for
        each on average. A new row then equals some training rows, and a fit without all of these would have no data for
        its cell: rows are left out one by one. The result is kept.
        """
        if self._left_out is None:
            distinct, columns = self._survey()
            if self.has_groups:
                self._left_out = labelled_rows(self.group_labels, distinct)
                return self._left_out
            is_table = len(distinct) <= _MOST_CELLS and bool(columns.two_valued.all())
            cells = is_table and np.count_nonzero(distinct.kind >= 0) >= _ROWS_PER_CELL * len(distinct)
            self._left_out = distinct.one_by_one() if cells else distinct
        return self._left_out

    def left_out_groups(self) -> RowGroups:
        """Return the weight and the mean target of each group of `left_out`."""
        left_out = self.left_out()
        return self.row_groups() if left_out is self.distinct_rows() else group_rows(left_out, self.row_counts(), None)


def _weight_and_count(block: Block) -> Floats:
    weights = row_weights(block)
    return np.array([weights.sum(), np.count_nonzero(weights)])
