"""Which columns are features, targets and weight, from names or positions."""

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from numbers import Integral
from typing import Any, TypeAlias

from ridgemark.errors import DataError, ParameterError
from ridgemark.rows.places import listed, shown

Key: TypeAlias = str | int


@dataclass(frozen=True)
class Roles:
    """Positions of the chosen columns: at least one feature, and no column in two roles."""

    features: tuple[int, ...]
    targets: tuple[int, ...] = ()
    weight: tuple[int, ...] = ()  # at most one
    group: tuple[int, ...] = ()  # at most one, which may be a feature too

    @property
    def all(self) -> tuple[int, ...]:
        """Features, then targets, then the weight, then the group where it is not among these."""
        others = self.features + self.targets + self.weight
        return others + tuple(j for j in self.group if j not in others)


@dataclass(frozen=True)
class AllBut:
    """Features by what they are not: the columns asked for, by default all without another role, but for some."""

    dropped: Sequence[Key]
    columns: Sequence[Key] | None = None

    def __iter__(self) -> Iterator[Key]:
        """Iterate over all names and positions given."""
        return iter([*self.dropped, *(self.columns or ())])


class TargetAndExposure(list[Key]):
    """The columns of a target and of an exposure, which is read as a second target."""


@dataclass(frozen=True)
class Header:
    """The available columns: their names, or only their number.

    Parameters
    ----------
    source : str
        Name of the data in messages.
    n_columns : int
        Number of columns.
    names : tuple of str, optional
        Names of the columns; without names, columns are chosen by position.
    """

    source: str
    n_columns: int
    names: tuple[str, ...] | None = None

    def choose(self, target: Any = None, columns: Any = None, weight: Any = None, group: Any = None) -> Roles:
        """Return the requested columns; by default the features are all columns without another role.

        The group may be one of the columns that are asked for as features.
        """
        self.check_names()
        dropped: tuple[int, ...] = ()
        if isinstance(columns, AllBut):
            dropped, columns = self.positions(columns.dropped, "drop"), columns.columns
        with_exposure = isinstance(target, TargetAndExposure)
        targets = self.positions(target[:1] if with_exposure else target, "target")
        exposures = self.positions(target[1:], "exposure") if with_exposure else ()
        weights = self.positions(weight, "weight")
        if len(weights) > 1:
            raise ParameterError(f"weight must be one column; got {len(weights)}: {weight!r}")
        groups = self.positions(group, "group")
        if len(groups) > 1:
            raise ParameterError(f"group must be one column; got {len(groups)}: {group!r}; make one column of them")
        features = tuple(j for j in self.positions(columns, "columns") if j not in dropped)
        by_name = {"columns": features, "target": targets, "exposure": exposures, "weight": weights}
        by_name |= {"drop": dropped, "group": groups}
        targets += exposures
        for (one, first), (other, second) in combinations(by_name.items(), 2):
            if other == "group" and one in ("columns", "drop"):
                continue
            for both in (j for j in first if j in second):
                what = f"{self._shown(both)} is both in {one} and in {other}"
                raise ParameterError(f"{what}; a column has one role: remove it from one")
        if columns is None:
            features = tuple(j for j in range(self.n_columns) if j not in targets + weights + dropped + groups)
        if not features:
            raise DataError(
                f"{self.source} has no column left for the features; at least one is needed besides target and weight"
            )
        roles = Roles(features, targets, weights, groups)
        self._check_named(roles)
        return roles

    def names_of(self, positions: Sequence[int]) -> tuple[str, ...] | None:
        """Return the names of some columns; None without names or for an empty selection."""
        return tuple(self.names[j] for j in positions) if self.names is not None and positions else None

    def positions(self, keys: Any, role: str) -> tuple[int, ...]:
        """Return the positions of columns given by name or position; `role` names the parameter in messages."""
        if keys is None:
            return ()
        keys = as_keys(keys, role)
        positions = tuple(self._position(key, role, keys) for key in keys)
        twice = [j for j, count in Counter(positions).items() if count > 1]
        if twice:
            raise ParameterError(f"{role} has {self._shown(twice[0])} more than once; give each column once")
        return positions

    def _position(self, key: Key, role: str, keys: Sequence[Key]) -> int:
        # A name takes precedence over a position: frames may have integers as names.
        if self.names is not None and str(key) in self.names:
            return self.names.index(str(key))
        if not isinstance(key, str) and -self.n_columns <= key < self.n_columns:
            return key % self.n_columns
        raise self._no_column(key, role, keys)

    def _no_column(self, key: Key, role: str, keys: Sequence[Key]) -> DataError:
        """Return the error for a missing column, one of these keys; it lists the existing ones."""
        what = shown(key) if isinstance(key, str) else str(key)
        if self.names is None:
            there = f"its columns have no names, only the positions 0 to {self.n_columns - 1}"
            return DataError(f"{role}: there is no column {what} in {self.source}; {there}")
        near = difflib.get_close_matches(str(key), self.names, n=1)
        hint = f"did you mean {shown(near[0])}? " if near else ""
        texts = [str(one) for one in keys]
        for name in self.names:  # a name with commas that was split at them
            parts = [part.strip() for part in name.split(",")]
            if str(key) in parts and any(texts[k : k + len(parts)] == parts for k in range(len(texts))):
                hint = f"did you mean {shown(name)}, one name? On the command line quote it: '\"{name}\"'; "
        return DataError(
            f"{role}: there is no column {what} in {self.source}; {hint}its columns are {listed(self.names)}"
        )

    def check_names(self) -> None:
        """Refuse names that are not unique."""
        if self.names is None:
            return
        twice = [name for name, count in Counter(self.names).items() if count > 1 and name]
        if twice:
            raise DataError(
                f"{self.source} has more than one column named {listed(twice)}; names must differ: rename them"
            )

    def _check_named(self, roles: Roles) -> None:
        unnamed = [j for j in roles.all if self.names is not None and not self.names[j].strip()]
        if unnamed:
            raise DataError(
                f"column {unnamed[0]} of {self.source} has no name; such a column is often a row number, written by "
                f"accident; name it, or leave it out with columns=[...] (command line: --drop {unnamed[0]})"
            )

    def _shown(self, position: int) -> str:
        return f"column {position}" if self.names is None else f"column {shown(self.names[position])}"


def is_key(value: Any) -> bool:
    """Return whether `value` can be a column's name or position."""
    return isinstance(value, str) or (isinstance(value, Integral) and not isinstance(value, bool))


def as_keys(value: Any, role: str) -> list[Key]:
    """Return one name or position, or a sequence of them, as a list."""
    try:
        keys = [value] if is_key(value) else list(value)
    except TypeError:
        keys = [value]
    for key in keys:
        if not is_key(key):
            remedy = "; arrays as target, weight and group are possible only for data in memory"
            raise ParameterError(
                f"{role} must be column names or positions; got {key!r:.60}, of type {type(key).__name__}"
                + (remedy if role in ("target", "weight", "group") else "")
            )
    if not keys:
        raise ParameterError(f"{role} must name at least one column; got {value!r}; leave it out for the default")
    return [key if isinstance(key, str) else int(key) for key in keys]
