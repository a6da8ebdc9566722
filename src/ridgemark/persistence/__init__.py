"""Models in one file: arrays and JSON, no pickle.

A class is looked up by name among those the caller allows: a file can choose among these and name no other, so
loading runs no code that comes from it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ridgemark.errors import ParameterError
from ridgemark.persistence.files import reading, writing
from ridgemark.persistence.layout import read_model, write_model
from ridgemark.persistence.tree import Decoder, Encoder
from ridgemark.rows.places import listed, shown

__all__ = ["load_state", "save_state"]

Types = Iterable[type]


def save_state(path: str | os.PathLike[str], state: Any, types: Types, overwrite: bool = True) -> Path:
    """Write a state to a file, whole or not at all.

    The file is written beside the target, flushed to the disk and renamed: whatever happens on the way, the target is
    the old file or the new one. An error removes the unfinished `.ridgemark-*.tmp`; only a killed process leaves it.

    Parameters
    ----------
    path : str or path
        The file; its folder must exist. Its mode is kept where it exists.
    state : tree
        Of dicts with str keys, lists, tuples, str, int, float, bool, None, arrays of numbers, bools or text, CSR
        matrices, and records of `types`. Functions, and other callables, are not saved, only their places in a kernel.
    types : list of classes
        `Parameterised` classes, dataclasses and NamedTuples, no two of one name: what `load_state` may rebuild.
    overwrite : bool, default=True
        Whether an existing file is replaced.

    Returns
    -------
    path : Path

    Raises
    ------
    ModelFileError
        The file cannot be written there.
    ParameterError
        The tree holds something else.
    """
    target, encoder = Path(path), Encoder(_by_name(types))
    tree = encoder.encode(state, "state")
    with writing(target, overwrite) as file:
        write_model(file, {"given": [_name(function) for function in encoder.given], "state": tree}, encoder.arrays)
    return target


def load_state(path: str | os.PathLike[str], types: Types, kernel: Any = None) -> Any:
    """Return the state that `save_state` wrote, equal to the last bit.

    Parameters
    ----------
    path : str or path
        The file.
    types : list of classes
        The only classes a file can ask for, as given to `save_state`.
    kernel : callable or Kernel, optional
        The kernel the model was made with, where that is, or contains, a function or a class of the user's own.

    Raises
    ------
    ModelFileError
        The file is missing, empty, cut short, changed, newer, or no model file.
    ParameterError
        A kernel is needed and not given, or the other way round.
    """
    source, known = Path(path), _by_name(types)
    again = Encoder(known)  # finds the functions in the order in which the first one did
    with suppress(ParameterError):  # what is no kernel has too few of them
        again.encode(kernel, "kernel")
    with reading(source) as file:
        header, arrays = read_model(file, shown(source))
        _check_given(source, header["given"], again.given, kernel)
        return Decoder(known, arrays, again.given).decode(header["state"])


def _by_name(types: Types) -> dict[str, type]:
    every = list(types)
    known = {one.__name__: one for one in every}
    if len(known) < len(every):
        msg = f"types must have different names, got {', '.join(one.__name__ for one in every)}"
        raise ParameterError(msg)
    return known


def _check_given(path: Path, needed: list[str], given: list[Any], kernel: Any) -> None:
    if len(given) == len(needed) and (needed or kernel is None):
        return
    if not needed:
        msg = f"{shown(path)} holds its kernel; leave kernel={kernel!r} out"
        raise ParameterError(msg)
    got = "none" if kernel is None else listed(map(_name, given)) or repr(kernel)
    msg = (
        f"the model in {shown(path)} was made with {listed(needed)}, code that a file does not hold; "
        f"load it with kernel=... as the model was made, got {got}"
    )
    raise ParameterError(msg)


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
