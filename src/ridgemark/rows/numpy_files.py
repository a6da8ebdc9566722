"""NumPy files: `.npy`, read in blocks, and `.npz` archives. Pickled objects are never loaded."""

import math
import sys
import tokenize
import zipfile
import zlib
from io import FileIO
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ridgemark.errors import DataError, SourceFileError
from ridgemark.rows.base import Array, Rows
from ridgemark.rows.columns import ArrayColumns, MatrixColumns
from ridgemark.rows.files import MAX_LOADED_BYTES, FileState, check_expansion, reading, unreadable
from ridgemark.rows.places import listed, shown

_ARRAY = "a NumPy array file (.npy)"
_ARCHIVE = "a NumPy archive (.npz)"
_NEAR_BYTES = 2**18  # requested rows this close in the file are read together with the rows between them
_PARSING = (ValueError, SyntaxError, tokenize.TokenError, EOFError, UnicodeError)  # what a broken header raises
_UNZIPPING = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, KeyError)


class NpyColumns(MatrixColumns):
    """Columns of a `.npy` file, which is read block by block; only the header is read on opening.

    Every read checks before and after that the file has not changed. The file is not memory-mapped: if a mapped file is
    truncated meanwhile, SIGBUS ends the process, and a change of its numbers goes unnoticed.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._state, source = path, FileState(path), shown(path)
        with reading(source, _ARRAY, *_PARSING), path.open("rb") as file:
            shape, self._fortran, dtype = _header(file, source, _ARRAY)
            self._offset = file.tell()
        needed, size = self._offset + math.prod(shape) * dtype.itemsize, path.stat().st_size
        if size < needed:
            raise unreadable(
                shown(path), _ARRAY, f"an array of shape {shape} needs {needed} bytes and the file has {size}"
            )
        super().__init__(shape, dtype, source, None, in_memory=False)
        self._latest: dict[tuple[int, int], Array] = {}  # rows read last, shared by all copies made by `only`

    def values(self, rows: Rows) -> Array:
        """Return the stored values (n, k) of some rows; features, targets and weights are read together."""
        whole = self._latest.get((rows.start, rows.stop)) if isinstance(rows, slice) else None
        if whole is not None:
            self._state.check()
            return whole[:, self.selection]
        with self._state.unchanged(), reading(self.header.source, _ARRAY), self._path.open("rb", buffering=0) as file:
            return self._between(file, rows, keep=True) if isinstance(rows, slice) else self._at(file, rows)

    def _at(self, file: FileIO, rows: npt.NDArray[np.intp]) -> Array:
        """Return rows by number, in the requested order; rows close in the file are read together."""
        values = np.empty((len(rows), len(self.which)), self.stored_dtype)
        step = max(1, _NEAR_BYTES // (self.header.n_columns * self.stored_dtype.itemsize))
        order = np.argsort(rows, kind="stable")
        ends = np.flatnonzero(np.diff(rows[order] // step)) + 1
        for group in np.split(order, ends) if len(rows) else []:
            first, last = int(rows[group[0]]), int(rows[group[-1]])
            values[group] = self._between(file, slice(first, last + 1))[rows[group] - first]
        return values

    def _between(self, file: FileIO, rows: slice, keep: bool = False) -> Array:
        """Return the chosen columns of consecutive rows."""
        n_rows, n_columns = rows.stop - rows.start, self.header.n_columns
        if self._fortran:
            return np.array([self._numbers(file, j * self.n_rows + rows.start, n_rows) for j in self.which]).T
        whole = self._numbers(file, rows.start * n_columns, n_rows * n_columns).reshape(n_rows, n_columns)
        if keep:
            self._latest.clear()
            self._latest[rows.start, rows.stop] = whole
        return whole[:, self.selection]

    def _numbers(self, file: FileIO, position: int, count: int) -> Array:
        """Return some numbers from a position in the file's array."""
        file.seek(self._offset + position * self.stored_dtype.itemsize)
        values = np.fromfile(file, self.stored_dtype, count)
        if len(values) < count:
            raise unreadable(self.header.source, _ARRAY, f"it is {count - len(values)} numbers too short")
        return values


