"""NumPy files: `.npy`, read in blocks, and `.npz` archives. Pickled objects are never loaded."""

from __future__ import annotations

import math
import sys
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np

from ridgemark.errors import DataError, SourceFileError
from ridgemark.rows.arrays import ArrayColumns
from ridgemark.rows.base import Array
from ridgemark.rows.files import FileState, bomb, reading, unreadable
from ridgemark.rows.limits import MAX_LOADED_BYTES, is_bomb
from ridgemark.rows.npy import FORM as _ARRAY
from ridgemark.rows.npy import NpyColumns
from ridgemark.rows.places import listed, shown

_ARCHIVE = "a NumPy archive (.npz)"
_PARSING = (ValueError, SyntaxError, tokenize.TokenError, EOFError, UnicodeError)  # what a broken header raises
_UNZIPPING = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, KeyError)


def npy_columns(path: Path) -> NpyColumns:
    """Return the columns of a `.npy` file; only the header is read now."""
    state = FileState(path)
    with reading(path, _ARRAY, *_PARSING), path.open("rb") as file:
        shape, fortran, dtype = _header(file, path, _ARRAY)
        offset = file.tell()
    needed, size = offset + math.prod(shape) * dtype.itemsize, path.stat().st_size
    if size < needed:
        raise unreadable(path, _ARRAY, f"an array of shape {shape} needs {needed} bytes and the file has {size}")
    return NpyColumns(state, shape, dtype, fortran, offset)


class Archive:
    """A `.npz` file: features in the array `X`, and optionally names in `feature_names` and targets in `y`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with reading(path, _ARCHIVE, *_UNZIPPING), zipfile.ZipFile(path) as archive:
            members = archive.namelist()
        self.keys = [name.removesuffix(".npy") for name in members if name.endswith(".npy")]

    def columns(self) -> ArrayColumns:
        """Return the columns of `X`, which is read into memory."""
        if "X" not in self.keys:
            msg = (
                f"{shown(self._path)} has no array 'X', which must hold the features; it has "
                f"{listed(self.keys) or 'none'}; write it with numpy.savez(path, X=features, y=targets)"
            )
            raise DataError(msg)
        features = self._read("X")
        names = None
        if "feature_names" in self.keys:
            given = self._read("feature_names")
            names = tuple(str(name) for name in given.ravel())
            if features.ndim == 2 and given.shape != features.shape[1:]:
                msg = (
                    f"{shown(self._path)}: feature_names must have one name for each of the {features.shape[1]} "
                    f"columns of X; got shape {given.shape}"
                )
                raise DataError(msg)
        return ArrayColumns(features, f"array 'X' of {shown(self._path)}", names)

    def resolve(self, given: Any, columns: ArrayColumns, role: str) -> Any:
        """Return the arrays named by `given`, stacked; return anything else unchanged (columns of X, or values)."""
        keys = list(given) if isinstance(given, list | tuple) else [given]
        if not keys or not all(isinstance(key, str) for key in keys):
            return given
        names = columns.names or ()
        arrays = [key for key in self.keys if key not in {"X", "feature_names"}]
        unknown = [key for key in keys if key not in arrays and key not in names]
        if unknown:
            msg = f"{role}: {shown(self._path)} has no array {shown(unknown[0])}; it has {listed(arrays) or 'only X'}"
            raise DataError(f"{msg}, and X has the columns {listed(names)}" if names else msg)
        if not set(keys) <= set(arrays):
            return given
        source = f"array {', '.join(map(shown, keys))} of {shown(self._path)}"
        values = [self._read(key) for key in keys]
        if len(values) == 1:
            return ArrayColumns(values[0], source)
        if any(value.shape != (columns.n_rows,) for value in values):
            msg = f"{source}: several targets must each have shape ({columns.n_rows},), one value for each row of X"
            raise DataError(msg)
        return ArrayColumns(np.column_stack(values), source)

    def _read(self, key: str) -> Array:
        with (
            reading(self._path, _ARCHIVE, *_UNZIPPING, *_PARSING, MemoryError),
            zipfile.ZipFile(self._path) as archive,
        ):
            with archive.open(f"{key}.npy") as member:
                shape, _, dtype = _header(member, self._path, f"array {shown(key)} of {_ARCHIVE}")
                needed = member.tell() + math.prod(shape) * dtype.itemsize
            self._check_size(archive.getinfo(f"{key}.npy"), needed)
            with archive.open(f"{key}.npy") as member:
                return np.lib.format.read_array(member, allow_pickle=False)

    def _check_size(self, member: zipfile.ZipInfo, needed: int) -> None:
        """Refuse an array that is incomplete, too large to read, or expands beyond the limit."""
        if member.file_size < needed:
            reason = f"its header announces an array of {needed} bytes, and its member has {member.file_size}"
            raise unreadable(self._path, _ARCHIVE, reason)
        if needed > MAX_LOADED_BYTES.value:
            msg = f"{shown(self._path)} has an array of {needed:,} bytes to read at once; {MAX_LOADED_BYTES.remedy}"
            raise SourceFileError(msg)
        if is_bomb(needed, min(member.compress_size, self._path.stat().st_size)):
            raise bomb(self._path)


def _header(file: IO[bytes], path: Path, form: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, Fortran order and type of the array that begins here; refuse pickled objects."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
    else:  # version 3 is only for structured records
        raise unreadable(
            path, form, f"its format version is {version[0]}.{version[1]}, which does not hold plain numbers"
        )
    if dtype.hasobject:
        msg = (
            f"{shown(path)} holds pickled Python objects, never loaded because loading can run any code; "
            "save plain numbers: numpy.save(path, array.astype(float))"
        )
        raise SourceFileError(msg)
    if not all(type(side) is int and 0 <= side <= sys.maxsize for side in shape):  # excludes bool
        raise unreadable(path, form, f"its shape is {shown(shape)}, which is not a tuple of counts")
    return shape, fortran, dtype
