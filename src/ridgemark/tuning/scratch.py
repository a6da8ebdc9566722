"""What evaluations of the criterion share: arrays that each of them overwrites, and threads for parts of the rows."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from ridgemark.backends import NUMPY, Array, backend_of, worker_threads

_PART = 1000  # rows of a part, at least: fewer slow down products, more are not shared evenly among threads

Result = TypeVar("Result")


def threads_for_rows() -> AbstractContextManager[Executor | None]:
    """Return threads for parts of the rows, or None where there is one thread."""
    workers = worker_threads()
    return ThreadPoolExecutor(workers, thread_name_prefix="ridgemark-rows") if workers > 1 else nullcontext()


@dataclass(frozen=True, eq=False)
class Scratch:
    """Arrays that every evaluation overwrites, as new memory takes as long as some of the sums; and threads."""

    threads: Executor | None = None  # that compute parts of the rows; None to compute one part after the other
    arrays: dict[str, Array] = field(default_factory=dict)

    def array(self, name: str, shape: tuple[int, ...], like: Array) -> Array:
        """Return the array of this name, of any contents."""
        held = self.arrays.get(name)
        if held is None or held.shape != shape or held.dtype != like.dtype:
            held = self.arrays[name] = backend_of(like).empty(shape, like=like)
        return held

    def over_rows(self, rows: Array, work: Callable[[slice], Result]) -> list[Result]:
        """Return the results of `work` for parts of the rows, in order; on a device there is one part.

        The parts depend on the number of rows alone, so sums over them are the same for any number of threads.
        """
        n_rows = int(rows.shape[0])
        n_parts = max(1, n_rows // _PART) if backend_of(rows) is NUMPY else 1
        ends = [n_rows * k // n_parts for k in range(n_parts + 1)]
        parts = [slice(start, stop) for start, stop in pairwise(ends)]
        if self.threads is None or n_parts == 1:
            return [work(part) for part in parts]
        # A thread does not inherit its caller's settings of NumPy's warnings.
        return list(self.threads.map(np.errstate(all="ignore")(work), parts))

    def sum_over_rows(self, rows: Array, work: Callable[[slice], Any]) -> Any:
        """Return the sum of the results of `work` for parts of the rows, added up in their order."""
        first, *others = self.over_rows(rows, work)
        for other in others:
            first += other
        return first
