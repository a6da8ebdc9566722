"""Files that hold rows: found, opened, and every failure told in one way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ridgemark.errors import RidgemarkError, SourceFileError
from ridgemark.rows.limits import MAX_EXPANSION
from ridgemark.rows.places import shown


def require_file(path: str | os.PathLike[str]) -> Path:
    """Return the path of a readable regular file that is not empty."""
    found = Path(path)
    try:
        status = found.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        where = shown(found.absolute().parent)
        msg = f"there is no file {shown(found)} (looked in {where}); check the name and the current folder"
        raise SourceFileError(msg) from error
    except (OSError, ValueError) as error:  # too long, or with a null character
        msg = f"{shown(found)} is not the name of a file that can be read; give the path of a data file"
        raise SourceFileError(msg) from error
    if found.is_dir():
        msg = f"{shown(found)} is a directory; give a file, or a directory with .parquet files"
        raise SourceFileError(msg)
    if not found.is_file():
        msg = f"{shown(found)} is no regular file and can be read only once; save the rows to a file first"
        raise SourceFileError(msg)
    if status.st_size == 0:
        msg = f"{shown(found)} is empty (0 bytes); write the file again"
        raise SourceFileError(msg)
    return found


def is_directory(path: Path) -> bool:
    """Return whether this is a directory, also for what cannot be a path at all."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


@contextmanager
def reading(path: Path, form: str, *errors: type[BaseException]) -> Iterator[None]:
    """Turn the reader's own errors into one that names the file and the form it should have."""
    foreign: tuple[type[BaseException], ...] = (OSError, *errors)
    try:
        yield
    except RidgemarkError:  # told already, and possibly an OSError too
        raise
    except foreign as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise unreadable(path, form, reason) from error


def unreadable(path: Path, form: str, reason: str) -> SourceFileError:
    """Refuse a file that is not what its name says, or not all of it."""
    return SourceFileError(
        f"{shown(path)} cannot be read as {form}: {reason}; it may be cut short or hold another format: "
        "write it again, or give it the extension of what it holds"
    )


def bomb(path: Path) -> SourceFileError:
    """Refuse a compressed file that expands beyond the limit."""
    return SourceFileError(
        f"{shown(path)} expands to more than {MAX_EXPANSION.value} times its compressed bytes, as files do that are "
        f"made to exhaust a machine; give it uncompressed, or {MAX_EXPANSION.remedy}"
    )


class FileState:
    """A file's place on the disk, size and time of change, so that a change while it is in use is noticed.

    A file overwritten in place with as many bytes, and its time of change set back (or changed again within the
    resolution of the file system's clock), is not noticed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known = self._now()

    def check(self) -> None:
        """Refuse the file when it is no longer as it was."""
        if self._now() != self._known:
            msg = f"{shown(self.path)} has changed or is gone since it was opened; open it again"
            raise SourceFileError(msg)

    def _now(self) -> tuple[int, ...] | None:
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
