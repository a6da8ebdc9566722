"""The page of a tuned model: parts, levels, descents and importances."""

import html
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from ridgemark import NystromRidge
from ridgemark.fitted import RunRecord
from ridgemark.kernels import Gaussian, Laplacian, Linear, Matern32, Mixture, PowerExponential
from ridgemark.report import fit_figures
from ridgemark.report import fit_page as fit_page_module
from ridgemark.report.fit_page import fit_page
from ridgemark.report.fit_words import LEVELS, important_columns, kernel_words, tuned_words, tuning_lines
from ridgemark.report.plots import draw
from ridgemark.tuning import Tuner
from ridgemark.tuning.record import Level, Part

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
    found = re.search(rf'<(section|div) id="{anchor}">.*?</(section|details)>', page, flags=re.DOTALL)
    return found[0] if found else ""


@pytest.fixture(scope="module")
def tuned():
    """A tuned model, and the section of its page on tuning."""
    model = fitted()
    return model, section(page_of(model, "tuning"), "tuned")


def cells_of(text):
    """Return the cells of the tables in some HTML, by the heads of their rows."""
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</th>(.*?)</tr>", text)
    return {head: re.findall(r">([^<]+)</td>", rest) for head, rest in rows}


def test_the_page_says_parts_level_reason_rows_and_evaluations(tuned):
    model, text = tuned
    tuning = model.tuning_
    level = {"per_feature": "one bandwidth per feature", "metric": "a matrix"}[tuning.level]
    assert f"The kernel is {tuning.kernel} with {level}, since {tuning.reason}" in text
    assert "tuned on 200 rows with 40 landmarks" in text
    assert f"in {tuning.n_evaluations} evaluations, and judged by 100 other rows" in text


def test_every_level_has_its_errors(tuned):
    model, text = tuned
    cells = cells_of(text)
    shared, *others = model.tuning_.levels
    assert cells["one bandwidth for all columns"] == [f"{shared.judged_error:.4g}", "-", "-", "-", "surpassed"]
    assert len(others) == 2
    for one in others:
        *numbers, taken = cells[LEVELS[one.level]]
        gain = [f"{one.gain:z.1%}", f"{one.standard_errors:z.1f}", f"{one.better:.0%}"]
        assert numbers == [f"{one.judged_error:.4g}", *gain]
        assert (taken == "yes") == (one.level == model.tuning_.level)


def test_a_first_level_other_than_shared_has_no_gain(tuned):
    levels = [Level("per_feature", 0.5, 0.0, 0.0, 0.0, True), Level("metric", 0.5, -1e-5, -0.01, 0.5, False)]
    table = fit_page_module._levels(levels)
    cells = cells_of(table)
    assert cells["one bandwidth per feature"] == ["0.5", "-", "-", "-", "yes"]
    assert cells["a matrix"] == ["0.5", "0.0%", "0.0", "50%", "no"]


def test_parts_have_weights_and_lengths_and_those_left_out_are_named(tuned):
    parts = (Part("Gaussian", 0.75, 1.0), Part("Matern12", 0.2, 12.5), Part("Linear", 0.05, None))
    tuning = replace(tuned[0].tuning_, parts=parts, dropped=("Matern32", "Laplacian"))
    table, sentence = fit_page_module._parts(tuning)
    assert cells_of(table) == {"Gaussian": ["0.75", "1"], "Matern12": ["0.2", "12.5"], "Linear": ["0.05", "-"]}
    assert "Left out, since the judging rows are predicted as well without them: Matern32, Laplacian." in sentence
    assert fit_page_module._parts(replace(tuning, parts=parts[:1], dropped=())) == [None, None]


def test_the_radial_parts_are_drawn_over_the_distance(monkeypatch):
    drawn = []
    monkeypatch.setattr(fit_figures, "draw", lambda chart, name: drawn.append(chart) or "<svg></svg>")
    landmarks = np.random.default_rng(0).normal(size=(30, 2))
    mixture = Mixture([Gaussian(1.0), Matern32(5.0)], [Linear()], weights=[3.0, 1.0, 7.0], bandwidth=[2.0, 0.5])
    assert fit_figures.profile_figure(mixture, landmarks) is not None
    together, gaussian, matern, here = drawn[0].series
    r = np.array(together.x)
    expected = 0.75 * np.exp(-(r**2) / 2) + 0.25 * (1 + np.sqrt(3) * r / 5) * np.exp(-np.sqrt(3) * r / 5)
    assert np.allclose(together.y, expected)
    assert np.allclose(np.add(gaussian.y, matern.y), expected)
    assert together.y[0] > 0.9
    assert together.y[-1] < 0.1
    assert here.x == pytest.approx([np.median(pdist(landmarks / [2.0, 0.5]))])
    rotated = Mixture([Gaussian(1.0), Matern32(5.0)], weights=[3.0, 1.0], metric=np.diag([0.5, 2.0]))
    fit_figures.profile_figure(rotated, landmarks)
    assert np.allclose(drawn[1].series[0].y, together.y)


