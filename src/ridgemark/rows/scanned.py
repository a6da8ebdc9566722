"""Rows in files that are read sequentially, in chunks with known row numbers; a chunk is always read as a whole."""

import copy
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ridgemark.rows.base import Array, BaseRows, Block, block_rows_for, copy_rows
from ridgemark.rows.cells import DOUBLE, checked_weights, kept_rows, stacked
from ridgemark.rows.column import Cells, ColumnEncoder, NoFeatures
from ridgemark.rows.files import FileState
from ridgemark.rows.groups import label_hashes
from ridgemark.rows.header import Header, Roles
from ridgemark.rows.labels import label_numbers, labels_in, text_labels
from ridgemark.rows.places import Place, listed

_SHARE_OF_ROWS = 4  # rows stay in memory if they take at most 1/4 of the memory budget


class ScannedRows(BaseRows):
    """Base of CSV, Parquet and Arrow files; a subclass reads chunks.

    Parameters
    ----------
    header : Header
        All columns of the file.
    roles : Roles
        The columns in use.
    chunk_rows : sequence of int
        Number of rows in each chunk.
    files : FileState
        The files, which must not change while they are in use.
    skipped : sequence of int
        Rows of the file to leave out, since their target is missing.
    """

    reads_ahead = True
    finite = False
    roles: Roles
    dtype = DOUBLE
    _stays: bool = False  # whether rows are kept when a pass has read all of them
    _read_before: Sequence[Block] | None = None  # the rows that were kept

    def __init__(
        self, header: Header, roles: Roles, chunk_rows: Sequence[int], files: FileState, skipped: npt.ArrayLike
    ) -> None:
        self.header, self.roles = header, roles
        self._bounds = np.concatenate([[0], np.cumsum(chunk_rows, dtype=np.intp)])
        self._files = files
        self.n_skipped = np.size(skipped)
        self.n_rows = int(self._bounds[-1]) - self.n_skipped
        self.kept = kept_rows(self.n_rows, skipped, header.source) if self.n_skipped else None
        self.n_features = len(roles.features)
        self.n_targets = len(roles.targets)
        self.has_weights, self.has_groups = bool(roles.weight), bool(roles.group)
        self.feature_names = header.names_of(roles.features)
        self.target_names = header.names_of(roles.targets)
        self._names = header.names_of(roles.all) or ()
        where = f"{listed(self.target_names or ())} of {header.source}"
        self.labels = labels_in(self._target_columns(), where) if self.n_targets == 1 else None
        self._check_roles()

    @abstractmethod
    def _target_columns(self) -> Iterator[Cells]:
        """Iterate over the column of the only target, as it is, in parts of some rows."""

    def _check_roles(self) -> None:
        """Refuse targets and weights of the wrong kind on opening."""
        for _ in self.encoded_by(NoFeatures())._read([0]):
            break

    @abstractmethod
    def _read(self, chunks: Sequence[int]) -> Iterator[Block]:
        """Iterate over the rows of some chunks, in ascending order, in blocks of any size."""

    def encoded_by(self, encoder: ColumnEncoder) -> Self:
        encoded = super().encoded_by(encoder)
        encoded._read_before, encoded.reads_ahead = None, True
        return encoded

    def staying(self, memory_budget: int | None) -> Self:
        bytes_per_row = 8 * (self.n_features + self.n_targets + self.has_weights + self.has_groups)
        if block_rows_for(memory_budget, _SHARE_OF_ROWS * bytes_per_row, self.n_rows) < self.n_rows:
            return self
        staying = copy.copy(self)
        staying._stays = True
        return staying

    def _blocks(self, block_rows: int, start: int, stop: int) -> Iterator[Block]:
        return self._regroup(self._pieces(start, stop), block_rows, start, stop)

    def _pieces(self, start: int, stop: int) -> Iterator[Block]:
        if self._read_before is not None:
            return (piece for piece in self._read_before if piece.start < stop and piece.start + piece.n_rows > start)
        first, last = self._chunks_of(np.array([start, stop - 1])).tolist()
        pieces = self._files.guard(self._read(range(first, last + 1)))
        return self._kept_pieces(pieces) if self._stays and (start, stop) == (0, self.n_rows) else pieces

    def _kept_pieces(self, pieces: Iterable[Block]) -> Iterator[Block]:
        """Yield the pieces of all rows, and keep them at the end."""
        read = []
        for piece in pieces:
            read.append(piece)
            yield piece
        self._read_before, self.reads_ahead = read, False

    def _take(self, indices: npt.NDArray[np.intp]) -> Block:
        order = np.argsort(indices, kind="stable")
        rising = indices[order]
        pieces: Iterable[Block] | None = self._read_before
        if pieces is None:
            pieces = self._files.guard(self._read(np.unique(self._chunks_of(rising)).tolist()))
        taken = self._blank(0, len(indices))
        for piece in pieces:
            first, last = np.searchsorted(rising, [piece.start, piece.start + piece.n_rows])
            copy_rows(piece, rising[first:last] - piece.start, taken, order[first:last])
        return Block(0, taken.features, taken.targets, taken.weights, taken=indices, groups=taken.groups)

    def _chunks_of(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Return the chunks that hold these rows."""
        in_file = rows if self.kept is None else self.kept[rows]
        return np.searchsorted(self._bounds, in_file, side="right") - 1

    def _block(self, start: int, raw: Sequence[Cells], place: Place) -> Block:
        """Return a block of checked floats from the values of the chosen columns, in the order of `roles.all`.

        `start` is the first row's number in the file; rows that are left out are not in the block.
        """
        if self.kept is not None:
            first, last = np.searchsorted(self.kept, [start, start + len(raw[0])]).tolist()
            rows, start = self.kept[first:last] - start, first
            if not len(rows):
                return self._blank(start, 0)
            raw, place = [column[rows] for column in raw], place.at(rows)
        n_columns = len(self.roles.features)
        weight = n_columns + self.n_targets
        end = weight + self.has_weights

        def part(first: int, last: int | None, dtype: np.dtype[Any], place: Place = place) -> Array:
            place_of = place.some(first, last)
            values = [column.plain(place_of.some(k, k + 1)) for k, column in enumerate(raw[first:last])]
            return stacked(values, dtype, place_of)

        weights = checked_weights(part(weight, end, DOUBLE), place.some(weight)) if self.has_weights else None
        if self.encoder is None:
            features = part(0, n_columns, self.dtype)
        else:
            features = self.encoder(start, raw[:n_columns], place.some(0, n_columns), weights)
            features = features.astype(self.dtype, copy=False)
        targets = None
        if (labels := text_labels(self)) is not None:
            targets = label_numbers(labels, raw[n_columns], place.some(n_columns, weight))[:, None]
        elif self.n_targets:
            targets = part(n_columns, weight, DOUBLE, replace(place, of_target=True))
        group = self.roles.all.index(self.roles.group[0]) if self.has_groups else None
        groups = None if group is None else label_hashes(raw[group], place.some(group, group + 1))
        return Block(start, features, targets, weights, groups=groups)
