"""The executor for devices: blocks one after the other, and smaller blocks if memory runs out."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from functools import partial
from itertools import cycle
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from ridgemark.backends import NUMPY, Backend, StaysOnHost, moved
from ridgemark.errors import NumericalError
from ridgemark.passes.task import Clock, Workspace, read_ahead
from ridgemark.rows import Block

Value = TypeVar("Value")

# Entries of an array of a block, 1 GiB in float64: enough work for any device.
_ENTRIES = 2**27
_MOST_ROWS = 2**16
# A device that has no memory for a block of this many rows cannot be used.
_FEWEST_ROWS = 16


def device_rows(width: int, n_rows: int) -> int:
    """Return the rows of a block on a device for a task of this width."""
    return max(1, min(n_rows, _MOST_ROWS, _ENTRIES // max(width, 1)))


def placed(value: Value, backend: Backend, features: Any) -> tuple[Backend, Value]:
    """Return the backend on which a task, or a part of one, computes with rows like these, and its arrays there."""
    if backend is not NUMPY and not sparse.issparse(features):
        with suppress(StaysOnHost):
            return backend, moved(value, backend)
    return NUMPY, value


class DeviceExecutor:
    """Runs work on blocks in their order, on one device or on several, which take turns.

    A device computes a block while the next one is read and sent.
    """

    def __init__(self, *backends: Backend) -> None:
        self.backends, self.workspaces = backends, tuple(Workspace(backend) for backend in backends)

    def in_order(
        self,
        work: Callable[[Block, Workspace], Any],
        blocks: Iterator[Block],
        n_blocks: int,
        clock: Clock,
        *,
        ahead: bool = False,
        most_workers: int | None = None,
    ) -> Iterator[tuple[Block, Any]]:
        """Yield each block, or the parts of it that a device's memory holds, with its result."""
        begin, most, turn, n_devices = perf_counter(), _MOST_ROWS, cycle(self.workspaces), len(self.backends)
        running: deque[tuple[Block, Callable[[], Any]]] = deque()

        def begun(part: Block) -> tuple[Block, Callable[[], Any]]:
            workspace = next(turn)
            if n_devices == 1:
                return part, partial(work, part, workspace)
            return part, pool.submit(_quietly, work, part, workspace).result

        def ended(most_running: int) -> Iterator[tuple[Block, Any]]:
            """Yield the oldest parts until only so many run; a part that ran out of memory is run again in halves."""
            nonlocal most
            while len(running) > most_running:
                part, finish = running.popleft()
                try:
                    done, result = True, finish()
                except self.backends[0].out_of_memory:
                    done = False
                if done:
                    yield part, result
                    continue
                # Outside of `except`: the exception, and its future, keep the arrays of the failed attempt alive.
                del finish
                self.backends[0].release()
                most = part.n_rows // 2
                if most < _FEWEST_ROWS:
                    raise no_memory(self.backends[0], f"a block of {2 * most} rows with what is computed from it")
                running.extendleft(reversed([begun(half) for half in part.parts(most)]))

        with (
            read_ahead(blocks) if ahead and n_blocks > 1 else nullcontext(blocks) as read,
            # The pool starts a thread only when it is given work.
            ThreadPoolExecutor(n_devices, thread_name_prefix="ridgemark", initializer=self._begin_thread) as pool,
        ):
            for block in read:
                for part in block.parts(most):
                    running.append(begun(part))
                    yield from ended(n_devices - 1)
            yield from ended(0)
        clock.seconds += perf_counter() - begin

    def _begin_thread(self) -> None:
        """Call every device once in a new thread: otherwise torch warns at the first product there."""
        for backend in self.backends:
            backend.free_bytes()


def _quietly(work: Callable[[Block, Workspace], Any], block: Block, workspace: Workspace) -> Any:
    """Do the work in a thread, which does not inherit its caller's settings for overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        return work(block, workspace)


def no_memory(backend: Backend, what: str) -> NumericalError:
    """Return the error for a device whose memory does not hold something."""
    return NumericalError(
        f"the memory of the device {backend.device} does not hold {what}; use fewer landmarks, free memory that other "
        'programs hold there, or device="cpu"'
    )
