"""Ctrl-C while modules are imported."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = 130  # 128 + SIGINT, as shells have it


@contextmanager
def ending_at_once() -> Iterator[None]:
    """End the process at Ctrl-C: during an import nothing is half-written, and an exception may be lost or changed."""
    main_thread = threading.current_thread() is threading.main_thread()
    if not main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # ignored, or handled by another program
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(*_: object) -> None:
    os.write(2, b"ridgemark: interrupted\n")
    os._exit(INTERRUPTED)
