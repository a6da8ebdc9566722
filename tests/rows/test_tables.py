from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from ridgemark.rows import open_rows
from tests.rows.cases import refusal, values

MISSING = "row 1, column 'x' of the DataFrame is missing; every cell must have a value; fill it in or drop the row"


def pandas_frame(column: Any, dtype: Any = None) -> Any:
    pd = pytest.importorskip("pandas")
    return pd.DataFrame({"x": pd.Series(column, dtype=dtype), "z": np.array([1, 2], "f4")})


def polars_frame(column: Any, dtype: Any = None) -> Any:
    pl = pytest.importorskip("polars")
    return pl.DataFrame({"x": pl.Series(column, dtype=dtype, strict=False), "z": pl.Series([1, 2], dtype=pl.Float32)})


@pytest.mark.parametrize("frame", [pandas_frame, polars_frame])
def test_booleans_are_zero_and_one(frame: Any) -> None:
    assert values(open_rows(frame([True, False]))) == [[1.0, 1.0], [0.0, 2.0]]


@pytest.mark.parametrize("frame", [pandas_frame, polars_frame])
def test_a_float32_frame_stays_float32_and_a_mixed_one_does_not(frame: Any) -> None:
    assert open_rows(frame([1, 2]), columns=["z"]).dtype == np.float32
    assert open_rows(frame([1, 2])).dtype == np.float64
    assert open_rows(frame([1, 2]), target="x").dtype == np.float32


@pytest.mark.parametrize("frame", [pandas_frame, polars_frame])
@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (["u", "v"], "column 'x' of the DataFrame holds text (type"),
        ([1.0, float("inf")], "row 1, column 'x' of the DataFrame is inf"),
        ([1, 2**60], f"row 1, column 'x' of the DataFrame is the integer {2**60}, beyond 2**53"),
        ([dt.datetime(2020, 1, 1)] * 2, "column 'x' of the DataFrame holds dates or times"),
        ([dt.timedelta(1)] * 2, "column 'x' of the DataFrame holds time spans"),
    ],
)
def test_a_column_without_numbers_is_refused_with_row_and_column(frame: Any, column: Any, expected: str) -> None:
    message = refusal(frame(column))
    assert expected in message
    assert "must be a" in message or "lose digits" in message
    assert open_rows(frame(column), columns=["z"]).n_features == 1


@pytest.mark.parametrize(
    ("column", "dtype", "expected"),
    [
        ([1, None], "Int64", MISSING),
        ([1.5, None], "Float64", MISSING),
        ([True, None], "boolean", MISSING),
        ([1, None], object, MISSING),
        (["a", None], "category", "column 'x' of the DataFrame holds categories"),
        (["u", None], "string", "column 'x' of the DataFrame holds text (type string)"),
        ([1, float("nan")], float, "row 1, column 'x' of the DataFrame is NaN"),
        ([1, "v"], object, "row 1, column 'x' of the DataFrame holds text, 'v'"),
        ([[1], [2]], object, "row 0, column 'x' of the DataFrame holds a value of type list"),
        ([1, 2**70], object, f"row 1, column 'x' of the DataFrame is the integer {2**70}, beyond 2**53"),
        ([dt.date(2020, 1, 1)] * 2, object, "column 'x' of the DataFrame holds dates or times"),
        (["u", 2], object, "row 1, column 'x' of the DataFrame holds a value of type int, '2'"),
        (["2020-01-01"] * 2, "datetime64[ns, UTC]", "column 'x' of the DataFrame holds dates or times"),
        ([1j, 2j], complex, "column 'x' of the DataFrame holds complex numbers"),
    ],
)
def test_pandas_types_are_refused_with_the_remedy(column: Any, dtype: Any, expected: str) -> None:
    message = refusal(pandas_frame(column, dtype))
    assert expected in message
    assert "drop the row" in message or "leave the column out: X.drop(columns=[...])" in message


