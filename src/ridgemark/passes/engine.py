"""Run a task on every block of one source, stack or add up the results, and keep count of the cost."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from time import perf_counter
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import NUMPY, Backend, Floats, current_backend, moved, on_host
from ridgemark.errors import ParameterError
from ridgemark.passes.dask import Along, PartitionTask, each_block, total
from ridgemark.passes.device import DeviceExecutor, device_rows, placed
from ridgemark.passes.journal import Journal, Key
from ridgemark.passes.progress import Progress
from ridgemark.passes.task import Clock, Cost, Task, ThreadExecutor, Workspace, added, prepared
from ridgemark.passes.whole_groups import whole_groups
from ridgemark.rows import DEFAULT_MEMORY_BUDGET, Block, DaskRows, RowSource, block_rows_for

Result = TypeVar("Result")


# Blocks beyond this many rows run no faster and fall out of the processor's cache; wide blocks beyond half of it.
_LARGEST_BLOCK = 2048
_WIDE = 1024
# Blocks below this many rows spend more time on overhead than on arithmetic.
_SMALLEST_BLOCK = 256
# Blocks that short data are cut into, so that several threads have work; a constant, so that sums do not depend on
# the number of threads.
_FEWEST_BLOCKS = 8
# Vectors of one number for each row that a fit of rows on workers keeps.
_VECTORS = 8
# Blocks that the memory budget must hold in addition to the one being read; more are processed where there is room.
_BLOCKS_AT_WORK = 4
# Share, 1/16, of the free memory of a device that rows may take between passes.
_SHARE_OF_DEVICE = 16


class TaskRunner:
    """Runs tasks over one source and keeps count; on the device of `computing_on` where they are made.

    Parameters
    ----------
    source : RowSource
        The rows.
    memory_budget : int, optional
        Bytes for the blocks of a pass; 1 GiB when not given.
    progress : callable, optional
        Called after every block as `progress(what, rows_done, n_rows)`.
    weight_unit : float, default=1
        Divides all weights; rows without weights have the weight 1 before. See `normalise_weights`.
    journal : Journal, optional
        Keeps what passes give, for a fit that goes on after a kill.
    """

    def __init__(
        self,
        source: RowSource,
        memory_budget: int | None = None,
        progress: Progress | None = None,
        weight_unit: float = 1.0,
        journal: Journal | None = None,
    ) -> None:
        self.source, self.memory_budget, self.progress, self.weight_unit = source, memory_budget, progress, weight_unit
        self.budget = DEFAULT_MEMORY_BUDGET if memory_budget is None else memory_budget  # bytes for arrays of a fit
        self.journal = journal
        self.cost = Cost()
        self.backend = current_backend()
        self.executor = ThreadExecutor()
        self._room: dict[Backend, int] = {}  # bytes of a device that further rows may take
        self._there: dict[tuple[Backend, int, int], Block] = {}  # by their first row and number: blocks on a device
        self.held: tuple[Any, Floats] | None = None  # a kernel bound to landmarks, and the features of all rows from it
        self.has_groups = bool(getattr(source, "has_groups", False))  # whether rows have labels of groups
        self.remote = isinstance(source, DaskRows)  # whether rows stay on workers, and only results of a pass come
        # Whether, besides, the vectors of one number for each row exceed the budget.
        self.beyond_memory = self.remote and 8 * source.n_rows * _VECTORS > self.budget

    def holds(self, n_columns: int) -> bool:
        """Return whether arrays of this many numbers for each row may be kept: in the budget, and the rows here too."""
        return not self.remote and 8 * self.source.n_rows * n_columns <= self.budget

    def require_memory(self) -> None:
        """Refuse vectors of one number for each row that exceed the budget."""
        if self.beyond_memory:
            raise ParameterError(
                f"this needs {_VECTORS} numbers for each of {self.source.n_rows:,} rows in the memory of this process, "
                f"more than memory_budget={self.budget}; give at least {8 * self.source.n_rows * _VECTORS}"
            )

    @property
    def n_passes(self) -> int:
        """Passes over the rows so far."""
        return self.cost.n_passes

    @property
    def n_kernel_evaluations(self) -> int:
        """Kernel entries evaluated so far."""
        return self.cost.n_kernel_evaluations

    def count_entries(self, kernel_entries: int) -> None:
        """Count kernel entries that were evaluated outside a pass."""
        self.cost += Cost(n_kernel_evaluations=kernel_entries)

    def map(self, task: Task, along: Along = (), out: Any = None) -> NDArray[Any]:
        """Return the task's results, one row for each row, stacked in row order into `out` or a new array.

        A task of whole groups takes `along` first the number of each row's group.

        `out` may be on the device that computes, unless rows are on workers of Dask. A journal keeps a new array only:
        one that the caller provides is large.
        """
        self.require_memory()
        stacked: NDArray[Any] = out
        if out is not None:
            for _ in self._run(task, along, out=out):
                pass
        elif self.journal is None:
            stacked = self._stacked(task, along)
        else:
            stacked = self._kept(self.journal, task, 0, lambda key: self._stacked(task, along, key))
        return stacked

    def map_and_reduce(self, task: Task, along: Along = ()) -> tuple[NDArray[Any], Any]:
        """Return, for a task of two results, the first stacked and the sum of the second, both in row order."""
        self.require_memory()
        results: tuple[NDArray[Any], Any]
        if self.journal is None:
            results = self._stacked(task, along, adds=True)
        else:
            results = self._kept(self.journal, task, 0, lambda key: self._stacked(task, along, key, adds=True))
        return results

    def reduce(self, task: Task, along: Along = (), start: int = 0, stays: bool = False) -> Any:
        """Return the sum, in row order, of the task's results from row `start` on; results must support `+`.

        With `stays` a sum on a device may stay there.
        """
        if self.journal is None:
            total = self._sum(task, along, start)
            return total if stays else on_host(total, self.backend)
        return self._kept(
            self.journal, task, start, lambda key: on_host(self._sum(task, along, start, key), self.backend)
        )

    def recall(self, name: str, rng: np.random.Generator, compute: Callable[[Self], Result]) -> Result:
        """Return what a long step gives, from the journal where it is there.

        The step may change nothing but the generator's state and the cost. It computes with a copy of these passes,
        which keeps nothing in the journal: a run that goes on takes the same passes after the step.
        """
        journal = self.journal
        if journal is None:
            return compute(self)
        key = journal.next_key(name)
        if key in journal:
            result, state, spent = journal.pop(key)
            rng.bit_generator.state = state
        else:
            passes = copy.copy(self)
            passes.journal, passes.cost = None, Cost()
            result, spent = compute(passes), Cost(passes.n_passes, passes.n_kernel_evaluations)
            journal.keep(key, (result, rng.bit_generator.state, spent))
        self.cost += spent
        return result

    def _kept(self, journal: Journal, task: Task, start: int, compute: Callable[[Key | None], Any]) -> Any:
        """Return what a pass gives, from the journal where it is there."""
        key = journal.next_key("pass")
        if key in journal:
            self.cost += Cost(1, self._entries(task) * (self.source.n_rows - start))
        # What workers compute is kept when the pass has ended.
        return journal.recall(key, lambda: compute(None if self.remote else key))

    def _begun(self, task: Task, start: int, key: Key) -> tuple[int, Any]:
        """Return the row that a pass goes on from, and what it gave so far."""
        begun: tuple[int, Any] | None = None if self.journal is None else self.journal.so_far(key)
        if begun is None:
            return start, None
        self.cost += Cost(0, self._entries(task) * (begun[0] - start))
        return begun

    def _note(self, key: Key, block: Block, so_far: Any) -> None:
        """Write how far a pass has come, when it is time; nothing after its last block."""
        row = block.start + block.n_rows
        # Sums on a device stay there until the pass has ended.
        journal = self.journal if self.backend is NUMPY else None
        if journal is not None and journal.is_due and row < self.source.n_rows:
            journal.write(key, (row, so_far))

    def _stacked(self, task: Task, along: Along, key: Key | None = None, adds: bool = False) -> Any:
        """Return the results stacked; with `adds` the first of each pair stacked, and the sum of the second."""
        row, begun = (0, None) if key is None else self._begun(task, 0, key)
        first, total = begun if adds and begun is not None else (begun, None)
        out: NDArray[Any] | None = None
        if first is not None:
            out = np.empty((self.source.n_rows, *first.shape[1:]), first.dtype)
            out[:row] = first
        for block, result, backend in self._run(task, along, row):
            rows, more = on_host(result if adds else (result, None), backend)
            if out is None:
                out = np.empty((self.source.n_rows, *rows.shape[1:]), rows.dtype)
            out[_places(block)] = rows
            done = out[: block.start + block.n_rows]
            if adds:
                total = added(total, more)
            if key is not None and block.taken is None:
                self._note(key, block, (done, total) if adds else done)
        assert out is not None  # every source has at least one row
        return (out, total) if adds else out

    def _sum(self, task: Task, along: Along, start: int, key: Key | None = None) -> Any:
        row, begun = (start, None) if key is None else self._begun(task, start, key)
        sums: dict[Backend, Any] = {} if begun is None else {NUMPY: begun}  # of each device
        for block, result, backend in self._run(task, along, row, adds=True):
            sums[backend] = added(sums.get(backend), result)
            if key is not None and block.taken is None:
                self._note(key, block, sums[backend])
        (first, total), *others = sums.items()
        for _, other in others:
            total = added(total, moved(other, first))
        return total

    def _run(
        self, task: Task, along: Along, start: int = 0, out: NDArray[Any] | None = None, adds: bool = False
    ) -> Iterator[tuple[Block, Any, Backend]]:
        """Yield each block with its result and where that is; with `out` the result is written there.

        Results of a device stay there. Where they are to be added up, workers of Dask do so: then there is one block of
        all rows.
        """
        if isinstance(self.source, DaskRows):
            yield from self._run_on_partitions(self.source, task, along, out, adds)
            return
        assert not callable(along)
        held = None if self.held is None else self._held_for(task)
        at_home = self.backend is NUMPY or not task.on_device
        backend, task = (NUMPY, task) if at_home else self.placed(task)
        clock, done, n_rows = Clock(), 0, self.source.n_rows - start
        if backend is NUMPY is not self.backend:
            block_rows = self._host_rows(task.width)
        else:  # a device takes no tiles of a block
            block_rows = self.block_rows(task.width if backend is NUMPY else max(task.width, task.kernel_entries))

        tasks = {backend: task}
        if backend is not NUMPY and n_rows > block_rows:
            tasks |= {other: moved(task, other) for other in backend.others()}

        def work(block: Block, workspace: Workspace) -> Any:
            rows, here = _places(block), workspace.backend
            block = block if here is NUMPY else self._sent(replace(block, groups=None), here)
            if along or held is not None:
                parts, of_held = tuple(values[rows] for values in along), None if held is None else held[rows]
                block = replace(block, along=parts, held=of_held)
            result = tasks[here](prepared(block, self.weight_unit, here), workspace)
            if out is not None:
                out[rows] = on_host(result, here) if isinstance(out, np.ndarray) else moved(result, self.backend)
                result = None
            return result, here

        executor = self.executor if backend is NUMPY else DeviceExecutor(*tasks)
        blocks, n_blocks = self.source.blocks(block_rows, start), -(-n_rows // block_rows)
        if task.of_groups:
            blocks = map(self.source.take, whole_groups(along[0], block_rows))
        ahead = getattr(self.source, "reads_ahead", False)
        most = max(1, self.budget // (block_rows * self._bytes_per_row(task.width)) - 1)
        for block, (result, here) in executor.in_order(work, blocks, n_blocks, clock, ahead=ahead, most_workers=most):
            done += block.n_rows
            if self.progress is not None:
                self.progress(task.what, done, n_rows)
            yield block, result, here
        entries = task.kernel_entries * n_rows if held is None else 0
        self.cost += Cost(1, entries, clock.seconds, clock.waited)

    def _held_for(self, task: Task) -> Floats | None:
        """Return the features held of all rows, where the task computes these."""
        if self.held is None or getattr(getattr(task, "factor", None), "kept_kernel", None) is not self.held[0]:
            return None
        return self.held[1]

    def _entries(self, task: Task) -> int:
        """Return how many kernel values the task evaluates for each row: none where features are held."""
        return task.kernel_entries if self._held_for(task) is None else 0

    def _sent(self, block: Block, backend: Backend) -> Block:
        """Return the block on a device of a pass, and keep it there for later passes while there is room.

        Rows that are not in memory are read and sent anew in every pass.
        """
        if backend is NUMPY or getattr(self.source, "reads_ahead", False):
            return block
        if backend not in self._room:
            self._room[backend] = backend.free_bytes() // _SHARE_OF_DEVICE
        key = backend, block.start, block.n_rows
        if key in self._there:
            return self._there[key]
        size = 8 * block.n_rows * (self.source.n_features + self.source.n_targets + 1)
        block = moved(block, backend)
        if size <= self._room[backend]:
            self._room[backend] -= size
            self._there[key] = block
        return block

    def _run_on_partitions(
        self, source: DaskRows, task: Task, along: Along, out: NDArray[Any] | None, adds: bool
    ) -> Iterator[tuple[Block, Any, Backend]]:
        begin, n_rows = perf_counter(), source.n_rows
        work = PartitionTask(task, source.reading, self.block_rows(task.width), self.weight_unit, self.backend)
        results = iter([(0, n_rows, total(source, work, along))]) if adds else each_block(source, work, along)
        for first, count, result in results:
            if out is not None:
                out[first : first + count] = result
            yield Block(first, np.empty((count, 0))), result, NUMPY
        if self.progress is not None:
            self.progress(task.what, n_rows, n_rows)
        self.cost += Cost(1, task.kernel_entries * n_rows, perf_counter() - begin)

    def placed(self, value: Result) -> tuple[Backend, Result]:
        """Return the backend on which a task, or a part of one, computes, and its value with arrays there."""
        return (NUMPY, value) if self.backend is NUMPY else placed(value, self.backend, self.source.take([0]).features)

    def block_rows(self, width: int) -> int:
        """Return the rows of a block for a task of this width, independent of the number of threads."""
        return self._host_rows(width) if self.backend is NUMPY else device_rows(width, self.source.n_rows)

    def _host_rows(self, width: int) -> int:
        n, bytes_per_row = self.source.n_rows, self._bytes_per_row(width)
        even = max(_SMALLEST_BLOCK, -(-n // _FEWEST_BLOCKS))
        largest = _LARGEST_BLOCK if width <= _WIDE else _LARGEST_BLOCK // 2
        most = block_rows_for(self.memory_budget, 2 * bytes_per_row, n)  # one block being read, and one being processed
        return min(even, largest, most, max(1, self.budget // ((1 + _BLOCKS_AT_WORK) * bytes_per_row)))

    def _bytes_per_row(self, width: int) -> int:
        # A block holds its rows twice (as read, and scaled) and up to four arrays of the task's width.
        return 8 * (2 * self.source.n_features + 4 * width + self.source.n_targets)


def _places(block: Block) -> slice | NDArray[np.intp]:
    """Return where the rows of a block are among all rows."""
    return slice(block.start, block.start + block.n_rows) if block.taken is None else block.taken
