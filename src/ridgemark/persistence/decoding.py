"""Decode the JSON and the arrays of a model file by the types of the records, and refuse everything else.

A record's annotations say what its fields hold; a `Rule` adds what a type cannot say: shapes and ranges. Sides of
arrays have names of one letter: the first array with the side `p` sets p, and all others must agree.
"""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import repeat
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ridgemark.parameters import Parameterised
from ridgemark.persistence.encoding import saved_names
from ridgemark.rows.places import listed, shown

POSITIVE = math.ulp(0.0)  # the smallest positive number


@dataclass(frozen=True)
class Rule:
    """What a field must satisfy besides its type.

    Parameters
    ----------
    sides : str or None, default=None
        The sides of an array or a list, one letter each, or the side that an integer states; "_" is a side of any
        size, a digit one of that size. None: any shape.
    lowest : float or None, default=None
        The smallest value; None: 0 for integers, which are counts or positions, and any number otherwise.
    below : str or None, default=None
        The side that every value must be below.
    finite : bool, default=True
        Whether infinities are refused; NaN always is.
    ascending : bool, default=False
        Whether each value must exceed the one before it.
    hint : type or None, default=None
        The type, where the record's annotation does not state it.
    """

    sides: str | None = None
    lowest: float | None = None
    below: str | None = None
    finite: bool = True
    ascending: bool = False
    hint: Any = None


ANY = Rule()


