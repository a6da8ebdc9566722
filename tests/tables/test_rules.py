"""The rules by which columns become features, one statement each."""

import datetime as dt
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from ridgemark.errors import ColumnWarning, DataError, ParameterError
from ridgemark.rows import BaseRows, open_rows
from ridgemark.rows.column import Cells, number_column, text_column
from ridgemark.rows.places import Place
from ridgemark.tables import SchemaEncoder, learn_schema
from ridgemark.tables.dates import date_parts
from ridgemark.tables.learning import Learner
from ridgemark.tables.row_numbers import RowNumbers
from tests.tables.cases import encoded, quietly, schema

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

NUMBERS = [0.0, 1.0, 2.0, 5.0]


def objects(values):
    return pd.DataFrame({"a": pd.Series(values, dtype=object), "b": NUMBERS[: len(values)]})


def test_finite_numbers_and_booleans_need_no_schema():
    assert schema({"a": NUMBERS, "b": [1, 2, 3, 3], "c": [True, False, True, True]}) is None


def test_levels_are_ordered_by_their_text():
    assert list(encoded({"a": ["10", "x", "2", "x"], "b": NUMBERS})) == ["a=10", "a=2", "a=x", "b"]


def test_a_category_is_one_column_of_zero_and_one_for_each_level():
    found = encoded({"a": ["u", "v", "u"], "b": [1.0, 2.0, 3.0]})
    assert found["a=u"] == [1.0, 0.0, 1.0]
    assert found["a=v"] == [0.0, 1.0, 0.0]


def test_of_more_than_a_hundred_levels_the_frequent_ones_have_columns_and_all_a_frequency():
    texts = [f"t{k}" for k in range(101)] + ["t0"] * 99
    found = encoded({"a": texts, "b": np.arange(200) % 7})
    assert list(found) == ["a=t0", "a frequency", "b"]
    assert found["a frequency"][:2] == [0.5, 0.005]
    assert found["a=t0"] == [1.0] + [0.0] * 100 + [1.0] * 99
    many = encoded({"a": np.repeat([f"t{k:03}" for k in range(120)], 20), "b": np.arange(2400) % 7})
    assert len(many) == 106
    assert "a=t099" in many
    assert "a=t100" not in many
    assert "a=t0" in encoded({"a": texts[:100], "b": np.arange(100) % 7})


def test_a_new_level_is_as_rare_as_the_rarest():
    table = {"a": [f"t{k}" for k in range(101)] + ["t0"] * 99, "b": np.arange(200) % 7}
    later = encoded(table, {"a": ["new", "t0", "t7"], "b": [1, 2, 3]})
    assert (later["a=t0"], later["a frequency"]) == ([0.0, 1.0, 0.0], [0.005, 0.5, 0.005])


def test_many_levels_of_two_rows_or_more_have_codes_far_apart():
    levels = [f"t{k}" for k in range(150)]
    table = {"a": levels * 2, "b": np.arange(300) % 7}
    found = encoded(table, {"a": [*levels, "new"], "b": np.arange(151) % 7})
    names = [f"a code {k}" for k in (1, 2, 3, 4)]
    assert list(found) == [*names, "b"]
    codes = np.array([found[name] for name in names]).T
    assert not codes[-1].any()
    assert np.abs(codes).max() <= 1.0
    assert pdist(codes[:-1]).min() > 0.02
    assert list(encoded({"a": [*levels, *levels[:149]], "b": np.arange(299) % 7})) == ["a frequency", "b"]


def test_the_code_of_a_level_depends_on_its_text_alone():
    some, more = ({"a": [f"t{k}" for k in range(n)] * 2, "b": np.arange(2 * n) % 7} for n in (120, 150))
    assert encoded(some)["a code 3"][:120] == encoded(more)["a code 3"][:120]


def test_an_unseen_level_is_zero_in_all_columns():
    found = encoded({"a": ["u", "v"], "b": [1.0, 2.0]}, {"a": ["w", "v"], "b": [1.0, 2.0]})
    assert (found["a=u"], found["a=v"]) == ([0.0, 0.0], [0.0, 1.0])


