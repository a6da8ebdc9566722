"""What a fit knows of the columns of its table, and the features they become."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Floats
from ridgemark.tables.date_forms import FORMS, ISO
from ridgemark.tables.dates import LATEST, PARTS

MOST_LEVELS = 100  # that become a column of 0 and 1 each
N_CODES = 4  # numbers that tell one of more levels from the others
VALUE, CODE, MISSING = "value", "code", "missing"  # parts besides those of a date


@dataclass(frozen=True, eq=False)
class Field:
    """How one column of a table becomes features.

    Parameters
    ----------
    name : str
        Name of the column, or x0, x1, ... for columns without names.
    kind : {"number", "boolean", "category", "frequency", "date", "dropped"}
        A category is one column of 0 and 1 for each level; a frequency, of more levels, such columns for the most
        frequent ones, the share of the rows with the same level, and a code of four numbers for each level.
    parts : tuple of str
        The features: "value" (with levels, several) or parts of a date, "code" of a frequency, and "missing", which
        says where a value is missing. None for a column that is left out.
    fill : float
        What stands for a missing number: the median; of a date, in seconds since 1970.
    origin : float
        Of a date, the first one, in seconds since 1970.
    levels : ndarray of str or None
        Levels of a category or frequency, ordered by their text.
    shares : ndarray or None
        Share of the rows, or of their weight, with each level, for a frequency.
    least : float
        The least share, of a frequency, that gives a level a column of its own; at most 100 levels have one.
    form : str
        How dates are written where they are text, by an example.
    """

    name: str
    kind: Literal["number", "boolean", "category", "frequency", "date", "dropped"]
    parts: tuple[str, ...] = ()
    fill: float = 0.0
    origin: float = 0.0
    levels: Annotated[NDArray[Any] | None, "(_)"] = None
    shares: Annotated[Floats | None, "(_)"] = None
    least: float = 0.0
    form: str = ISO

    def __post_init__(self) -> None:
        parts = (*(PARTS if self.kind == "date" else (VALUE,)), *(CODE,) * (self.kind == "frequency"), MISSING)
        if list(self.parts) != [part for part in parts if part in self.parts]:
            raise ValueError(f"a field of kind {self.kind} has no such parts: {self.parts}")
        levels = [] if self.levels is None else self.levels.tolist()
        if (self.levels is not None) != (self.kind in ("category", "frequency")) or levels != sorted(set(levels)):
            raise ValueError(f"the levels of {self.name!r} must be those of a category, different and in order")
        if (None if self.shares is None else len(self.shares)) != (len(levels) if self.kind == "frequency" else None):
            raise ValueError(f"the levels of {self.name!r} need one share each")
        if self.kind == "date" and not max(abs(self.fill), abs(self.origin)) < LATEST:
            raise ValueError(f"the dates of {self.name!r} are beyond the range of dates")
        if self.form not in FORMS:
            raise ValueError(f"dates of {self.name!r} have no such form: {self.form}")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        value: tuple[str, ...] = (self.name,)
        if self.levels is not None:
            value = tuple(f"{self.name}={level}" for level in self.levels[self.common])
            value += (f"{self.name} frequency",) if self.kind == "frequency" else ()
        codes = tuple(f"{self.name} code {k}" for k in range(1, N_CODES + 1))
        others = tuple(f"{self.name} {part}" for part in self.parts if part not in (VALUE, CODE))
        return value * (VALUE in self.parts) + codes * (CODE in self.parts) + others

    @cached_property
    def common(self) -> NDArray[np.intp]:
        """Positions of the levels with a column of their own."""
        if self.shares is None:
            return np.arange(len(self.position))
        most = np.argsort(-self.shares, kind="stable")[:MOST_LEVELS]
        return np.sort(most[self.shares[most] >= self.least])

    @cached_property
    def position(self) -> dict[str, int]:
        """Position of each level."""
        return {level: k for k, level in enumerate(() if self.levels is None else self.levels)}

    def level_features(self, chosen: NDArray[np.intp]) -> Floats:
        """Return the features of some levels, by their positions; without that of missing values."""
        parts = [np.zeros((len(chosen), 0))]
        if VALUE in self.parts:
            parts.append((chosen[:, None] == self.common).astype(float))
            parts += [] if self.shares is None else [self.shares[chosen, None]]
        if CODE in self.parts:
            parts.append(self.codes[chosen])
        return np.column_stack(parts)

    @cached_property
    def codes(self) -> Floats:
        """Numbers of each level, between -1 and 1, that depend on its text alone, as if drawn at random.

        A kernel with small bandwidths for these columns compares rows of the same level, as with one column of 0 and 1
        for each, which would be too many. In units of the columns the mean squared distance of two levels is 8, as
        with such columns. The last row, of zeros, is for levels that are not known.
        """
        digests = (blake2b(level.encode("utf-8", "surrogatepass"), digest_size=8 * N_CODES) for level in self.position)
        numbers = np.frombuffer(b"".join(one.digest() for one in digests), dtype="<u8")
        return np.append(numbers / 2.0**63 - 1.0, np.zeros(N_CODES)).reshape(-1, N_CODES)


@dataclass(frozen=True, eq=False)
class Schema:
    """The columns of a table and the features they become.

    Parameters
    ----------
    fields : tuple of Field
        One for each column.
    missing : {"fill", "error"}
        Whether missing values are filled in or refused.
    unknown : {"ignore", "error"}
        Whether levels that the fit has not seen become zeros or are refused.
    """

    fields: tuple[Field, ...]
    missing: Literal["fill", "error"] = "fill"
    unknown: Literal["ignore", "error"] = "ignore"

    @cached_property
    def encoded_names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(name for field in self.fields for name in field.names)

    @cached_property
    def owners(self) -> NDArray[np.intp]:
        """Position of the column that each feature comes from."""
        return np.repeat(np.arange(len(self.fields)), [len(field.names) for field in self.fields])

    @cached_property
    def keeps_columns(self) -> bool:
        """Whether the features are the columns themselves."""
        return all(field.kind == "number" and field.parts == (VALUE,) for field in self.fields)

    def by_column(self, values: Floats) -> Floats:
        """Return the sum over the features of each column."""
        return np.bincount(self.owners, weights=values, minlength=len(self.fields)).astype(float, copy=False)


def column_names(names: Iterable[str] | None, n_columns: int) -> tuple[str, ...]:
    """Return the names of columns, or x0, x1, ... where they have none, as scikit-learn does."""
    return tuple(f"x{j}" for j in range(n_columns)) if names is None else tuple(map(str, names))


def schema_of_numbers(names: Iterable[str] | None, fills: Floats) -> Schema:
    """Return the schema of columns of numbers that had no gaps; `fills` stand for values missing later."""
    known = column_names(names, len(fills))
    return Schema(tuple(Field(name, "number", (VALUE,), float(fill)) for name, fill in zip(known, fills, strict=True)))
