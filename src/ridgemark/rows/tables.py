"""Data frames and dicts of columns, converted column by column and block by block.

Frames are recognised by their class names: pandas and polars are never imported here.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy import sparse

from ridgemark.errors import DataError, DataTypeError
from ridgemark.rows.arrow_column import arrow_column
from ridgemark.rows.base import Array, Rows
from ridgemark.rows.cells import check_integers, float_dtype, is_missing, is_number, numbers, stacked
from ridgemark.rows.column import (
    MOMENT,
    Cells,
    array_column,
    number_column,
    object_column,
    text_column,
    times,
    words,
)
from ridgemark.rows.columns import SourceColumns, as_array
from ridgemark.rows.header import Header
from ridgemark.rows.places import Place, row_of, shown

_OBJECT: np.dtype[Any] = np.dtype(object)


class FrameColumns(SourceColumns):
    """Columns of different types in a table, converted one by one; a subclass reads one column."""

    def __init__(self, table: Any, source: str, names: Iterable[Any] | None, n_rows: int) -> None:
        self.labels = None if names is None else list(names)  # as the table has them
        known = None if self.labels is None else tuple(map(str, self.labels))
        super().__init__(Header(source, len(table) if known is None else len(known), known), n_rows)
        self._table = table
        self._whole: list[Cells] | None = None

    @abstractmethod
    def _column_dtype(self, position: int) -> np.dtype[Any]:
        """Return the nearest numpy type of one column."""

    @abstractmethod
    def column(self, position: int, rows: Rows, place: Place) -> Cells:
        """Return one column at some rows."""

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        """float32 when every column is float32 or smaller, and float64 otherwise."""
        return float_dtype(self._column_dtype(j) for j in self.which)

    @property
    def numeric(self) -> bool:
        """Whether every column has a type of numbers or booleans."""
        return all(self._column_dtype(j).kind in "fiub" for j in self.which)

    def holds_integers(self, position: int) -> bool:
        """Return whether a column may have integers."""
        return self._column_dtype(position).kind != "f"

    def as_array(self) -> Array | None:
        """Return the numbers as one array where the table has it at hand; gaps and large integers are not checked."""
        return None

    def columns(self, rows: Rows) -> list[Cells]:
        """Return the columns at some rows, converted as a whole once."""
        return [column[rows] for column in self.whole()]

    def whole(self) -> list[Cells]:
        """Return the columns at all rows."""
        if self._whole is None:
            self._whole = self._converted(slice(0, self.n_rows))
        return self._whole

    def _converted(self, rows: Rows) -> list[Cells]:
        place = self.place(rows)
        return [self.column(j, rows, place.some(k, k + 1)) for k, j in enumerate(self.which)]

    def only(self, which: Sequence[int]) -> Self:
        """Return some of the columns, by their positions in the whole table."""
        narrower = super().only(which)
        narrower._whole = None
        return narrower

    def check(self, rows: Rows, dtype: np.dtype[Any]) -> bool:
        """Refuse infinities in columns of numbers, and return whether all columns are such, without gaps."""
        place, finite, encoded = self.place(rows), True, not self.numeric
        for k, j in enumerate(self.which):
            if self._column_dtype(j).kind not in "fiub":
                finite = False
                continue
            # Columns that will be encoded are converted once.
            column = self.whole()[k][rows] if encoded else self.column(j, rows, place.some(k, k + 1))
            numbers(column.values, dtype, place.some(k, k + 1), gaps=True)
            finite &= not column.gaps.any()
        return finite

    def read(self, rows: Rows, dtype: np.dtype[Any]) -> Array:
        """Return the checked floats (n, k) of some rows."""
        place = self.place(rows)
        columns = self._converted(rows) if self._whole is None else self.columns(rows)
        values = [column.plain(place.some(k, k + 1)) for k, column in enumerate(columns)]
        return stacked(values, dtype, place)


class PandasColumns(FrameColumns):
    """Columns of a pandas DataFrame."""

    @cached_property
    def _dtypes(self) -> list[Any]:
        return list(self._table.dtypes)

    @cached_property
    def _series(self) -> list[Any]:
        return [series for _, series in self._table.items()]  # in a third of the time of `iloc` for each

    @cached_property
    def _arrow_gaps(self) -> set[int]:
        """The positions of columns of Arrow with gaps."""
        of_arrow = (j for j, dtype in enumerate(self._dtypes) if hasattr(dtype, "pyarrow_dtype"))
        return {j for j in of_arrow if self._series[j].hasnans}

    def _column_dtype(self, position: int) -> np.dtype[Any]:
        dtype = self._dtypes[position]
        if hasattr(dtype, "fill_value"):  # stored sparsely
            dtype = dtype.subtype
        elif not isinstance(dtype, np.dtype):  # nullable and Arrow-backed types name their numpy type
            dtype = getattr(dtype, "numpy_dtype", _OBJECT)
        return dtype if isinstance(dtype, np.dtype) else _OBJECT

    @property
    def numeric(self) -> bool:
        """Whether every column has a type of numbers that all versions of pandas make one array of.

        All or none are stored sparsely, without their zeros, and those of Arrow have no gaps.
        """
        fills = {getattr(self._dtypes[j], "fill_value", None) for j in self.which}
        return super().numeric and fills in ({None}, {0}) and self._arrow_gaps.isdisjoint(self.which)

    def as_array(self) -> Array | None:
        """Return the numbers as one array, where every column has a NumPy type of numbers."""
        plain = all(isinstance(dtype, np.dtype) and dtype.kind in "fiu" for dtype in self._dtypes)
        return self._table.to_numpy() if plain else None

    def column(self, position: int, rows: Rows, place: Place) -> Cells:
        series = self._series[position]
        if not (isinstance(rows, slice) and rows == slice(0, self.n_rows)):  # which pandas takes far longer to find
            series = series.iloc[rows]
        if isinstance(series.dtype, np.dtype):
            return array_column(series.to_numpy(), place)
        name, stated = series.dtype.name, str(series.dtype)
        if hasattr(series.dtype, "pyarrow_dtype"):
            return arrow_column(series.array.__arrow_array__())
        if name == "category":
            codes = series.cat.codes.to_numpy().astype(np.intp)
            return Cells("category", codes, codes < 0, words(series.cat.categories), stated=stated)
        if "string" in name or name == "str":
            missing = series.isna().to_numpy()
            return text_column(series.to_numpy(dtype=object), missing, stated)
        if series.dtype.kind == "M":  # with a time zone: to UTC
            return Cells("date", series.to_numpy(dtype=MOMENT), stated=stated)
        dtype, missing = self._column_dtype(position), series.isna().to_numpy()
        if dtype.kind not in "fiub":
            return object_column(series.to_numpy(dtype=object), place)
        na_value = {"f": np.nan, "b": False}.get(dtype.kind, 0)
        filled = number_column(series.to_numpy(dtype=dtype, na_value=na_value))
        return replace(filled, missing=missing, stated=stated)


class PolarsColumns(FrameColumns):
    """Columns of a polars DataFrame."""

    def _column_dtype(self, position: int) -> np.dtype[Any]:
        dtype = self._table.dtypes[position]
        if (not dtype.is_numeric() and str(dtype) != "Boolean") or str(dtype) in {"Int128", "UInt128"}:
            return _OBJECT
        return np.dtype(np.float32 if str(dtype) in {"Float16", "Float32"} else np.float64)

    def holds_integers(self, position: int) -> bool:
        """Return whether a column may have integers."""
        return not self._table.dtypes[position].is_float()

    def column(self, position: int, rows: Rows, place: Place) -> Cells:
        series = self._table.to_series(position)[rows]
        stated, missing = str(series.dtype), series.is_null().to_numpy()
        name = stated.partition("(")[0]
        if name in {"Object", "Int128", "UInt128"}:  # NumPy has no such integers
            return object_column(_objects(series.to_list()), place)
        if name in {"String", "Categorical", "Enum"}:
            texts = series.cast(str).to_list()
            return text_column(texts, missing, stated, "text" if name == "String" else "category")
        if not (series.dtype.is_numeric() or series.dtype.is_temporal() or name in {"Boolean", "Null"}):
            return Cells("other", np.zeros(len(series)), stated=stated)
        if name == "Time":  # nanoseconds of the day
            series = series.cast(int)
        elif name == "Decimal":
            series = series.cast(float)
        values = np.zeros(len(series)) if name == "Null" else _filled(series, missing)
        made = times(values) if name == "Time" else number_column(values)
        return replace(made, missing=missing, stated=stated)


class ListedColumns(FrameColumns):
    """An array for each column, read by its content: of a dict, or of an array (n, k) of Python objects or text."""

    def _column_dtype(self, position: int) -> np.dtype[Any]:
        return self._table[position].dtype

    @property
    def numeric(self) -> bool:
        """Whether every column holds numbers or booleans, without gaps."""
        return all(
            column.levels is None and column.values.dtype.kind in "fiub" and not column.gaps.any()
            for column in self.whole()
        )

    def column(self, position: int, rows: Rows, place: Place) -> Cells:
        return array_column(self._table[position][rows], place)


def _dict_columns(columns: Mapping[Any, Any]) -> ListedColumns:
    """Return the columns of a dict from names to arrays of equal length."""
    source = "the dict of columns"
    arrays = [as_array(values, f"column {shown(name)} of {source}") for name, values in columns.items()]
    n_rows = arrays[0].size if arrays else 0
    for name, array in zip(columns, arrays, strict=True):
        if array.shape != (n_rows,):
            raise DataError(
                f"column {shown(name)} of {source} must be one-dimensional, of length {n_rows} like the first; got "
                f"shape {array.shape}"
            )
    return ListedColumns(arrays, source, columns, n_rows)


def _filled(series: Any, missing: Array) -> Array:
    """Return the numbers, booleans or times of a polars series, with any value where one is missing."""
    if missing.any() and str(series.dtype).startswith(("Int", "UInt", "Boolean")):
        series = series.fill_null(False if str(series.dtype) == "Boolean" else 0)
    return np.asarray(series.to_numpy())


def table_columns(source: Any) -> SourceColumns | None:
    """Return the columns of a data frame, a series or a dict of columns; None for anything else."""
    if is_a(source, "pandas", "Series") or is_a(source, "polars", "Series"):
        source = source.to_frame()
    if is_a(source, "pandas", "DataFrame"):
        return PandasColumns(source, "the DataFrame", source.columns, len(source))
    if is_a(source, "polars", "DataFrame"):
        return PolarsColumns(source, "the DataFrame", source.columns, source.height)
    if isinstance(source, Mapping):
        return _dict_columns(source)
    return None


def is_records(values: Any) -> bool:
    """Return whether a value is a list of dicts, one for each row."""
    return isinstance(values, list | tuple) and bool(values) and all(isinstance(row, Mapping) for row in values)


def refuse_series(values: Any) -> None:
    """Refuse a Series in place of a table: it may be a row or a column."""
    remedies = {"pandas": "X.loc[[label]] for one row, X[[name]]", "polars": "X[[0]] for one row, X.select(name)"}
    for package, ways in remedies.items():
        if is_a(values, package, "Series"):
            raise DataError(
                f"X must be a table with one row for each observation, got a Series of length {len(values)}; give a "
                f"DataFrame: {ways} for one column"
            )


def as_objects(values: Any) -> Any:
    """Return a list of dicts as a dict of columns, and rows in a list that are not all numbers as an array of objects.

    What a dict lacks is missing. Anything else is returned unchanged.
    """
    if not isinstance(values, list | tuple) or not values:
        return values
    if is_records(values):
        names = dict.fromkeys(name for row in values for name in row)
        return {name: _objects(row.get(name) for row in values) for name in names}
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError):  # refused where values are read
        return values
    return np.array(values, dtype=object) if array.ndim == 2 and array.dtype.kind in "OSU" else values


def object_columns(values: Any, source: str) -> ListedColumns | None:
    """Return the columns of an array of objects or text; None for anything else."""
    holds = isinstance(values, np.ndarray) and values.ndim == 2 and values.dtype.kind in "OUT" and values.size
    return ListedColumns(list(values.T), source, None, len(values)) if holds else None


def _objects(values: Iterable[Any]) -> Array:
    return np.array([*values, None], dtype=object)[:-1]  # None: lists stay objects


def is_a(value: Any, package: str, name: str) -> bool:
    """Return whether a value is an instance of a class of another package, without importing it."""
    return any(cls.__name__ == name and cls.__module__.partition(".")[0] == package for cls in type(value).__mro__)


def check_targets(values: Any, source: str, present: str = "pandas.notna(y)") -> None:
    """Refuse targets, given as an array, list, series or frame, with text or gaps; numbers written as text pass.

    `present` is the code that says which are not missing, for the message.
    """
    for where, column in _named_columns(values, source):
        _check_kind(column, Place(where, None, row_of(slice(0, None)), of_target=True))
        for text in () if column.levels is None else column.levels:
            if not is_number(text):
                raise DataTypeError(
                    f"{where} holds text, such as {shown(text)}; a target of regression must be a number; convert it, "
                    "or fit a NystromClassifier to text labels"
                )
        check_no_gaps(column.gaps, where, present + ".all(axis=1)" * (getattr(values, "ndim", 1) == 2))
        if column.values.dtype.kind == "f" and (infinite := np.isinf(column.values)).any():
            raise DataError(
                f"row {int(np.argmax(infinite))} of {where} is an infinity; every target must be a finite number: drop "
                "the row, or correct it"
            )


def check_no_gaps(gaps: Array, where: str, present: str = "pandas.notna(y)") -> None:
    """Refuse targets or labels of which some are missing, and count these; `present` is as in `check_targets`."""
    if gaps.any():
        raise DataError(
            f"{where} is missing (NaN) in {int(gaps.sum()):,} of {len(gaps):,} rows, first in row "
            f"{int(np.argmax(gaps))}; a fit needs the target of every row: drop the others, with keep = {present} and "
            "fit(X[keep], y[keep])"
        )


def _check_kind(column: Cells, place: Place) -> None:
    """Refuse a target of dates, or of Python objects that are not all numbers or all text."""
    if column.kind == "date" or column.values.dtype.kind == "m":
        raise place.wrong_kind("m" if column.kind == "number" else "M", column.stated)
    if column.kind == "other" and column.values.dtype.kind == "O":
        rows = [row for row, value in enumerate(column.values) if not (is_missing(value) or isinstance(value, Real))]
        raise place.no_number(column.values[rows[0]], rows[0])


def _named_columns(values: Any, source: str) -> list[tuple[str, Cells]]:
    """Return the columns of an array, list, series or frame, each with what it is called in messages."""
    table = None if isinstance(values, Mapping) else table_columns(values)
    if isinstance(table, FrameColumns):
        nameless = any(is_a(values, package, "Series") and not values.name for package in ("pandas", "polars"))
        names = [source] if nameless else [f"{source} {shown(name)}" for name in table.names or ()]
        return list(zip(names, table.whole(), strict=True))
    known = isinstance(values, np.ndarray | list | tuple) or is_a(values, "pandas", "ExtensionArray")
    array = as_array(values if known else [], source)
    place = Place(source, None, row_of(slice(0, None)))
    columns = array[:, None] if array.ndim == 1 else array
    return [(source, array_column(one, place)) for one in columns.T] if columns.ndim == 2 else []


def refuse_large_integers(values: Any, source: str) -> None:
    """Refuse integers beyond 2**53 in an array, sparse matrix, data frame or list, as `open_rows` does.

    Everything else passes; the conversion that follows refuses values that are not numbers.
    """
    if sparse.issparse(values):
        check_integers(values.tocsr().data, Place(source, None, lambda position: f"stored value {position}"))
        return
    columns = None if isinstance(values, np.ndarray | list | tuple) else table_columns(values)
    if isinstance(columns, FrameColumns):
        rows = slice(0, columns.n_rows)
        for position in filter(columns.holds_integers, columns.which):
            place = columns.place(rows).some(position, position + 1)
            check_integers(columns.column(position, rows, place).values, place)
        return
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError):
        return
    if array.ndim in (1, 2):
        names = None if array.ndim == 1 else range(array.shape[1])
        check_integers(array, Place(source, names, row_of(slice(0, None))))