@pytest.mark.parametrize(("unknown", "missing"), [("error", "fill"), ("ignore", "error")])
def test_unseen_levels_and_gaps_are_refused_on_demand(unknown, missing):
    found = schema({"a": ["u", "v", None], "b": [1.0, 2.0, 3.0]}, unknown=unknown, missing=missing)
    rows = open_rows({"a": ["v", "u", "w" if unknown == "error" else None], "b": [1.0, 2.0, 3.0]})
    with pytest.raises(DataError, match=r"row 2, column 'a' of the dict of columns is ('w', a level|missing)"):
        rows.encoded_by(SchemaEncoder(found)).take([0, 1, 2])


def test_a_missing_number_is_the_median_and_marked():
    found = encoded({"a": [1.0, np.nan, 4.0, 9.0], "b": NUMBERS})
    assert found["a"] == [1.0, 4.0, 4.0, 9.0]
    assert found["a missing"] == [0.0, 1.0, 0.0, 0.0]


def test_a_missing_category_is_a_level_of_its_own():
    found = encoded({"a": ["u", None, "v"], "b": [1.0, 2.0, 3.0]})
    assert (found["a=u"], found["a missing"]) == ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])


def test_a_missing_boolean_is_the_more_frequent_one_and_marked():
    found = encoded(pd.DataFrame({"a": pd.array([True, True, False, None], "boolean"), "b": NUMBERS}))
    assert (found["a"], found["a missing"]) == ([1.0, 1.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0])


def test_a_gap_where_the_fit_had_none_is_filled_without_a_mark():
    found = encoded({"a": [1.0, 2.0, 9.0], "b": ["u", "v", "u"]}, {"a": [np.nan, 2.0], "b": ["u", None]})
    assert found == {"a": [2.0, 2.0], "b=u": [1.0, 0.0], "b=v": [0.0, 0.0]}


def test_a_date_is_its_year_two_cycles_and_the_days_elapsed():
    parts = date_parts(np.array(["2020-07-01T06:00", "2021-01-01"], "M8[us]"), 0.0)
    day = 2 * np.pi * 182 / 366
    elapsed = (dt.datetime(2020, 7, 1, 6) - dt.datetime(1970, 1, 1)).total_seconds() / 86400
    assert parts[0] == pytest.approx([2020, np.sin(day), np.cos(day), 1.0, 0.0, elapsed], abs=1e-12)
    assert parts[1, :5] == pytest.approx([2021, 0.0, 1.0, 0.0, 1.0])


def test_parts_of_a_date_that_do_not_vary_are_left_out():
    days = np.array(["2020-03-01", "2020-03-04", "2020-05-01"], "M8[D]")
    found = encoded({"when": days})
    assert list(found) == ["when day of year sin", "when day of year cos", "when elapsed days"]
    assert found["when elapsed days"] == [0.0, 3.0, 61.0]


def test_a_missing_date_is_the_median_date():
    found = encoded({"when": np.array(["2020-03-01", "NaT", "2020-03-04", "2020-03-09"], "M8[s]")})
    assert found["when elapsed days"] == [0.0, 3.0, 3.0, 8.0]
    assert found["when missing"] == [0.0, 1.0, 0.0, 0.0]


def test_a_time_span_is_a_number_of_days():
    assert encoded({"a": np.array([36, 0, 24], "m8[h]"), "b": ["u", "v", "u"]})["a"] == [1.5, 0.0, 1.0]
    found = encoded(objects([dt.timedelta(hours=36), None, pd.Timedelta(days=-1), dt.timedelta(0)]))
    assert (found["a"], found["a missing"]) == ([1.5, 0.0, -1.0, 0.0], [0.0, 1.0, 0.0, 0.0])


