"""A task: what a pass does with one block of rows; the threads that run it, and what it costs."""

import math
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from operator import itemgetter
from time import perf_counter
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

import numpy as np

from ridgemark.backends import NUMPY, Backend, Floats, moved
from ridgemark.backends.threads import one_blas_thread, worker_threads
from ridgemark.rows import Block, row_weights

Item = TypeVar("Item")
Result = TypeVar("Result")

_AHEAD = 2  # blocks read ahead


class Workspace(threading.local):
    """The backend of an executor, and its scratch memory: named arrays of each thread, which grow and never shrink.

    An array of the size of a block is otherwise requested from the operating system and returned to it at every use,
    which costs more than the arithmetic when several threads do it.
    """

    def __init__(self, backend: Backend = NUMPY) -> None:
        self.backend = backend
        self._held: dict[str, Floats] = {}

    def array(self, name: str, shape: tuple[int, ...]) -> Floats:
        """Return the thread's array of this name and shape, of any contents; the thread's next block overwrites it."""
        if self.backend is not NUMPY:  # libraries for devices keep memory themselves
            return self.backend.empty(shape)
        size = math.prod(shape)
        held = self._held.get(name)
        if held is None or held.size < size:
            held = self._held[name] = np.empty(size)
        return held[:size].reshape(shape)


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
class Task(ABC):
    """What a pass does with one block: small, immutable and picklable, so that any executor can run it anywhere.

    A subclass becomes a frozen dataclass of what it needs in addition to the rows, and defines `__call__`. Values with
    one row for each row of the data are not part of a task: a pass takes them as `along` and hands each block its own.
    """

    what: ClassVar[str] = "rows"  # shown as progress
    on_device: ClassVar[bool] = True  # whether it computes on the device of the passes, or on the host
    of_groups: ClassVar[bool] = False  # whether every block must have whole groups of rows, each in rows that follow
    arrays: ClassVar[int] = 1  # arrays of as many columns as the task evaluates kernel values

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False)(cls)

    @property
    def width(self) -> int:
        """Columns of float64 that the task holds for each row of a block."""
        return max(1, self.arrays * self.kernel_entries)

    @property
    def kernel_entries(self) -> int:
        """Kernel values that the task evaluates for each row."""
        return 0

    @abstractmethod
    def __call__(self, block: Block, workspace: Workspace) -> Any:
        """Return the block's result: rows to be stacked, or something to be added up."""


class BlockFunction(Task):
    """A picklable function of a block on the host, which needs no scratch memory."""

    on_device: ClassVar[bool] = False
    what: str = field()  # type: ignore[misc]
    function: Callable[[Block], Any]

    def __call__(self, block: Block, workspace: Workspace) -> Any:
        return self.function(block)


def prepared(block: Block, weight_unit: float, backend: Backend = NUMPY) -> Block:
    """Return the block on a backend, with features in float64, and weights in their unit.

    Rows may be stored in single precision, but computations use double precision: a kernel matrix has small
    eigenvalues that matter, and single precision loses those below 1e-7 of the largest.
    """
    if weight_unit != 1.0:
        block = replace(block, weights=row_weights(block) / weight_unit)
    if backend is not NUMPY:
        block = moved(block, backend)
    features = block.features if block.converted_late else backend.double(block.features)
    return block if features is block.features else replace(block, features=features)


def added(total: Any, more: Any) -> Any:
    """Return a sum of results with one more, which may overwrite the sum; None stands for none so far."""
    if total is None:
        return more
    total += more
    return total


def in_row_order(pieces: Iterable[tuple[int, Any]]) -> list[Any]:
    """Return results of blocks, each given with its first row, in the order of the rows."""
    return [result for _, result in sorted(pieces, key=itemgetter(0))]


