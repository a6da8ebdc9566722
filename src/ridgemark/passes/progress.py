"""Progress of a pass, reported to a callable or printed to the error stream."""

import sys
from collections.abc import Callable

import numpy as np

from ridgemark.errors import ParameterError

Progress = Callable[[str, int, int], None]
"""Called as `progress(what, done, total)`: rows of a pass, or evaluations of tuning."""


def progress_callback(wanted: bool | Progress | None) -> Progress | None:
    """Return the progress callback: the callable given, one that prints to the error stream for True, or None."""
    if callable(wanted):
        return wanted
    if not (wanted is None or isinstance(wanted, bool | np.bool_)):
        raise ParameterError(f"progress must be True, False or a callable, got {wanted!r}")
    if not wanted:
        return None

    def show(what: str, done: int, total: int) -> None:
        end = "\n" if done == total else ""
        print(f"\r{what}: {done:,} of {total:,} ", end=end, file=sys.stderr, flush=True)

    return show