@pytest.mark.parametrize("values", [NUMBERS, ["2020-01-02", "2020-03-02"] * 2, [True, False] * 2, list("uvuv")])
@pytest.mark.parametrize("dtype", [float, object, "M8[us]", "m8[us]", "Int64", "boolean", "string"])
def test_a_column_of_gaps_is_of_any_type_in_later_rows(values, dtype):
    table = objects(values).assign(c=list("uvuv"))
    gaps = table.assign(a=pd.Series([None] * len(table), dtype=dtype))
    some = pd.concat([table, gaps.astype({"a": object})], ignore_index=True)
    for name, found in encoded(table, gaps).items():
        assert found == encoded(table, some)[name][len(table) :]


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (["1", " 2.5", "-3e2", "1"], ["a", "b"]),
        (["true", "False", "TRUE", "true"], ["a", "b"]),
        (["2020-01-02", "2020-01-03", "2020-03-01", "2021-01-01"], ["a year", "a day of year sin"]),
        (["2020-01-02", "2020-01-03", "2020-99-01", "2021-01-01"], ["a=2020-01-02", "a=2020-01-03"]),
        (["1", "2", "3", "four"], ["a=1", "a=2"]),
        (["1_0", "2_0", "3_0", "4_0"], ["a=1_0", "a=2_0"]),
        ([1, 2.5, None, 4], ["a", "a missing"]),
        ([True, None, False, True], ["a", "a missing"]),
        ([dt.date(2020, 1, 1), dt.datetime(2020, 1, 2), None, dt.date(2020, 1, 9)], ["a day of year sin"]),
    ],
)
def test_untyped_values_are_read_by_their_content(values, names):
    assert list(encoded(objects(values)))[: len(names)] == names


def test_text_that_pandas_reads_from_a_file_is_read_by_its_content():
    frame = pd.read_csv(StringIO("a,b\n2020-01-02,u\n2021-03-04,v\n2021-05-06,u\n"))
    assert [field.kind for field in learn_schema(open_rows(frame)).fields] == ["date", "category"]


@pytest.mark.parametrize("dtype", [object, "str", "string", pd.ArrowDtype(pa.large_string())], ids=str)
def test_text_of_any_type_is_read_by_its_content(dtype):
    texts = {"a": ["1", "2", "1", "2"], "b": ["2020-01-02", "2020-02-03", "2020-03-01", "2020-03-09"], "c": NUMBERS}
    found = schema(pd.DataFrame({name: pd.Series(values, dtype=dtype) for name, values in texts.items()}))
    assert [field.kind for field in found.fields] == ["number", "date", "number"]


def test_categories_keep_their_type():
    frame = pd.DataFrame({"a": pd.Categorical([1, 2, 1, 2]), "b": NUMBERS})
    assert list(encoded(frame)) == ["a=1", "a=2", "b"]


