"""The executor for one machine: threads read blocks ahead and process them; results come in row order."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from time import perf_counter
from typing import TypeVar

import numpy as np

from ridgemark.backends.threads import one_blas_thread, worker_threads
from ridgemark.passes.task import Workspace

Item = TypeVar("Item")
Result = TypeVar("Result")

_AHEAD = 2  # blocks read ahead


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
