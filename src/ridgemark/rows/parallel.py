"""Blocks worked on side by side, their results in row order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from ridgemark.backends.threads import one_blas_thread, worker_threads

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(fn: Callable[[Item], Result], blocks: Iterator[Item], n_blocks: int) -> Iterator[tuple[Item, Result]]:
    """Yield each block with `fn(block)`, in order, as many at a time as there are threads to use.

    BLAS is kept at one thread meanwhile, so that a block's result does not depend on how many run beside it. Reading
    goes on while blocks are worked on, one block ahead.
    """
    workers = min(worker_threads(), n_blocks)
    quietly = np.errstate(over="ignore", invalid="ignore")(
        fn
    )  # results beyond the range are refused where they are used
    if workers <= 1:
        for block in blocks:
            yield block, quietly(block)
        return
    waiting: deque[tuple[Item, Future[Result]]] = deque()
    with one_blas_thread(), ThreadPoolExecutor(workers, thread_name_prefix="ridgemark") as pool:
        try:
            for block in blocks:
                waiting.append((block, pool.submit(quietly, block)))
                if len(waiting) > workers:
                    first, future = waiting.popleft()
                    yield first, future.result()
            while waiting:
                first, future = waiting.popleft()
                yield first, future.result()
        finally:
            for _, future in waiting:
                future.cancel()
