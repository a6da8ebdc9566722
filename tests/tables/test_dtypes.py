"""Columns of every type, in every kind of table: one model, or one line that says why not."""

import datetime as dt
import re
from decimal import Decimal

import numpy as np
import pytest

from ridgemark import NystromRidge, open_rows
from ridgemark.errors import RidgemarkError
from tests.helpers import slowly
from tests.tables.cases import QUICK, quietly

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
SPANS = [dt.timedelta(hours=size) for size in SIZES]
WORDS = [("red", "green", "blue", "none")[size % 4] for size in SIZES]
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
    "decimal": ([Decimal(25 * size).scaleb(-2) for size in SIZES], pa.decimal128(9, 2), pl.Decimal(9, 2), object),
    "date": (DAYS, pa.date32(), pl.Date, object),
    "datetime": (MOMENTS, pa.timestamp("us"), pl.Datetime("us"), "datetime64[us]"),
    "datetime ns": (MOMENTS, pa.timestamp("ns"), pl.Datetime("ns"), "datetime64[ns]"),
    "datetime with zone": (ZONED, pa.timestamp("us", "UTC"), pl.Datetime("us", "UTC"), "datetime64[us, UTC]"),
    "time": (CLOCK, pa.time64("us"), pl.Time, object),
    "duration": (
        SPANS,
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
    "dates with slashes": ([day.strftime("%d/%m/%Y") for day in DAYS], pa.large_string(), pl.String, "str"),
    "times as text": ([f"{clock:%H:%M}" for clock in CLOCK], *TEXT),
    "postcodes": ([f"0{2100 + size}" for size in SIZES], *TEXT),
}
NOT_IN_CSV = ("duration", "category of numbers")  # as docs/tables.md says
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
        "dicts": [{"a": a, "b": b} for a, b in zip(values, OTHER, strict=True)],
    }
    if name == "category of numbers":  # Python objects have no categories
        del frames["dicts"]
    found = {kind: ((frame, Y), frame) for kind, frame in frames.items()}
    pa.parquet.write_table(made.append_column("y", [Y]), folder / "t.parquet")
    frames["pandas"].assign(y=Y).to_csv(folder / "t.csv", index=False)
    for file in (folder / "t.parquet", folder / "t.csv")[: 1 + (name not in NOT_IN_CSV)]:
        found[file.suffix] = (open_rows(file, target="y"),), open_rows(file, columns=["a", "b"])
    return found


@pytest.mark.parametrize("every_pair", [False, *slowly(True)])
@pytest.mark.parametrize("name", DTYPES)
def test_a_column_of_any_type_gives_one_model_in_every_kind_of_table(name, every_pair, tmp_path):
    found = tables(name, tmp_path)
    models = {kind: NystromRidge(**QUICK | {"n_landmarks": 15}).fit(*rows) for kind, (rows, _) in found.items()}
    expected = models["pandas"].predict(found["pandas"][1])
    assert np.std(expected) > 0.1
    kinds = list(found)
    for kind, following in zip(kinds, kinds[1:] + kinds[:1], strict=True):
        assert models[kind].encoded_names_ == models["pandas"].encoded_names_
        for later in kinds if every_pair else (kind, following):
            assert np.abs(models[kind].predict(found[later][1]) - expected).max() <= 1e-12


def made_by(name, *options):
    """Return the type that this function of pyarrow makes; None where the version has no such type."""
    return getattr(pa, name)(*options) if hasattr(pa, name) else None


