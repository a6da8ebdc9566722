"""Files a command writes: refused before the work where they cannot be, and there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ridgemark.errors import ParameterError
from ridgemark.rows.places import shown


def check_output(path: Path, extensions: Sequence[str] = ()) -> None:
    """Refuse a file that could not be written, before anything is computed for it."""
    if extensions and path.suffix.lower() not in extensions:
        msg = f"{shown(path)} must end in {' or '.join(extensions)}, which says what to write"
        raise ParameterError(msg)
    folder = path.absolute().parent
    if path.is_dir():
        msg = f"{shown(path)} is a directory; give the name of a file"
        raise ParameterError(msg)
    if not folder.is_dir():
        msg = f"there is no folder {shown(folder)} to write {shown(path.name)} in; create it first"
        raise ParameterError(msg)
    if not os.access(path if path.exists() else folder, os.W_OK):
        msg = f"{shown(path)} cannot be written; choose a place where you may write"
        raise ParameterError(msg)


@contextmanager
def staged(path: Path) -> Iterator[Path]:
    """Give a name beside the file, and rename what was written there once all of it is there."""
    temporary = path.with_name(f".ridgemark-{secrets.token_hex(8)}{path.suffix}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
