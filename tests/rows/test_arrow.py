from __future__ import annotations

import datetime as dt
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ridgemark.errors import DataError, MissingExtraError
from ridgemark.rows import open_rows
from tests.rows.cases import refusal, values

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def table_itself(table: Any) -> Any:
    return table


def parquet(table: Any, name: str = "d.parquet") -> str:
    pq.write_table(table, name)
    return name


def ipc_file(table: Any, name: str = "d.arrow") -> str:
    with pa.OSFile(name, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return name


KINDS = pytest.mark.parametrize("kind", [table_itself, parquet, ipc_file])


@KINDS
@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, None]), "row 1, column 'x' of {} is missing; every cell must have a value; fill it in or drop"),
        (pa.array([1.5, None]), "row 1, column 'x' of {} is missing"),
        (pa.array([1.0, float("nan")]), "row 1, column 'x' of {} is NaN"),
        (pa.array([1.0, float("-inf")]), "row 1, column 'x' of {} is -inf"),
        (pa.array([1, 2**60]), f"row 1, column 'x' of {{}} is the integer {2**60}, beyond 2**53"),
        (pa.array(["u", "v"]), "column 'x' of {} holds text (type string)"),
        (pa.array(["u", "v"]).dictionary_encode(), "column 'x' of {} holds categories"),
        (pa.array([dt.date(2020, 1, 1)] * 2), "column 'x' of {} holds dates or times (type date32[day])"),
        (pa.array([dt.datetime(2020, 1, 1)] * 2), "column 'x' of {} holds dates or times (type timestamp[us])"),
        (pa.array([dt.timedelta(1)] * 2), "column 'x' of {} holds time spans"),
        (pa.array([[1], [2]]), "column 'x' of {} holds values that are not numbers (type list"),
        (pa.array([{"a": 1}] * 2), "column 'x' of {} holds values that are not numbers (type struct"),
        (pa.array([b"a", b"b"]), "column 'x' of {} holds values that are not numbers (type binary)"),
        (pa.nulls(2), "row 0, column 'x' of {} is missing"),
    ],
)
def test_a_column_without_numbers_is_refused_when_read(kind: Any, column: Any, expected: str) -> None:
    source = kind(pa.table({"x": column, "z": [1.0, 2.0]}))
    name = repr(source) if isinstance(source, str) else "the Arrow table"
    assert expected.format(name) in refusal(source)
    assert open_rows(source, columns=["z"]).n_features == 1


@KINDS
@pytest.mark.parametrize(
    ("column", "dtype", "first"),
    [
        (pa.array([1.5, 2.0], pa.float32()), np.float32, 1.5),
        (pa.array(np.array([1.5, 2.0], np.float16)), np.float32, 1.5),
        (pa.array([1.5, 2.0]), np.float64, 1.5),
        (pa.array([True, False]), np.float64, 1.0),
        (pa.array([7, 8], pa.uint8()), np.float64, 7.0),
        (pa.array([Decimal("1.5"), Decimal(2)]), np.float64, 1.5),
    ],
)
def test_every_type_of_number_is_read(kind: Any, column: Any, dtype: type, first: float) -> None:
    rows = open_rows(kind(pa.table({"x": column})))
    assert rows.dtype == dtype
    assert values(rows)[0] == [first]


@KINDS
def test_names_with_dots_and_any_order_of_columns_work(kind: Any) -> None:
    rows = open_rows(kind(pa.table({"a.b": [1.0], "a": [2.0], "y": [3.0]})), target="y", columns=["a", "a.b"])
    assert rows.take([0]).features.tolist() == [[2.0, 1.0]]
    assert rows.take([0]).targets.tolist() == [[3.0]]


@KINDS
def test_empty_tables_and_missing_columns_are_refused(kind: Any) -> None:
    assert "at least one row" in refusal(kind(pa.table({"age": pa.array([], pa.float64())})))
    source = kind(pa.table({"age": [1.0]}))
    assert "did you mean 'age'? its columns are 'age'" in refusal(source, target="agee")


