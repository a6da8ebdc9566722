"""Groups of rows that leave together, such as the rows of one patient: their labels and their order."""

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from ridgemark.backends import Indices
from ridgemark.errors import DataError
from ridgemark.rows.cells import CODE, LARGEST_EXACT, is_number
from ridgemark.rows.column import Cells, array_column
from ridgemark.rows.columns import as_array
from ridgemark.rows.distinct import DistinctRows
from ridgemark.rows.places import Place, row_of

Hashes = npt.NDArray[np.uint64]


def label_hashes(labels: Cells, place: Place) -> Hashes:
    """Return a hash of each row's label; refuse a missing one.

    Equal labels have equal hashes; different ones share a hash with probability at most G^2/2^64 for G labels. A text
    that is a number, such as a cell of a CSV file, has the hash of the number.
    """
    gaps = labels.gaps
    if gaps.any():
        raise DataError(
            f"{place.cell(int(np.argmax(gaps)))} is missing; every row must have the label of its group: fill it in, "
            "or drop the row"
        )
    if labels.kind == "other":
        raise DataError(
            f"{place.column()} holds values that cannot be labels of groups, such as {labels.values[0]!r:.60}; give "
            "numbers, text or dates"
        )
    if labels.levels is None:
        return _number_hashes(labels.values)
    return np.array([_text_hash(str(level)) for level in labels.levels], np.uint64)[labels.values]


def hashes_of(labels: Any, n_rows: int, name: str = "groups") -> Hashes:
    """Return the hashes of labels given as an array, list or series, one for each row."""
    values = np.array([*labels, None], dtype=object)[:-1] if isinstance(labels, list | tuple) else labels
    values = as_array(values, name)
    check_labels(1 if values.ndim == 1 else -1, len(values) if values.ndim else 0, n_rows, name)
    place = Place(name, None, row_of(slice(0, n_rows)))
    return label_hashes(array_column(values, place), place)


def check_labels(n_columns: int, n_labels: int, n_rows: int, source: str) -> None:
    """Refuse labels unless there is one for each row."""
    if n_columns != 1 or n_labels != n_rows:
        got = f"{n_labels} labels" if n_columns == 1 else "an array of another shape"
        raise DataError(f"{source} must have one label for each of the {n_rows} rows, shape ({n_rows},); got {got}")


def labelled_rows(labels: Hashes, distinct: DistinctRows) -> DistinctRows:
    """Return the groups of rows with equal labels, in the order of the first of their rows among the distinct rows.

    So the order does not depend on that of the rows, and groups of one row each have the order of distinct rows.
    """
    present = np.flatnonzero(distinct.kind >= 0)
    values, which = np.unique(labels[present], return_inverse=True)
    if len(values) < 2:
        raise DataError(
            "all rows belong to one group, and nothing is left when it is left out; give two groups or more"
        )
    ranks = distinct.kind[present]
    by_rank = np.lexsort((which, ranks))
    first = np.unique(which[by_rank], return_index=True)[1]  # the row of the lowest rank in each group
    order = np.lexsort((values, ranks[by_rank[first]]))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    kind = np.full(len(labels), -1, dtype=np.intp)
    kind[present] = place[which]
    return DistinctRows(present[by_rank[first[order]]], kind, distinct.smallest)


def evenly(rows: Indices, groups: Indices) -> Indices:
    """Return rows, given in random order, so that the first row of every group comes first, then all second rows."""
    own = groups[rows]
    order = np.argsort(own, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(own[order]) != 0))
    rank = np.empty(len(rows), dtype=np.intp)
    rank[order] = np.arange(len(rows)) - np.repeat(starts, np.diff(np.append(starts, len(rows))))
    return rows[np.argsort(rank, kind="stable")]


def _number_hashes(values: npt.NDArray[Any]) -> Hashes:
    """Return a hash of each number; equal numbers of different types have the same."""
    if values.dtype.kind == "f":
        is_whole = (np.abs(values) < LARGEST_EXACT) & (values == np.round(values))
        bits = np.where(is_whole, 0.0, values).astype(np.float64).view(np.uint64)
        bits |= np.where(is_whole, values, 0.0).astype(np.int64).view(np.uint64)
    else:
        bits = values.astype(np.int64).view(np.uint64)
    mixed = (bits ^ (bits >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)


def _text_hash(text: str) -> int:
    written = text.strip()
    if is_number(written) and not CODE.fullmatch(written) and abs(value := float(written)) < LARGEST_EXACT:
        return int(_number_hashes(np.array([value]))[0])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
