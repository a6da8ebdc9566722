"""The schema of model files: the only classes that a file can name."""

import inspect
from dataclasses import dataclass, is_dataclass
from typing import Any, get_args

from ridgemark import kernels, selection
from ridgemark.fitted import FittedExact, FittedModel, RunRecord
from ridgemark.kernels import Kernel
from ridgemark.losses import LOSSES
from ridgemark.persistence.checking import saved_hints
from ridgemark.selection import Selection
from ridgemark.tuning import Tuner


@dataclass(frozen=True)
class Contents:
    """What a model file holds: an estimator with its parameters, its fit, and what the command line knows of it."""

    estimator: Any
    fitted: FittedModel | FittedExact
    run: RunRecord | None


def records_in(hint: Any) -> dict[str, type]:
    """Return the records, by their names, that a value of this type may hold."""
    found: dict[str, type] = {}
    for part in get_args(hint):
        found |= records_in(part)
    if is_dataclass(hint) or hasattr(hint, "_fields"):
        found[hint.__name__] = hint
        for inner in saved_hints(hint).values():
            found |= records_in(inner)
    return found


OBJECTS: dict[str, type] = {
    name: kind
    for module, base in ((kernels, Kernel), (selection, Selection))
    for name, kind in vars(module).items()
    if isinstance(kind, type) and issubclass(kind, base) and not inspect.isabstract(kind)
} | {"ColumnMap": kernels.ColumnMap, "Tuner": Tuner}
SCHEMA = OBJECTS | {kind.__name__: kind for kind in LOSSES.values()} | records_in(Contents)
