"""Schema of a model file: readers of JSON and arrays that accept one type and shape and refuse everything else.

A reader is a function `(node, place, source) -> value` that raises ValueError for a node it does not accept. Sides of
arrays have names: the first array with the side `p` sets p, and all others must agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ridgemark.parameters import Parameterised
from ridgemark.rows.places import listed, shown

Side = str | int


@dataclass
class Source:
    """The contents of a file: its arrays, removed as they are read, and the sizes known so far."""

    arrays: dict[str, NDArray[Any]]
    classes: Mapping[str, type]
    given: list[Any]
    sizes: dict[str, int] = field(default_factory=dict)

    def match(self, side: Side, size: int, place: str) -> None:
        """Refuse a size that differs from an earlier size of the same side."""
        known = self.sizes.setdefault(side, size) if isinstance(side, str) else side
        if known != size:
            raise refusal(place, f"has {size} entries; {side} = {known} are required")


Reader = Callable[[Any, str, Source], Any]


def refusal(place: str, what: str) -> ValueError:
    """Return the error for a value that is not allowed at this place."""
    return ValueError(f"its entry {place} {what}")


def flag(node: Any, place: str, source: Source) -> bool:
    """Read True or False."""
    if type(node) is not bool:
        raise refusal(place, f"must be true or false, got {shown(node)}")
    return node


def text(*choices: str) -> Reader:
    """Read text; if there are choices, one of them."""

    def read(node: Any, place: str, source: Source) -> str:
        if type(node) is not str or (choices and node not in choices):
            raise refusal(place, f"must be text{f' among {choices}' if choices else ''}, got {shown(node)}")
        return node

    return read


def whole(lowest: int = 0, below: Side | None = None, size: str | None = None) -> Reader:
    """Read an integer of at least `lowest` and below a size; it sets the size named `size`."""

    def read(node: Any, place: str, source: Source) -> int:
        if type(node) is not int or node < lowest or (below is not None and node >= _number_of(below, source)):
            raise refusal(place, f"must be an integer of at least {lowest}{_up_to(below)}, got {shown(node)}")
        if size is not None:
            source.match(size, node, place)
        return node

    return read


def number(lowest: float = -math.inf, above: float = -math.inf, finite: bool = True) -> Reader:
    """Read a number that is not NaN, at least `lowest`, larger than `above`, and finite unless `finite` is False."""

    def read(node: Any, place: str, source: Source) -> float:
        value = float(node) if type(node) in (int, float) else math.nan
        right = value >= lowest and (value > above or above == -math.inf)
        if not right or (finite and not math.isfinite(value)):
            raise refusal(place, f"must be a number in its range, got {shown(node)}")
        return node

    return read


def array(
    *sides: Side, lowest: float = -math.inf, above: float = -math.inf, below: Side | None = None, finite: bool = True
) -> Reader:
    """Read a float64 array of this shape within a range; with `below`, row numbers below it."""

    def read(node: Any, place: str, source: Source) -> NDArray[Any]:
        values = _take(node, place, source)
        wanted = np.float64 if below is None else np.intp
        if values.dtype != wanted or values.ndim != len(sides):
            found = f"{values.dtype} of {values.ndim}"
            raise refusal(place, f"must be {np.dtype(wanted)} of {len(sides)} dimensions, got {found}")
        for side, size in zip(sides, values.shape, strict=True):
            source.match(side, size, place)
        right = np.isfinite(values) if finite else ~np.isnan(values)
        right &= (values >= lowest) & (values > above if above > -math.inf else True)
        if below is not None:
            right &= (values >= 0) & (values < _number_of(below, source))
        if not right.all():
            raise refusal(place, "has a value outside its range")
        return values

    return read


def hashes(count: Side) -> Reader:
    """Read 64-bit hashes of rows, ascending."""

    def read(node: Any, place: str, source: Source) -> NDArray[Any]:
        values = _take(node, place, source)
        if values.dtype != np.uint64 or values.ndim != 1 or not (values[1:] > values[:-1]).all():
            raise refusal(place, "must be ascending hashes of rows")
        source.match(count, len(values), place)
        return values

    return read


def rows(count: Side, width: Side) -> Reader:
    """Read finite rows in single or double precision, dense or CSR."""

    def read(node: Any, place: str, source: Source) -> Any:
        if isinstance(node, dict) and set(node) == {"csr"}:
            parts = [source.arrays.pop(f"{place}.{name}") for name in ("data", "indices", "indptr")]
            is_array, *shape = node["csr"]
            values = (sparse.csr_array if is_array else sparse.csr_matrix)(tuple(parts), shape=tuple(shape))
            values.check_format(full_check=True)  # an index out of range would read memory outside the array
            numbers = values.data
        else:
            values = numbers = _take(node, place, source)
        if values.dtype not in (np.float32, np.float64) or values.ndim != 2 or not np.isfinite(numbers).all():
            raise refusal(place, "must hold finite rows")
        source.match(count, values.shape[0], place)
        source.match(width, values.shape[1], place)
        return values

    return read


def words(count: Side) -> Reader:
    """Read an array of text."""

    def read(node: Any, place: str, source: Source) -> NDArray[Any]:
        [(tag, content)] = node.items()
        if tag != "words" or not all(type(word) is str for word in content):
            raise refusal(place, "must be an array of text")
        source.match(count, len(content), place)
        return np.array(content, dtype=object)

    return read


def optional(inner: Reader) -> Reader:
    """Read what `inner` reads, or None."""
    return lambda node, place, source: None if node is None else inner(node, place, source)


def either(single: Reader, several: Reader) -> Reader:
    """Read one number, or an array of them."""
    return lambda node, place, source: (several if isinstance(node, dict) else single)(node, place, source)


def each(inner: Reader, count: Side | None = None) -> Reader:
    """Read a list or a tuple; `inner` reads every entry."""

    def read(node: Any, place: str, source: Source) -> Any:
        is_tuple = isinstance(node, dict) and set(node) == {"tuple"}
        entries = node["tuple"] if is_tuple else node
        if not isinstance(entries, list):
            raise refusal(place, f"must be a list, got {shown(node)}")
        if count is not None:
            source.match(count, len(entries), place)
        found = [inner(entry, f"{place}.{i}", source) for i, entry in enumerate(entries)]
        return tuple(found) if is_tuple else found

    return read


def record(make: Callable[..., Any], absent: tuple[str, ...] = (), /, **readers: Reader) -> Reader:
    """Read a record with exactly these fields, in this order; those in `absent` may be missing."""

    def read(node: Any, place: str, source: Source) -> Any:
        found = set(node) if isinstance(node, dict) else {"no record"}
        missing, unknown = readers.keys() - found - set(absent), found - readers.keys()
        if missing or unknown:
            what = (
                f"lacks {listed(sorted(missing))}" if missing else f"has the unknown fields {listed(sorted(unknown))}"
            )
            raise refusal(place or "list of names", what)
        prefix = f"{place}." if place else ""
        return make(**{k: read(node[k], prefix + k, source) for k, read in readers.items() if k in node})

    return read


def mapping(others: Reader, absent: tuple[str, ...] = (), /, **readers: Reader) -> Reader:
    """Read a dict with these keys; those in `absent` may be missing, and `others` reads every other key."""

    def read(node: Any, place: str, source: Source) -> dict[str, Any]:
        content = node.get("dict") if isinstance(node, dict) else None
        if not isinstance(content, dict) or not set(readers) - set(absent) <= set(content):
            raise refusal(place, "lacks required keys")
        return {key: readers.get(key, others)(part, f"{place}.{key}", source) for key, part in content.items()}

    return read


def free(node: Any, place: str, source: Source) -> Any:
    """Read any value that `Encoder` writes: numbers, text, lists, tuples, dicts, arrays, allowed objects."""
    if isinstance(node, list):
        return [free(part, f"{place}.{i}", source) for i, part in enumerate(node)]
    if not isinstance(node, dict):
        return node
    if len(node) != 1:
        raise refusal(place, f"must have one tag, got {shown(node)}")
    [(tag, content)] = node.items()
    match tag:
        case "tuple":
            return tuple(free(part, f"{place}.{i}", source) for i, part in enumerate(content))
        case "dict":
            return {key: free(part, f"{place}.{key}", source) for key, part in content.items()}
        case "array":
            return _take(node, place, source)
        case "csr":
            return rows(f"rows of {place}", f"columns of {place}")(node, place, source)
        case "object":
            return _object(content, place, source)
        case "given" if type(content) is int and 0 <= content < len(source.given):
            return source.given[content]
    raise refusal(place, f"has an unknown tag {shown(tag)}")


def numbers(node: Any, place: str, source: Source) -> Any:
    """Read text, None, a number, or lists of these."""
    if isinstance(node, list):
        return [numbers(part, f"{place}.{i}", source) for i, part in enumerate(node)]
    if node is None or type(node) in (str, bool, int, float):
        return node
    raise refusal(place, "must hold numbers or text")


def _object(node: Any, place: str, source: Source) -> Any:
    name, parts = node
    known = source.classes.get(name) if isinstance(name, str) else None
    if known is None or not issubclass(known, Parameterised) or set(parts) != set(known._names()):
        raise refusal(place, f"asks for an object {shown(name)}, which is not allowed")
    return known(**{key: free(part, f"{place}.{key}", source) for key, part in parts.items()})


def _take(node: Any, place: str, source: Source) -> NDArray[Any]:
    if not (isinstance(node, dict) and set(node) == {"array"} and type(node["array"]) is bool):
        raise refusal(place, f"must be an array, got {shown(node)}")
    values = source.arrays.pop(place)
    return values.T if node["array"] else values


def _number_of(below: Side, source: Source) -> int:
    return source.sizes[below] if isinstance(below, str) else below


def _up_to(below: Side | None) -> str:
    return "" if below is None else f" and below {below}"
