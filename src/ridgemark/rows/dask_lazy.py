"""What a function of rows gives for a Dask collection: computed partition by partition, when it is asked for."""

import warnings
from typing import Any

import numpy as np

from ridgemark.errors import RidgemarkWarning
from ridgemark.rows.dask import delayed, delayed_value, is_array, partitions_of, require_dask


def lazy_rows(function: Any, collection: Any) -> Any:
    """Return what a function of rows gives for each partition, as a Dask array or a tuple of them.

    The function is first called with one row without values, which says what to expect.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RidgemarkWarning)  # that values are missing
        expected = function(_row(collection))
    outputs = expected if isinstance(expected, tuple) else (expected,)
    sizes = collection.chunks[0] if is_array(collection) else [np.nan] * collection.npartitions
    shared, nothing = delayed_value(function), tuple(one[:0] for one in outputs)
    calls = [delayed(_of_partition)(shared, part, nothing) for part in partitions_of(collection)]
    array = require_dask().array

    def stacked(k: int) -> Any:
        shape, dtype = outputs[k].shape[1:], outputs[k].dtype
        pieces = [
            array.from_delayed(call[k], shape=(size, *shape), dtype=dtype)
            for call, size in zip(calls, sizes, strict=True)
        ]
        return array.concatenate(pieces, allow_unknown_chunksizes=True)

    found = tuple(map(stacked, range(len(outputs))))
    return found if isinstance(expected, tuple) else found[0]


def _of_partition(function: Any, rows: Any, nothing: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the function's values at the rows of a partition, which may be empty."""
    if not rows.shape[0]:
        return nothing
    found = function(rows)
    return found if isinstance(found, tuple) else (found,)


def _row(collection: Any) -> Any:
    """Return one row of the collection's columns, without values."""
    if is_array(collection):
        return np.zeros((1, *collection.shape[1:]), collection.dtype)
    return collection._meta.reset_index(drop=True).reindex(range(1))