def test_missing_values_of_pandas_objects_are_missing() -> None:
    pd = pytest.importorskip("pandas")
    for nothing in (pd.NA, pd.NaT):
        assert MISSING in refusal(pandas_frame([1, nothing], object))


@pytest.mark.parametrize("dtype", ["Int64", "UInt8", "Float64", "boolean", "Sparse[int]", object, "int64[pyarrow]"])
def test_nullable_pandas_types_without_nulls_are_numbers(dtype: Any) -> None:
    if "pyarrow" in str(dtype):
        pytest.importorskip("pyarrow")
    assert values(open_rows(pandas_frame([1, 0], dtype))) == [[1.0, 1.0], [0.0, 2.0]]


def test_decimals_and_mixed_numbers_are_numbers() -> None:
    assert values(open_rows(pandas_frame([Decimal("1.5"), np.int8(3)], object))) == [[1.5, 1.0], [3.0, 2.0]]
    assert values(open_rows(polars_frame([Decimal("1.5"), Decimal(3)]))) == [[1.5, 1.0], [3.0, 2.0]]
    pl = pytest.importorskip("polars")
    assert values(open_rows(polars_frame([7, 3], getattr(pl, "Int128", pl.Int64)))) == [[7.0, 1.0], [3.0, 2.0]]


def test_polars_types_are_refused_with_the_remedy() -> None:
    pl = pytest.importorskip("polars")
    for column, dtype, expected in [
        ([1, None], pl.Int64, MISSING),
        ([True, None], pl.Boolean, MISSING),
        ([None, None], pl.Null, "row 0, column 'x' of the DataFrame is missing"),
        (["a", "b"], pl.Categorical, "column 'x' of the DataFrame holds categories"),
        (
            [[1], [2]],
            pl.List(pl.Int64),
            "column 'x' of the DataFrame holds values that are not numbers (type List(Int64))",
        ),
        (
            [{"a": 1}] * 2,
            pl.Struct({"a": pl.Int64}),
            "column 'x' of the DataFrame holds values that are not numbers (type Struct",
        ),
    ]:
        assert expected in refusal(polars_frame(column, dtype))
    assert "call its collect() first" in refusal(polars_frame([1, 2]).lazy())


def test_equal_column_names_are_refused() -> None:
    pd = pytest.importorskip("pandas")
    assert "more than one column named 'a'" in refusal(pd.DataFrame([[1, 2]], columns=["a", "a"]))


@pytest.mark.parametrize("frame", [pandas_frame, polars_frame])
def test_targets_and_weights_may_be_a_series_or_frame_of_their_own(frame: Any) -> None:
    table = frame([3, 4])
    rows = open_rows(table[["z"]], target=table["x"], weight=table["x"])
    assert rows.target_names == ("x",)
    assert rows.take([1]).targets.tolist() == [[4.0]]
    assert rows.take([1]).weights.tolist() == [4.0]
    assert open_rows(table[["z"]], target=table).target_names == ("x", "z")
    assert "row 1, column 'x' of the DataFrame is -1.0; a weight must be" in refusal(table, weight=frame([1, -1])["x"])


def test_a_frame_with_another_index_is_read_by_position() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=[7, 7, 9])
    assert open_rows(frame).take([2, 0]).features.tolist() == [[3.0], [1.0]]


def test_a_dict_needs_columns_of_one_length() -> None:
    assert "column 'b' of the dict of columns must be one-dimensional, of length 2" in refusal({"a": [1, 2], "b": [1]})
    assert "got shape ()" in refusal({"a": 1.0, "b": [1]})
    assert "got shape (2, 2)" in refusal({"a": np.ones((2, 2))})
    assert "got 0 rows and 1 columns" in refusal({"a": []})
    assert "got 0 rows and 0 columns" in refusal({})


def test_none_or_text_in_a_dict_is_refused() -> None:
    assert "row 1, column 'a' of the dict of columns is missing" in refusal({"a": [1, None]})
    assert "column 'a' of the dict of columns holds text" in refusal({"a": ["u", "v"]})
