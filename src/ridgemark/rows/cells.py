"""Conversion of columns and matrices from any source to checked floats."""

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ridgemark.errors import DataError
from ridgemark.rows.base import Array
from ridgemark.rows.places import Place

TRUTH = {"true": 1.0, "false": 0.0}
LARGEST_EXACT = 2**53  # float64 does not hold every integer beyond it

CODE = re.compile(r"0\d+", re.ASCII)  # an integer that begins with 0, such as a postcode: text, not a number
_INTEGER = re.compile(r"[+-]?\d+")
SINGLE: np.dtype[Any] = np.dtype(np.float32)
DOUBLE: np.dtype[Any] = np.dtype(np.float64)


def float_dtype(dtypes: Iterable[np.dtype[Any]]) -> np.dtype[Any]:
    """Return float32 when every column is float16 or float32, and float64 otherwise."""
    return SINGLE if all(dtype.kind == "f" and dtype.itemsize <= 4 for dtype in dtypes) else DOUBLE


@np.errstate(over="ignore", invalid="ignore")  # what overflows becomes infinite and is refused
def numbers(values: Array, dtype: np.dtype[Any], place: Place, gaps: bool = False) -> Array:
    """Return a column (n,) or matrix (n, k) as finite floats, without a copy if it already has this dtype.

    Booleans become 0 and 1. Text, dates, missing values, NaN (unless `gaps`), infinities and integers beyond 2**53 are
    refused with an error that names row and column.
    """
    kind = values.dtype.kind
    if kind == "O" and values.ndim == 1:
        values = from_objects(values, place)
    elif kind not in "fbiu":
        raise place.wrong_kind(kind, values.dtype)
    else:
        check_integers(values, place)
    result = as_floats(values, dtype)
    _check_finite(result, place, gaps)
    return result


def as_floats(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return numbers in this dtype, aligned and in C order, without a copy if they are so already."""
    return np.require(np.asarray(values), dtype, ["C", "A"])


def stacked(columns: Sequence[Array], dtype: np.dtype[Any], place: Place) -> Array:
    """Return columns of any types stacked as finite floats (n, k); see `numbers`."""
    if all(column.dtype == DOUBLE for column in columns):  # checked together
        return numbers(np.stack(columns, axis=1), dtype, place)
    matrix = np.empty((len(columns[0]), len(columns)), dtype)
    for k, column in enumerate(columns):
        matrix[:, k] = numbers(column, dtype, place.some(k, k + 1))
    return matrix


def _check_finite(values: Array, place: Place, gaps: bool) -> None:
    """Refuse infinities, and NaN unless `gaps`, with the place of the first."""
    if np.isfinite(values.sum()):  # true for almost all data, without a temporary array
        return
    if (at := _first(np.isinf(values) if gaps else ~np.isfinite(values))) is not None:
        raise place.bad_number(float(values[at]), *at)


@np.errstate(over="ignore", invalid="ignore")
def has_gaps(values: Array) -> bool:
    """Return whether an array of floats holds NaN."""
    return bool(np.isnan(values.sum()) and np.isnan(values).any())  # the sum needs no temporary array


@np.errstate(over="ignore", invalid="ignore")
def is_finite(values: Any) -> bool:
    """Return whether an array or sparse matrix of floats holds neither NaN nor an infinity."""
    stored = values.data if sparse.issparse(values) else values
    return bool(np.isfinite(stored.sum()) or np.isfinite(stored).all())


def is_mapped(array: Any) -> bool:
    """Return whether an array is a memory map, or a view of one."""
    while array is not None:
        if isinstance(array, np.memmap):
            return True
        array = getattr(array, "base", None)
    return False


def is_number(text: str) -> bool:
    """Return whether text has the form of a number."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def checked_weights(values: Array, place: Place) -> npt.NDArray[np.float64]:
    """Return finite weights (n, 1) as (n,); refuse negative ones."""
    weights = values[:, 0]
    if (at := _first(weights < 0)) is not None:
        raise place.bad_weight(float(weights[at]), *at)
    return weights


def check_present(missing: Array, place: Place) -> None:
    """Refuse a column with null values, given the mask of nulls."""
    if (at := _first(missing)) is not None:
        raise place.missing(*at)


def kept_rows(n_kept: int, skipped: npt.ArrayLike, source: str) -> npt.NDArray[np.intp]:
    """Return the numbers of the rows that are not left out."""
    if not n_kept:
        raise DataError(f"the target of {source} is missing in all rows; at least one row must have it")
    return np.delete(np.arange(n_kept + np.size(skipped)), np.asarray(skipped, np.intp))


def check_integers(values: Array, place: Place) -> None:
    """Refuse integers beyond 2**53, which would lose digits as floats; other values pass."""
    if values.dtype.kind == "O":
        large = np.array([isinstance(value, Integral) and abs(int(value)) > LARGEST_EXACT for value in values.flat])
        at = _first(large.reshape(values.shape))
    elif values.dtype.kind in "iu" and values.dtype.itemsize == 8 and values.size:
        if values.min() >= -LARGEST_EXACT and values.max() <= LARGEST_EXACT:
            return
        at = _first((values < -LARGEST_EXACT) | (values > LARGEST_EXACT))
    else:
        return
    if at is not None:
        raise place.too_large(values[at], *at)


def from_objects(values: Array, place: Place) -> npt.NDArray[np.float64]:
    """Return Python numbers as floats; refuse everything else."""
    result = np.empty(len(values))
    for row, value in enumerate(values):
        if not isinstance(value, Real | Decimal | np.bool_):
            raise place.missing(row) if is_missing(value) else place.no_number(value, row)
        if isinstance(value, Integral) and abs(int(value)) > LARGEST_EXACT:
            raise place.too_large(value, row)
        try:
            result[row] = float(value)
        except OverflowError:  # a fraction beyond the float range
            raise place.bad_number(np.inf, row) from None
    return result


def is_missing(value: Any) -> bool:
    """Return whether a Python object stands for a missing value."""
    if isinstance(value, float):
        return value != value
    if isinstance(value, Decimal):
        return value.is_nan()
    return value is None or type(value).__name__ in {"NAType", "NaTType"}  # of data frames


def is_large_integer(text: str) -> bool:
    """Return whether text is an integer beyond 2**53; `int` would refuse very many digits."""
    return _INTEGER.fullmatch(text) is not None and abs(Decimal(text)) > LARGEST_EXACT


def _first(found: Array) -> tuple[int, ...] | None:
    """Return row and column, of a column the row, of the first True in row order; None if there is none."""
    return tuple(map(int, np.unravel_index(found.argmax(), found.shape))) if found.any() else None
