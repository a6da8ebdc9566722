"""Progress reports of passes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called as `progress(what, done, total)`: rows of a pass, or evaluations of tuning."""


def progress_callback(wanted: bool | Progress) -> Progress | None:
    """Return the progress callback: the callable given, one that prints to the error stream for True, or None."""
    if callable(wanted) or not wanted:
        return wanted or None

    def show(what: str, done: int, total: int) -> None:
        end = "\n" if done == total else ""
        print(f"\r{what}: {done:,} of {total:,} ", end=end, file=sys.stderr, flush=True)

    return show


class Counter:
    """Adds up what is done, from any thread, and reports it: rows of a pass, or evaluations of tuning."""

    def __init__(self, what: str, total: int, report: Progress | None) -> None:
        self.done, self._what, self._total, self._report = 0, what, total, report
        self._lock = threading.Lock()

    def add(self, number: int) -> None:
        """Count and report."""
        with self._lock:
            self.done += number
            if self._report is not None and number:
                self._report(self._what, self.done, self._total)

    def finish(self) -> None:
        """Report that all is done, where less than the total was needed."""
        if self._report is not None and self.done < self._total:
            self._report(self._what, self._total, self._total)