def arrow_arrays():
    """Return columns of every type of pyarrow."""
    numbers = (
        "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 string large_string string_view"
    )
    values = {name: (WORDS if "string" in name else SIZES, made_by(name)) for name in numbers.split()}
    for unit in ("s", "ms", "us", "ns"):
        values[f"timestamp {unit}"] = MOMENTS, pa.timestamp(unit)
        values[f"duration {unit}"] = [dt.timedelta(size) for size in SIZES], pa.duration(unit)
        values[f"time {unit}"] = CLOCK, (pa.time32 if unit in ("s", "ms") else pa.time64)(unit)
    values["date32"], values["date64"] = (DAYS, pa.date32()), (DAYS, pa.date64())
    values["timestamp with zone"] = ZONED, pa.timestamp("us", "Europe/Rome")
    for bits in (32, 64, 128, 256):
        values[f"decimal{bits}"] = [Decimal(size) for size in SIZES], made_by(f"decimal{bits}", 7, 2)
    for name in ("binary", "large_binary", "binary_view"):
        values[name] = [word.encode() for word in WORDS], made_by(name)
    for name in ("list_", "large_list", "list_view"):
        values[name] = [[word] for word in WORDS], made_by(name, pa.string())
    values["float16"] = [np.float16(size) for size in SIZES], pa.float16()  # as older versions want it
    made = {name: pa.array(given, kind) for name, (given, kind) in values.items() if kind is not None}
    codes = pa.array([k % 3 for k in range(N)])
    if hasattr(pa, "json_"):
        made["json"] = pa.ExtensionArray.from_storage(pa.json_(), pa.array([f"[{size}]" for size in SIZES]))
    return made | {
        "bool": pa.array([size > 5 for size in SIZES]),
        "int64 and gaps": pa.array(GAPPED),
        "null": pa.nulls(N),
        "null text": pa.nulls(N, pa.string()),
        "dictionary": pa.array(WORDS).dictionary_encode(),
        "dictionary of dates": pa.array(DAYS).dictionary_encode(),
        "dictionary of nulls": pa.nulls(N, pa.string()).dictionary_encode(),
        "dictionary with a null": pa.DictionaryArray.from_arrays(codes, pa.array(["u", None, "w"])),
        "fixed binary": pa.array([word[:1].encode() for word in WORDS], pa.binary(1)),
        "fixed list": pa.array([[size] for size in SIZES], pa.list_(pa.int64(), 1)),
        "struct": pa.array([{"k": word} for word in WORDS]),
        "map": pa.array([[(word, 1)] for word in WORDS], pa.map_(pa.string(), pa.int64())),
        "union": pa.UnionArray.from_sparse(pa.array([0] * N, pa.int8()), [pa.array(SIZES)]),
        "run ends": pa.compute.run_end_encode(pa.array(SIZES)),
        "interval": pa.array([pa.MonthDayNano([size, 1, 1]) for size in SIZES]),
    }


def polars_series():
    """Return columns of every type of polars."""
    numbers = [f"{kind}{bits}" for kind in ("Int", "UInt") for bits in (8, 16, 32, 64, 128)]
    numbers += ["Float16", "Float32", "Float64"]
    made = {name: pl.Series(SIZES).cast(getattr(pl, name)) for name in numbers if hasattr(pl, name)}
    gapped = [getattr(pl, name) for name in ("Int128", "Int64") if hasattr(pl, name)]
    made |= {f"{one} with gaps": pl.Series(GAPPED).cast(one) for one in (*gapped, pl.Decimal(9, 2))}
    for unit in ("ms", "us", "ns"):
        made[f"Datetime {unit}"] = pl.Series(MOMENTS, dtype=pl.Datetime(unit))
        made[f"Duration {unit}"] = pl.Series([dt.timedelta(size) for size in SIZES], dtype=pl.Duration(unit))
    if hasattr(pl, "Extension"):
        intervals = pd.arrays.IntervalArray.from_arrays(np.array(SIZES, float), np.array(SIZES) + 1.0)
        made["Struct of intervals"] = pl.from_pandas(pd.DataFrame({"a": intervals}))["a"]
    return made | {
        "Boolean": pl.Series([size > 5 for size in SIZES]),
        "String": pl.Series(WORDS),
        "Categorical": pl.Series(WORDS, dtype=pl.Categorical),
        "Enum": pl.Series(WORDS, dtype=pl.Enum(["blue", "green", "none", "red"])),
        "Date": pl.Series(DAYS),
        "Time": pl.Series(CLOCK),
        "Datetime with zone": pl.Series(MOMENTS).dt.replace_time_zone("Europe/Rome"),
        "Null": pl.Series([None] * N),
        "null String": pl.Series([None] * N, dtype=pl.String),
        "Binary": pl.Series([word.encode() for word in WORDS]),
        "List": pl.Series([[word] for word in WORDS]),
        "Array": pl.Series([[size] for size in SIZES], dtype=pl.Array(pl.Int64, 1)),
        "Struct": pl.Series([{"k": size} for size in SIZES]),
        "Object": pl.Series([complex(size) for size in SIZES], dtype=pl.Object),
    }


