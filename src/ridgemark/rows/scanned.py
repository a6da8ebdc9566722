"""Rows in files that are read sequentially, in chunks with known row numbers; a chunk is always read as a whole."""

import copy
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ridgemark.rows.base import Array, BaseRows, Block, copy_rows
from ridgemark.rows.cells import DOUBLE, checked_weights, stacked
from ridgemark.rows.choice import Choice, Header
from ridgemark.rows.column import Column, ColumnEncoder, NoFeatures, number_column
from ridgemark.rows.files import FileState
from ridgemark.rows.places import Place


class ScannedRows(BaseRows):
    """Base of CSV, Parquet and Arrow files; a subclass reads chunks.

    Parameters
    ----------
    header : Header
        All columns of the file.
    choice : Choice
        The columns in use.
    chunk_rows : sequence of int
        Number of rows in each chunk.
    dtype : numpy.dtype
        float32 or float64, for the features.
    files : FileState
        The files, which must not change while they are in use.
    """

    reads_ahead = True
    finite = False

    def __init__(
        self, header: Header, choice: Choice, chunk_rows: Sequence[int], dtype: np.dtype[Any], files: FileState
    ) -> None:
        self._source = header.source
        self._choice = choice
        self._bounds = np.concatenate([[0], np.cumsum(chunk_rows, dtype=np.intp)])
        self._files = files
        self.n_rows = int(self._bounds[-1])
        self.n_features = len(choice.features)
        self.n_targets = len(choice.targets)
        self.dtype = dtype
        self.has_weights = bool(choice.weight)
        self.feature_names = header.names_of(choice.features)
        self.target_names = header.names_of(choice.targets)
        self._names = header.names_of(choice.all) or ()
        for _ in self.encoded_by(NoFeatures())._read([0]):  # a target of the wrong kind is refused on opening
            break

    @abstractmethod
    def _read(self, chunks: Sequence[int]) -> Iterator[Block]:
        """Iterate over the rows of some chunks, in ascending order, in blocks of any size."""

    def encoded_by(self, encoder: ColumnEncoder) -> Self:
        encoded = copy.copy(self)
        encoded.encoder = encoder
        encoded.n_features, encoded.feature_names = len(encoder.names), encoder.names
        encoded.dtype = self.dtype if encoder.keeps_columns else DOUBLE
        return encoded

    def _pieces(self, block_rows: int, start: int, stop: int) -> Iterator[Block]:
        first = int(np.searchsorted(self._bounds, start, side="right")) - 1
        return self._files.guard(self._read(range(first, int(np.searchsorted(self._bounds, stop)))))

    def _take(self, indices: npt.NDArray[np.intp]) -> Block:
        order = np.argsort(indices, kind="stable")
        rising = indices[order]
        chunks = np.unique(np.searchsorted(self._bounds, rising, side="right") - 1)
        taken = self._blank(0, len(indices))
        for piece in self._files.guard(self._read(chunks.tolist())):
            first, last = np.searchsorted(rising, [piece.start, piece.start + piece.n_rows])
            copy_rows(piece, rising[first:last] - piece.start, taken, order[first:last])
        return Block(0, taken.features, taken.targets, taken.weights, taken=indices)

    def _block(self, start: int, columns: Sequence[Array | Column], place: Place) -> Block:
        """Return a block of checked floats from the values of the chosen columns, in the order of `choice.all`."""
        raw = [one if isinstance(one, Column) else number_column(one) for one in columns]
        n_columns = len(self._choice.features)
        weight = n_columns + self.n_targets

        def part(first: int, last: int | None, dtype: np.dtype[Any]) -> Array:
            place_of = place.some(first, last)
            values = [column.plain(place_of.some(k, k + 1)) for k, column in enumerate(raw[first:last])]
            return stacked(values, dtype, place_of)

        if self.encoder is None:
            features = part(0, n_columns, self.dtype)
        else:
            features = self.encoder(start, raw[:n_columns], place.some(0, n_columns)).astype(self.dtype, copy=False)
        targets = part(n_columns, weight, DOUBLE) if self.n_targets else None
        weights = checked_weights(part(weight, None, DOUBLE), place.some(weight)) if self.has_weights else None
        return Block(start, features, targets, weights)
