"""The bytes of a model file: a safetensors file whose metadata holds a checksum and a header in JSON.

The metadata has one entry, `ridgemark`: 64 hexadecimal digits, then JSON with the entry `format`. The digits are the
SHA-256 of the JSON followed by name, type, shape and bytes of every array, in the order of names.

The package safetensors reads and checks the file. The file is written here, without copying an array: the package's
`save` makes two copies of every array, and its `save_file` replaces the file itself and changes its mode.
"""

import hashlib
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import numpy as safetensors

from ridgemark.errors import ModelFileError
from ridgemark.persistence.files import EXPECTED, reading, refusing, writing
from ridgemark.rows.files import MAX_LOADED_BYTES
from ridgemark.rows.places import shown

FORMAT = 12
_ENTRY = "ridgemark"
_DIGITS = 2 * hashlib.sha256().digest_size
_LENGTH = 8  # first bytes of a safetensors file, which hold the length of its header
_LONGEST_HEADER = 100_000_000  # bytes; the limit of safetensors
_FOREIGN = {
    b"\x93RIDGMRK": "is of format 1 or 2, which an earlier ridgemark wrote; fit and save the model again",
    b"PK\x03\x04": f"is an .npz or zip archive; give {EXPECTED}",
    b"\x93NUMPY": f"is a NumPy .npy array; give {EXPECTED}",
    b"\x80": f"is a pickle, which is never loaded because loading it can run any code; give {EXPECTED}",
}


def write_model(path: Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], overwrite: bool) -> None:
    """Write a JSON-serialisable header and C-contiguous arrays; the file is replaced atomically."""
    text = json.dumps({"format": FORMAT, **header})
    forms: dict[str, Any] = {"__metadata__": {_ENTRY: _checksum(text, arrays) + text}}
    ordered, end = sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0])), 0  # keeps all arrays aligned
    for name, array in ordered:
        begin, end = end, end + array.nbytes
        forms[name] = {"dtype": _type_name(array), "shape": array.shape, "data_offsets": [begin, end]}
    line = json.dumps(forms, separators=(",", ":")).encode()
    line += b" " * (-len(line) % 8)
    with writing(path, overwrite) as file:
        file.write(len(line).to_bytes(_LENGTH, "little") + line)
        for _, array in ordered:
            file.write(_bytes(array))


def read_model(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a file, after checking its size, format and checksum."""
    with refusing(path), reading(path) as file:
        size = os.fstat(file.fileno()).st_size
        entry = _metadata(file, size, shown(path))
        if size > MAX_LOADED_BYTES.value:
            raise ModelFileError(f"{shown(path)} has {size:,} bytes to read at once; {MAX_LOADED_BYTES.remedy}")
        file.seek(0)
        arrays = safetensors.load(file.read(size))
        text = entry[_DIGITS:]
        if _checksum(text, arrays) != entry[:_DIGITS]:
            raise ValueError("its checksum is wrong")
        return json.loads(text), arrays


def _metadata(file: io.BufferedReader, size: int, name: str) -> str:
    """Return the entry `ridgemark`; refuse a file without it, or with a wrong length."""
    begin = file.read(_LENGTH + 1)
    if not begin:
        raise ValueError("it is empty (0 bytes)")
    if begin[_LENGTH:] != b"{":
        what = next((what for start, what in _FOREIGN.items() if begin.startswith(start)), None)
        what = what or f"begins with {begin[:_LENGTH]!r}; give {EXPECTED}"
        raise ModelFileError(f"{name} is not a model file of this ridgemark: it {what}")
    length = int.from_bytes(begin[:_LENGTH], "little")
    if length > min(_LONGEST_HEADER, size - _LENGTH):
        raise ValueError(f"it has {size} bytes and announces a header of {length}")
    header = json.loads(b"{" + file.read(length - 1))
    metadata = header.pop("__metadata__", {})
    if _ENTRY not in metadata:
        raise ModelFileError(f"{name} is a safetensors file, but not a ridgemark model file; give {EXPECTED}")
    expected = _LENGTH + length + max((array["data_offsets"][1] for array in header.values()), default=0)
    if size != expected:
        raise ValueError(f"it has {size} bytes and should have {expected}")
    entry: str = metadata[_ENTRY]
    number = json.loads(entry[_DIGITS:])["format"]
    if type(number) is not int or number < 1:
        raise ValueError("its format has no number")
    if number != FORMAT:
        remedy = "install a newer ridgemark" if number > FORMAT else "fit and save the model again"
        raise ModelFileError(f"{name} has format {number}, and this ridgemark reads format {FORMAT}; {remedy}")
    return entry


def _checksum(text: str, arrays: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(text.encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(_bytes(array))
    return digest.hexdigest()


def _bytes(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _type_name(array: NDArray[Any]) -> str:
    """Return the safetensors name of the type: F64, I32, U8, BOOL."""
    return "BOOL" if array.dtype.kind == "b" else f"{array.dtype.kind.upper()}{8 * array.itemsize}"
