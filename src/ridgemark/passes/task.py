"""A task: what a pass does with one block of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ridgemark.backends import NUMPY, Backend, Floats
from ridgemark.backends.scratch import Scratch
from ridgemark.rows import Block


@dataclass(frozen=True, eq=False)
class Workspace:
    """What an executor gives a task to work with: scratch memory, and the backend that holds the arrays."""

    backend: Backend = NUMPY
    scratch: Scratch = field(default_factory=Scratch)

    def array(self, name: str, shape: tuple[int, ...]) -> Floats:
        """Return the thread's array of this name and shape; the thread's next block overwrites it."""
        return self.scratch.array(name, shape)


@dataclass(frozen=True, eq=False)
class Task(ABC):
    """What a pass does with one block: small, immutable and picklable, so that any executor can run it anywhere.

    A subclass is a frozen dataclass of what the task needs in addition to the rows, and defines `__call__`. Values with
    one row for each row of the data are not part of a task: a pass takes them as `along` and hands each block its own.
    """

    what: ClassVar[str] = "rows"  # shown as progress
    arrays: ClassVar[int] = 1  # arrays of as many columns as the task evaluates kernel values

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
