"""A file that changes while it is read is refused: no crash, and no mixture of two versions."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ridgemark import NystromRidge
from ridgemark.errors import SourceFileError
from ridgemark.rows import open_rows

N_ROWS, BLOCK = 40_000, 4096
TABLE = np.random.default_rng(0).normal(size=(N_ROWS, 4))


def write(path: Path, table: Any = TABLE) -> None:
    if path.suffix == ".npy":
        np.save(path, table)
    elif path.suffix == ".csv":
        np.savetxt(path, table, delimiter=",", header="a,b,c,y", comments="", fmt="%.3f")
    else:
        pa, ipc = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.ipc")
        columns = pa.table(dict(zip("abcy", table.T, strict=True)))
        with pa.OSFile(str(path), "wb") as file, ipc.new_file(file, columns.schema) as writer:
            writer.write_table(columns, max_chunksize=BLOCK)


@pytest.fixture(params=["npy", "fortran.npy", "csv", "arrow"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    file = tmp_path / f"rows.{request.param}"
    write(file, np.asfortranarray(TABLE) if "fortran" in request.param else TABLE)
    os.utime(file, (0, 0))  # long ago: a coarse clock must not hide the change
    return file


def cut_short(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def overwrite(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2)
        file.write(bytes(size // 4))
    assert path.stat().st_size == size


def replace(path: Path) -> None:
    other = path.with_name(f"other{path.suffix}")
    write(other, -TABLE)
    os.utime(other, ns=(0, path.stat().st_mtime_ns))
    os.truncate(other, path.stat().st_size)  # another inode with the same size and time
    other.replace(path)


@pytest.mark.parametrize("change", [cut_short, overwrite, replace, Path.unlink])
def test_a_change_during_a_pass_is_refused(path: Path, change: Callable[[Path], None]) -> None:
    rows = open_rows(path, target=-1)
    blocks = rows.blocks(BLOCK)
    next(blocks)
    change(path)
    with pytest.raises(SourceFileError, match="has changed or is gone since it was opened; open it again"):
        list(blocks)
    with pytest.raises(SourceFileError, match="has changed or is gone"):
        rows.take([0, N_ROWS - 1])


def test_a_change_between_passes_of_one_block_is_refused(path: Path) -> None:
    rows = open_rows(path, target=-1)
    for _ in range(2):
        (block,) = rows.blocks(N_ROWS)
        assert np.abs(block.features - TABLE[:, :3]).max() < 0.01
    overwrite(path)
    with pytest.raises(SourceFileError, match="has changed or is gone"):
        list(rows.blocks(N_ROWS))


@pytest.mark.parametrize("change", [cut_short, overwrite, replace])
def test_a_change_during_a_fit_is_refused(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = tmp_path / "rows.npy"
    write(path)
    os.utime(path, (0, 0))
    seen = 0

    def progress(*_: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == 5:
            change(path)

    model = NystromRidge(bandwidth=2.0, ridge=1e-3, n_landmarks=20, memory_budget=2**24, progress=progress)
    with pytest.raises(SourceFileError, match="has changed or is gone"):
        model.fit(open_rows(path, target=-1))
    assert seen >= 5


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f8", ">f4", "i2", "?"])
def test_any_rows_and_columns_of_an_npy_file_are_those_of_the_array(tmp_path: Path, order: Any, dtype: str) -> None:
    table = np.asarray(np.random.default_rng(1).integers(0, 9, (3000, 7)).astype(dtype), order=order)
    np.save(tmp_path / "x.npy", table)
    rows = open_rows(tmp_path / "x.npy", target=2, columns=[6, 0, 5], weight=3)
    wanted = np.random.default_rng(2).integers(0, 3000, 500)  # unordered, with repeats
    for block in (rows.take(wanted), rows.take([]), *rows.blocks(999)):
        expected = table[block.indices].astype(np.float64)
        assert np.array_equal(block.features, expected[:, [6, 0, 5]])
        assert block.targets is not None
        assert np.array_equal(block.targets, expected[:, [2]])
        assert np.array_equal(block.weights, expected[:, 3])
        assert block.features.flags.c_contiguous
