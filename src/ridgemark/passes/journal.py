"""A journal of what a fit has computed: a fit that was killed is run again, and takes these results from it.

A fit is deterministic, so its journal needs results only: those of passes over the rows and of steps that take long,
and how far the pass under way has come. Results are appended to one file, each with its length and a checksum; one that
was being written when the process died does not count. The state of the pass under way is a second file, replaced
whole; its name contains a random token of the journal, so that it cannot be a file of the user or of another fit.
"""

import hashlib
import io
import os
import pickle
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter
from typing import Any, BinaryIO, TypeVar

from ridgemark.errors import CheckpointError
from ridgemark.rows.places import shown

Result = TypeVar("Result")
Key = tuple[Any, ...]

_MAGIC = b"ridgemark checkpoint 2\n"
_TOKEN = 16  # hexadecimal digits after it
_FOREIGN = "a checkpoint holds what no fit writes; remove the file and begin anew"
_CHECKSUM = 16  # bytes
_PATIENCE = 50.0  # times the last write's duration that must have passed before the next
_CLASSES = {  # that a record may hold, beside those of this package
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("scipy.sparse._csr", "csr_array"),
    ("scipy.sparse._csr", "csr_matrix"),
    *(
        (f"numpy.{core}.{module}", name)
        for core in ("_core", "core")
        for module, name in (("multiarray", "_reconstruct"), ("multiarray", "scalar"), ("numeric", "_frombuffer"))
    ),
}


class Journal:
    """Results of a fit by key, kept in a file.

    Results are written when fifty times the duration of the last write has passed: writing takes a fiftieth of the
    time, and at most that much work is lost.
    """

    def __init__(self, path: Path, token: str, file: BinaryIO) -> None:
        self._path, self._file, self._token = path, file, token
        self._known: dict[Key, Any] = dict(_records(file))
        self._kept: set[Key] = set(self._known)
        self._waiting: list[bytes] = []
        self._lock = threading.RLock()
        self._next_write = perf_counter()
        self._under_way = self._read_under_way()
        self._n_keys = 0

    def next_key(self, name: str) -> Key:
        """Return a key for the next step: its name and number."""
        self._n_keys += 1
        return name, self._n_keys

    def recall(self, key: Key, compute: Callable[[], Result]) -> Result:
        """Return the result of this key; where there is none, compute it and keep it."""
        if key in self._known:
            return self.pop(key)
        result = compute()
        self.keep(key, result)
        return result

    def __contains__(self, key: Key) -> bool:
        return key in self._known

    def pop(self, key: Key) -> Any:
        """Return a result from an earlier run, which then is forgotten here: it may be large, and is needed once."""
        return self._known.pop(key)

    def keep(self, key: Key, result: Any) -> None:
        """Keep a result as it is now, since the caller may change its arrays, and write it when it is time."""
        payload = _pickled(key, result)
        with self._lock:
            assert key not in self._kept, key  # two steps with one key would share a result
            self._kept.add(key)
            self._waiting.append(payload)
            if self.is_due:
                self.write()

    @property
    def is_due(self) -> bool:
        """Whether it is time to write."""
        return perf_counter() >= self._next_write

    def so_far(self, key: Key) -> Any:
        """Return how far this pass had come; None where that is not known."""
        return self._under_way[1] if self._under_way is not None and self._under_way[0] == key else None

    def write(self, key: Key | None = None, so_far: Any = None) -> None:
        """Write all results that wait, and how far the pass of this key has come."""
        begin = perf_counter()
        with self._lock, _refusing(self._path):
            for waiting in self._waiting:
                self._file.write(_record(waiting))
            self._waiting.clear()
            self._file.flush()
            os.fsync(self._file.fileno())
            if key is not None:
                temporary = self._beside(".new")
                temporary.write_bytes(_record(_pickled(key, so_far)))
                temporary.replace(self._beside(".pass"))
        end = perf_counter()
        self._next_write = end + _PATIENCE * (end - begin)

    def remove(self) -> None:
        """Remove the files."""
        for path in (self._path, self._beside(".pass"), self._beside(".new")):
            path.unlink(missing_ok=True)

    def _beside(self, ending: str) -> Path:
        return self._path.with_name(f"{self._path.name}.{self._token}{ending}")

    def _read_under_way(self) -> tuple[Key, Any] | None:
        try:
            with self._beside(".pass").open("rb") as file:
                return next(_records(file), None)
        except FileNotFoundError:
            return None


