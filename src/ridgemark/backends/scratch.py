"""Arrays that a thread reuses for every block."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Scratch(threading.local):
    """Named arrays, one set per thread, which grow when needed and never shrink.

    An array of the size of a block is otherwise requested from the operating system and returned to it at every use,
    which costs more than the arithmetic when several threads do it. The contents of a returned array are not defined.
    """

    def __init__(self) -> None:
        self._held: dict[str, NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
        """Return the thread's array of this name, in this shape."""
        size = math.prod(shape)
        held = self._held.get(name)
        if held is None or held.size < size or held.dtype != dtype:
            held = self._held[name] = np.empty(size, dtype)
        return held[:size].reshape(shape)
