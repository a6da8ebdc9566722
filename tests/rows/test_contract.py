"""Properties of every kind of source."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from ridgemark.errors import ParameterError
from ridgemark.rows import RowSource
from tests.helpers import slowly
from tests.rows.cases import CASES, FEATURES, N_FEATURES, N_ROWS, NAMES, TARGETS, WEIGHTS, Case, dense


def test_a_source_is_a_row_source_that_says_what_it_holds(row_source: Case) -> None:
    rows = row_source.rows
    assert isinstance(rows, RowSource)
    assert (rows.n_rows, rows.n_features, rows.n_targets) == (N_ROWS, N_FEATURES, 1)
    assert rows.dtype == row_source.dtype
    assert rows.has_weights
    if row_source.named:
        assert rows.feature_names == NAMES
        assert rows.target_names == ("y",)


@pytest.mark.parametrize("block_rows", [1, 10, 57, *slowly(2, 7, 19, 56, 58, 10**9)])
def test_blocks_hold_the_data_at_every_block_size(row_source: Case, block_rows: int) -> None:
    blocks = list(row_source.rows.blocks(block_rows))
    assert [block.n_rows for block in blocks[:-1]] == [block_rows] * (len(blocks) - 1)
    assert np.array_equal(np.concatenate([block.indices for block in blocks]), np.arange(N_ROWS))
    assert np.array_equal(np.concatenate([dense(block.features) for block in blocks]), FEATURES)
    assert np.array_equal(np.concatenate([block.targets for block in blocks]), TARGETS)
    assert np.array_equal(np.concatenate([block.weights for block in blocks]), WEIGHTS)


def test_blocks_hold_contiguous_floats_of_the_declared_types(row_source: Case) -> None:
    for block in row_source.rows.blocks(13):
        assert block.features.dtype == row_source.dtype
        assert block.features.dtype.isnative
        assert sparse.issparse(block.features) or block.features.flags.c_contiguous
        assert block.targets.dtype == block.weights.dtype == np.float64
        assert block.targets.shape == (block.n_rows, 1)
        assert block.weights.shape == (block.n_rows,)


def test_concurrent_iterations_are_independent(row_source: Case) -> None:
    one, other = row_source.rows.blocks(8), row_source.rows.blocks(8)
    next(one)
    for first, second in zip_longest(row_source.rows.blocks(8), other):
        assert first.start == second.start
        assert np.array_equal(dense(first.features), dense(second.features))
    assert next(one).start == 8


@pytest.mark.parametrize("indices", [[56, 0, 56], [5, 5, 5, 4], [], *slowly([0], list(range(N_ROWS))[::-1])])
def test_take_returns_the_rows_in_the_requested_order(row_source: Case, indices: list[int]) -> None:
    block = row_source.rows.take(indices)
    assert block.indices.tolist() == indices
    assert block.features.dtype == row_source.dtype
    assert np.array_equal(dense(block.features), FEATURES[indices])
    assert np.array_equal(block.targets, TARGETS[indices])
    assert np.array_equal(block.weights, WEIGHTS[indices])


@pytest.mark.parametrize("indices", [[57], [-1], [0, 99]])
def test_take_refuses_rows_that_do_not_exist(row_source: Case, indices: list[int]) -> None:
    with pytest.raises(ParameterError, match="57 rows are numbered 0 to 56"):
        row_source.rows.take(indices)


@pytest.mark.parametrize(
    ("start", "stop"),
    [(5, 6), (13, 40), (20, 57), *(pytest.param(*ends, marks=pytest.mark.slow) for ends in ((0, 57), (56, 57)))],
)
def test_blocks_between_two_rows_are_those_rows(row_source: Case, start: int, stop: int) -> None:
    blocks = list(row_source.rows.blocks(8, start, stop))
    assert [block.start for block in blocks] == list(range(start, stop, 8))
    assert np.array_equal(np.concatenate([dense(block.features) for block in blocks]), FEATURES[start:stop])
    assert np.array_equal(np.concatenate([block.weights for block in blocks]), WEIGHTS[start:stop])


def test_a_block_size_must_be_a_positive_integer(row_source: Case) -> None:
    for bad in (0, -1, 2.5, True, None, "3"):
        with pytest.raises(ParameterError, match="block_rows must be a positive integer"):
            row_source.rows.blocks(bad)  # type: ignore[arg-type]


def test_an_abandoned_iteration_closes_its_file(row_source: Case) -> None:
    iteration = row_source.rows.blocks(3)
    next(iteration)
    del iteration  # an open file would raise a ResourceWarning, which is an error here


def test_every_kind_gives_the_same_bytes(tmp_path: Path, small_chunks: None) -> None:
    first: bytes | None = None
    for name in ("array", "csv", "dict", "fortran", "memory map", "npz"):
        folder = tmp_path / name
        folder.mkdir()
        block = next(CASES[name](folder).rows.blocks(20))
        assert first is None or block.features.tobytes("A") == first
        first = block.features.tobytes("A")
