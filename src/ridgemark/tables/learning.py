"""Learn the schema of a table in one pass over its rows."""

import copy
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Self

import numpy as np

from ridgemark.backends import Floats
from ridgemark.errors import ColumnWarning, DataError, ParameterError, warn_user
from ridgemark.rows.base import BaseRows
from ridgemark.rows.column import Cells, NoFeatures
from ridgemark.rows.header import Header
from ridgemark.rows.places import Place, listed, shown
from ridgemark.tables.column_learner import ColumnLearner
from ridgemark.tables.encoding import SchemaEncoder
from ridgemark.tables.row_numbers import RowNumbers
from ridgemark.tables.schema import Field, Schema, column_names

_SAMPLED = 2**16  # rows that a median is taken from
_BLOCK = 2**16  # rows read at once


class Learner(NoFeatures):
    """An encoder without features, which sees the columns of every block in one pass, in the order of the rows.

    Rows of weight zero are left out; `n_rows` counts the others.
    """

    def __init__(self, learners: Sequence[ColumnLearner], n_rows: int, texts: frozenset[int]) -> None:
        self.learners, self.texts = learners, texts
        self.n_seen = 0  # rows before the next block
        self.as_is = True  # whether no row that was left out has to be encoded
        rows = np.random.default_rng(0).choice(n_rows, min(n_rows, _SAMPLED), replace=False, shuffle=False)
        self._sampled = np.sort(rows)

    def __call__(self, start: int, columns: Sequence[Cells], place: Place, weights: Floats | None = None) -> Floats:
        """Add the columns of some rows; no features."""
        if weights is None or weights.all():
            self._add(columns, place, weights)
        else:
            left_out, counted = np.flatnonzero(weights == 0), np.flatnonzero(weights)
            self.as_is &= not any(column.levels is not None or column.gaps[left_out].any() for column in columns)
            if counted.size:
                self._add([column[counted] for column in columns], place.at(counted), weights[counted])
        return np.empty((len(columns[0]), 0))

    def _add(self, columns: Sequence[Cells], place: Place, weights: Floats | None) -> None:
        """Add the columns of rows that count."""
        start, self.n_seen = self.n_seen, self.n_seen + len(columns[0])
        first, last = np.searchsorted(self._sampled, [start, self.n_seen])
        for k, (learner, column) in enumerate(zip(self.learners, columns, strict=True)):
            learner.add(column, place.some(k, k + 1), self._sampled[first:last] - start, weights)

    def __add__(self, later: Self) -> Self:
        """Return what is known after the rows of both."""
        both = copy.copy(self)
        both.as_is = self.as_is and later.as_is
        both.learners = [one + other for one, other in zip(self.learners, later.learners, strict=True)]
        return both

    @property
    def conflicts(self) -> frozenset[int]:
        """Columns without a type whose blocks were read as different kinds."""
        return frozenset(j for j, learner in enumerate(self.learners) if learner.kind == "conflict")


def learn_schema(
    source: BaseRows,
    *,
    categorical: Literal["from_dtype"] | Iterable[str | int] | None = "from_dtype",
    numeric: Iterable[str | int] | None = None,
    drop: Iterable[str | int] | None = None,
    missing: Literal["fill", "error"] = "fill",
    unknown: Literal["ignore", "error"] = "ignore",
    keep_constant: bool = False,
) -> Schema | None:
    """Return the schema of the feature columns of a source, learned in one pass; None if it would change nothing.

    Rows of weight zero are left out; the others count in medians and shares by their weights. Beyond 65,536 rows with
    weights, a pass counts them before.

    Parameters
    ----------
    source : BaseRows
        The rows.
    categorical : "from_dtype", list of names or positions, mask, or None
        By default text and categories are categorical; a list adds columns to these; None refuses text.
    numeric : list of names or positions, optional
        Columns that are read as numbers, whatever their type.
    drop : list of names or positions, optional
        Columns that are left out.
    missing, unknown
        As in `Schema`.
    keep_constant : bool, default=False
        Whether columns with one value are kept: later rows may have others.

    Warns
    -----
    ColumnWarning
        When a column is left out because it is constant, when it numbers the rows, or when it is read as text although
        most of its values are numbers or dates, or nearly all differ.
    """
    asked: dict[str, tuple[Any, str]] = {"numeric": (numeric, "number"), "drop": (drop, "dropped")}
    if categorical is not None and not (isinstance(categorical, str) and categorical == "from_dtype"):
        asked["categorical_features"] = categorical, "text"
    given = _given(source, asked)
    names = column_names(source.feature_names, source.n_features)
    texts = frozenset(j for j, kind in given.items() if kind == "text")
    n_counted = _n_counted(source)

    def learned(texts: frozenset[int]) -> Learner:
        learners = [ColumnLearner(name, given.get(j), categorical is not None) for j, name in enumerate(names)]
        return source.shown_to(Learner(learners, n_counted, texts), _BLOCK)

    learner = learned(texts)
    if learner.conflicts:
        learner = learned(texts | learner.conflicts)
    learners = learner.learners
    if source.feature_names is not None:
        _warn_of_numbers([one.name for one in learners if one.numbered], len(names))
    as_is = missing == "fill" and all(one.as_is and not one.n_missing for one in learners)
    if as_is and learner.as_is:
        return None
    fields = tuple(one.field(keep_constant or as_is) for one in learners)
    pairs = list(zip(learners, fields, strict=True))
    _warn_of_constants([one for one, field in pairs if not field.parts], fields)
    _warn_of_texts([(one, not field.parts) for one, field in pairs if field.levels is not None])
    return Schema(fields, missing, unknown)


