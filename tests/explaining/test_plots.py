"""Plots on axes: what they draw, and what they refuse."""

import numpy as np
import pandas as pd
import pytest

from ridgemark import NystromClassifier, NystromRidge
from ridgemark.errors import DataError
from ridgemark.explaining import values_in_words
from ridgemark.kernels import Gaussian
from ridgemark.report import charts
from ridgemark.report.plots import described, draw

pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated - use:DeprecationWarning")


@pytest.fixture(autouse=True)
def pyplot():
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "area": rng.gamma(4.0, 30.0, 200),
            "age": pd.Series(rng.integers(0, 50, 200).astype(float)).mask(rng.random(200) < 0.1),
            "city": rng.choice(["Bern", "Chur", "Genf"], 200),
            "new": rng.random(200) < 0.3,
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, 200), "D"),
        }
    )


@pytest.fixture(scope="module")
def model(table):
    y = np.log(table["area"]) + 0.5 * (table["city"] == "Bern")
    return NystromRidge(Gaussian(3.0), ridge=1e-3, n_landmarks=40, random_state=0).fit(table, y)


def test_a_waterfall_leads_from_the_mean_to_the_prediction(model, table, pyplot):
    contributions = model.contributions(table[:3])
    axes = model.plot.contributions(table, 2)
    ends = [bar.get_x() + bar.get_width() for bar in axes.patches]
    assert axes.patches[0].get_x() == pytest.approx(contributions.base)
    assert ends[-1] == pytest.approx(model.predict(table[2:3])[0])
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert len(labels) == 5
    assert any(label.startswith(f"city = {table['city'][2]}\n") for label in labels)


def test_a_plot_draws_on_the_axes_that_it_is_given(model, table, pyplot):
    _, axes = pyplot.subplots()
    y = model.predict(table) + 1.0
    assert model.plot.residuals(table, y, ax=axes) is axes
    assert np.asarray(axes.collections[0].get_offsets())[:, 1] == pytest.approx(np.ones(200))
    assert len(model.plot.importance().patches) == 5
    assert model.plot.curve("area").get_xlabel() == "area"
    levels = [label.get_text() for label in model.plot.curve("city").get_yticklabels()]
    assert levels[0] == "Bern"  # the largest mean is on top
    assert sorted(levels) == ["Bern", "Chur", "Genf"]
    assert model.plot.curve("when").get_xlabel() == "when (year)"


def test_residuals_without_rows_are_those_left_out(table):
    y = np.log(table["area"])
    model = NystromRidge(Gaussian(3.0), n_landmarks=40, random_state=0).fit(table, y)
    drawn = np.asarray(model.plot.residuals().collections[0].get_offsets())[:, 1]
    assert np.sort(drawn) == pytest.approx(np.sort(model.loo_residuals_))


def test_what_a_model_does_not_have_is_refused(model, table):
    with pytest.raises(DataError, match="this model has no course of tuning"):
        model.plot.tuning()
    classes = NystromClassifier(Gaussian(3.0), ridge=1e-3, n_landmarks=40, random_state=0).fit(table, table["new"])
    assert classes.plot.curve("area").get_ylabel() == "log-odds"
    with pytest.raises(DataError, match="no leave-one-out residuals"):
        classes.plot.residuals()


def test_a_swarm_shows_every_row_and_column(model, table):
    rows = model._model.background.rows[:50]
    form = model._model.schema
    chart = charts.swarm_chart(model.contributions(table[:50]), form, rows)
    assert sum(len(series.x) for series in chart.series) == 5 * 50
    assert {series.label for series in chart.series} == set(charts._THIRDS)
    assert "50 points" in described(chart) or "points from" in described(chart)
    assert draw(chart, "swarm").startswith("<svg")


def test_values_are_told_as_the_user_gave_them(model, table):
    rows = model._rows(table).take(np.arange(200)).features
    words = pd.DataFrame(values_in_words(model._model.schema, rows), columns=table.columns)
    assert (words["city"] == table["city"]).all()
    assert (words["new"] == table["new"].astype(str)).all()
    assert (words["when"] == table["when"].dt.strftime("%Y-%m-%d")).all()
    assert (words["age"] == table["age"].map("{:.6g}".format).replace("nan", "missing")).all()
    assert words["area"].astype(float).to_numpy() == pytest.approx(table["area"], rel=1e-5)
