"""Decode the JSON and the arrays of a model file: what `encoding` writes, checked by the types of the records."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ridgemark.persistence.checking import Checker, refusal, saved_hints
from ridgemark.rows.places import listed, shown


class Decoder:
    """The contents of a file: its arrays, removed as they are read, and the functions that stand for those it lacks.

    Only classes of the schema are looked up, by their names.
    """

    def __init__(self, arrays: dict[str, NDArray[Any]], schema: Mapping[str, type], given: Sequence[Any]) -> None:
        self.given = given
        self._arrays, self._schema, self._checker = arrays, schema, Checker()

    def read(self, hint: Any, node: Any, place: str) -> Any:
        """Return the value of this type that a node states; all arrays must belong to it."""
        value = self._decode(node, place)
        self._checker.check(value, hint, place)
        self._checker.finish()
        if self._arrays:
            raise refusal(min(self._arrays), "is an array that no model has")
        return value

    def _decode(self, node: Any, place: str) -> Any:
        if isinstance(node, list):
            return [self._decode(part, f"{place}.{i}") for i, part in enumerate(node)]
        if not isinstance(node, dict):
            return node
        if len(node) != 1:
            raise refusal(place, f"must have one tag, got {listed(node)}")
        [(tag, content)] = node.items()
        match tag:
            case "tuple" if type(content) is list:
                return tuple(self._decode(content, place))
            case "dict":
                return {key: self._decode(part, f"{place}.{key}") for key, part in content}
            case "array":
                return self._arrays.pop(place).T if content else self._arrays.pop(place)
            case "words":
                return np.array(content, dtype=object)
            case "csr":
                return self._sparse(content, place)
            case "given" if type(content) is int and 0 <= content < len(self.given):
                return self.given[content]
            case _ if tag in self._schema:
                return self._object(self._schema[tag], content, place)
        raise refusal(place, f"has the tag {shown(tag)}, which is not allowed")

    def _object(self, kind: Any, parts: Mapping[str, Any], place: str) -> Any:
        """Return an object of the schema, with these fields or parameters, and None for fields that are not saved."""
        hints = saved_hints(kind)
        if set(parts) != hints.keys():
            raise refusal(place, f"must have the fields {listed(hints)}, got {listed(parts)}")
        values = {name: self._decode(parts[name], f"{place}.{name}") for name in hints}
        for name, hint in hints.items():
            self._checker.check(values[name], hint, f"{place}.{name}")
        others = fields(kind) if is_dataclass(kind) else ()
        made = kind(**values, **{one.name: None for one in others if not one.compare and one.default is MISSING})
        if hasattr(made, "check_record"):  # what the types of its fields cannot say
            made.check_record()
        return made

    def _sparse(self, content: Any, place: str) -> Any:
        """Return a finite CSR matrix in single or double precision."""
        is_array, *shape = content
        data, indices, ends = (self._arrays.pop(f"{place}.{name}") for name in ("data", "indices", "indptr"))
        if (ends[1:] < ends[:-1]).any():  # `check_format` takes a negative last one for that of an empty matrix
            raise refusal(place, "must have ascending ends of rows")
        values = (sparse.csr_array if is_array else sparse.csr_matrix)((data, indices, ends), shape=tuple(shape))
        values.check_format(full_check=True)  # an index out of range would read memory outside the array
        if values.dtype not in (np.float32, np.float64) or not np.isfinite(values.data).all():
            raise refusal(place, "must hold finite numbers")
        return values
