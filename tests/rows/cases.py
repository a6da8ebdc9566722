"""The same rows in every kind of source, so that one set of tests covers all of them."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ridgemark.errors import RidgemarkError
from ridgemark.rows import ArrayRows, RowSource, open_rows

N_ROWS, N_FEATURES = 57, 3
NAMES = ("a", "b", "c")
_RNG = np.random.default_rng(5)
# Whole numbers, so that integer files hold the same data.
FEATURES = _RNG.integers(-40, 40, (N_ROWS, N_FEATURES)).astype(float)
TARGETS = _RNG.integers(-9, 9, (N_ROWS, 1)).astype(float)
WEIGHTS = _RNG.integers(0, 4, N_ROWS).astype(float)
TABLE = np.column_stack([FEATURES, TARGETS, WEIGHTS])
NAMED = {"target": "y", "weight": "w"}
BY_POSITION = {"target": 3, "weight": 4}


@dataclass(frozen=True)
class Case:
    rows: RowSource
    dtype: type = np.float64
    named: bool = True


def columns() -> dict[str, Any]:
    return {name: TABLE[:, j] for j, name in enumerate([*NAMES, "y", "w"])}


def write_csv(path: Path, delimiter: str = ",", end: str = "\n") -> Path:
    lines = [delimiter.join([*NAMES, "y", "w"])]
    lines += [delimiter.join(f"{value:g}" for value in row) for row in TABLE]
    path.write_bytes((end.join(lines) + end).encode())
    return path


def _mapped(folder: Path, dtype: Any, order: str = "C") -> Path:
    np.save(folder / "t.npy", np.asarray(TABLE, dtype, order=order))
    return folder / "t.npy"


def _gzipped(folder: Path) -> Path:
    (folder / "t.csv.gz").write_bytes(gzip.compress(write_csv(folder / "t.csv").read_bytes()))
    return folder / "t.csv.gz"


def _archive(folder: Path) -> Case:
    np.savez(folder / "t.npz", X=FEATURES, y=TARGETS[:, 0], w=WEIGHTS, feature_names=np.array(NAMES))
    return Case(open_rows(folder / "t.npz", weight="w"), named=False)


def _parquet(folder: Path) -> Case:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(columns()), folder / "t.parquet", row_group_size=10)
    return Case(open_rows(folder / "t.parquet", **NAMED))


def _parquet_folder(folder: Path) -> Case:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for part, rows in enumerate((slice(0, 20), slice(20, 21), slice(21, None))):
        table = pa.table({name: values[rows] for name, values in columns().items()})
        pq.write_table(table, folder / f"{part}.parquet", row_group_size=8)
    return Case(open_rows(folder, **NAMED))


def _feather(folder: Path) -> Case:
    pa, feather = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.feather")
    feather.write_feather(pa.table(columns()), str(folder / "t.feather"), chunksize=9)
    return Case(open_rows(folder / "t.feather", **NAMED))


def _arrow_stream(folder: Path) -> Case:
    pa = pytest.importorskip("pyarrow")
    table = pa.table(columns())
    with (
        pa.OSFile(str(folder / "t.arrow"), "wb") as file,
        pa.ipc.new_stream(file, table.schema) as writer,
    ):
        writer.write_table(table, max_chunksize=11)
    return Case(open_rows(folder / "t.arrow", **NAMED))


def _reader() -> Any:
    table = pytest.importorskip("pyarrow").table(columns())
    return table.to_reader(max_chunksize=9)


def _dataset(folder: Path) -> Case:
    dataset = pytest.importorskip("pyarrow.dataset")
    _parquet_folder(folder)
    return Case(open_rows(dataset.dataset(folder, format="parquet"), **NAMED))


CASES: dict[str, Callable[[Path], Case]] = {
    "array": lambda folder: Case(ArrayRows(FEATURES, TARGETS, WEIGHTS), named=False),
    "array of integers": lambda folder: Case(open_rows(FEATURES.astype(int), TARGETS, weight=WEIGHTS), named=False),
    "array by position": lambda folder: Case(open_rows(TABLE, **BY_POSITION), named=False),
    "csr": lambda folder: Case(ArrayRows(sparse.csr_array(FEATURES), TARGETS, WEIGHTS), named=False),
    "float32": lambda folder: Case(open_rows(TABLE.astype("f4"), **BY_POSITION), np.float32, False),
    "float16": lambda folder: Case(open_rows(TABLE.astype("f2"), **BY_POSITION), np.float32, False),
    "fortran": lambda folder: Case(open_rows(np.asfortranarray(TABLE), **BY_POSITION), named=False),
    "sparse": lambda folder: Case(open_rows(sparse.csc_matrix(FEATURES), TARGETS, weight=WEIGHTS), named=False),
    "sparse by position": lambda folder: Case(open_rows(sparse.coo_array(TABLE), **BY_POSITION), named=False),
    "memory map": lambda folder: Case(open_rows(_mapped(folder, "f8"), **BY_POSITION), named=False),
    "big-endian map": lambda folder: Case(open_rows(_mapped(folder, ">f4"), **BY_POSITION), np.float32, False),
    "integer map": lambda folder: Case(open_rows(_mapped(folder, "i8"), **BY_POSITION), named=False),
    "fortran integer map": lambda folder: Case(open_rows(_mapped(folder, "i2", "F"), **BY_POSITION), named=False),
    "dict": lambda folder: Case(open_rows(columns(), **NAMED)),
    "csv": lambda folder: Case(open_rows(write_csv(folder / "t.csv"), **NAMED)),
    "csv with semicolons": lambda folder: Case(open_rows(write_csv(folder / "t.csv", ";", "\r\n"), **NAMED)),
    "tsv": lambda folder: Case(open_rows(write_csv(folder / "t.tsv", "\t"), **NAMED)),
    "csv.gz": lambda folder: Case(open_rows(_gzipped(folder), **NAMED)),
    "npz": _archive,
    "parquet": _parquet,
    "parquet folder": _parquet_folder,
    "feather": _feather,
    "arrow stream": _arrow_stream,
    "stream": lambda folder: Case(open_rows(_reader(), **NAMED)),
    "dataset": _dataset,
    "arrow table": lambda folder: Case(open_rows(pytest.importorskip("pyarrow").table(columns()), **NAMED)),
    "pandas": lambda folder: Case(open_rows(pytest.importorskip("pandas").DataFrame(columns()), **NAMED)),
    "polars": lambda folder: Case(open_rows(pytest.importorskip("polars").DataFrame(columns()), **NAMED)),
}


def dense(features: Any) -> np.ndarray:
    return features.toarray() if sparse.issparse(features) else features


def refusal(source: Any, **choice: Any) -> str:
    """Open a source, read it completely, and return the error message."""
    with pytest.raises(RidgemarkError) as caught:
        for _ in open_rows(source, **choice).blocks(1000):
            pass
    return str(caught.value)


def values(rows: RowSource) -> list[list[float]]:
    """Return all features of a small source."""
    return [row.tolist() for block in rows.blocks(2) for row in dense(block.features)]