def encoded_by_content(source: BaseRows, **options: Any) -> BaseRows:
    """Return rows whose features are the columns encoded by their schema; `schema_options` of the source come first.

    A schema that was learned before, `encoded_before` of the source, is not learned again.
    """
    if source.encoded_before is not None:
        return source.encoded_before
    schema = learn_schema(source, **options | dict(source.schema_options))
    return source if schema is None else source.encoded_by(SchemaEncoder(schema))


def _n_counted(source: BaseRows) -> int:
    """Return the number of rows of positive weight; that of all rows where each is sampled, whatever the number."""
    if not source.has_weights or source.n_rows <= _SAMPLED:
        return source.n_rows
    if source.n_counted is not None:
        return source.n_counted
    return sum(int(np.count_nonzero(block.weights)) for block in source.encoded_by(NoFeatures()).blocks(_BLOCK))


def warn_of_row_numbers(names: Sequence[str], columns: Sequence[Cells]) -> None:
    """Warn of columns of a table in memory that number its rows."""
    found = []
    for name, column in zip(names, columns, strict=True):
        numbers = RowNumbers()
        numbers.add(column.values)
        found += [name] if numbers else []
    _warn_of_numbers(found, len(names))


def _positions(keys: list[Any], n_columns: int, role: str) -> list[Any]:
    """Return the columns of a mask, one True or False for each column; names and positions as they are."""
    if not keys or not all(isinstance(key, bool | np.bool_) for key in keys):
        return keys
    if len(keys) != n_columns:
        raise ParameterError(
            f"{role} as a mask needs one True or False for each of {n_columns} columns, got {len(keys)}"
        )
    return np.flatnonzero(keys).tolist()


def _given(source: BaseRows, asked: dict[str, tuple[Any, Any]]) -> dict[int, Any]:
    """Return what the user says of columns, by their positions."""
    header = Header("the table", source.n_features, source.feature_names)
    given: dict[int, Any] = {}
    for role, (keys, kind) in asked.items():
        if isinstance(keys, str) or (keys is not None and not np.iterable(keys)):
            raise ParameterError(
                f'{role} must be "from_dtype", None, a list of column names or positions, or a mask, got {keys!r:.60}'
            )
        keys = None if keys is None else _positions(list(keys), source.n_features, role)
        for position in header.positions(keys or None, role):
            if position in given:
                name = header.names_of([position])
                what = position if name is None else shown(name[0])
                raise ParameterError(f"{role} names column {what}, which another option names too; name it once")
            given[position] = kind
    return given


def _warn_of_numbers(names: Sequence[str], n_columns: int) -> None:
    if names and n_columns > 1:
        warn_user(
            f"column {listed(names)} numbers the rows: it tells nothing of new rows; leave it out (command line: "
            "--drop), unless the order of the rows matters",
            ColumnWarning,
        )


def _warn_of_constants(learners: Sequence[ColumnLearner], fields: Sequence[Field]) -> None:
    """Say which columns tell rows not apart, and why; refuse a table without others."""
    why = ", ".join(f"{shown(one.name)} ({one.emptiness})" for one in learners if one.given != "dropped")
    if not any(field.parts for field in fields):
        raise DataError(
            f"no column is left for the features{why and f': {why}'}; at least one column must tell rows apart"
        )
    if why:
        warn_user(f"left out of the features: {why}", ColumnWarning)


def _warn_of_texts(learners: Sequence[tuple[ColumnLearner, bool]]) -> None:
    """Warn of columns that are read as text and may be meant otherwise, unless the user says what they are."""
    for one, left_out in learners:
        if one.given is None and (doubt := one.doubt(left_out)):
            warn_user(f"column {shown(one.name)} {doubt}", ColumnWarning)
