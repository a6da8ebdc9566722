"""Predictions of the future: what each fit may see, equal times, gaps, and the page."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from ridgemark import NystromRidge
from ridgemark.errors import DataError, ParameterError
from ridgemark.evaluate import forward

FIXED = {"kernel": "gaussian", "bandwidth": 1.0, "n_landmarks": 40, "random_state": 0}


def series(n_rows=400, n_days=100, seed=0):
    rng = np.random.default_rng(seed)
    day = rng.integers(0, n_days, n_rows)
    X = rng.normal(size=(n_rows, 2))
    return X, np.sin(X[:, 0]) + 0.01 * day + 0.2 * rng.normal(size=n_rows), day


@pytest.mark.parametrize("dates", [False, True])
def test_every_stretch_is_predicted_from_rows_before_it_alone(dates):
    X, y, day = series()
    time = np.datetime64("2024-03-01") + day.astype("timedelta64[D]") if dates else day
    result = forward(NystromRidge(**FIXED), X, y, time=time, n_splits=4, gap=np.timedelta64(2, "D") if dates else 2)
    assert len(result.windows) == 4
    for window in result.windows:
        begin, end = day[window.rows].min(), day[window.rows].max()
        assert set(window.rows) == set(np.flatnonzero((begin <= day) & (day <= end)))  # equal times stay together
        past = np.flatnonzero(day < begin - 2)
        assert window.n_past == len(past)
        other = NystromRidge(**FIXED).fit(X[past], y[past])
        assert window.predicted[:, 0] == pytest.approx(other.predict(X[window.rows]))
        ends = other.predict_interval(X[window.rows])
        inside = (ends[:, 0] <= y[window.rows]) & (y[window.rows] <= ends[:, 1])
        assert window.coverage[0] == pytest.approx(inside.mean())
        assert window.expected[0] == pytest.approx(np.sqrt((other.loo_residuals_**2).mean()))


def test_errors_of_all_stretches_are_those_of_their_rows():
    X, y, day = series()
    result = forward(NystromRidge(**FIXED), X, y, time=day, n_splits=3)
    rows = np.concatenate([window.rows for window in result.windows])
    predicted = np.concatenate([window.predicted[:, 0] for window in result.windows])
    assert result.rms[0] == pytest.approx(np.sqrt(np.mean((y[rows] - predicted) ** 2)))
    assert str(result).count("\n") == 3


def test_without_refits_rows_are_added_to_the_first_fit():
    X, y, day = series()
    result = forward(NystromRidge(**FIXED), X, y, time=day, n_splits=3, refit=False)
    (first, *_), last = result.windows, result.windows[-1]
    past = np.flatnonzero(day < day[first.rows].min())
    landmarks = NystromRidge(**FIXED).fit(X[past], y[past]).landmarks_
    known = np.flatnonzero(day < day[last.rows].min())
    whole = NystromRidge(**FIXED, selection=landmarks).fit(X[known], y[known])
    assert last.predicted[:, 0] == pytest.approx(whole.predict(X[last.rows]), abs=0.05)


def test_any_regressor_and_groups_are_taken():
    X, y, day = series()
    result = forward(Ridge(), X, y, time=day, n_splits=2)
    assert result.coverage is None
    assert result.windows[0].expected is None
    assert forward(NystromRidge(**FIXED), X, y, time=day, n_splits=2, groups=day // 2).rms[0] < 1.0


def test_wrong_times_are_named():
    X, y, day = series()
    for options, error, what in [
        ({"time": day[:-1]}, DataError, "one entry for each of the 400 rows"),
        ({"time": np.where(day == 3, np.nan, day)}, DataError, "is missing"),
        ({"time": day // 50, "n_splits": 5}, ParameterError, "choose fewer splits"),
        ({"time": day, "gap": 90}, ParameterError, "leaves no rows"),
        ({"time": day, "gap": "a week"}, ParameterError, "cannot be subtracted"),
    ]:
        with pytest.raises(error, match=what):
            forward(NystromRidge(**FIXED), X, y, **options)


def test_a_page_shows_errors_and_coverage_by_time(tmp_path):
    pytest.importorskip("matplotlib")
    X, y, day = series()
    result = forward(NystromRidge(**FIXED), X, y, time=day, n_splits=3)
    text = result.write_page(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Do intervals hold?" in text
    assert f"{result.rms[0]:.4g}" in text
    assert text.count("<svg") == 2
