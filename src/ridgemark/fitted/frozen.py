"""Records that cannot be changed: frozen dataclasses whose arrays are read-only."""

from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, dataclass_transform

import numpy as np

from ridgemark.kernels import CrossKernel


def read_only(value: Any) -> Any:
    """Return an array as a view that cannot be written to, and a record or tuple with such views of its arrays.

    What is read-only already is returned itself. Sparse matrices stay as they are: their methods sort in place.
    """
    if isinstance(value, np.ndarray):
        if not value.flags.writeable:
            return value
        view = value.view()
        view.flags.writeable = False
        return view
    if type(value) is tuple:
        parts = tuple(map(read_only, value))
        return value if all(new is old for new, old in zip(parts, value, strict=True)) else parts
    if is_dataclass(value) and not isinstance(value, type | CrossKernel):
        parts_of = {one.name: getattr(value, one.name) for one in fields(value)}
        changed = {name: new for name, old in parts_of.items() if (new := read_only(old)) is not old}
        return replace(value, **changed) if changed else value
    return value


def not_saved() -> Any:
    """Return a field that files do not hold, such as times: two fits with one seed are two files of the same bytes."""
    return field(default=None, compare=False)


@dataclass_transform(eq_default=False, frozen_default=True)
class Frozen:
    """A frozen dataclass whose arrays are read-only, also those of the records in it, and after copying or pickling."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False)(cls)

    def __post_init__(self) -> None:
        for one in fields(self):  # type: ignore[arg-type]
            object.__setattr__(self, one.name, read_only(getattr(self, one.name)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, one.name) for one in fields(self))  # type: ignore[arg-type]
