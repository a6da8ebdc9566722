"""Reading model files and replacing them atomically; every failure is a `ModelFileError`."""

import io
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ridgemark.errors import ModelFileError, RidgemarkError
from ridgemark.rows.places import shown

EXPECTED = "a model file written by save or `ridgemark fit`"


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Turn any exception raised by the contents of a file into the error that the file is damaged."""
    try:
        yield
    except ModelFileError:
        raise
    except MemoryError as error:
        raise ModelFileError(
            f"{shown(path)} needs more memory than is available; load it on a larger machine"
        ) from error
    except Exception as error:  # untrusted contents may raise anything
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelFileError(
            f"{shown(path)} is damaged: {reason[:200]}; take another copy, or save the model again"
        ) from error


@contextmanager
def reading(path: Path) -> Iterator[io.BufferedReader]:
    """Open a regular file for reading; every failure is a `ModelFileError`."""
    name = shown(path)
    try:
        if path.exists() and not path.is_file():
            raise ModelFileError(f"{name} is {_kind(path)}; give {EXPECTED}")
        with path.open("rb") as file:
            yield file
    except ModelFileError:
        raise
    except (FileNotFoundError, NotADirectoryError) as error:
        where = shown(path.absolute().parent)
        raise ModelFileError(
            f"there is no file {name} (looked in {where}); check the name and the current folder"
        ) from error
    except OSError as error:
        raise ModelFileError(
            f"{name} cannot be read: {error.strerror or error}; check its name, the disk, and that you may read it"
        ) from error


@contextmanager
def writing(path: Path, overwrite: bool) -> Iterator[io.BufferedWriter]:
    """Open a temporary file that is renamed to `path` on success; every failure is a `ModelFileError`."""
    try:
        target = Path(os.path.realpath(path))  # a link is kept, and its target is replaced
        mode = _check_target(target, overwrite)
        with replacing(target, overwrite) as temporary, temporary.open("xb") as file:
            if mode is not None:
                temporary.chmod(mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
        _flush_folder(target.parent)
    except FileExistsError as error:
        raise ModelFileError(
            f"{shown(path)} exists already; give another name, or overwrite=True to replace it"
        ) from error
    except (OSError, ValueError) as error:
        if isinstance(error, RidgemarkError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise ModelFileError(
            f"the model was not saved to {shown(path)}: {reason}; choose a place with free space where you may write; "
            "an earlier file of that name is unchanged"
        ) from error


@contextmanager
def replacing(target: Path, overwrite: bool) -> Iterator[Path]:
    """Yield a temporary file next to `target`, renamed to it on success and removed otherwise."""
    temporary = target.with_name(f".ridgemark-{secrets.token_hex(8)}.tmp")
    try:
        yield temporary
        if not overwrite:
            rename_to_new(temporary, target)
        else:
            temporary.replace(target)
    finally:
        with suppress(OSError):  # already renamed, or never created
            temporary.unlink()


def _check_target(target: Path, overwrite: bool) -> int | None:
    """Return the mode of the file to be replaced, or None; refuse a target that cannot be replaced."""
    if not target.parent.is_dir():
        raise ModelFileError(
            f"there is no folder {shown(target.parent)} to save {shown(target.name)} in; create it first"
        )
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise ModelFileError(f"{shown(target)} is {_kind(target)}; give the name of a file")
    if not overwrite:
        raise FileExistsError
    if not os.access(target, os.W_OK):
        raise ModelFileError(f"{shown(target)} is write-protected; give another name, or make it writable first")
    return stat.S_IMODE(mode)


def rename_to_new(temporary: Path, target: Path) -> None:
    """Rename unless the target exists: unlike `replace`, `link` fails when the name was taken meanwhile."""
    try:
        target.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: reserve the name with an empty file
        target.open("xb").close()
        try:
            temporary.replace(target)
        except BaseException:
            target.unlink()
            raise


def _flush_folder(folder: Path) -> None:
    """Flush the rename itself to disk, where the system supports it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _kind(path: Path) -> str:
    return "a directory" if path.is_dir() else "not a regular file"