def test_integers_with_leading_zeros_are_levels(tmp_path):
    frame = pd.DataFrame({"zip": ["02139", "10001", "60601", "02139"], "n": ["10", "0", "0.5", "-3"], "b": NUMBERS})
    assert list(encoded(frame)) == ["zip=02139", "zip=10001", "zip=60601", "n", "b"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert list(encoded(tmp_path / "t.csv")) == list(encoded(frame))


def test_a_leading_zero_in_a_later_part_of_a_file_makes_all_of_its_column_levels(tmp_path, monkeypatch):
    monkeypatch.setattr("ridgemark.rows.csv_scan.CHUNK_BYTES", 16)
    (tmp_path / "t.csv").write_text("zip,b\n" + "10001,2\n10002,1.5\n" * 3 + "02139,7\n" * 2)
    assert list(encoded(tmp_path / "t.csv")) == ["zip=02139", "zip=10001", "zip=10002", "b"]


def test_numbers_are_looked_at_for_leading_zeros_once(tmp_path, monkeypatch):
    from ridgemark.rows.arrow import CsvParser

    (tmp_path / "t.csv").write_text("zip,b\n" + "02139,7\n10001,2\n" * 9)
    source, texts, read = open_rows(tmp_path / "t.csv"), CsvParser.texts, []
    encoded = source.encoded_by(SchemaEncoder(learn_schema(source)))
    monkeypatch.setattr(
        CsvParser, "texts", lambda parser, text, columns: read.extend(columns) or texts(parser, text, columns)
    )
    assert sum(block.n_rows for block in encoded.blocks(5)) == 18
    assert read == [0]


def test_a_date_of_its_own_in_every_row_is_a_date():
    days = [str(day) for day in np.datetime64("2014-10-31") + np.arange(150).astype("m8[D]")]
    found = schema(pa.table({"a": days, "b": np.arange(150) % 7.0}))
    assert [field.kind for field in found.fields] == ["date", "number"]
    with pytest.warns(ColumnWarning) as said:
        learn_schema(open_rows(pa.table({"a": [*days, "?"], "b": np.arange(151) % 7.0})))
    assert "most values are dates: 1 of 151 are not (such as '?')" in str(said[1].message)


def test_times_with_a_zone_are_in_utc():
    zoned = pd.to_datetime(["2020-01-01T01:00+02:00", "2020-01-05T02:00+02:00"]).tz_convert("Europe/Rome")
    assert encoded(pd.DataFrame({"a": zoned}))["a year"] == [2019.0, 2020.0]
    assert encoded(objects(["2020-01-01T01:00+02:00", "2020-01-05T02:00Z"]))["a year"] == [2019.0, 2020.0]


def test_arrow_columns_with_gaps_are_those_of_numpy():
    pa = pytest.importorskip("pyarrow")
    day, span = dt.datetime(2020, 5, 1), dt.timedelta(hours=6)
    columns = {
        "bool": ([True, False, None, True], pa.bool_(), object),
        "date": ([day.date(), None, day.date() + 40 * span, day.date()], pa.date32(), object),
        "span": ([span, None, 3 * span, span], pa.duration("ms"), "timedelta64[us]"),
    }
    arrow = {name: pd.Series(values, dtype=pd.ArrowDtype(kind)) for name, (values, kind, _) in columns.items()}
    plain = {name: pd.Series(values, dtype=kind) for name, (values, _, kind) in columns.items()}
    assert encoded(pd.DataFrame(arrow)) == encoded(pd.DataFrame(plain))


def test_integers_with_and_without_gaps_have_the_same_levels():
    whole = encoded({"a": [3, 1, 1], "b": [1.0, 2.0, 3.0]}, categorical=["a"])
    float_form = encoded({"a": [3.0, 1.0, 1.0], "b": [1.0, 2.0, 3.0]}, categorical=[0])
    assert list(whole) == list(float_form) == ["a=1", "a=3", "b"]


def test_a_list_of_categorical_columns_adds_to_the_types():
    found = schema({"a": [1, 2, 1], "b": ["u", "v", "u"], "c": [1, 2, 3]}, categorical=["a"])
    assert [field.kind for field in found.fields] == ["category", "category", "number"]
    with pytest.raises(DataError, match="there is no column 'q'"):
        schema({"a": [1, 2]}, categorical=["q"])
    with pytest.raises(ParameterError, match="a list of column names or positions, or a mask, got 'a'"):
        schema({"a": [1, 2]}, categorical="a")
    with pytest.raises(ParameterError, match="another option names too"):
        schema({"a": [1, 2], "b": [1, 2]}, categorical=["a"], drop=["a"])


def test_without_categories_text_is_refused_and_numbers_in_text_are_not():
    assert list(encoded(objects(["1", "2", "4"]), categorical=None)) == ["a", "b"]
    for frame in (
        objects(["u", "v"]),
        pd.DataFrame({"a": ["u", "v"]}),
        pd.DataFrame({"a": pd.Categorical(["u", "v"])}),
    ):
        with pytest.raises(DataError, match="column 'a' of the DataFrame holds text"):
            schema(frame, categorical=None)


def test_columns_are_dropped_or_read_as_numbers_on_demand():
    frame = pd.DataFrame({"a": [[1], [2]], "b": pd.array(["1", "2"], "string")})
    found = schema(frame, drop=["a"], numeric=["b"])
    assert [field.kind for field in found.fields] == ["dropped", "number"]
    with pytest.raises(DataError, match=r"row 1, column 'b' of the DataFrame is 'x'; the column holds numbers"):
        schema(pd.DataFrame({"b": ["1", "x"]}), numeric=["b"])


@pytest.mark.parametrize("constant", [[3, 3, 3], ["u"] * 3, [None] * 3, ["p", "q", "r"] * 50])
def test_a_column_that_tells_nothing_is_left_out_with_a_word(constant):
    if len(constant) > 3:
        constant = [f"t{k}" for k in range(150)]  # a text of its own in every row
    n = len(constant)
    with pytest.warns(ColumnWarning, match=r"left out of the features: 'a' \("):
        found = learn_schema(open_rows({"a": np.array(constant, object), "b": ["u", "v", "w"] * (n // 3)}))
    assert found.encoded_names == ("b=u", "b=v", "b=w")
    kept = schema({"a": np.array(constant, object), "b": ["u", "v", "w"] * (n // 3)}, keep_constant=True)
    assert kept.fields[0].parts


@pytest.mark.parametrize("dtype", ["str", object, "string", "category"])
def test_a_column_of_missing_text_is_left_out(dtype):
    frame = pd.DataFrame({"a": pd.Series([None] * 6, dtype=dtype), "b": ["u", "v", "w"] * 2})
    with pytest.warns(ColumnWarning, match=r"left out of the features: 'a' \(only missing values\)"):
        assert learn_schema(open_rows(frame)).encoded_names == ("b=u", "b=v", "b=w")


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1.5", "2", "?", "2", "7"], r"is read as text, .* values are numbers: 1 of 5 are not \(such as '\?'\)"),
        (["2020-01-02", "2020-01-03", "unknown"], r"most values are dates: 1 of 3 are not \(such as 'unknown'\)"),
        ([f"N{k}" for k in range(30)], "has a different text in nearly every row, such as 'N0'; it tells little"),
        ([f"0{k}" for k in range(10, 40)], "has a different text in nearly every row, such as '010'; it tells little"),
        (["$1.50", "$2"] * 9, r"most look like numbers or dates, such as '\$1\.50': write numbers without units"),
        ([f"{k}%" for k in range(30)], r"most look like numbers or dates, such as '0%': write numbers without units"),
        (["1,200", "3,400", "900"] * 9, "most look like numbers or dates, such as '1,200': write numbers without"),
        ([f"t{k}" for k in range(1500)] + ["?"] * 9, "has a different text in nearly every row"),
        ([f"${k % 150}.50" for k in range(1500)], r"though most look like numbers or dates, such as '\$0\.50'"),
        ([f"{k % 28 + 1}.{k % 12 + 1}.{10 + k % 5}" for k in range(1500)], "most look like numbers or dates"),
        ([f"{k}" for k in range(1500)] + ["?"] * 9, "most values are numbers: 9 of 1,509 are not"),
    ],
)
def test_text_that_may_be_meant_otherwise_is_warned_about(texts, expected):
    frame = pd.DataFrame({"a": pd.Series(texts, dtype=object), "b": np.arange(len(texts)) % 3})
    with pytest.warns(ColumnWarning, match=expected):
        learn_schema(open_rows(frame))
    for options in ({"categorical": ["a"]}, {"drop": ["a"]}):
        learn_schema(open_rows(frame), **options)


def test_categories_are_not_warned_about():
    learn_schema(open_rows({"a": ["1", "2", "x", "y"] * 9, "b": ["u", "v", "w", "u"] * 9}))
    learn_schema(open_rows({"a": ["1st", "2nd", "3 doors", "02139"] * 9}))
    learn_schema(open_rows(pd.DataFrame({"a": pd.Categorical(["1", "2", "3", "x"] * 9)})))  # it has a type
    learn_schema(open_rows(pd.DataFrame({"a": pd.Categorical([f"{k % 150}.5" for k in range(1500)])})))
    learn_schema(open_rows({"a": [f"AB{k % 150}" for k in range(1500)]}))


def test_without_a_column_that_varies_the_table_is_refused():
    with pytest.raises(DataError, match=r"no column is left for the features: 'a' \(.*\), 'b' \("):
        schema({"a": [None, None], "b": ["u", "u"]})


def test_a_column_that_numbers_the_rows_is_warned_about():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"nr": rng.permutation(40) + 1000, "a": rng.choice(["u", "v"], 40)})
    with pytest.warns(ColumnWarning, match="column 'nr' numbers the rows"):
        learn_schema(open_rows(frame))
    learn_schema(open_rows(frame.assign(nr=frame["nr"].where(frame["nr"] > 1000, 1001))))


def test_row_numbers_are_found_in_any_order_and_in_blocks():
    values = np.random.default_rng(1).permutation(500) - 200
    for blocks, expected in (
        ([values], True),
        (np.split(values, [30, 31, 200]), True),
        ([values[:-1], values[:1]], False),
        ([np.r_[values[:-2], values[-2:-1] + 1, values[-1:] - 1]], bool(values[-1] - 1 == values[-2])),
        ([values.astype(float)], False),
        (np.split(np.delete(np.arange(500), [3, 90, 91]), [7, 88]), True),
        (np.split(np.delete(np.arange(500), [3, 90, 91]), [7, 88])[::-1], False),
        ([np.arange(0, 1500, 3)], False),
    ):
        found = RowNumbers()
        for block in blocks:
            found.add(block)
        assert bool(found) is expected


def test_indicators_keep_the_unit_of_two_values():
    from ridgemark.passes.columns import Columns

    found = encoded({"a": ["u"] * 99 + ["v"], "b": np.r_[np.nan, np.arange(99.0)]})
    features = np.array(list(found.values())).T
    units = dict(zip(found, Columns.of(features, np.ones(100)).units, strict=True))
    assert units["a=u"] == units["a=v"] == units["b missing"] == 0.5


class Blocks:
    """A source without types, as a CSV file is: numbers where a block has only these, and text on demand."""

    n_rows, n_features, feature_names, finite, has_weights = 4, 2, ("a", "b"), False, False
    shown_to = BaseRows.shown_to

    def __init__(self, *cells):
        self.cells, self.asked = cells, []

    def encoded_by(self, encoder):
        self.encoder = encoder
        return self

    def blocks(self, block_rows):
        self.asked.append(self.encoder.texts)
        at = 0
        for cells in self.cells:
            place = Place("'t.csv'", ("a", "b"), lambda position: f"row {position}")
            yield self.encoder(at, [self.column(0, cells), number_column(np.arange(float(len(cells))))], place)
            at += len(cells)

    def column(self, position, cells):
        text = replace(text_column(cells, np.array([cell == "" for cell in cells]), "csv"), typed=False)
        try:
            numbers = np.array([float(cell or "nan") for cell in cells])
        except ValueError:
            return text
        return text if position in self.encoder.texts else Cells("number", numbers, typed=False)


def test_a_source_without_types_is_asked_for_text_where_its_blocks_disagree():
    source = Blocks(["01", "2"], ["x", ""])
    found = quietly(learn_schema, source)
    assert source.asked == [frozenset(), frozenset({0})]
    assert found.encoded_names == ("a=01", "a=2", "a=x", "a missing", "b")
    assert SchemaEncoder(found).texts == {0}
    source = Blocks(["01", "2"], ["3", ""])
    assert learn_schema(source).encoded_names == ("a", "a missing", "b")
    assert source.asked == [frozenset()]


def test_a_median_of_many_rows_is_taken_from_the_same_rows_in_every_block_size():
    n = 70_000
    values = np.random.default_rng(0).normal(size=n)
    values[5] = np.nan
    found = []
    for size in (n, 999):
        source = Blocks()
        source.n_rows, source.n_features, source.feature_names = n, 1, ("a",)
        place = Place("t", ("a",), str)
        source.blocks = lambda rows, source=source, size=size, place=place: (
            source.encoder(k, [number_column(values[k : k + size])], place) for k in range(0, n, size)
        )
        found.append(learn_schema(source).fields[0].fill)
    assert found[0] == found[1] == pytest.approx(np.nanmedian(values), abs=0.01)


def test_a_learner_makes_no_features():
    assert Learner([], 5, frozenset()).names == ()
    assert quietly(schema, {"a": [1.0, np.nan]}) is not None
