"""Data frames and dicts of columns, converted column by column and block by block.

Frames are recognised by their class names: pandas and polars are never imported here.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ridgemark.errors import DataError
from ridgemark.rows.arrays import Columns, as_array
from ridgemark.rows.base import Array
from ridgemark.rows.cells import check_integers, check_present, float_dtype, stacked
from ridgemark.rows.choice import Header
from ridgemark.rows.places import CATEGORY, Place, row_of, shown

_OBJECT: np.dtype[Any] = np.dtype(object)


class FrameColumns(Columns):
    """Columns of different types in a table, converted one by one; a subclass reads one column."""

    def __init__(self, table: Any, source: str, names: Iterable[Any], n_rows: int) -> None:
        known = tuple(str(name) for name in names)
        super().__init__(Header(source, len(known), known), n_rows)
        self._table = table

    @abstractmethod
    def _column_dtype(self, position: int) -> np.dtype[Any]:
        """Return the nearest numpy type of one column."""

    @abstractmethod
    def _column(self, position: int, rows: slice | npt.NDArray[np.intp], place: Place) -> Array:
        """Return one column at some rows as numpy values of any type, and refuse nulls and categories."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 when every column is float32 or smaller, and float64 otherwise."""
        return float_dtype(self._column_dtype(j) for j in self.which)

    def read(self, rows: slice | npt.NDArray[np.intp], dtype: np.dtype[Any]) -> Array:
        """Return the checked floats (n, k) of some rows."""
        place = self.place(rows)
        columns = [self._column(j, rows, place.some(k, k + 1)) for k, j in enumerate(self.which)]
        return stacked(columns, dtype, place)


class PandasColumns(FrameColumns):
    """Columns of a pandas DataFrame."""

    def _column_dtype(self, position: int) -> np.dtype[Any]:
        dtype = self._table.dtypes.iloc[position]
        if not isinstance(dtype, np.dtype):  # nullable, Arrow-backed and sparse types name their numpy type
            dtype = getattr(dtype, "numpy_dtype", getattr(dtype, "subtype", _OBJECT))
        return dtype if isinstance(dtype, np.dtype) else _OBJECT

    def _column(self, position: int, rows: slice | npt.NDArray[np.intp], place: Place) -> Array:
        series = self._table.iloc[rows, position]
        if isinstance(series.dtype, np.dtype):
            return np.asarray(series.to_numpy())
        if series.dtype.name == "category":
            raise place.wrong_kind(CATEGORY, "category")
        if series.dtype.kind in "Mm":
            raise place.wrong_kind(series.dtype.kind, series.dtype)
        check_present(series.isna().to_numpy(), place)
        return np.asarray(series.to_numpy(dtype=self._column_dtype(position)))


class PolarsColumns(FrameColumns):
    """Columns of a polars DataFrame."""

    def _column_dtype(self, position: int) -> np.dtype[Any]:
        return np.dtype(np.float32 if str(self._table.dtypes[position]) in {"Float16", "Float32"} else np.float64)

    def _column(self, position: int, rows: slice | npt.NDArray[np.intp], place: Place) -> Array:
        series = self._table.to_series(position)[rows]
        kind = str(series.dtype).partition("(")[0]
        if kind in {"Categorical", "Enum"}:
            raise place.wrong_kind(CATEGORY, kind)
        if kind in {"Struct", "List", "Array"}:
            raise place.wrong_kind(kind, series.dtype)
        check_present(series.is_null().to_numpy(), place)
        return np.asarray(series.to_numpy())


class DictColumns(FrameColumns):
    """Columns given as a dict from names to arrays of equal length."""

    def __init__(self, columns: Mapping[Any, Any]) -> None:
        source = "the dict of columns"
        arrays = [as_array(values, f"column {shown(name)} of {source}") for name, values in columns.items()]
        super().__init__(arrays, source, columns, arrays[0].size if arrays else 0)
        for name, array in zip(columns, arrays, strict=True):
            if array.shape != (self.n_rows,):
                raise DataError(
                    f"column {shown(name)} of {source} must be one-dimensional, of length {self.n_rows} like the "
                    f"first; got shape {array.shape}"
                )

    def _column_dtype(self, position: int) -> np.dtype[Any]:
        return self._table[position].dtype

    def _column(self, position: int, rows: slice | npt.NDArray[np.intp], place: Place) -> Array:
        return self._table[position][rows]


def table_columns(source: Any) -> Columns | None:
    """Return the columns of a data frame, a series or a dict of columns; None for anything else."""
    if is_a(source, "pandas", "Series") or is_a(source, "polars", "Series"):
        source = source.to_frame()
    if is_a(source, "pandas", "DataFrame"):
        return PandasColumns(source, "the DataFrame", source.columns, len(source))
    if is_a(source, "polars", "DataFrame"):
        return PolarsColumns(source, "the DataFrame", source.columns, source.height)
    if isinstance(source, Mapping):
        return DictColumns(source)
    return None


def is_a(value: Any, package: str, name: str) -> bool:
    """Return whether a value is an instance of a class of another package, without importing it."""
    return any(cls.__name__ == name and cls.__module__.partition(".")[0] == package for cls in type(value).__mro__)


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
        for position in columns.which:
            place = columns.place(rows).some(position, position + 1)
            try:
                column = columns._column(position, rows, place)
            except DataError:  # categories, missing values
                continue
            check_integers(column, place)
        return
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError):
        return
    if array.ndim in (1, 2):
        names = None if array.ndim == 1 else range(array.shape[1])
        check_integers(array, Place(source, names, row_of(slice(0, None))))
