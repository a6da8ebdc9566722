"""A task: what a pass does with one block of rows; and what it costs."""

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from operator import itemgetter
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np

from ridgemark.backends import NUMPY, Backend, Floats, moved
from ridgemark.rows import Block, row_weights


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
