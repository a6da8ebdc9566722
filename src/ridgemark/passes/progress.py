"""Progress reports of passes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called as `progress(what, rows_done, n_rows)`."""


def progress_callback(wanted: bool | Progress) -> Progress | None:
    """Return the progress callback: the callable given, one that prints to the error stream for True, or None."""
    if callable(wanted) or not wanted:
        return wanted or None

    def show(what: str, done: int, total: int) -> None:
        end = "\n" if done == total else ""
        print(f"\r{what}: {done:,} of {total:,} rows ", end=end, file=sys.stderr, flush=True)

    return show


class Counter:
    """Adds up the rows done in one pass, from any thread, and reports them."""

    def __init__(self, what: str, n_rows: int, report: Progress | None) -> None:
        self._what, self._n_rows, self._report = what, n_rows, report
        self._done, self._lock = 0, threading.Lock()

    def add(self, n_rows: int) -> None:
        """Count the rows of one block."""
        if self._report is None:
            return
        with self._lock:
            self._done += n_rows
            self._report(self._what, self._done, self._n_rows)
