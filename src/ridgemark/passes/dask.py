"""The executor for partitions of Dask: each is processed where it is, by workers of the current client or threads."""

import os
import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import NUMPY, Backend, on_host, one_blas_thread
from ridgemark.passes.device import DeviceExecutor, placed
from ridgemark.passes.task import Clock, Task, Workspace, added, prepared
from ridgemark.passes.whole_groups import whole_groups
from ridgemark.rows.base import BaseRows, Block
from ridgemark.rows.dask import DaskRows, Reading, computed, current_client, delayed, delayed_value

Along = Sequence[NDArray[Any]] | Callable[[Iterable[Block]], Sequence[NDArray[Any]]]
"""Values along the rows, or a function that makes those of a partition from its blocks."""

_CHAIN = 64  # partitions added up one after the other, at most
_FAN_IN = 4  # sums added at once, in the tree over chains


@dataclass(frozen=True, eq=False)
class PartitionTask:
    """A task with all that a worker needs to run it on the blocks of a partition."""

    task: Task
    reading: Reading
    block_rows: int
    weight_unit: float
    backend: Backend

    def __sizeof__(self) -> int:
        """Return the bytes that are sent, by which Dask plans; arrays are not copied for that."""
        arrays: list[pickle.PickleBuffer] = []
        try:
            rest = len(pickle.dumps(self, protocol=5, buffer_callback=arrays.append))
        except (pickle.PicklingError, AttributeError, TypeError):  # a local function, which cloudpickle sends
            return object.__sizeof__(self)
        return rest + sum(array.raw().nbytes for array in arrays)

    def results(self, first: int, along: Along, part: Sequence[Any]) -> Iterator[tuple[Block, Any]]:
        """Yield the blocks of a partition, whose first row has the number `first`, and their results."""
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            rows = self.reading(*part)
            backend, task = self._placed(rows)
            if callable(along):
                along = along(prepared(whole, self.weight_unit) for whole in rows.blocks(self.block_rows))

            def work(block: Block, workspace: Workspace) -> Any:
                own = slice(block.start, block.start + block.n_rows) if block.taken is None else block.taken
                block = replace(block, start=first + block.start, along=tuple(values[own] for values in along))
                block = block if backend is NUMPY else replace(block, groups=None)
                return on_host(task(prepared(block, self.weight_unit, backend), workspace), backend)

            blocks = rows.blocks(self.block_rows)
            if self.task.of_groups:
                blocks = map(rows.take, whole_groups(along[0], self.block_rows))
            if backend is NUMPY:
                workspace = Workspace()
                yield from ((block, work(block, workspace)) for block in blocks)
            else:
                yield from DeviceExecutor(backend).in_order(work, blocks, 1, Clock())

    def _placed(self, rows: BaseRows) -> tuple[Backend, Task]:
        """Return where this worker computes with these rows, and the task there; a device gets its arrays once."""
        if self.backend is NUMPY or not self.task.on_device:
            return NUMPY, self.task
        if self not in _there:
            _there[self] = placed(self.task, self.backend, rows.take([0]).features)
        return _there[self]


_there: WeakKeyDictionary[PartitionTask, tuple[Backend, Task]] = WeakKeyDictionary()


def each_block(source: DaskRows, work: PartitionTask, along: Along) -> Iterator[tuple[int, int, Any]]:
    """Yield first row, number of rows and result of each block, in row order."""
    copies, arguments = _copies(work), _arguments(source, along)
    calls = [delayed(_mapped)(copies[k * len(copies) // len(arguments)], *part) for k, part in enumerate(arguments)]
    for first, results in zip(source.bounds[:-1], computed(calls), strict=True):
        row = int(first)
        for n_rows, result in results:
            yield row, n_rows, result
            row += n_rows


def total(source: DaskRows, work: PartitionTask, along: Along) -> Any:
    """Return the sum of all results: over the partitions of each worker one after the other, then by a tree.

    A sum is sent only from one worker to another, and last to the client.
    """
    copies, calls = cycle(_copies(work)), _arguments(source, along)

    def chained(chain: Sequence[int]) -> Any:
        so_far, task = None, next(copies)
        for k in chain:
            so_far = delayed(_added)(task, *calls[k], so_far=so_far)
        return so_far

    of_groups = [_tree([chained(chain) for chain in chains]) for chains in _chains(source)]
    return computed([_tree(of_groups)])[0]


def _copies(work: PartitionTask) -> list[Any]:
    """Return one copy of a task for each worker: Dask runs a call on a worker that has its arguments."""
    client = current_client()
    return [delayed_value(work) for _ in range(max(1, 0 if client is None else len(client.nthreads())))]


def _tree(sums: list[Any]) -> Any:
    """Return the sum of delayed sums, a few at a time."""
    while len(sums) > 1:
        sums = [delayed(_sum)(sums[k : k + _FAN_IN]) for k in range(0, len(sums), _FAN_IN)]
    return sums[0]


def _arguments(source: DaskRows, along: Along) -> list[tuple[Any, ...]]:
    """Return of each partition: its first row, its rows of `along`, and itself."""
    return [
        (first, along if callable(along) else [values[first:last] for values in along], *part)
        for (first, last), part in zip(pairwise(source.bounds.tolist()), source.partitions, strict=True)
    ]


def _chains(source: DaskRows) -> list[list[list[int]]]:
    """Return, for each worker that holds partitions, chains of them that are added up one after the other.

    There are as many chains as threads, or more where they would be long: a chain that is lost is computed again.
    Partitions that Dask does not hold form one more group, chains of neighbours.
    """
    client, n_parts = current_client(), len(source.partitions)
    threads = {} if client is None else client.nthreads()
    places = {} if client is None else source.places(client)
    groups: dict[Any, list[int]] = defaultdict(list)
    for k in range(n_parts):
        groups[places.get(k)].append(k)
    everywhere = sum(threads.values()) or os.cpu_count() or 1
    sizes = {place: min(_CHAIN, -(-len(held) // threads.get(place, everywhere))) for place, held in groups.items()}
    return [[held[k : k + sizes[place]] for k in range(0, len(held), sizes[place])] for place, held in groups.items()]


def _mapped(work: PartitionTask, first: int, along: Along, *part: Any) -> list[tuple[int, Any]]:
    results = list(work.results(first, along, part))
    if work.task.of_groups:
        return [(sum(block.n_rows for block, _ in results), _in_row_order(results))]
    return [(block.n_rows, result) for block, result in results]


def _in_row_order(results: Sequence[tuple[Block, Any]]) -> Any:
    """Return the results of blocks of whole groups as that of one block: rows stacked in their order, sums added."""
    order = np.argsort(np.concatenate([block.taken for block, _ in results if block.taken is not None]))
    of_rows, sums = zip(
        *(result if isinstance(result, tuple) else (result, None) for _, result in results), strict=True
    )
    stacked = np.concatenate(of_rows)[order]
    return stacked if sums[0] is None else (stacked, _sum(sums))


def _added(work: PartitionTask, first: int, along: Along, *part: Any, so_far: Any = None) -> Any:
    return _sum((result for _, result in work.results(first, along, part)), so_far)


def _sum(values: Any, so_far: Any = None) -> Any:
    """Return the sum; what another task made is not changed."""
    total, own = so_far, False
    for value in values:
        if total is None or own:
            total = added(total, value)
        else:
            total, own = total + value, True
    return total