def test_fewer_than_two_radial_parts_are_not_drawn():
    for kernel in (Gaussian(1.0), Mixture([Gaussian(1.0)], [Linear()], weights=[1.0, 1.0])):
        assert fit_figures.profile_figure(kernel, np.eye(3)) is None


def test_every_descent_is_a_line_named_by_level_start_and_rows(tuned):
    model, text = tuned
    short = {"per_feature": "per feature", "metric": "matrix", "shared": "one bandwidth"}
    short |= {"all columns included": "all columns", "without the Laplacian": "no Laplacian"}
    descents = model.tuning_.descents
    labels = [f"{short[one.level]}: {short.get(one.start, one.start)}, {one.n_rows} rows" for one in descents]
    assert len(labels) >= 4
    assert all(f">{label}</text>" in text for label in labels)
    alternative = re.search(r'role="img" aria-label="(Chart of judged error[^"]*)"', text)[1]
    for label, one in zip(labels, descents, strict=True):
        assert re.search(rf"{label}: (from )?{one.looks[0, 1]:.3g} at", html.unescape(alternative))


def test_without_judging_rows_the_page_gives_the_reason_and_no_levels():
    text = section(page_of(fitted(n=60), "tuning"), "tuned")
    assert "one bandwidth for all columns, since there are fewer than 100 distinct rows" in text
    assert "Levels" not in text
    assert "judged error" not in text


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
    assert f"Shown: 20 of 30 columns, with {shown:.1%} of the total" in text
    assert "how much predictions change when its value is taken from another row" in text


def test_average_effects_are_a_table_and_effects_at_rows_figures(untuned):
    model, page = untuned
    text = section(page, "effects")
    summary = model.effects_summary()
    assert f"Average effects over {summary.n_rows} rows" in text
    for k in range(4):
        assert f"{summary.average[k, 0]:.4g}</td>" in text
        assert f"Effect of column {k} against its value, at 400 rows" in text


def test_of_many_effects_the_surest_are_shown(monkeypatch):
    monkeypatch.setattr("ridgemark.report.fit_tables._MOST_EFFECTS", 2)
    model = fitted(bandwidth="median")
    text = section(page_of(model, "importance"), "effects")
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


@pytest.mark.filterwarnings("ignore::ridgemark.errors.ColumnWarning")  # the target is constant
def test_one_column_and_a_constant_fit_have_no_importances():
    assert important_columns(fitted(d=1, bandwidth="median"), 3) == []
    X = np.random.default_rng(0).normal(size=(50, 2))
    constant = NystromRidge(bandwidth="median", ridge=1e-3, n_landmarks=10, random_state=0).fit(X, np.ones(50))
    assert important_columns(constant, 3) == []
    text = section(page_of(constant, "importance"), "columns")
    assert "Every column" in text
    assert "<figure" not in text


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
        (
            Mixture([Gaussian(1.0)], [Laplacian([1.0, 2.0])], [0.5, 0.5], bandwidth=[0.8, 31.0]),
            "Gaussian + Laplacian, one bandwidth per feature, 0.8 to 31",
        ),
        (
            Mixture([Gaussian(1.0), Matern32(2.0)], [Linear()], [0.4, 0.4, 0.2], metric=np.eye(8)),
            "Gaussian + Matern32 + Linear with a 8 x 8 metric",
        ),
        (Mixture([], [Laplacian([1.0, 2.0]), Linear()], [0.5, 0.5]), "Laplacian + Linear"),
    ],
)
def test_a_kernel_is_named_in_few_words(kernel, words):
    assert kernel_words(Named(kernel)) == words


def test_a_linear_kernel_has_no_bandwidths_to_name(tuned):
    linear = replace(tuned[0].tuning_, kernel="Linear", parts=(Part("Linear", 1.0, None),))
    assert tuned_words(linear) == "Linear"
    assert tuned_words(tuned[0].tuning_) == f"{tuned[0].tuning_.kernel}, {LEVELS[tuned[0].tuning_.level]}"


def test_a_sum_of_kernels_of_many_bandwidths_is_named_in_few_words():
    assert len(kernel_words(Named(Gaussian(np.arange(1.0, 501.0)) + 0.1 * Linear()))) < 120
