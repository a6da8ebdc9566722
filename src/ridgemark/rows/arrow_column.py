"""Columns of pyarrow, also inside pandas frames, as columns of NumPy arrays."""

from dataclasses import replace
from typing import Any

import numpy as np

from ridgemark.errors import require
from ridgemark.rows.cells import DOUBLE
from ridgemark.rows.column import Cells, number_column, times, words

_TEXTS = {"string", "large_string", "string_view"}


def arrow_column(column: Any) -> Cells:
    """Return an Arrow array or chunked array as a column; dates and times in UTC."""
    types, kind, stated = require_pyarrow().types, column.type, str(column.type)
    missing = np.asarray(column.is_null()) if column.null_count else None
    if types.is_dictionary(kind) or stated in _TEXTS:
        if hasattr(column, "combine_chunks"):
            column = column.combine_chunks()
        coded = column if types.is_dictionary(kind) else column.dictionary_encode()
        codes = coded.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.intp)
        levels = words(coded.dictionary.to_pylist())
        if coded.dictionary.null_count:
            missing = np.asarray(coded.dictionary.is_null())[codes] | (False if missing is None else missing)
        return Cells("category" if types.is_dictionary(kind) else "text", codes, missing, levels, stated=stated)
    if types.is_time(kind):
        made = times(np.asarray(column.cast("time64[ns]").cast("int64").fill_null(0)))
        return replace(made, missing=missing, stated=stated)
    if types.is_null(kind):
        return Cells("number", np.zeros(len(column)), np.ones(len(column), dtype=bool), stated=stated)
    if types.is_decimal(kind):
        column = column.cast("float64")
    elif not (types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind) or types.is_temporal(kind)):
        return Cells("other", np.zeros(len(column)), stated=stated)
    if missing is not None and (types.is_integer(kind) or types.is_boolean(kind)):
        column = column.fill_null(False if types.is_boolean(kind) else 0)
    return replace(number_column(np.asarray(column)), missing=missing, stated=stated)


def arrow_dtype(kind: Any) -> np.dtype[Any]:
    """Return the nearest NumPy type of an Arrow type."""
    types = require_pyarrow().types
    if types.is_floating(kind):
        return np.dtype(kind.to_pandas_dtype())
    is_number = types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind)
    return DOUBLE if is_number else np.dtype(object)


def require_pyarrow(what: str = "Reading Parquet and Arrow") -> Any:
    """Return pyarrow, or raise the error that names its extra."""
    return require("arrow", what, "pyarrow", *(f"pyarrow.{part}" for part in ("csv", "fs", "ipc", "parquet", "types")))