class Archive:
    """A `.npz` file: features in the array `X`, and optionally names in `feature_names` and targets in `y`."""

    def __init__(self, path: Path) -> None:
        self._path, self._source = path, shown(path)
        with reading(self._source, _ARCHIVE, *_UNZIPPING), zipfile.ZipFile(path) as archive:
            members = archive.namelist()
        self.keys = [name.removesuffix(".npy") for name in members if name.endswith(".npy")]

    def columns(self) -> ArrayColumns:
        """Return the columns of `X`, which is read into memory."""
        if "X" not in self.keys:
            raise DataError(
                f"{self._source} has no array 'X', which must hold the features; it has "
                f"{listed(self.keys) or 'none'}; write it with numpy.savez(path, X=features, y=targets)"
            )
        features = self._read("X")
        names = None
        if "feature_names" in self.keys:
            given = self._read("feature_names")
            names = tuple(str(name) for name in given.ravel())
            if features.ndim == 2 and given.shape != features.shape[1:]:
                raise DataError(
                    f"{self._source}: feature_names must have one name for each of the {features.shape[1]} "
                    f"columns of X; got shape {given.shape}"
                )
        return ArrayColumns(features, f"array 'X' of {self._source}", names)

    def resolve(self, given: Any, columns: ArrayColumns, role: str) -> Any:
        """Return the arrays named by `given`, stacked; return anything else unchanged (columns of X, or values)."""
        keys = list(given) if isinstance(given, list | tuple) else [given]
        if not keys or not all(isinstance(key, str) for key in keys):
            return given
        names = columns.names or ()
        arrays = [key for key in self.keys if key not in {"X", "feature_names"}]
        unknown = [key for key in keys if key not in arrays and key not in names]
        if unknown:
            msg = f"{role}: {self._source} has no array {shown(unknown[0])}; it has {listed(arrays) or 'only X'}"
            raise DataError(f"{msg}, and X has the columns {listed(names)}" if names else msg)
        if not set(keys) <= set(arrays):
            return given
        source = f"array {', '.join(map(shown, keys))} of {self._source}"
        values = [self._read(key) for key in keys]
        if len(values) == 1:
            return ArrayColumns(values[0], source)
        if any(value.shape != (columns.n_rows,) for value in values):
            raise DataError(
                f"{source}: several targets must each have shape ({columns.n_rows},), one value for each row of X"
            )
        return ArrayColumns(np.column_stack(values), source)

    def _read(self, key: str) -> Array:
        with (
            reading(self._source, _ARCHIVE, *_UNZIPPING, *_PARSING, MemoryError),
            zipfile.ZipFile(self._path) as archive,
        ):
            with archive.open(f"{key}.npy") as member:
                shape, _, dtype = _header(member, self._source, f"array {shown(key)} of {_ARCHIVE}")
                needed = member.tell() + math.prod(shape) * dtype.itemsize
            self._check_size(archive.getinfo(f"{key}.npy"), needed)
            with archive.open(f"{key}.npy") as member:
                return np.lib.format.read_array(member, allow_pickle=False)

    def _check_size(self, member: zipfile.ZipInfo, needed: int) -> None:
        """Refuse an array that is incomplete, too large to read, or expands beyond the limit."""
        if member.file_size < needed:
            reason = f"its header announces an array of {needed} bytes, and its member has {member.file_size}"
            raise unreadable(self._source, _ARCHIVE, reason)
        if needed > MAX_LOADED_BYTES.value:
            raise SourceFileError(
                f"{self._source} has an array of {needed:,} bytes to read at once; {MAX_LOADED_BYTES.remedy}"
            )
        check_expansion(self._path, needed, min(member.compress_size, self._path.stat().st_size))


def _header(file: IO[bytes], source: str, form: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, Fortran order and type of the array that begins here; refuse pickled objects."""
    major, minor = np.lib.format.read_magic(file)
    if (major, minor) not in ((1, 0), (2, 0)):  # version 3 is only for structured records
        raise unreadable(source, form, f"its format version is {major}.{minor}, which does not hold plain numbers")
    read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if dtype.hasobject:
        raise SourceFileError(
            f"{source} holds pickled Python objects, never loaded because loading can run any code; "
            "save plain numbers: numpy.save(path, array.astype(float))"
        )
    if not all(type(side) is int and 0 <= side <= sys.maxsize for side in shape):  # excludes bool
        raise unreadable(source, form, f"its shape is {shown(shape)}, which is not a tuple of counts")
    return shape, fortran, dtype
