"""Who runs in parallel: row blocks in our threads, or BLAS in its own, never both."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def blas_threads() -> int:
    """Return the number of threads BLAS may use now, so that limits set from outside (joblib, the user) hold."""
    libraries = _controller().select(user_api="blas").info()
    return max((int(library["num_threads"]) for library in libraries), default=1)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS at one thread; the limit in force before is restored when the last user leaves.

    The limit is the whole process's, so that several callers in several threads must share one change of it.
    """
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


class _SharedLimit:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limiter: Any = None

    def enter(self) -> None:
        with self._lock:
            if self._users == 0:
                self._limiter = _controller().limit(limits=1, user_api="blas")
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limiter.restore_original_limits()


_limit = _SharedLimit()
