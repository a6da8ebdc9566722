"""A progress bar with rate and remaining time on the error stream, if that is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

Tell = Callable[[str, int, int], None]


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.completed:,.0f} of {task.total or 0:,.0f} rows, {task.speed or 0:,.0f} rows/s")


def terminal() -> Console | None:
    """Return the error stream if it is a terminal."""
    console = Console(stderr=True)
    return console if sys.stderr.isatty() and console.is_terminal else None


@contextmanager
def progress() -> Iterator[Tell | None]:
    """Yield the progress callback `(what, rows_done, n_rows)`, or None if the error stream is not a terminal."""
    console = terminal()
    if console is None:
        yield None
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), _Rate(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading", total=None)
        last = ("", 0)

        def tell(what: str, done: int, total: int) -> None:
            nonlocal last
            if what != last[0] or done < last[1]:  # a new pass, with its own rate
                bar.reset(task, description=what, total=total)
            last = (what, done)
            bar.update(task, completed=done)

        yield tell
