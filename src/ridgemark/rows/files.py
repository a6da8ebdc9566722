"""Finding and opening data files, and limits on their contents; every failure is a `SourceFileError`.

A hostile or broken file is refused before it takes time or memory; the environment variable of the same name raises a
limit.
"""

import csv
import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from ridgemark.errors import DataError, ParameterError, RidgemarkError, SourceFileError
from ridgemark.rows.places import shown


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
            raise ParameterError(
                f"the environment variable {self.name} must be a positive integer below 10**18, got {given!r}"
            )
        return int(given)

    @property
    def remedy(self) -> str:
        """How to raise the limit, for the end of a message."""
        return f"if the file is valid, raise the limit of {self.value:,} with the environment variable {self.name}"


MAX_COLUMNS = Limit("RIDGEMARK_MAX_COLUMNS", 100_000)  # of a CSV file
MAX_ROW_BYTES = Limit("RIDGEMARK_MAX_ROW_BYTES", 2**24)  # of a CSV file
MAX_EXPANSION = Limit("RIDGEMARK_MAX_EXPANSION", 200)  # bytes per compressed byte; text rarely exceeds 50
MAX_SPOOLED_BYTES = Limit("RIDGEMARK_MAX_SPOOLED_BYTES", 2**36)  # bytes of the temporary file of an Arrow stream
MAX_LOADED_BYTES = Limit("RIDGEMARK_MAX_LOADED_BYTES", 2**34)  # bytes of one array of an archive, or of a model file

EXPANSION_FROM = 2**26  # bytes; a smaller result is always allowed


def check_expansion(path: Path, expanded: int, compressed: int) -> None:
    """Refuse a compressed file that expands beyond the limit."""
    if expanded > EXPANSION_FROM and expanded > MAX_EXPANSION.value * max(compressed, 1):
        raise SourceFileError(
            f"{shown(path)} expands to more than {MAX_EXPANSION.value} times its compressed size, like files "
            f"made to exhaust memory; give it uncompressed, or {MAX_EXPANSION.remedy}"
        )


def require_file(path: str | os.PathLike[str]) -> Path:
    """Return the path of a readable regular file that is not empty."""
    found = Path(path)
    try:
        status = found.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        where = shown(found.absolute().parent)
        raise SourceFileError(
            f"there is no file {shown(found)} (looked in {where}); check the name and the current folder"
        ) from error
    except (OSError, ValueError) as error:  # too long, or contains a null character
        raise SourceFileError(
            f"{shown(found)} is not the name of a file that can be read; give the path of a data file"
        ) from error
    if found.is_dir():
        raise SourceFileError(
            f"{shown(found)} is a directory; give a file, or a directory with .parquet files in it, not in its folders"
        )
    if not found.is_file():
        raise SourceFileError(
            f"{shown(found)} is not a regular file and can be read only once; save the rows to a file first"
        )
    if status.st_size == 0:
        raise SourceFileError(f"{shown(found)} is empty (0 bytes); write the file again")
    return found


@contextmanager
def reading(source: str, form: str, *errors: type[BaseException]) -> Iterator[None]:
    """Turn the reader's errors into one that names the file, as `shown`, and its expected format."""
    foreign: tuple[type[BaseException], ...] = (OSError, *errors)
    try:
        yield
    except RidgemarkError:  # already has its message, and may be an OSError too
        raise
    except foreign as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise unreadable(source, form, reason) from error


@contextmanager
def open_csv(path: Path) -> Iterator[IO[bytes]]:
    """Open a CSV file, compressed or not; every failure to read it is a `SourceFileError`."""
    compressed = path.name.lower().endswith(".gz")
    form = "gzip-compressed CSV (.csv.gz)" if compressed else "CSV"
    with (
        reading(shown(path), form, EOFError, zlib.error, csv.Error),
        (gzip.open if compressed else open)(path, "rb") as file,
    ):
        yield cast(IO[bytes], file)


def unreadable(source: str, form: str, reason: str) -> SourceFileError:
    """Return the error for a truncated file or one of another format than its name says."""
    return SourceFileError(
        f"{source} cannot be read as {form}: {reason}; it may be truncated or have another format; "
        "write it again, or use the extension of its format"
    )


class FileState:
    """Inode, size and modification time of some files, to detect a change while they are in use.

    Not detected: a file overwritten in place with the same number of bytes whose modification time is set back, or
    differs by less than the resolution of the file system's clock.
    """

    def __init__(self, *paths: Path) -> None:
        self._known = {path: file_state(path) for path in paths}

    def check(self) -> None:
        """Refuse a file that has changed."""
        for path, known in self._known.items():
            if file_state(path) != known:
                raise SourceFileError(f"{shown(path)} has changed or is gone since it was opened; open it again")

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Check before and after reading; a change is also the better explanation of an error."""
        self.check()
        try:
            yield
        except DataError:
            self.check()
            raise
        self.check()

    def guard(self, blocks: Iterator[Any]) -> Iterator[Any]:
        """Iterate, and check before and after every block."""
        while True:
            with self.unchanged():  # before the next read too: a truncated file must not be read through a map
                block = next(blocks, None)
            if block is None:
                return
            yield block


def file_state(path: Path) -> tuple[int, ...] | None:
    """Return device, inode, size and modification time of a file; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
