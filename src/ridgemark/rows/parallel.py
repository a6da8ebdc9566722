"""Blocks read ahead and worked on side by side, their results in row order; and the time lost to reading."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from time import perf_counter
from typing import TypeVar

import numpy as np

from ridgemark.backends.threads import one_blas_thread, worker_threads

Item = TypeVar("Item")
Result = TypeVar("Result")

_AHEAD = 2  # blocks read before they are asked for


class InputClock(threading.local):
    """Adds up, for each calling thread, what its passes took, and how much of that workers waited for rows."""

    seconds = 0.0
    waited = 0.0  # a worker in n counts one n-th


input_clock = InputClock()


def in_order(
    fn: Callable[[Item], Result], blocks: Iterator[Item], n_blocks: int, ahead: bool = False
) -> Iterator[tuple[Item, Result]]:
    """Yield each block with `fn(block)`, in order, as many at a time as there are threads to use.

    BLAS is kept at one thread meanwhile, so that a block's result does not depend on how many run beside it. One block
    is at hand for the next worker that is free; with `ahead`, a thread of its own reads further ones meanwhile.
    """
    workers = max(1, min(worker_threads(), n_blocks))
    free = [0.0] * workers  # since when each worker that has nothing to do has nothing to do

    def work(block: Item) -> Result:
        free.pop()
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # results beyond the range are refused where used
                return fn(block)
        finally:
            free.append(perf_counter())

    begin = perf_counter()
    try:
        with read_ahead(blocks) if ahead and n_blocks > 1 else nullcontext(blocks) as read:
            ready = _timed(read, free, workers)
            if workers > 1:
                yield from _in_threads(work, ready, workers)
            else:
                yield from ((block, work(block)) for block in ready)
    finally:
        input_clock.seconds += perf_counter() - begin


def _in_threads(work: Callable[[Item], Result], blocks: Iterator[Item], workers: int) -> Iterator[tuple[Item, Result]]:
    waiting: deque[tuple[Item, Future[Result]]] = deque()
    with one_blas_thread(), ThreadPoolExecutor(workers, thread_name_prefix="ridgemark") as pool:
        try:
            for block in blocks:
                waiting.append((block, pool.submit(work, block)))
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
    """Give the same blocks, read in a thread of their own, a few before they are asked for; errors in their turn."""

    @np.errstate(over="ignore", invalid="ignore")  # a thread does not take over what its caller ignores
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


def _timed(blocks: Iterator[Item], free: list[float], workers: int) -> Iterator[Item]:
    """Yield the blocks, and count how long workers that are free waited for them."""
    while True:
        asked = perf_counter()
        block = next(blocks, None)
        came = perf_counter()
        input_clock.waited += sum(came - max(asked, since) for since in tuple(free)) / workers
        if block is None:
            return
        yield block
