"""Check what a file holds by the annotations of the records.

`Annotated[T, ...]` says what the type T cannot say: by rules, as text, or by a narrower type that a file must have.

- "(p, t)": the sides of an array or list; "(p)" of an integer: it is that side. All sides of one letter in a file have
  one size. A digit is a size of its own, and "_" any size.
- ">= 0", "> 0", "< p": true of all values; p is a side of the file, where the file has it.
- "ascending", "different": true of the values among each other.
- "any": numbers may be infinite, and integers negative. Otherwise neither is allowed. NaN never is.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import repeat
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np
from numpy.typing import NDArray

from ridgemark.rows.files import MAX_LOADED_BYTES
from ridgemark.rows.places import shown

_PLAIN = str | bool | int | float | None


@cache
def saved_hints(kind: Any) -> dict[str, Any]:
    """Return what a file holds of an object, with its types: the fields of a record that compare, or the parameters."""
    if hasattr(kind, "get_params"):
        return dict.fromkeys(kind._get_param_names(), Any)
    hints = get_type_hints(kind, include_extras=True)
    return {one.name: hints[one.name] for one in fields(kind) if one.compare} if is_dataclass(kind) else hints


def refusal(place: str, what: str) -> ValueError:
    """Return the error for a value that is not allowed at this place."""
    return ValueError(f"its entry {place} {what}")


class Checker:
    """Checks the values of one file; `finish` when it has seen all of them."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._below: list[tuple[str, int, str]] = []  # place, largest value, and the side that it must be below

    def check(self, value: Any, hint: Any, place: str, rules: Sequence[str] = ()) -> None:
        """Refuse a value that is not of this type, or against the rules for its numbers."""
        origin, inner = get_origin(hint), get_args(hint)
        if origin in (Annotated, NotRequired):
            self._check_annotated(value, inner, place)
        elif origin in (Union, UnionType):
            self._check_union(value, inner, place, rules)
        elif origin in (tuple, list, Sequence):
            self._check_entries(value, hint, place, rules)
        elif origin in (dict, Mapping) or is_typeddict(hint):
            self._check_mapping(value, hint, place, rules)
        elif origin in (np.ndarray, NDArray):  # `ndarray[shape, dtype[kind]]`; from NumPy 2.5 on, `NDArray[kind]`
            self._check_array(value, (get_args(inner[-1]) or inner)[0], place, rules)
        elif origin is Literal:
            if type(value) is not str or value not in inner:
                raise _wrong(place, f"one of {', '.join(inner)}", value)
        elif hint in (int, float):
            if type(value) not in (int, hint):
                raise _wrong(place, hint.__name__, value)
            self._check_numbers(np.asarray(value, float if hint is float else None), place, rules)
        elif hint is not Any and not isinstance(value, hint):
            raise _wrong(place, hint.__name__, value)

    def finish(self) -> None:
        """Refuse positions beyond the sides that they point into."""
        for place, largest, side in self._below:
            if side in self._sizes and largest >= self._sizes[side]:
                raise refusal(place, f"must be below {side} = {self._sizes[side]}")

    def _check_annotated(self, value: Any, parts: Sequence[Any], place: str) -> None:
        rules = [part for part in parts if isinstance(part, str)]
        for part in parts:
            if not isinstance(part, str):
                self.check(value, part, place, rules)
        for rule in rules:
            if rule.startswith("(") and value is not None:
                self._check_sides(value, rule.strip("()").split(", "), place)

    def _check_sides(self, value: Any, sides: Sequence[str], place: str) -> None:
        if isinstance(value, int):
            shape: tuple[int, ...] = (value,)
        else:
            shape = value.shape if hasattr(value, "shape") else (len(value),)
        if len(shape) != len(sides):
            raise refusal(place, f"must have the sides {', '.join(sides)}, got the shape {shape}")
        for side, size in zip(sides, shape, strict=True):
            if 8 * size > MAX_LOADED_BYTES.value:
                raise refusal(place, f"has {size} entries; {MAX_LOADED_BYTES.remedy}")
            expected = int(side) if side.isdigit() else self._sizes.setdefault(side, size)
            if size != expected and side != "_":
                raise refusal(place, f"has {size} entries; {side} = {expected} are required")

    def _check_union(self, value: Any, hints: Sequence[Any], place: str, rules: Sequence[str]) -> None:
        """Check by the first type that accepts the value; the refusal is that of the last one."""
        if value is None and NoneType in hints:
            return
        *others, last = [hint for hint in hints if hint is not NoneType]
        for hint in others:
            with suppress(ValueError):
                self.check(value, hint, place, rules)
                return
        self.check(value, last, place, rules)

    def _check_entries(self, value: Any, hint: Any, place: str, rules: Sequence[str]) -> None:
        hints, is_tuple = get_args(hint), get_origin(hint) is tuple
        fixed = is_tuple and Ellipsis not in hints
        if type(value) not in ((tuple,) if is_tuple else (tuple, list)) or (fixed and len(value) != len(hints)):
            raise _wrong(place, f"a {'tuple' if is_tuple else 'list'} of its length", value)
        for i, (entry, inner) in enumerate(zip(value, hints if fixed else repeat(hints[0]), strict=False)):
            self.check(entry, inner, f"{place}.{i}", rules)

    def _check_mapping(self, value: Any, hint: Any, place: str, rules: Sequence[str]) -> None:
        """Refuse what is not a dict with text as keys; of a TypedDict, further keys may hold plain values."""
        if type(value) is not dict or not all(type(key) is str for key in value):
            raise _wrong(place, "a dict with text as keys", value)
        if is_typeddict(hint):
            hints, other = saved_hints(hint), _PLAIN | list[_PLAIN]
            if missing := sorted(hint.__required_keys__ - value.keys()):
                raise refusal(place, f"lacks {', '.join(missing)}")
        else:
            hints, other = {}, get_args(hint)[1]
        for key, part in value.items():
            self.check(part, hints.get(key, other), f"{place}.{key}", rules)

    def _check_array(self, value: Any, kind: Any, place: str, rules: Sequence[str]) -> None:
        """Refuse what is not an array of this type; `NDArray[Any]` is one of text."""
        expected = np.dtype(object if kind is Any else kind)
        if not isinstance(value, np.ndarray) or value.dtype != expected:
            raise _wrong(place, f"an array of {expected}", getattr(value, "dtype", value))
        if kind is not Any:
            self._check_numbers(value, place, rules)
        elif not all(type(word) is str for word in value):
            raise refusal(place, "must be an array of text")

    def _check_numbers(self, values: NDArray[Any], place: str, rules: Sequence[str]) -> None:
        if values.dtype.kind not in "biuf":  # an integer beyond 64 bits
            raise refusal(place, "has a value outside its range")
        right = [~np.isnan(values) if "any" in rules else np.isfinite(values) & (values >= _least(values))]
        for rule in rules:
            sign, _, bound = rule.partition(" ")
            if sign in (">", ">="):
                right.append(values > float(bound) if sign == ">" else values >= float(bound))
            elif sign == "<":
                self._below.append((place, int(values.max(initial=-1)), bound))
            elif rule == "ascending":
                right.append(values[1:] > values[:-1])
            elif rule == "different":
                right.append(np.diff(np.sort(values)) > 0)
        if not all(part.all() for part in right):
            raise refusal(place, "has a value outside its range")


def _wrong(place: str, expected: str, value: Any) -> ValueError:
    plain = isinstance(value, str | int | float | np.dtype | None)
    return refusal(place, f"must be {expected}, got {shown(value) if plain else type(value).__name__}")


def _least(values: NDArray[Any]) -> float:
    return -np.inf if values.dtype.kind == "f" else 0.0
