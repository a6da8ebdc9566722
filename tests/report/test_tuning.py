"""The page of a tuned model: levels, families, descents and importances."""

import html
import re

import numpy as np
import pytest

from ridgemark import NystromRidge
from ridgemark.fitted import RunRecord
from ridgemark.kernels import Gaussian, Linear, PowerExponential
from ridgemark.report import fit_figures
from ridgemark.report.fit_page import fit_page
from ridgemark.report.fit_words import important_columns, kernel_words, tuning_lines
from ridgemark.report.plots import draw
from ridgemark.tuning import Tuner

pytest.importorskip("matplotlib")
# Old releases of matplotlib use names that new releases of pyparsing have deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated - use:DeprecationWarning")

SMALL = Tuner(rows=200, judging_rows=100, landmarks=40, evaluations=8, kernels=("gaussian", "matern32"))


def fitted(n=400, d=4, bandwidth=SMALL):
    """Return a model of rows whose first two columns matter, the first more than the second."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1 % d] + 0.1 * rng.normal(size=n)
    return NystromRidge(bandwidth=bandwidth, n_landmarks=40, random_state=0).fit(X, y)


def page_of(model, figures):
    """Return the page of a model, of whose figures those are drawn whose names begin so: drawing takes most time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            fit_figures, "draw", lambda chart, name: draw(chart, name) if name.startswith(figures) else "<svg></svg>"
        )
        return fit_page(model, RunRecord(), "1.0")


def section(page, anchor):
    """Return one section of a page; empty if there is none."""
    found = re.search(rf'<section id="{anchor}">.*?</section>', page, flags=re.DOTALL)
    return found[0] if found else ""


@pytest.fixture(scope="module")
def tuned():
    """A tuned model, and the section of its page on tuning."""
    model = fitted()
    return model, section(page_of(model, "tuning"), "tuned")


def test_the_page_says_level_family_reason_rows_and_evaluations(tuned):
    model, text = tuned
    tuning = model.tuning_
    assert tuning.level == "per_feature"
    assert f"The kernel is {tuning.kernel} with one bandwidth per feature, since {tuning.reason}" in text
    assert "tuned on 200 rows with 40 landmarks" in text
    assert f"in {tuning.n_evaluations} evaluations, and judged by 100 other rows" in text


def test_every_level_and_family_has_its_errors(tuned):
    model, text = tuned
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</th>(.*?)</tr>", text)
    cells = {head: re.findall(r">([^<]+)</td>", rest) for head, rest in rows}
    shared, per_feature, matrix = model.tuning_.levels
    assert cells["one bandwidth for all columns"] == [f"{shared.judged_error:.4g}", "-", "-", "-", "surpassed"]
    assert cells["one bandwidth per feature"] == [
        f"{per_feature.judged_error:.4g}",
        f"{per_feature.gain:.1%}",
        f"{per_feature.standard_errors:.1f}",
        f"{per_feature.better:.0%}",
        "yes",
    ]
    assert cells["a matrix"][-1] == "no"
    again = {one.kernel: one.error for one in model.tuning_.compared}
    for one in model.tuning_.tried:
        assert cells[one.kernel] == [f"{one.factor:g}", f"{one.error:.4g}", f"{again[one.kernel]:.4g}"]
    assert cells["a matrix"][0] == f"{matrix.judged_error:.4g}"


def test_every_descent_is_a_line_named_by_level_and_start(tuned):
    model, text = tuned
    short = {"per_feature": "per feature", "metric": "matrix", "shared": "one bandwidth"}
    labels = [f"{short[one.level]}: {short.get(one.start, one.start)}" for one in model.tuning_.descents]
    assert len(labels) == 4
    assert all(f">{label}</text>" in text for label in labels)
    alternative = re.search(r'role="img" aria-label="([^"]*)"', text)[1]
    for label, one in zip(labels, model.tuning_.descents, strict=True):
        assert f"{label}, from {one.looks[0, 1]:.3g} to {one.judged_error:.3g}" in html.unescape(alternative)


def test_without_judging_rows_the_page_gives_the_reason_and_no_levels():
    text = section(page_of(fitted(n=60), "tuning"), "tuned")
    assert "one bandwidth for all columns, since there are fewer than 100 distinct rows" in text
    assert "Levels" not in text
    assert "<svg" not in text


