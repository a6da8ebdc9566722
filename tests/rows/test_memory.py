"""The memory to read a file does not grow with the size of the file."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ridgemark.rows import RowSource, open_rows
from ridgemark.rows.columns import ArrayColumns

MEBIBYTE = 2**20


def peak(work: Callable[[], Any]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def passes(rows: RowSource, block_rows: int) -> None:
    assert sum(block.n_rows for block in rows.blocks(block_rows)) == rows.n_rows


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("dtype", ["f8", "i4"])
def test_a_file_or_map_of_200_megabytes_is_read_in_a_few(tmp_path: Path, dtype: str, mapped: bool) -> None:
    shape = (200 * 10**6 // (20 * np.dtype(dtype).itemsize), 20)
    array = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", dtype, shape)  # a sparse file
    del array
    source = np.load(tmp_path / "x.npy", mmap_mode="r") if mapped else tmp_path / "x.npy"
    assert peak(lambda: passes(open_rows(source, target=3), 20_000)) < 16 * MEBIBYTE


def test_a_csv_file_is_read_in_a_few_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ridgemark.rows.csv_scan.CHUNK_BYTES", MEBIBYTE // 16)
    (tmp_path / "x.csv").write_text("a,b,c,y\n" + "0.125,-3.5,17,0.001\n" * 200_000)
    size = (tmp_path / "x.csv").stat().st_size
    assert size > 3 * MEBIBYTE
    assert peak(lambda: open_rows(tmp_path / "x.csv", target="y")) < MEBIBYTE
    rows = open_rows(tmp_path / "x.csv", target="y")
    assert peak(lambda: passes(rows, 1000)) < MEBIBYTE


def test_a_parquet_file_with_one_row_group_is_read_in_pieces(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    column = np.zeros(2_000_000)
    pq.write_table(pa.table(dict.fromkeys("abcd", column)), tmp_path / "x.parquet", row_group_size=2_000_000)
    rows = open_rows(tmp_path / "x.parquet", target="d")
    assert peak(lambda: passes(rows, 4096)) < 50 * MEBIBYTE < 4 * column.nbytes


def test_pages_of_rows_taken_from_a_map_are_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "x.npy", np.arange(3000.0).reshape(1000, 3))
    rows, released = open_rows(np.load(tmp_path / "x.npy", mmap_mode="r"), target=1), []
    monkeypatch.setattr(ArrayColumns, "release", lambda self, row: released.append(row))
    wanted = np.random.default_rng(0).integers(0, 1000, 320)
    taken = rows.take(wanted)
    assert np.array_equal(taken.features, 3.0 * wanted[:, None] + [0.0, 2.0])
    assert taken.targets is not None
    assert np.array_equal(taken.targets[:, 0], 3.0 * wanted + 1.0)
    assert len(released) >= 2 * 320 // 32
