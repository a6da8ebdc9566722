"""Tables that no rule encodes end in one error that names the column; others in finite predictions."""

import datetime as dt
import warnings
from contextlib import suppress
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ridgemark import NystromRidge, open_rows
from ridgemark.errors import ColumnWarning, DataError, RidgemarkError
from tests.tables.cases import quietly

pd = pytest.importorskip("pandas")

Y = np.random.default_rng(0).normal(size=30)
X = pd.DataFrame({"x": np.linspace(0, 1, 30)})


def refusal(frame):
    with pytest.raises(DataError) as caught:
        quietly(NystromRidge(ridge=1e-3, bandwidth="median", kernel="gaussian").fit, frame, Y)
    return str(caught.value)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ([[1, 2]] * 30, "row 0, column 'a' of the DataFrame holds a value of type list"),
        ([{"k": 1}] * 30, "row 0, column 'a' of the DataFrame holds a value of type dict"),
        ([1, "u", None] * 10, "row 1, column 'a' of the DataFrame holds text, 'u'"),
        (["u", 1, None] * 10, "row 1, column 'a' of the DataFrame holds a value of type int, '1'"),
        ([dt.date(2020, 1, 1), "u", 3] * 10, "row 1, column 'a' of the DataFrame holds text"),
        ([dt.timedelta.max, dt.timedelta(1)] * 15, "row 0, column 'a' of the DataFrame holds a value of type time"),
        ([b"u", b"v"] * 15, "row 0, column 'a' of the DataFrame holds a value of type bytes"),
        ([1 + 2j] * 30, "column 'a' of the DataFrame holds complex numbers"),
        ([2**60, 1] * 15, "row 0, column 'a' of the DataFrame is the integer"),
        (["9007199254740993", "1"] * 15, "row 0, column 'a' of the DataFrame is the integer 9007199254740993"),
        ([Decimal("Infinity"), Decimal(1)] * 15, "row 0, column 'a' of the DataFrame is inf"),
        (pd.interval_range(0, 30), "row 0, column 'a' of the DataFrame holds a value of type Interval"),
    ],
)
def test_a_column_of_no_kind_is_refused_by_name(column, expected):
    values = column if isinstance(column[0], complex | pd.Interval) else pd.Series(column, dtype=object)
    assert expected in refusal(X.assign(a=values, b="u"))


def test_text_mixed_with_numbers_in_later_rows_is_refused():
    model = quietly(NystromRidge(ridge=1e-3, bandwidth="median", kernel="gaussian").fit, X.assign(a=["u", "v"] * 15), Y)
    with pytest.raises(DataError, match="row 1, column 'a' of the DataFrame holds a value of type int, '0'"):
        model.predict(X[:3].assign(a=pd.Series(["u", 0, "v"], dtype=object)))


def test_tables_without_a_usable_column_are_refused():
    assert "no column is left" in refusal(pd.DataFrame({"a": [None] * 30, "b": pd.Series([np.nan] * 30)}))
    assert "no column is left" in refusal(
        pd.DataFrame({"a": [f"t{k}" for k in range(30)] * 1, "b": "u"}).drop(columns="a")
    )
    assert "no column is left" in refusal(pd.DataFrame({"a": pd.array([pd.NA] * 30, "Int64")}))


def test_equal_names_are_refused():
    for frame in (pd.concat([X, X.astype(str)], axis=1), pd.concat([X, X], axis=1)):
        assert "more than one column named 'x'" in refusal(frame)


def test_too_many_different_texts_are_refused(monkeypatch):
    monkeypatch.setattr("ridgemark.tables.column_learner._MOST_TEXTS", 20)
    assert "column 'a' of the DataFrame holds more than 20 different texts" in refusal(
        X.assign(a=[f"t{k}" for k in range(30)])
    )


def test_files_whose_types_differ_are_refused(tmp_path):
    X.assign(a=["u"] * 30, y=Y).to_parquet(tmp_path / "a.parquet")
    X.assign(a=1.5, y=Y).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"column 'a' of '.*b.parquet' holds values of kind number here"):
        NystromRidge().fit(open_rows(tmp_path, target="y"))


def test_partitions_of_objects_of_different_kinds_are_refused():
    dask, dd = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    parts = [X[:3].assign(a=pd.Series(values, dtype=object)) for values in ([1, 2, 3], ["u", "v", "w"])]
    with dask.config.set({"dataframe.convert-string": False}):
        rows = open_rows(dd.from_map(lambda k: parts[k], [0, 1], meta=parts[0]))
    with pytest.raises(DataError, match=r"column 'a' of partition 1 .* holds values of kind text here"):
        quietly(NystromRidge()._encoded, rows, True)


TEXT = st.text(max_size=6) | st.sampled_from(["1", "2.5", "true", "False", "2020-01-01", "1e400", "inf", "nan", ""])
MOMENT = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))
CELLS = {
    "float": st.floats(allow_infinity=False, width=32),
    "int": st.integers(-(2**53), 2**53),
    "text": TEXT,
    "bool": st.booleans(),
    "date": MOMENT,
    "mixed": TEXT | st.integers(-5, 5) | MOMENT | st.lists(st.integers(), max_size=2),
}


@st.composite
def tables(draw):
    n_rows = draw(st.integers(3, 12))
    kinds = draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=4))
    columns = {}
    for number, kind in enumerate(kinds):
        cell = CELLS[kind] | st.none() if draw(st.booleans()) else CELLS[kind]
        values = pd.Series(draw(st.lists(cell, min_size=n_rows, max_size=n_rows)), dtype=object)
        columns[f"{kind}{number}"] = values if draw(st.booleans()) else values.infer_objects()
    return pd.DataFrame(columns)


def check_finite_or_refused(frame, other):
    model = NystromRidge(ridge=1e-2, bandwidth="median", kernel="gaussian", random_state=0)
    y = np.arange(len(frame)) % 3.0
    try:
        model.fit(frame, y)
    except RidgemarkError as error:
        assert "\n" not in str(error)
        return
    assert np.isfinite(model.predict(frame)).all()
    later = other.reindex(columns=frame.columns)
    with suppress(RidgemarkError):
        assert np.isfinite(model.predict(later)).all()


@pytest.mark.slow
@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
@given(tables(), tables())
def test_any_table_gives_finite_predictions_or_one_error_of_ours(frame, other):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnWarning)
        check_finite_or_refused(frame, other)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(tables(), tables())
def test_some_tables_give_finite_predictions_or_one_error_of_ours(frame, other):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnWarning)
        check_finite_or_refused(frame, other)
