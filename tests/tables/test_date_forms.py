"""Dates are read in the forms in which people write them, and only where the order of day and month is sure."""

import datetime as dt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgemark import NystromRidge, load, open_rows
from ridgemark.errors import ColumnWarning, DataError
from ridgemark.tables import learn_schema
from ridgemark.tables.date_forms import FORMS, forms_of, read_dates
from tests.tables.cases import encoded

pd = pytest.importorskip("pandas")

DAYS = pd.date_range("1999-12-25", periods=40, freq="9D")
TARGET = np.arange(40.0) + np.random.default_rng(0).normal(size=40)
WRITTEN = ["%Y/%m/%d", "%m/%d/%Y", "%m/%d/%y", "%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y.%m.%d"]
NAMED = ["%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d%b%Y", "%B %d, %Y", "%b %d %Y"]
MONTHS = ["%Y-%m", "%b %Y", "%B %Y", "%Y %b", "%b-%Y", "%Y-%m-01", "%m/01/%Y", "%m/1/%y", "01/%m/%Y"]


def table(dates):
    return {"a": np.array(dates, dtype=object), "b": np.arange(len(dates)) % 3.0}


@pytest.mark.parametrize("form", WRITTEN + NAMED)
def test_dates_in_any_form_are_those_of_the_standard(form):
    assert encoded(table(DAYS.strftime(form))) == encoded(table(DAYS.strftime("%Y-%m-%d")))


@pytest.mark.parametrize("form", ["%m/%d/%Y %H:%M", "%m/%d/%y %I:%M %p", "%d.%m.%Y %H:%M:%S", "%b %d, %Y %I:%M:%S %p"])
def test_a_time_may_follow_the_date(form):
    moments = pd.date_range("1999-12-25 00:15", periods=40, freq="100h")
    assert encoded(table(moments.strftime(form))) == encoded(table(moments.strftime("%Y-%m-%d %H:%M:%S")))


@pytest.mark.parametrize("form", MONTHS)
def test_a_month_is_its_first_day(form):
    months = pd.date_range("1999-02-01", periods=40, freq="MS")
    assert encoded(table(months.strftime(form))) == encoded(table(months))


def test_a_quarter_and_a_week_are_their_first_day():
    quarters, weeks = (
        pd.date_range("2001-04-01", periods=9, freq="QS"),
        pd.date_range("2001-04-02", periods=9, freq="7D"),
    )
    for text in ("{0.year} Q{0.quarter}", "{0.year}Q{0.quarter}", "{0.year}-Q{0.quarter}"):
        assert encoded(table([text.format(day) for day in quarters])) == encoded(table(quarters))
    assert encoded(table(weeks.strftime("%G W%V"))) == encoded(table(weeks))


def test_times_are_those_of_one_day():
    texts = ["00:10", "7:45", "12:00", "23:59"] * 3
    assert encoded(table(texts)) == encoded(table([f"1970-01-01 {text:0>5}" for text in texts]))
    assert encoded(table(["12:10 AM", "7:45 am", "12:00 p.m.", "11:59PM"] * 3)) == encoded(table(texts))


def test_periods_of_pandas_are_their_first_day():
    months = pd.period_range("2001-02", periods=12, freq="M")
    assert encoded(pd.DataFrame({"a": months})) == encoded(pd.DataFrame({"a": months.to_timestamp()}))


def test_years_of_two_digits_are_those_from_1930_to_2029():
    years = read_dates(["12/31/29", "12/31/30", "1/1/99", "1/1/00"], "12/31/2024").astype("M8[Y]").astype(int) + 1970
    assert years.tolist() == [2029, 1930, 1999, 2000]


