"""Memory that a thread uses again for every block."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Scratch(threading.local):
    """Named arrays, one set for each thread, grown when needed and never shrunk.

    Arrays as large as a block come from and go back to the system at every use, which in several threads costs more
    than the arithmetic in them. What is returned holds whatever it held before.
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