class Summed:
    """A frozen dataclass whose records add field by field, as results of tasks do."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, part.name) + getattr(other, part.name) for part in fields(self)))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Cost(Summed):
    """Passes, kernel entries and time; costs add.

    Attributes
    ----------
    n_passes : int
        How often all rows were read.
    n_kernel_evaluations : int
        Kernel values evaluated.
    seconds : float
        Time the passes took.
    waited : float
        Part of that time in which workers waited for rows; one idle worker of m counts 1/m.
    """

    n_passes: int = 0
    n_kernel_evaluations: int = 0
    seconds: float = field(default=0.0, compare=False)
    waited: float = field(default=0.0, compare=False)

    @property
    def waiting_share(self) -> float:
        """Share of the time, in [0, 1], in which workers waited for rows."""
        return min(1.0, self.waited / self.seconds) if self.seconds > 0 else 0.0


@dataclass
class Clock:
    """Time of one pass, and how much of it workers waited for rows; one idle worker of m counts 1/m."""

    seconds: float = 0.0
    waited: float = 0.0


@dataclass(eq=False)
class ThreadExecutor:
    """Runs work on blocks in as many threads as BLAS is allowed, one BLAS thread each.

    A block's result does not depend on other threads, and results come in row order, so sums have the same bits
    for any number of threads.
    """

    workspace: Workspace = field(default_factory=Workspace)

    def in_order(
        self,
        work: Callable[[Item, Workspace], Result],
        blocks: Iterator[Item],
        n_blocks: int,
        clock: Clock,
        *,
        ahead: bool = False,
        most_workers: int | None = None,
    ) -> Iterator[tuple[Item, Result]]:
        """Yield each block with its result, in order; with `ahead`, a separate thread reads the next blocks."""
        workers = max(1, min(worker_threads(), n_blocks, n_blocks if most_workers is None else most_workers))
        idle_since = [0.0] * workers  # time at which each idle worker became idle

        def run(block: Item) -> Result:
            idle_since.pop()
            try:
                with np.errstate(over="ignore", invalid="ignore"):  # overflow is detected where results are used
                    return work(block, self.workspace)
            finally:
                idle_since.append(perf_counter())

        begin = perf_counter()
        try:
            with read_ahead(blocks) if ahead and n_blocks > 1 else nullcontext(blocks) as read:
                ready = _timed(read, idle_since, workers, clock)
                if workers > 1:
                    yield from _in_threads(run, ready, workers)
                else:
                    yield from ((block, run(block)) for block in ready)
        finally:
            clock.seconds += perf_counter() - begin


def _in_threads(run: Callable[[Item], Result], blocks: Iterator[Item], workers: int) -> Iterator[tuple[Item, Result]]:
    waiting: deque[tuple[Item, Future[Result]]] = deque()
    with one_blas_thread(), ThreadPoolExecutor(workers, thread_name_prefix="ridgemark") as pool:
        try:
            for block in blocks:
                waiting.append((block, pool.submit(run, block)))
                if len(waiting) > workers:
                    first, future = waiting.popleft()
                    yield first, future.result()
            while waiting:
                first, future = waiting.popleft()
                yield first, future.result()
        finally:
            for _, future in waiting:
                future.cancel()


@contextmanager
def read_ahead(blocks: Iterator[Item]) -> Iterator[Iterator[Item]]:
    """Yield an iterator over the same blocks, read ahead in a separate thread; errors are raised in block order."""

    @np.errstate(over="ignore", invalid="ignore")  # a thread does not inherit its caller's settings
    def read() -> Item | None:
        return next(blocks, None)

    def following() -> Item | None:
        block = coming.popleft().result()
        coming.append(reader.submit(read))
        return block

    with ThreadPoolExecutor(1, thread_name_prefix="ridgemark-reader") as reader:
        coming = deque(reader.submit(read) for _ in range(_AHEAD))
        try:
            yield iter(following, None)
        finally:
            for future in coming:
                future.cancel()


def _timed(blocks: Iterator[Item], idle_since: list[float], workers: int, clock: Clock) -> Iterator[Item]:
    """Yield the blocks, and count how long idle workers waited for them."""
    while True:
        asked = perf_counter()
        block = next(blocks, None)
        came = perf_counter()
        clock.waited += sum(came - max(asked, since) for since in tuple(idle_since)) / workers
        if block is None:
            return
        yield block
