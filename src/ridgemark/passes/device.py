"""The executor for one device: blocks one after the other, smaller ones where its memory ends."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from time import perf_counter
from typing import Any, TypeVar

from scipy import sparse

from ridgemark.backends import NUMPY, Backend
from ridgemark.backends.devices import StaysOnHost, moved
from ridgemark.errors import NumericalError
from ridgemark.passes.task import Workspace
from ridgemark.passes.threads import Clock, read_ahead
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
    """Runs work on blocks in their order. The device computes a block while the next one is read and sent."""

    def __init__(self, backend: Backend) -> None:
        self.backend, self.workspace = backend, Workspace(backend)

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
        """Yield each block, or the parts of it that the device's memory holds, with its result."""
        begin, most = perf_counter(), _MOST_ROWS
        with read_ahead(blocks) if ahead and n_blocks > 1 else nullcontext(blocks) as read:
            for block in read:
                waiting = deque(_parts(block, most))
                while waiting:
                    part = waiting.popleft()
                    try:
                        done, result = True, work(part, self.workspace)
                    except self.backend.out_of_memory:
                        done = False
                    if done:
                        yield part, result
                        continue
                    # Not where the error is handled, which keeps the arrays of the failed attempt alive.
                    self.backend.release()
                    most = part.n_rows // 2
                    if most < _FEWEST_ROWS:
                        raise no_memory(self.backend, f"a block of {2 * most} rows with what is computed from it")
                    waiting.extendleft(reversed(list(_parts(part, most))))
        clock.seconds += perf_counter() - begin


def no_memory(backend: Backend, what: str) -> NumericalError:
    """Return the error for a device whose memory does not hold something."""
    return NumericalError(
        f"the memory of the device {backend.device} does not hold {what}; use fewer landmarks, free memory that other "
        'programs hold there, or device="cpu"'
    )


def _parts(block: Block, most: int) -> Iterator[Block]:
    """Yield the block in parts of at most so many rows."""
    if block.n_rows <= most:
        yield block
        return
    for first in range(0, block.n_rows, most):
        yield block.part(first, min(first + most, block.n_rows))
