"""The tree of a model as JSON: numbers and text as they are, what JSON cannot say as an object of one key, its tag."""

from __future__ import annotations

import math
import struct
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ridgemark.errors import ParameterError
from ridgemark.parameters import Parameterised
from ridgemark.persistence.layout import DTYPE
from ridgemark.rows.places import shown

_DEEPEST = 100  # far below where Python's own recursion ends, so that what was written can be read
_SPARSE = {"csr_matrix": sparse.csr_matrix, "csr_array": sparse.csr_array}


class Encoder:
    """Turns a tree into JSON, and gathers what JSON does not hold.

    Attributes
    ----------
    given : list of callables
        The functions, and other callables of no known class, of the kernel that has the most of them. They are
        numbered within each kernel, since a fitted kernel is a copy of the one given and so may its functions be.
    """

    def __init__(self, known: dict[str, type]) -> None:
        self._known = known
        self._arrays: dict[int, tuple[int, NDArray[Any]]] = {}
        self.given: list[Any] = []

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """The arrays met so far; one that occurs twice is kept once."""
        return [array for _, array in self._arrays.values()]

    def encode(self, value: Any, place: str, depth: int = 0, functions: list[Any] | None = None) -> Any:
        """Return the JSON of a value; `place` names it in messages, `functions` are those of its kernel so far."""
        if depth > _DEEPEST:
            msg = f"{place[:_DEEPEST]}... is nested deeper than {_DEEPEST} levels, which a model file does not hold"
            raise ParameterError(msg)
        kind, inner = type(value), partial(self.encode, depth=depth + 1, functions=functions)
        if value is None or kind in (str, int, bool):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": struct.pack(">d", value).hex()}
        if kind is list:
            return [inner(part, f"{place}[{i}]") for i, part in enumerate(value)]
        if kind is tuple:
            return {"tuple": inner(list(value), place)}
        if kind is dict and all(type(key) is str for key in value):
            return {"dict": {key: inner(part, f"{place}[{key!r}]") for key, part in value.items()}}
        if kind in (np.ndarray, np.memmap):
            return self._array(value, place)
        if isinstance(value, np.generic):
            return {"scalar": self._section(np.asarray(value), place)}
        if kind in _SPARSE.values() and value.ndim == 2:
            sections = [self._section(part, place) for part in (value.data, value.indices, value.indptr)]
            return {"csr": [kind.__name__, sections, list(value.shape)]}
        functions = [] if functions is None else functions
        if kind in self._known.values():
            inner = partial(inner, functions=functions)
            parts = {name: inner(part, f"{place}.{name}") for name, part in _fields(value).items()}
            return {"object": [kind.__name__, parts]}
        if callable(value) and not isinstance(value, type):
            functions.append(value)
            self.given = max(self.given, functions, key=len)
            return {"given": len(functions) - 1}
        raise _refusal(value, place)

    def _array(self, array: NDArray[Any], place: str) -> dict[str, Any]:
        if array.dtype != object:
            return {"array": self._section(array, place)}
        words = array.ravel().tolist()
        if not all(type(word) is str for word in words):
            raise _refusal(array, place)
        return {"strings": [words, list(array.shape)]}

    def _section(self, array: NDArray[Any], place: str) -> int:
        if not DTYPE.fullmatch(array.dtype.str):
            raise _refusal(array, place)
        # Kept alive here, so that no other array gets its id.
        return self._arrays.setdefault(id(array), (len(self._arrays), array))[0]


class Decoder:
    """Turns JSON back into the tree."""

    def __init__(self, known: dict[str, type], arrays: list[NDArray[Any]], given: list[Any]) -> None:
        self._known, self._arrays, self._given = known, arrays, given

    def decode(self, node: Any) -> Any:
        """Return the value of this JSON; what no encoder wrote is a ValueError, TypeError or LookupError."""
        if isinstance(node, list):
            return [self.decode(part) for part in node]
        if not isinstance(node, dict):
            return node
        [(tag, content)] = node.items()
        match tag:
            case "float":
                return struct.unpack(">d", bytes.fromhex(content))[0]
            case "tuple":
                return tuple(map(self.decode, content))
            case "dict":
                return {key: self.decode(part) for key, part in content.items()}
            case "array":
                return self._arrays[content]
            case "scalar":
                return self._arrays[content][()]
            case "strings":
                words, shape = content
                return np.array([*map(_text, words)], dtype=object).reshape(shape)
            case "csr":
                return self._sparse(*content)
            case "object":
                return self._object(*content)
            case "given":
                return self._given[content]
        msg = f"it has an unknown entry {shown(tag)}"
        raise ValueError(msg)

    def _sparse(self, kind: str, sections: list[int], shape: list[int]) -> Any:
        matrix = _SPARSE[kind](tuple(self._arrays[section] for section in sections), shape=tuple(shape))
        matrix.check_format(full_check=True)  # an index out of range would read foreign memory
        return matrix

    def _object(self, name: str, parts: dict[str, Any]) -> Any:
        if name not in self._known:
            msg = f"it asks for an object of class {shown(name)}, which no model has"
            raise ValueError(msg)
        return self._known[name](**{key: self.decode(part) for key, part in parts.items()})


def _fields(value: Any) -> dict[str, Any]:
    """Return the arguments from which the record's class builds its equal."""
    if isinstance(value, Parameterised):
        return value.get_params(deep=False)
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    return value._asdict()


def _refusal(value: Any, place: str) -> ParameterError:
    what = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"a value of type {type(value).__name__}"
    return ParameterError(
        f"{place} is {what}, which a model file does not hold; it holds numbers, text, lists, tuples, dicts with text "
        "as keys, arrays of numbers or text, CSR matrices, kernels and selections"
    )


def _text(word: Any) -> str:
    if type(word) is not str:
        msg = "it has something else where text should be"
        raise ValueError(msg)
    return word