@contextmanager
def open_journal(
    path: str | os.PathLike[str], facts: Mapping[str, str], begun: Mapping[str, Any]
) -> Iterator[tuple[Journal, Mapping[str, Any]]]:
    """Yield the journal in this file, which is removed when the fit has ended without an error, and what it began with.

    `facts` say of which fit it is: a file with other facts is refused, and the difference named. `begun` is what a new
    journal begins with.
    """
    where = Path(path)
    with _refusing(where):
        file = _opened(where)
    with file:
        with _refusing(where):
            journal = _begin(file, where)
            record = journal.recall(("begun",), lambda: (dict(facts), dict(begun)))
        kept = _begun_with(where, record, facts, begun)
        try:
            yield journal, kept
        except BaseException:
            with suppress(OSError, CheckpointError):
                journal.write()
            raise
        journal.remove()


def _opened(where: Path) -> BinaryIO:
    """Open a file that exists, or a new one that begins as a journal does."""
    try:
        return where.open("r+b")
    except FileNotFoundError:
        file = where.open("x+b")
        file.write(_MAGIC + secrets.token_hex(_TOKEN // 2).encode())
        file.flush()
        return file


def _begin(file: BinaryIO, where: Path) -> Journal:
    """Return the journal in an open file; refuse a file of another kind."""
    _lock(file, where)
    file.seek(0)
    start = file.read(len(_MAGIC) + _TOKEN)
    token = start[len(_MAGIC) :]
    if not start.startswith(_MAGIC) or len(token) < _TOKEN or token.strip(b"0123456789abcdef"):
        what = f"begins with {start[:_TOKEN]!r}" if start else "is empty"
        raise CheckpointError(
            f"{shown(where)} is not a checkpoint: it must be a new file, or one that a fit began, and it {what}; give "
            "another name"
        )
    return Journal(where, token.decode(), file)


def _begun_with(where: Path, record: Any, facts: Mapping[str, str], begun: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a journal began with; refuse that of another fit."""
    match record:
        case (dict(earlier), dict(kept)) if kept.keys() == begun.keys():
            pass
        case _:
            raise CheckpointError(_FOREIGN)
    for name in facts:
        if earlier.get(name) != facts[name]:
            raise CheckpointError(
                f"the checkpoint {shown(where)} is of another fit: {name} was {earlier.get(name)} and is "
                f"{facts[name]}; remove the file to begin anew, or go on with the same data, parameters and versions"
            )
    return kept


def _pickled(key: Key, result: Any) -> bytes:
    return pickle.dumps((key, result), protocol=5)


def _record(payload: bytes) -> bytes:
    return len(payload).to_bytes(8, "little") + hashlib.blake2b(payload, digest_size=_CHECKSUM).digest() + payload


def _records(file: BinaryIO) -> Iterator[tuple[Key, Any]]:
    """Yield all whole records from here on; what follows the last is cut off where the file can be written."""
    size = os.fstat(file.fileno()).st_size
    while True:
        whole = file.tell()
        header = file.read(8 + _CHECKSUM)
        length = int.from_bytes(header[:8], "little")  # any number, if the header is damaged
        payload = file.read(length) if length <= size - file.tell() else b""
        if not payload or hashlib.blake2b(payload, digest_size=_CHECKSUM).digest() != header[8:]:
            break
        yield _loaded(payload)
    if file.writable():
        file.truncate(whole)
        file.seek(whole)


def _loaded(payload: bytes) -> tuple[Key, Any]:
    try:
        key, result = _RecordUnpickler(io.BytesIO(payload)).load()
        hash(key)
        return key, result
    except CheckpointError:
        raise
    except Exception as error:  # a payload may raise anything
        raise CheckpointError(_FOREIGN) from error


class _RecordUnpickler(pickle.Unpickler):
    """Makes arrays and the records of this package, and calls nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] == "ridgemark":
            named = super().find_class(module, name)
            # Not what a module of this package imports from elsewhere.
            if isinstance(named, type) and named.__module__.partition(".")[0] == "ridgemark":
                return named
        elif (module, name) in _CLASSES:
            return super().find_class(module, name)
        raise CheckpointError(f"a checkpoint holds {module}.{name}, what no fit writes; remove the file and begin anew")


def _lock(file: BinaryIO, where: Path) -> None:
    """Refuse a checkpoint that a running fit uses."""
    try:
        import fcntl
    except ImportError:  # a system without such locks
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CheckpointError(
            f"another fit that is still running uses the checkpoint {shown(where)}; wait for it, or give another name"
        ) from None


@contextmanager
def _refusing(where: Path) -> Iterator[None]:
    """Turn errors of the file system into one that names the file."""
    try:
        yield
    except OSError as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(
            f"the checkpoint {shown(where)} cannot be written: {error.strerror or error}; give a file in a folder with "
            "free space where you may write"
        ) from error
