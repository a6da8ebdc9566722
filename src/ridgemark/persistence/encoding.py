"""Encode the values of a model as JSON and arrays; `decoding` decodes them."""

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ridgemark.errors import ParameterError
from ridgemark.parameters import Parameterised
from ridgemark.persistence.checking import saved_hints

_DEEPEST = 100  # far below Python's recursion limit, so that every file written can be read


class Encoder:
    """Turn values into JSON, and collect what JSON cannot hold.

    Numbers, text, None and lists are written as they are; everything else as a dict of one entry, its tag. That of an
    object is its class, with its fields or parameters. An array is named after its place, and its tag says whether its
    transpose was stored.

    Attributes
    ----------
    arrays : dict
        The arrays by their places, C-contiguous.
    given : list of callables
        The functions, and other callables of unknown class, of the kernel that has the most of them. They are
        numbered within each kernel, since a fitted kernel and its functions may be copies of those given.
    """

    def __init__(self, schema: Collection[type]) -> None:
        self._schema = set(schema)
        self.arrays: dict[str, NDArray[Any]] = {}
        self.given: list[Any] = []

    def encode(self, value: Any, place: str, depth: int = 0, functions: list[Any] | None = None) -> Any:
        """Return the JSON of a value; `place` names it, `functions` are those found in its kernel so far."""
        if depth > _DEEPEST:
            raise ParameterError(
                f"{place[:_DEEPEST]}... is nested deeper than {_DEEPEST} levels, which a model file cannot hold"
            )
        kind: Any = type(value)
        inner = partial(self.encode, depth=depth + 1, functions=functions)
        if value is None or kind in (str, int, float, bool):
            return value
        if isinstance(value, np.bool_ | np.integer | np.floating | np.str_) and value.dtype.itemsize <= 8:
            return value.item()
        if kind is list:
            return [inner(part, f"{place}.{i}") for i, part in enumerate(value)]
        if kind is tuple:
            return {"tuple": inner(list(value), place)}
        if isinstance(value, Mapping) and all(type(key) in (str, int, float, bool) for key in value):
            return {"dict": [[key, inner(part, f"{place}.{key}")] for key, part in value.items()]}
        if kind in (np.ndarray, np.memmap):
            return self._array(value, place)
        if isinstance(value, sparse.csr_matrix | sparse.csr_array) and value.ndim == 2:
            for name in ("data", "indices", "indptr"):
                self._array(getattr(value, name), f"{place}.{name}")
            return {"csr": [isinstance(value, sparse.csr_array), *value.shape]}
        functions = [] if functions is None else functions
        if kind in self._schema:
            if isinstance(value, Parameterised):
                inner = partial(inner, functions=functions)
            return {kind.__name__: {name: inner(getattr(value, name), f"{place}.{name}") for name in saved_hints(kind)}}
        if callable(value) and not isinstance(value, type):
            functions.append(value)
            self.given = max(self.given, functions, key=len)
            return {"given": len(functions) - 1}
        raise _refusal(value, place)

    def _array(self, array: NDArray[Any], place: str) -> dict[str, Any]:
        words = array.tolist() if array.dtype == object and array.ndim == 1 else [None]
        if all(type(word) is str for word in words):
            return {"words": words}
        if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
            raise _refusal(array, place)
        native = np.asarray(array).astype(array.dtype.newbyteorder("="), copy=False)
        # The memory order is kept, since sums in another order round differently.
        transposed = native.flags.fnc
        self.arrays[place] = np.ascontiguousarray(native.T if transposed else native).reshape(
            native.shape[::-1] if transposed else native.shape
        )
        return {"array": transposed}


def _refusal(value: Any, place: str) -> ParameterError:
    what = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"a value of type {type(value).__name__}"
    return ParameterError(
        f"{place} is {what}, which a model file cannot hold; it can hold numbers, text, lists, tuples, dicts of these, "
        "arrays of numbers, CSR matrices, kernels and selections"
    )
