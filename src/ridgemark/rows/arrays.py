"""Rows of plain numbers in memory, which take the short way: no columns, names or gaps."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from scipy import sparse

from ridgemark.rows.base import BaseRows, Block, Rows
from ridgemark.rows.cells import DOUBLE, LARGEST_EXACT, SINGLE, is_mapped
from ridgemark.rows.column import ColumnEncoder
from ridgemark.rows.column_rows import ColumnRows
from ridgemark.rows.columns import as_columns
from ridgemark.rows.groups import hashes_of

_LAYOUT: tuple[Literal["C", "A"], ...] = ("C", "A")  # of blocks: in C order, aligned
_PLAIN = "fd?" + np.typecodes["AllInteger"]  # types of numbers that scikit-learn reads in the same precision


class ArrayRows(BaseRows):
    """Rows of finite numbers in memory, which are not checked.

    Float32 and float64 are kept; float16 becomes float32; integers and booleans become float64, block by block.

    Parameters
    ----------
    features : array (n, d) or csr_array (n, d)
        Finite numbers.
    targets : array (n,) or (n, t), optional
        Finite numbers.
    weights : array (n,), optional
        Finite, not negative, not all zero.
    groups : array (n,) of uint64, optional
        Hashes of the labels of the rows' groups.
    """

    feature_names: tuple[str, ...] | None = None
    target_names: tuple[str, ...] | None = None

    def __init__(self, features: Any, targets: Any = None, weights: Any = None, groups: Any = None) -> None:
        self._features = sparse.csr_array(features) if sparse.issparse(features) else np.asarray(features)
        self._targets = None if targets is None else np.asarray(targets).reshape(len(targets), -1)
        self._weights = None if weights is None else np.asarray(weights)
        self._groups = groups
        self.n_rows, self.n_features = self._features.shape
        self.n_targets = 0 if self._targets is None else self._targets.shape[1]
        self.dtype = SINGLE if self._features.dtype.kind == "f" and self._features.dtype.itemsize <= 4 else DOUBLE
        self.has_weights, self.has_groups = weights is not None, groups is not None

    def encoded_by(self, encoder: ColumnEncoder) -> Any:
        targets = None if self._targets is None else as_columns(self._targets, "the target array")
        weights = None if self._weights is None else as_columns(self._weights, "the weight array")
        rows = ColumnRows(as_columns(self._features, "the feature array"), targets, weights, groups=self._groups)
        return rows.encoded_by(encoder)

    def _blocks(self, block_rows: int, start: int, stop: int) -> Iterator[Block]:
        for first in range(start, stop, block_rows):
            yield self._take(slice(first, min(first + block_rows, stop)))

    def _take(self, rows: Rows) -> Block:
        chosen = self._features[rows]
        is_sparse = sparse.issparse(chosen)
        features = chosen.astype(self.dtype, copy=False) if is_sparse else np.require(chosen, self.dtype, _LAYOUT)
        targets = None if self._targets is None else np.require(self._targets[rows], DOUBLE, _LAYOUT)
        weights = None if self._weights is None else np.require(self._weights[rows], DOUBLE, _LAYOUT)
        groups = None if self._groups is None else self._groups[rows]
        if isinstance(rows, slice):
            return Block(rows.start, features, targets, weights, groups=groups)
        return Block(0, features, targets, weights, taken=rows, groups=groups)


def plain_rows(features: Any, targets: Any = None, weights: Any = None, groups: Any = None) -> ArrayRows | None:
    """Return rows of arrays in memory that hold finite numbers only; None for all others, whatever is wrong with them.

    Integers are those that floats hold exactly; weights are not negative, and not all zero. Groups may have any labels.
    """
    parts = [features, *(values for values in (targets, weights) if values is not None)]
    if not all(map(_is_plain, parts)) or features.ndim != 2 or any(len(part) != len(features) for part in parts):
        return None
    if targets is not None and (targets.ndim > 2 or targets.dtype.kind == "b"):  # which are labels
        return None
    if weights is not None and (weights.ndim != 1 or weights.min() < 0 or not weights.any()):
        return None
    return ArrayRows(features, targets, weights, None if groups is None else hashes_of(groups, len(features)))


@np.errstate(over="ignore", invalid="ignore")
def _is_plain(values: Any) -> bool:
    """Return whether a value is an array in memory of finite numbers that floats hold exactly."""
    if type(values) is not np.ndarray or values.dtype.char not in _PLAIN or not values.size:
        return False
    if values.base is not None and is_mapped(values.base):
        return False
    if values.dtype.kind == "f":  # a finite sum shows that all are finite, without a temporary array
        return bool(np.isfinite(values.sum()) or np.isfinite(values).all())
    return bool(values.dtype.itemsize < 8 or (values.min() >= -LARGEST_EXACT and values.max() <= LARGEST_EXACT))
