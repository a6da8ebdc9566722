from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgemark.errors import ParameterError
from ridgemark.rows import DEFAULT_MEMORY_BUDGET, ArrayRows, BaseRows, Block, block_rows_for


class Ragged(BaseRows):
    """Rows that come in pieces of given sizes, as from a file."""

    def __init__(self, sizes: list[int]) -> None:
        self.n_rows, self.n_features, self.n_targets = sum(sizes), 1, 1
        self.dtype, self.has_weights = np.dtype(float), True
        self.feature_names = self.target_names = None
        self.ends = np.cumsum(sizes).tolist()

    def _blocks(self, block_rows: int, start: int, stop: int) -> Iterator[Block]:
        return self._regroup(self._pieces(), block_rows, start, stop)

    def _pieces(self) -> Iterator[Block]:
        for first, last in zip([0, *self.ends], self.ends, strict=False):
            column = np.arange(first, last, dtype=float)
            yield Block(first, column[:, None], -column[:, None], column)

    def _take(self, indices: np.ndarray) -> Block:
        raise AssertionError


@given(
    sizes=st.lists(st.integers(0, 9), min_size=1).filter(lambda sizes: sum(sizes) > 1), block_rows=st.integers(1, 30)
)
def test_pieces_of_any_sizes_become_blocks_of_one_size(sizes: list[int], block_rows: int) -> None:
    rows = Ragged(sizes)
    blocks = list(rows.blocks(block_rows))
    assert all(block.n_rows == block_rows for block in blocks[:-1])
    assert 1 <= blocks[-1].n_rows <= block_rows
    everything = np.arange(rows.n_rows)
    for part in ("indices", "features", "targets", "weights"):
        stacked = np.concatenate([getattr(block, part) for block in blocks]).ravel()
        assert np.array_equal(np.abs(stacked), everything), part
    assert [block.start for block in blocks] == list(range(0, rows.n_rows, block_rows))


@pytest.mark.parametrize("indices", [3, [[1]], [1.0], [True, False], ["a"]])
def test_take_requires_a_list_of_row_numbers(indices: object) -> None:
    with pytest.raises(ParameterError, match=r"list of row numbers; got .*; for a mask use numpy\.flatnonzero"):
        ArrayRows(np.ones((5, 2))).take(indices)  # type: ignore[arg-type]


def test_a_budget_gives_as_many_rows_as_it_holds() -> None:
    assert block_rows_for(1000, 100, 50) == 10
    assert block_rows_for(1099, 100, 50) == 10
    assert block_rows_for(10**9, 100, 50) == 50
    assert block_rows_for(None, 8, 10**12) == DEFAULT_MEMORY_BUDGET // 8
    assert block_rows_for(np.int64(100), 100, 50) == 1  # type: ignore[arg-type]


def test_a_budget_below_one_row_is_refused_with_the_size_of_a_row() -> None:
    with pytest.raises(ParameterError, match="which takes 800 bytes; got 799; raise memory_budget"):
        block_rows_for(799, 800, 5)


@pytest.mark.parametrize("budget", [0, -1, 1.5, "1GB", True])
def test_a_budget_must_be_a_positive_integer(budget: object) -> None:
    with pytest.raises(ParameterError, match="memory_budget must be a positive integer, got"):
        block_rows_for(budget, 8, 5)  # type: ignore[arg-type]
