"""Limits on threads: either blocks of rows run in parallel, or BLAS uses its own threads, never both.

BLAS threads wait for work by spinning, for about a tenth of a second after each call, and slow down all other threads.
So a fit limits BLAS to one thread, processes blocks of rows in parallel, and lets BLAS use its threads only for large
matrices.
"""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from types import SimpleNamespace
from typing import Any

import threadpoolctl

_LARGE = 800  # rows of a matrix above which several BLAS threads save time


def worker_threads() -> int:
    """Return the number of threads to use: the BLAS limit, set by joblib or the user, before we lowered it."""
    return _limit.allowed or _blas_threads()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread; the previous limit is restored when the last caller leaves.

    The limit holds for the whole process, so callers in several threads share one change of it.
    """
    with _limit.lock:
        if _limit.users == 0:
            _limit.allowed = _blas_threads()
            _limit.limiter = _limited(True)
        _limit.users += 1
    try:
        yield
    finally:
        with _limit.lock:
            _limit.users -= 1
            if _limit.users == 0:
                _limited(False)
                _limit.allowed = 0


@contextmanager
def all_blas_threads() -> Iterator[None]:
    """Restore the previous BLAS limit for one large operation; without effect if we have not lowered it."""
    with _limit.lock:
        if _limit.users:
            _limited(False)
    try:
        yield
    finally:
        with _limit.lock:
            if _limit.users:
                _limited(True)


def blas_threads_for(size: int) -> AbstractContextManager[None]:
    """Let BLAS use all threads for the factorisation of a matrix of many rows, and one for that of a small one."""
    return all_blas_threads() if size > _LARGE else one_blas_thread()


def _limited(to_one: bool) -> Any:
    """Limit BLAS to one thread and return what restores the limit, or restore that of the first caller.

    threadpoolctl 3.8 ignores all threads but the first one, unless asked to forget it. It is forgotten again
    afterwards, so that the limits of other callers are restored by their threads.
    """
    forget = getattr(getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", lambda force: None)
    forget(force=True)
    done = _controller().limit(limits=1, user_api="blas") if to_one else _limit.limiter.restore_original_limits()
    forget(force=True)
    return done


@cache
def _controller() -> threadpoolctl.ThreadpoolController:
    return threadpoolctl.ThreadpoolController()


def _blas_threads() -> int:
    libraries = _controller().select(user_api="blas").info()
    return max((int(library["num_threads"]) for library in libraries), default=1)


# Shared by all callers; `allowed` is the limit before the first one entered, 0 if there are none.
_limit = SimpleNamespace(lock=threading.Lock(), users=0, limiter=None, allowed=0)
