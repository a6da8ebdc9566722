"""What the page says to mistrust, and how every column was read."""

from dataclasses import replace

import numpy as np
import pytest

from ridgemark import NystromClassifier, NystromRidge, open_rows
from ridgemark.cli.measures import fit_and_measure
from ridgemark.estimators.measuring import held_out
from ridgemark.report.cautions import cautions
from ridgemark.report.fit_page import _Fit
from ridgemark.report.fit_words import columns_read, unused_names

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 2))
OPTIONS = {"kernel": "gaussian", "bandwidth": 1.0, "n_landmarks": 40, "random_state": 0}


def seen(model, source, other=None):
    """Return the cautions about a fit, by their labels."""
    run = fit_and_measure(model, source)
    if other is not None:
        run = replace(run, held_out=held_out(model, other))
    return dict(cautions(_Fit(model, run)))


def test_a_sound_fit_has_no_caution():
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.normal(size=400)
    assert seen(NystromRidge(**OPTIONS | {"n_landmarks": 150}), open_rows(X, y)) == {}


def test_held_out_rows_of_another_kind_and_far_away_are_named():
    def rows(points):
        return open_rows(points, np.sin(points[:, 0]) + 0.1 * RNG.normal(size=len(points)))

    labels = seen(NystromRidge(**OPTIONS), rows(X), rows(X[:100] + 4.0))
    assert "times that of rows of the fit left out" in labels["held-out rows"]
    assert "100% of the held-out rows are farther" in labels["rows far from the data"]
    assert "100 of the 100" in seen(NystromRidge(**OPTIONS), rows(X), rows(X[:100]))["repeated rows"]


def test_a_column_on_which_nearly_everything_rests_is_named():
    y = np.sin(X[:, 0]) + 0.05 * RNG.normal(size=400)
    assert "rests on the column column 0" in seen(NystromRidge(**OPTIONS), open_rows(X, y))["one column"]


def test_a_class_that_is_never_recognised_is_named():
    rare = np.where(RNG.uniform(size=400) < 0.05, "ill", "well")
    said = seen(NystromClassifier(**OPTIONS), open_rows(X, rare))["rows of a class that are missed"]
    assert f"only 0 of {np.count_nonzero(rare == 'ill')} rows of ill" in said
    assert "--cost" in said


@pytest.mark.filterwarnings("ignore::ridgemark.errors.RidgemarkWarning")  # of columns left out, and of their scales
def test_every_column_is_accounted_for():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(
        {
            "area": X[:, 0],
            "sold": pandas.Timestamp("2020-01-01") + pandas.to_timedelta(np.arange(400), "D"),
            "grade": np.array(["good", "fair"])[np.arange(400) % 2],
            "agent": [f"agent {k % 150}" for k in range(400)],
            "remark": [f"remark {k}" for k in range(400)],
            "county": "King",
            "gaps": np.where(np.arange(400) % 9 == 0, np.nan, X[:, 1]),
            "empty": np.nan,
        }
    )
    model = NystromRidge(**OPTIONS).fit(table, X[:, 0])
    assert dict(columns_read(model)) == {
        "area": "number",
        "sold": "date",
        "grade": "category of 2 levels",
        "agent": "text with 150 levels: the frequent ones, and a code for each",
        "remark": "left out: 400 different texts, nearly one in every row",
        "county": "left out: one value",
        "gaps": "number, with gaps",
        "empty": "left out: it has no values, or was to be left out",
    }
    assert unused_names(model) == ["remark", "county", "empty"]