def pandas_series():
    """Return columns of every type of pandas, but those of Arrow."""
    numbers = (
        "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 longdouble complex64 complex128"
    )
    nullable = "Int8 Int16 Int32 Int64 UInt8 UInt16 UInt32 UInt64 Float32 Float64 category object"
    made = {name: pd.Series(SIZES, dtype=name) for name in (*numbers.split(), *nullable.split())}
    texts = ("str", "string", "string[pyarrow]", "category", "object")
    made |= {f"{name} of words": pd.Series(WORDS, dtype=name) for name in texts}
    made |= {f"null {name}": pd.Series([None] * N, dtype=name) for name in ("Int64", "string", "object", "category")}
    made |= {f"datetime {unit}": pd.Series(MOMENTS, dtype=f"datetime64[{unit}]") for unit in ("s", "ms", "us", "ns")}
    made |= {f"timedelta {unit}": pd.Series(SPANS, dtype=f"timedelta64[{unit}]") for unit in ("s", "ms", "us", "ns")}
    objects = {
        "dates": DAYS,
        "times": CLOCK,
        "decimals": [Decimal(size) for size in SIZES],
        "bytes": [word.encode() for word in WORDS],
        "lists": [[size] for size in SIZES],
        "complex numbers": [complex(size) for size in SIZES],
        "mixed": [(word, size)[k % 2] for k, (word, size) in enumerate(zip(WORDS, SIZES, strict=True))],
    }
    made |= {f"object of {name}": pd.Series(values, dtype=object) for name, values in objects.items()}
    return made | {
        "bool": pd.Series([size > 5 for size in SIZES]),
        "boolean": pd.Series([size > 5 for size in SIZES], dtype="boolean"),
        "datetime with zone": pd.Series(ZONED),
        "period": pd.Series(pd.PeriodIndex(MOMENTS, freq="M")),
        "interval": pd.Series(pd.arrays.IntervalArray.from_arrays(SIZES, [size + 1 for size in SIZES])),
        "category of intervals": pd.cut(pd.Series(SIZES), 3),
        "sparse": pd.Series(pd.arrays.SparseArray([float(size) for size in SIZES], fill_value=0.0)),
        "sparse with gaps": pd.Series(pd.arrays.SparseArray([np.nan if size is None else size / 8 for size in GAPPED])),
    }


def every_column():
    """Return by name a column of every type, and what makes a table of columns."""
    arrow = arrow_arrays()
    kinds = {
        "pandas": (pandas_series(), pd.DataFrame),
        "pandas arrow": (
            {name: pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([one]))) for name, one in arrow.items()},
            pd.DataFrame,
        ),
        "pyarrow": (arrow, pa.table),
        "polars": (polars_series(), pl.DataFrame),
    }
    return {f"{kind} {name}": (one, made) for kind, (columns, made) in kinds.items() for name, one in columns.items()}


EVERY = every_column()
REFUSED = ["inary", "list", "List", "Array", "truct", "map", "union", "run", "interval", "json"]
REFUSED += ["Object", "complex", "bytes", "mixed"]


def answer(call, *arguments):
    """Return whether a call ends in finite numbers; otherwise it must end in one line of this package."""
    try:
        found = quietly(call, *arguments)
    except RidgemarkError as error:
        assert "\n" not in str(error)
        assert "column 'a'" in str(error) or "no column is left" in str(error)
        return False
    assert np.isfinite(found).all()
    return True


def fit_and_predict(table):
    return NystromRidge(**QUICK | {"n_landmarks": 2}).fit(table, Y).predict(table)


@pytest.fixture(scope="module")
def models():
    firsts = SIZES, WORDS, MOMENTS
    tables = [pd.DataFrame({"a": first, "b": OTHER}) for first in firsts]
    return [NystromRidge(**QUICK | {"n_landmarks": 2}).fit(table, Y) for table in tables]


LIKE_OTHERS = r".*(int8|int16|int32|uint\d+|float16|float32| s| ms| us|decimal32|decimal64|large_\w+|\w+_view)$"
WRAPPED = r"pandas arrow (?!int64|string$|null$|dictionary$|struct$|timestamp with zone$).*"


def is_like_another(name):
    """Return whether a type differs from another one in its width, unit or wrapper alone."""
    return re.fullmatch(LIKE_OTHERS, name.lower()) is not None or re.fullmatch(WRAPPED, name) is not None


@pytest.mark.parametrize("name", [name for one in EVERY for name in (slowly(one) if is_like_another(one) else [one])])
def test_a_column_of_every_type_is_fitted_or_refused_in_one_line(name, models):
    column, made = EVERY[name]
    beside = made({"a": column, "b": OTHER})
    refused = any(part in name for part in REFUSED) and "category" not in name
    assert answer(fit_and_predict, beside) is not refused
    assert answer(fit_and_predict, made({"a": column, "t": WORDS})) is not refused
    assert answer(fit_and_predict, made({"a": column})) is not (
        refused or ("null" in name.lower() and "with" not in name)
    )
    known = [answer(model.predict, beside) for model in models]
    assert any(known) is not refused


@pytest.mark.skipif(not hasattr(pl, "Int128"), reason="this version of polars has no such integers")
def test_integers_that_no_float_holds_are_refused_in_polars():
    table = pl.DataFrame({"a": pl.Series([2**60 + k for k in range(N)], dtype=pl.Int128), "b": OTHER})
    with pytest.raises(RidgemarkError, match="row 0, column 'a' of the DataFrame is the integer 1152921504606846976"):
        fit_and_predict(table)


def test_a_null_among_the_levels_of_a_dictionary_is_missing():
    table = pa.table({"a": arrow_arrays()["dictionary with a null"], "b": OTHER})
    model = NystromRidge(**QUICK | {"n_landmarks": 9}).fit(table, Y)
    assert model.encoded_names_ == ["a=u", "a=w", "a missing", "b"]
