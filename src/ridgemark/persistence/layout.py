"""The bytes of a model file: a header and arrays, their lengths checked before memory is asked for, and their sum.

All numbers are little-endian:

- 32 bytes: the magic, the format number, the length of the header, the length of the file (three uint64);
- the header, JSON in UTF-8: `arrays`, the [dtype, shape, order] of every array; `given`, the names of the functions
  that are not in the file; `state`, the tree, where `{"array": 3}` stands for the fourth array;
- the arrays' bytes, one after the other, each begun at a multiple of 64 bytes, and the last one padded to one;
- 32 bytes: the SHA-256 of everything before.

The magic and the format number stay where they are in every format to come.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import struct
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ridgemark.errors import ModelFileError
from ridgemark.rows.places import shown

FORMAT = 2
# Longer floats are of another size on another machine, and objects would have to be pickled.
DTYPE = re.compile(r"[<>|](b1|[iu][1248]|f[248]|c8|c16|[US][1-9][0-9]{0,8})")
_MAGIC = b"\x93RIDGMRK"
_PREFIX = struct.Struct("<8sQQQ")
_ALIGNMENT = 64
_DIGEST_SIZE = hashlib.sha256().digest_size
_CHUNK = 1 << 20  # bytes summed while they are still in the processor's cache
_FOREIGN = {
    b"PK\x03\x04": "is an .npz or zip archive",
    b"\x93NUMPY": "is a NumPy .npy array",
    b"\x80": "is a pickle, which is never loaded, since that may run any code",
}


def write_model(file: io.BufferedIOBase, header: dict[str, Any], arrays: list[NDArray[Any]]) -> None:
    """Write a header, which JSON can say, and arrays of numbers or text."""
    forms = [[array.dtype.str, list(array.shape), "F" if array.flags.fnc else "C"] for array in arrays]
    # Lone surrogates, as in undecodable column names, are written as they are: as escapes two could merge.
    text = json.dumps(header | {"arrays": forms}, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
    size = _file_size(len(text), [array.nbytes for array in arrays])
    summed = _Summed(file)
    summed.write(_PREFIX.pack(_MAGIC, FORMAT, len(text), size))
    summed.write(text)
    summed.write(bytes(summed.padding))
    for array in arrays:
        summed.write(_bytes(array if array.flags.forc else np.ascontiguousarray(array)))
        summed.write(bytes(summed.padding))
    file.write(summed.sum.digest())


def read_model(file: io.BufferedIOBase, name: str) -> tuple[dict[str, Any], list[NDArray[Any]]]:
    """Return the header and the arrays, read once and believed only when their sum is right.

    What is wrong with the file is a ValueError, TypeError or LookupError; a foreign or newer file, which is not
    wrong, a ModelFileError. `name` is for its message.
    """
    summed, size = _Summed(file), os.fstat(file.fileno()).st_size
    text_size = _check_prefix(bytes(summed.read(min(size, _PREFIX.size))), size, name)
    header = json.loads(summed.read(text_size).decode("utf-8", "surrogatepass"))
    summed.read(summed.padding)
    forms = [_checked_form(*form) for form in header["arrays"]]
    if _file_size(text_size, [dtype.itemsize * math.prod(shape) for dtype, shape, _ in forms]) != size:
        msg = "its arrays do not fill it"
        raise ValueError(msg)
    arrays: list[NDArray[Any]] = []
    for dtype, shape, order in forms:
        arrays.append(np.empty(shape, dtype, order))
        summed.read_into(_bytes(arrays[-1]))
        summed.read(summed.padding)
    if file.read() != summed.sum.digest():
        msg = "its checksum is wrong"
        raise ValueError(msg)
    return header, arrays


class _Summed:
    """A file whose bytes are counted and summed as they pass."""

    def __init__(self, file: io.BufferedIOBase) -> None:
        self.file, self.position, self.sum = file, 0, hashlib.sha256()

    def write(self, data: Any) -> None:
        for part in _parts(data):
            self.file.write(part)
            self._count(part)

    def read_into(self, buffer: Any) -> None:
        for part in _parts(buffer):
            if self.file.readinto(part) != len(part):
                msg = "it ends too early"
                raise ValueError(msg)
            self._count(part)

    def read(self, size: int) -> bytearray:
        data = bytearray(size)
        self.read_into(data)
        return data

    @property
    def padding(self) -> int:
        """How many bytes are left to the next place where an array may begin."""
        return -self.position % _ALIGNMENT

    def _count(self, part: memoryview) -> None:
        self.position += len(part)
        self.sum.update(part)


def _parts(data: Any) -> Iterator[memoryview]:
    view = memoryview(data)
    return (view[start : start + _CHUNK] for start in range(0, len(view), _CHUNK))


def _check_prefix(prefix: bytes, size: int, name: str) -> int:
    """Return the length of the header, or say what the file is instead."""
    if not prefix:
        msg = "it is empty (0 bytes)"
        raise ValueError(msg)
    if not prefix.startswith(_MAGIC[: len(prefix)]):
        known = [what for start, what in _FOREIGN.items() if prefix.startswith(start)]
        what = known[0] if known else f"begins with {prefix[:8]!r}"
        msg = f"{name} is no ridgemark model file: it {what}; give a file that save wrote"
        raise ModelFileError(msg)
    if len(prefix) < _PREFIX.size:
        msg = f"it is cut short after {size} bytes"
        raise ValueError(msg)
    _, number, header_size, whole = _PREFIX.unpack(prefix)
    if number > FORMAT:
        msg = f"{name} has format {number} and this ridgemark reads format {FORMAT}; install a newer ridgemark"
        raise ModelFileError(msg)
    if 1 <= number < FORMAT:
        msg = f"{name} has format {number}, and this ridgemark reads format {FORMAT}; fit and save the model again"
        raise ModelFileError(msg)
    if number < 1 or whole != size or header_size > size:
        msg = f"it has {size} bytes and should have {whole}" if whole != size else "its first bytes contradict it"
        raise ValueError(msg)
    return int(header_size)


def _file_size(header_size: int, byte_counts: list[int]) -> int:
    end = _PREFIX.size + header_size
    for count in [*byte_counts, 0]:
        end += -end % _ALIGNMENT + count
    return end + _DIGEST_SIZE


def _checked_form(dtype: Any, shape: Any, order: Any) -> tuple[np.dtype[Any], tuple[int, ...], Literal["C", "F"]]:
    usable = DTYPE.fullmatch(dtype) and all(type(side) is int and side >= 0 for side in shape)
    if not usable or order not in ("C", "F"):
        msg = f"it has an array that cannot be, {shown([dtype, shape, order])}"
        raise ValueError(msg)
    return np.dtype(dtype), tuple(shape), order


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return a contiguous array's own memory; its order matters, since sums in another order round otherwise."""
    return array.reshape(-1, order="A").view(np.uint8)