@dataclass
class Decoder:
    """The contents of a file: its arrays, removed as they are read, and the sizes known so far."""

    arrays: dict[str, NDArray[Any]]
    classes: Mapping[str, type]
    given: list[Any]
    rule: Callable[[type, str], Rule]  # of a record's field
    sizes: dict[str, int] = field(default_factory=dict)

    def decode(self, hint: Any, node: Any, place: str, rule: Rule = ANY) -> Any:
        """Return the value of type `hint` that a node states; `Any` stands for rows, or for what `Encoder` writes."""
        origin, inner = get_origin(hint), get_args(hint)
        if hint is Any:
            return self._free(node, place) if rule.sides is None else self._rows(node, place, rule)
        if origin in (Union, UnionType):
            return self._one_of(inner, node, place, rule)
        if origin in (tuple, list, Sequence):
            return self._entries(inner, node, place, rule)
        if origin in (np.ndarray, NDArray):  # `ndarray[shape, dtype[kind]]`; from NumPy 2.5 on, `NDArray[kind]` itself
            return self._array((get_args(inner[-1]) or inner)[0], node, place, rule)
        if origin in (dict, Mapping) or is_typeddict(hint):
            return self._mapping(hint, node, place)
        if hint in (int, float):
            return self._number(hint, node, place, rule)
        if hint in (str, bool, NoneType) or origin is Literal:
            if node not in inner if inner else type(node) is not hint:
                raise refusal(place, f"must be {f'one of {inner}' if inner else hint.__name__}, got {shown(node)}")
            return node
        if hint is object:
            return self._plain(node, place)
        if not issubclass(hint, Parameterised):
            return hint(**self.record(_hints(hint), node, place, hint))
        if not isinstance(found := self._free(node, place), hint):
            raise refusal(place, f"must be a {hint.__name__}, got {shown(found)}")
        return found

    def record(self, hints: Mapping[str, Any], node: Any, place: str, kind: type) -> dict[str, Any]:
        """Return the fields of a record, which must be these."""
        found = set(node) if isinstance(node, dict) else {"no record"}
        missing, unknown = hints.keys() - found, found - hints.keys()
        if missing or unknown:
            lacks, has = f"lacks {listed(sorted(missing))}", f"has the unknown fields {listed(sorted(unknown))}"
            raise refusal(place or "list of names", lacks if missing else has)
        values = {}
        for name, hint in hints.items():
            rule = self.rule(kind, name)
            values[name] = self.decode(rule.hint or hint, node[name], f"{place}.{name}".lstrip("."), rule)
        return values

    def _match(self, sides: str | None, sizes: tuple[int, ...], place: str) -> None:
        """Refuse a size that differs from an earlier size of the same side."""
        for side, size in zip(sides or "", sizes, strict=False):
            known = int(side) if side.isdigit() else self.sizes.setdefault(side, size)
            if known != size and side != "_":
                raise refusal(place, f"has {size} entries; {side} = {known} are required")

    def _is_right(self, values: Any, rule: Rule, whole: bool) -> bool:
        lowest = 0 if whole else -math.inf
        right = values >= (lowest if rule.lowest is None else rule.lowest)  # not of NaN
        if rule.finite:
            right &= values > -math.inf
            right &= values < math.inf
        if rule.below is not None:
            right &= values < self.sizes[rule.below]
        return bool(np.all(right)) and not (rule.ascending and (values[1:] <= values[:-1]).any())

    def _number(self, kind: type, node: Any, place: str, rule: Rule) -> Any:
        allowed = (int,) if kind is int else (int, float)
        exceeds = type(node) is int and abs(node) > sys.float_info.max  # JSON knows no largest one
        if type(node) not in allowed or exceeds or not self._is_right(node, rule, kind is int):
            what = "an integer" if kind is int else "a number"
            raise refusal(place, f"must be {what} in its range, got {shown(node)}")
        self._match(rule.sides if kind is int else None, (node,), place)
        return node

    def _array(self, dtype: Any, node: Any, place: str, rule: Rule) -> NDArray[Any]:
        if dtype is Any:  # text
            [(tag, words)] = node.items()
            if tag != "words" or not all(type(word) is str for word in words):
                raise refusal(place, "must be an array of text")
            self._match(rule.sides, (len(words),), place)
            return np.array(words, dtype=object)
        values = self._take(node, place)
        n_sides = values.ndim if rule.sides is None else len(rule.sides)
        if values.dtype != dtype or values.ndim != n_sides:
            found = f"{values.dtype} of {values.ndim}"
            raise refusal(place, f"must be {np.dtype(dtype)} of {n_sides} dimensions, got {found}")
        self._match(rule.sides, values.shape, place)
        if not self._is_right(values, rule, values.dtype.kind in "iu"):
            raise refusal(place, "has a value outside its range")
        return values

    def _rows(self, node: Any, place: str, rule: Rule) -> Any:
        """Return finite rows in single or double precision, dense or CSR; where `below` is a rule, or row numbers."""
        if rule.below is not None and np.ndim(self.arrays.get(place, 0)) == 1:
            return self._array(np.intp, node, place, replace(rule, sides=rule.sides[:1] if rule.sides else None))
        if isinstance(node, dict) and set(node) == {"csr"}:
            parts = [self.arrays.pop(f"{place}.{name}") for name in ("data", "indices", "indptr")]
            is_array, *shape = node["csr"]
            values = (sparse.csr_array if is_array else sparse.csr_matrix)(tuple(parts), shape=tuple(shape))
            values.check_format(full_check=True)  # an index out of range would read memory outside the array
            numbers = values.data
        else:
            values = numbers = self._take(node, place)
        if values.dtype not in (np.float32, np.float64) or values.ndim != 2 or not np.isfinite(numbers).all():
            raise refusal(place, "must hold finite rows")
        self._match(rule.sides, values.shape, place)
        return values

    def _one_of(self, hints: Sequence[Any], node: Any, place: str, rule: Rule) -> Any:
        """Return the value of the first type that accepts the node; None only where it is one of them."""
        *others, last = [hint for hint in hints if hint is not NoneType]
        if node is None and NoneType in hints:
            return None
        for hint in others:
            try:
                return self.decode(hint, node, place, rule)
            except ValueError:
                continue
        return self.decode(last, node, place, rule)

    def _entries(self, hints: Sequence[Any], node: Any, place: str, rule: Rule) -> Any:
        is_tuple = isinstance(node, dict) and set(node) == {"tuple"}
        entries = node["tuple"] if is_tuple else node
        if not isinstance(entries, list):
            raise refusal(place, f"must be a list, got {shown(node)}")
        self._match(rule.sides, (len(entries),), place)
        fixed = len(hints) > 1 and Ellipsis not in hints
        if fixed and len(entries) != len(hints):
            raise refusal(place, f"has {len(entries)} entries; {len(hints)} are required")
        inner = replace(rule, sides=rule.sides[1:] or None if rule.sides else None)
        each = zip(hints if fixed else repeat(hints[0]), entries, strict=False)
        found = [self.decode(hint, entry, f"{place}.{i}", inner) for i, (hint, entry) in enumerate(each)]
        return tuple(found) if is_tuple else found

    def _mapping(self, hint: Any, node: Any, place: str) -> dict[str, Any]:
        """Return a dict with text as keys; of a TypedDict, its keys must be there and others may hold plain values."""
        content = node.get("dict") if isinstance(node, dict) else None
        typed = is_typeddict(hint)
        if not isinstance(content, dict) or (typed and not set(content) >= hint.__required_keys__):
            raise refusal(place, "lacks required keys")
        hints, other = (get_type_hints(hint), object) if typed else ({}, get_args(hint)[1])
        return {
            key: self.decode(hints.get(key, other), part, f"{place}.{key}", self.rule(hint, key))
            for key, part in content.items()
        }

    def _plain(self, node: Any, place: str) -> Any:
        """Return text, None, a number, or lists of these."""
        if isinstance(node, list):
            return [self._plain(part, f"{place}.{i}") for i, part in enumerate(node)]
        if node is None or type(node) in (str, bool, int, float):
            return node
        raise refusal(place, "must hold numbers or text")

    def _free(self, node: Any, place: str) -> Any:
        """Return any value that `Encoder` writes: numbers, text, lists, tuples, dicts, arrays, allowed objects."""
        if isinstance(node, list):
            return [self._free(part, f"{place}.{i}") for i, part in enumerate(node)]
        if not isinstance(node, dict):
            return node
        if len(node) != 1:
            raise refusal(place, f"must have one tag, got {shown(node)}")
        [(tag, content)] = node.items()
        match tag:
            case "tuple":
                return tuple(self._free(part, f"{place}.{i}") for i, part in enumerate(content))
            case "dict":
                return {key: self._free(part, f"{place}.{key}") for key, part in content.items()}
            case "pairs":
                return {self._plain(key, place): self._free(part, f"{place}.{key}") for key, part in content}
            case "array":
                return self._take(node, place)
            case "csr":
                return self._rows(node, place, ANY)
            case "object":
                return self._object(content, place)
            case "given" if type(content) is int and 0 <= content < len(self.given):
                return self.given[content]
        raise refusal(place, f"has an unknown tag {shown(tag)}")

    def _object(self, node: Any, place: str) -> Any:
        name, parts = node
        known = self.classes.get(name) if isinstance(name, str) else None
        if known is None or not issubclass(known, Parameterised) or set(parts) != set(known._names()):
            raise refusal(place, f"asks for an object {shown(name)}, which is not allowed")
        return known(**{key: self._free(part, f"{place}.{key}") for key, part in parts.items()})

    def _take(self, node: Any, place: str) -> NDArray[Any]:
        if not (isinstance(node, dict) and set(node) == {"array"} and type(node["array"]) is bool):
            raise refusal(place, f"must be an array, got {shown(node)}")
        values = self.arrays.pop(place)
        return values.T if node["array"] else values


def refusal(place: str, what: str) -> ValueError:
    """Return the error for a value that is not allowed at this place."""
    return ValueError(f"its entry {place} {what}")


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {name: hints[name] for name in saved_names(kind)}
