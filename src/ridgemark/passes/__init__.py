"""The only loops over rows: tasks run over numbered blocks, by an executor that keeps the blocks' order."""

from ridgemark.passes.cost import Cost
from ridgemark.passes.engine import RowPasses
from ridgemark.passes.parts import Part
from ridgemark.passes.progress import Counter, Progress, progress_callback
from ridgemark.passes.task import Task, Workspace
from ridgemark.passes.threads import ThreadExecutor, read_ahead

__all__ = [
    "Cost",
    "Counter",
    "Part",
    "Progress",
    "RowPasses",
    "Task",
    "ThreadExecutor",
    "Workspace",
    "progress_callback",
    "read_ahead",
]
