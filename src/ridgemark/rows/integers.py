"""Refusal of integers that floats cannot hold, before other code converts them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from ridgemark.errors import DataError
from ridgemark.rows.base import Array
from ridgemark.rows.cells import check_integers
from ridgemark.rows.columns import FrameColumns
from ridgemark.rows.places import Place, row_of
from ridgemark.rows.tables import table_columns


def refuse_large_integers(values: Any, source: str) -> None:
    """Refuse integers beyond 2**53 in an array, sparse matrix, data frame or list, as `open_rows` does.

    Everything else passes; the conversion that follows refuses values that are not numbers.
    """
    for array, place in _arrays(values, source):
        check_integers(array, place)


def _arrays(values: Any, source: str) -> Iterator[tuple[Array, Place]]:
    """Yield the arrays that hold the values, and the places of their cells; nothing if there is no array."""
    if sparse.issparse(values):
        yield values.tocsr().data, Place(source, None, lambda position: f"stored value {position}")
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
            yield column, place
        return
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError):
        return
    if array.ndim in (1, 2):
        yield array, Place(source, None if array.ndim == 1 else range(array.shape[1]), row_of(slice(0, None)))
