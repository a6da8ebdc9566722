"""Columns of every type, in every kind of table: one model, or one line that says why not."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pytest

from ridgemark import NystromRidge, open_rows
from tests.tables.cases import QUICK

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")

N = 40
SIZES = [k * k % 13 for k in range(N)]
DAY = dt.datetime(2019, 11, 3)
DAYS = [(DAY + dt.timedelta(days=17 * size)).date() for size in SIZES]
MOMENTS = [DAY + dt.timedelta(days=11 * size, seconds=3700 * size) for size in SIZES]
ZONED = [moment.replace(tzinfo=dt.UTC) for moment in MOMENTS]
CLOCK = [dt.time(size, 30 + size) for size in SIZES]
WORDS = [("red", "green", "blue")[size % 3] for size in SIZES]
GAPPED = [None if k % 7 == 3 else size for k, size in enumerate(SIZES)]
TEXT = (pa.string(), pl.String, object)
DTYPES = {  # values, and types of pyarrow, polars and pandas
    "float64": ([size / 8 for size in SIZES], pa.float64(), pl.Float64, "float64"),
    "float32": ([size / 8 for size in SIZES], pa.float32(), pl.Float32, "float32"),
    "float with gaps": ([None if size is None else size / 8 for size in GAPPED], pa.float64(), pl.Float64, "float64"),
    "int64": (SIZES, pa.int64(), pl.Int64, "int64"),
    "int8": (SIZES, pa.int8(), pl.Int8, "int8"),
    "uint32": (SIZES, pa.uint32(), pl.UInt32, "uint32"),
    "int with gaps": (GAPPED, pa.int64(), pl.Int64, "Int64"),
    "bool": ([size > 5 for size in SIZES], pa.bool_(), pl.Boolean, "bool"),
    "bool with gaps": ([None if size is None else size > 5 for size in GAPPED], pa.bool_(), pl.Boolean, "boolean"),
    "decimal": ([Decimal(size) / 4 for size in SIZES], pa.decimal128(9, 2), pl.Decimal(9, 2), object),
    "date": (DAYS, pa.date32(), pl.Date, object),
    "datetime": (MOMENTS, pa.timestamp("us"), pl.Datetime("us"), "datetime64[us]"),
    "datetime ns": (MOMENTS, pa.timestamp("ns"), pl.Datetime("ns"), "datetime64[ns]"),
    "datetime with zone": (ZONED, pa.timestamp("us", "UTC"), pl.Datetime("us", "UTC"), "datetime64[us, UTC]"),
    "duration": (
        [dt.timedelta(hours=size) for size in SIZES],
        pa.duration("us"),
        pl.Duration("us"),
        "timedelta64[us]",
    ),
    "words": (WORDS, *TEXT),
    "words with gaps": ([None if k % 5 == 2 else word for k, word in enumerate(WORDS)], *TEXT),
    "category": (WORDS, pa.dictionary(pa.int32(), pa.string()), pl.Categorical, "category"),
    "category of numbers": ([str(n % 4) for n in SIZES], pa.dictionary(pa.int8(), pa.string()), pl.Enum, "category"),
    "numbers as text": ([f"{size / 8}" for size in SIZES], *TEXT),
    "booleans as text": ([f"{size > 5}" for size in SIZES], pa.large_string(), pl.String, "str"),
    "dates as text": ([f"{day}" for day in DAYS], pa.large_string(), pl.String, "string"),
    "dates with slashes": ([day.strftime("%d/%m/%Y") for day in DAYS], pa.string_view(), pl.String, "str"),
    "times as text": ([f"{clock:%H:%M}" for clock in CLOCK], *TEXT),
    "postcodes": ([f"0{2100 + size}" for size in SIZES], *TEXT),
}
NOT_IN_CSV = ("duration", "category of numbers")
OTHER = [((7 * k) % 11) / 4 for k in range(N)]
Y = np.array([np.sin(size) + other for size, other in zip(SIZES, OTHER, strict=True)])


def pandas_table(values, dtype):
    return pd.DataFrame({"a": pd.Series(values, dtype=dtype), "b": OTHER})


def tables(name, folder):
    """Return a column beside another one, in every kind of table that holds its type: what is fitted and predicted."""
    values, arrow, polars, numpy = DTYPES[name]
    polars = pl.Enum(sorted(set(values))) if polars is pl.Enum else polars
    made = pa.table({"a": pa.array(values, arrow), "b": OTHER})
    frames = {
        "pandas": pandas_table(values, numpy),
        "pandas of arrow": made.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": pl.DataFrame({"a": pl.Series(values, dtype=polars), "b": OTHER}),
        "pyarrow": made,
    }
    found = {kind: ((frame, Y), frame) for kind, frame in frames.items()}
    pa.parquet.write_table(made.append_column("y", [Y]), folder / "t.parquet")
    frames["pandas"].assign(y=Y).to_csv(folder / "t.csv", index=False)
    for file in (folder / "t.parquet", folder / "t.csv")[: 1 + (name not in NOT_IN_CSV)]:
        found[file.suffix] = (open_rows(file, target="y"),), open_rows(file, columns=["a", "b"])
    return found


@pytest.mark.parametrize("name", DTYPES)
def test_a_column_of_any_type_gives_one_model_in_every_kind_of_table(name, tmp_path):
    found = tables(name, tmp_path)
    models = {kind: NystromRidge(**QUICK | {"n_landmarks": 15}).fit(*rows) for kind, (rows, _) in found.items()}
    expected = models["pandas"].predict(found["pandas"][1])
    assert np.std(expected) > 0.1
    for model in models.values():
        assert model.encoded_names_ == models["pandas"].encoded_names_
        for _, later in found.values():
            assert np.abs(model.predict(later) - expected).max() <= 1e-12