@pytest.mark.parametrize(
    "texts",
    [
        ["1/2/2001", "3/4/2002"],
        ["1-2-2001", "3-5-2001"],
        [f"01/{k}/2001" for k in range(1, 13)],  # the months of a year, or days of January
        [f"05/0{k}/2001 {hour}:00" for k in (1, 2) for hour in range(24)],
    ],
)
def test_dates_whose_order_is_not_sure_are_text_with_a_word(texts):
    assert len(forms_of(texts)) > 1
    with pytest.warns(ColumnWarning, match="is read as text, as its dates may be written as .* or .*, such as"):
        learn_schema(open_rows(table(texts * 10)))


NOT_DATES = [
    "2001-1",
    "4711-01",
    "1.2.13",
    "12-04-99",
    "120/80",
    "12:61",
    "13:00 PM",
    "2/30/2001",
    "2001 W53",
    "1600W20",
]


@pytest.mark.parametrize("text", NOT_DATES)
def test_what_is_not_a_date_stays_text(text):
    assert forms_of([text]) == []


@pytest.mark.parametrize("texts", [["2008/09", "2009/10", "2010/11"], ["1:10", "1:20"], ["2019.1.3", "2020.2.1"]])
def test_seasons_ratios_and_versions_are_not_dates(texts):
    assert forms_of(texts) == []


def test_a_time_may_exceed_a_day():
    start = dt.datetime(1970, 1, 1)
    hours = [(moment - start) / dt.timedelta(hours=1) for moment in read_dates(["01:30", "25:15"], "23:59").tolist()]
    assert hours == [1.5, 25.25]


def test_seasons_are_categories_without_a_word():
    learn_schema(open_rows(table([f"{year}-{(year + 1) % 100:02}" for year in range(2000, 2021)] * 3)))


@pytest.mark.parametrize("form", ["%m/%d/%Y", "%d/%m/%Y"])
def test_one_wrong_date_is_named(form):
    texts = [*DAYS.strftime(form), "sometime"]
    with pytest.warns(ColumnWarning, match=r"most values are dates: 1 of 41 are not \(such as 'sometime'\)"):
        learn_schema(open_rows(table(texts)))


def test_later_rows_are_read_in_the_form_of_the_fit(tmp_path):
    frame = pd.DataFrame(table(DAYS.strftime("%d/%m/%Y")))
    NystromRidge(bandwidth="median", random_state=0).fit(frame, TARGET).save(tmp_path / "model")
    model = load(tmp_path / "model")
    early = frame.assign(a=DAYS.day.map(lambda day: f"{day % 12 + 1:02}/02/2000"))  # no day tells the order
    moments = pd.to_datetime(early["a"], format="%d/%m/%Y")
    for same in (moments, moments.dt.strftime("%Y-%m-%d")):
        assert model.predict(early) == pytest.approx(model.predict(early.assign(a=same)))
    with pytest.raises(DataError, match=r"the column holds dates .* may be written as 2024-12-31"):
        model.predict(frame.assign(a=DAYS.strftime("%m/%d/%Y")))


def test_a_csv_file_is_read_as_its_frame(tmp_path):
    frame = pd.DataFrame(table(DAYS.strftime("%m/%d/%Y %H:%M"))).assign(y=TARGET)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    model = NystromRidge(bandwidth="median", random_state=0)
    of_file = model.fit(open_rows(tmp_path / "rows.csv", target="y")).predict(frame[["a", "b"]])
    assert of_file.tolist() == model.fit(frame[["a", "b"]], frame["y"]).predict(frame[["a", "b"]]).tolist()


@given(st.lists(st.dates(dt.date(1930, 1, 1), dt.date(2029, 12, 31)), min_size=1), st.sampled_from(WRITTEN + NAMED))
def test_a_date_that_is_read_is_the_date_written(days, form):
    texts = [day.strftime(form) for day in days]
    readings = [read_dates(texts, one).astype("M8[D]").tolist() for one in forms_of(texts)]
    assert days in readings


@given(st.text(max_size=12))
def test_any_text_is_read_or_not_without_an_error(text):
    assert set(forms_of([text])) <= set(FORMS)
