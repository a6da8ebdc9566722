"""Limits on the size of a file's contents: a hostile or broken file is refused before it takes time or memory.

The environment variable of the same name raises a limit.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from ridgemark.errors import ParameterError


@dataclass(frozen=True)
class Limit:
    """A number that files must not exceed; the environment variable `name` replaces its default."""

    name: str
    default: int

    @property
    def value(self) -> int:
        """The current limit."""
        given = os.environ.get(self.name, "")
        if not given:
            return self.default
        if not (given.isascii() and given.isdigit() and 0 < len(given) <= 18 and int(given) > 0):
            msg = f"the environment variable {self.name} must be a positive integer below 10**18, got {given!r}"
            raise ParameterError(msg)
        return int(given)

    @property
    def remedy(self) -> str:
        """How to raise the limit, for the end of a message."""
        return f"if the file is valid, raise the limit of {self.value:,} with the environment variable {self.name}"


MAX_COLUMNS = Limit("RIDGEMARK_MAX_COLUMNS", 100_000)  # of a CSV file
MAX_ROW_BYTES = Limit("RIDGEMARK_MAX_ROW_BYTES", 2**24)  # of a CSV file
MAX_EXPANSION = Limit("RIDGEMARK_MAX_EXPANSION", 200)  # bytes per compressed byte; text rarely exceeds 50
MAX_LOADED_BYTES = Limit("RIDGEMARK_MAX_LOADED_BYTES", 2**34)  # bytes of one array of an archive, or of a model file

EXPANSION_FROM = 2**26  # bytes; a smaller result is always allowed


def is_bomb(expanded: int, compressed: int) -> bool:
    """Return whether the expansion ratio exceeds the limit."""
    return expanded > EXPANSION_FROM and expanded > MAX_EXPANSION.value * max(compressed, 1)
