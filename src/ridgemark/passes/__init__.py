"""The only loops over rows: tasks run over numbered blocks, by an executor that keeps the blocks' order."""

from ridgemark.passes.journal import Journal, Key, open_journal
from ridgemark.passes.progress import progress_callback
from ridgemark.passes.row_passes import RowPasses
from ridgemark.passes.task import BlockFunction, Cost, Summed, Task, ThreadExecutor, Workspace, in_row_order, read_ahead