@pytest.fixture(scope="module")
def untuned():
    """A model whose bandwidth was given, and its page."""
    model = fitted(bandwidth="median")
    return model, page_of(model, ("importance", "effect"))


def test_a_bandwidth_that_is_given_has_no_section(untuned):
    page = untuned[1]
    assert section(page, "tuned") == ""
    assert section(page, "columns") != ""


def test_importances_are_bars_of_at_most_twenty_columns():
    model = fitted(d=30, bandwidth="median")
    text = section(page_of(model, "importance"), "columns")
    names = re.findall(r">(column \d+)</text>", text[: text.index("</figure>")])
    assert names == [f"column {k}" for k in np.argsort(-model.feature_importances_)[:20]]
    shown = np.sort(model.feature_importances_)[-20:].sum()
    assert f"Shown: 20 of 30 columns, {shown:.1%} of the total" in text
    assert "share of the mean squared gradient of the prediction times the column&#x27;s variance" in text


def test_average_effects_are_a_table_and_effects_at_rows_figures(untuned):
    model, page = untuned
    text = section(page, "columns")
    summary = model.effects_summary()
    assert f"Average effects over {summary.n_rows} rows" in text
    for k in range(4):
        assert f"{summary.average[k, 0]:.4g}</td>" in text
        assert f"Effect of column {k} against its value, at 400 rows" in text


def test_of_many_effects_the_surest_are_shown(monkeypatch):
    monkeypatch.setattr("ridgemark.report.fit_page._MOST_EFFECTS", 2)
    model = fitted(bandwidth="median")
    text = section(page_of(model, "importance"), "columns")
    table = text[text.index("Average effects") :]
    assert "rows; the 2 of 4 with the largest t value" in table
    surest = np.sort(np.argsort(-np.abs(model.effects_summary().t_value[:, 0]))[:2])
    assert re.findall(r">(column \d+)<", table) == [f"column {k}" for k in surest]


def test_a_very_long_name_is_shortened_everywhere():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    names = ["short", "x" * 5000]
    X = pandas.DataFrame(rng.normal(size=(90, 2)), columns=names)
    y = X["short"] + X[names[1]] + 0.1 * rng.normal(size=90)
    model = NystromRidge(bandwidth="median", n_landmarks=20, random_state=0).fit(X, y)
    text = section(page_of(model, "importance"), "columns")
    assert ">xxxxxxxxxxxxx...xxxxxxxx</text>" in text
    assert names[1] not in text
    assert len(dict(tuning_lines(model))["matters most"]) < 200


def test_one_column_and_a_constant_fit_have_no_importances():
    assert important_columns(fitted(d=1, bandwidth="median"), 3) == []
    X = np.random.default_rng(0).normal(size=(50, 2))
    constant = NystromRidge(bandwidth="median", ridge=1e-3, n_landmarks=10, random_state=0).fit(X, np.ones(50))
    assert important_columns(constant, 3) == []
    assert section(page_of(constant, "importance"), "columns") == ""


class Named:
    def __init__(self, kernel):
        self.kernel_ = kernel


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (Gaussian(0.123456789), "Gaussian(bandwidth=0.123457)"),
        (Gaussian(np.geomspace(0.8, 31, 500)), "Gaussian, one bandwidth per feature, 0.8 to 31"),
        (Gaussian([0.8, 31.0]), "Gaussian, one bandwidth per feature, 0.8 to 31"),
        (Gaussian(metric=np.eye(8)), "Gaussian with a 8 x 8 metric"),
        (
            PowerExponential(np.ones(3), exponent=1.4),
            "PowerExponential(exponent=1.4), one bandwidth per feature, 1 to 1",
        ),
        (Linear(), repr(Linear())),
    ],
)
def test_a_kernel_is_named_in_few_words(kernel, words):
    assert kernel_words(Named(kernel)) == words


def test_a_sum_of_kernels_of_many_bandwidths_is_named_in_few_words():
    assert len(kernel_words(Named(Gaussian(np.arange(1.0, 501.0)) + 0.1 * Linear()))) < 120