def test_equal_names_are_refused() -> None:
    table = pa.table([pa.array([1.0]), pa.array([2.0])], names=["a", "a"])
    assert "the Arrow table has more than one column named 'a'" in refusal(table)
    assert "'d.parquet' has more than one column named 'a'" in refusal(parquet(table))


def test_weights_are_checked_in_files_too() -> None:
    path = parquet(pa.table({"x": [1.0, 2.0], "w": [1.0, -1.0]}))
    assert "row 1, column 'w' of 'd.parquet' is -1.0; a weight must be 0 or more" in refusal(path, weight="w")
    assert "target must be column names or positions" in refusal(path, target=np.ones(2))


def test_several_files_are_one_data_set_and_errors_name_the_file() -> None:
    parquet(pa.table({"x": np.arange(5.0), "z": np.arange(5.0)}), "a.parquet")
    parquet(pa.table({"z": [1, 2], "x": [5, 6]}), "b.parquet")
    rows = open_rows(["a.parquet", "b.parquet"], columns=["x"])
    assert rows.n_rows == 7
    assert [value for (value,) in values(rows)] == list(range(7))
    parquet(pa.table({"x": [5.0, None]}), "b.parquet")
    expected = "row 6 (1 in this file), column 'x' of 'b.parquet' is missing"
    assert expected in refusal(["a.parquet", "b.parquet"], columns=["x"])
    parquet(pa.table({"q": [1.0]}), "b.parquet")
    assert "there is no column 'x' in 'b.parquet'" in refusal(["a.parquet", "b.parquet"], columns=["x"])


def test_float32_in_every_file_is_float32() -> None:
    single, double = pa.table({"x": pa.array([1.0], pa.float32())}), pa.table({"x": [1.0]})
    parquet(single, "a.parquet"), parquet(single, "b.parquet")
    assert open_rows(["a.parquet", "b.parquet"]).dtype == np.float32
    parquet(double, "b.parquet")
    assert open_rows(["a.parquet", "b.parquet"]).dtype == np.float64


def test_take_reads_only_the_row_groups_it_needs() -> None:
    column = [float(j) for j in range(50)] + [None]
    pq.write_table(pa.table({"x": column}), "d.parquet", row_group_size=10)
    rows = open_rows("d.parquet")
    assert rows.take([49, 0, 25]).features.tolist() == [[49.0], [0.0], [25.0]]
    with pytest.raises(DataError, match="row 50, column 'x'"):
        rows.take([50])


def _good() -> dict[str, bytes]:
    table = pa.table({"x": np.arange(1000.0)})
    feather.write_feather(table, "d.feather")
    with pa.OSFile("s.arrow", "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    names = (parquet(table), ipc_file(table), "d.feather", "s.arrow")
    return {name: Path(name).read_bytes() for name in names}


@pytest.mark.parametrize("name", ["d.parquet", "d.arrow", "d.feather", "s.arrow"])
def test_a_truncated_or_foreign_file_is_refused_with_its_name(name: str) -> None:
    content = _good()[name]
    middle = len(content) // 2
    broken = [content[:3], content[:100], content[:middle], content[:-5], b"a,b\n1,2\n" * 5, b"FEA1" + bytes(40)]
    for bad in broken:
        Path(name).write_bytes(bad)
        message = refusal(name)
        assert f"'{name}' cannot be read as " in message
        assert "it may be truncated or have another format; write it again" in message


def test_a_corrupted_parquet_file_is_refused_when_read() -> None:
    content = bytearray(_good()["d.parquet"])
    content[4:200] = b"\xff" * 196
    Path("d.parquet").write_bytes(content)
    assert "'d.parquet' cannot be read as Parquet" in refusal("d.parquet")


def test_without_pyarrow_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    parquet(pa.table({"x": [1.0]}))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r'pip install "ridgemark\[arrow\]"'):
        open_rows("d.parquet")
