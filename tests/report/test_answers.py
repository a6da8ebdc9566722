"""The first screen of the page of a fit: four questions, each with a short answer, a sentence and a link."""

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from ridgemark import NystromClassifier, NystromRidge, open_rows
from ridgemark.cli.measures import fit_and_measure, held_out
from ridgemark.fitted import RunRecord
from ridgemark.report.fit_page import fit_page
from tests.helpers import without_figures

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.usefixtures("no_figures")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(500, 3))
Y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.normal(size=500)


@pytest.fixture(scope="module")
def measured():
    model = NystromRidge("gaussian", bandwidth=1.5, n_landmarks=100, random_state=0)
    run = fit_and_measure(model, open_rows(X[:300], Y[:300]))
    run = replace(run, held_out=held_out(model, open_rows(X[300:], Y[300:]), Path("others")))
    with without_figures():
        return model, run, fit_page(model, run, "1.0")


def cards(page):
    """Return short answer and sentence by question."""
    found = re.findall(r'<h2><a href="#(\w+)">(.*?)</a></h2><p class="short[^"]*">(.*?)</p><p>(.*?)</p>', page)
    return {question: (anchor, unescape(short), unescape(sentence)) for anchor, question, short, sentence in found}


def test_the_first_screen_answers_questions_and_links_their_sections(measured):
    page = measured[2]
    found = cards(page)
    assert list(found) == [
        "How good is it?",
        "Better than a simple model?",
        "What matters?",
        "How sure is a prediction?",
        "What to mistrust?",
        "How close to exact?",
    ]
    assert page.index('class="answers"') < page.index("<nav") < page.index("<figure") < page.index("<table")
    for anchor, _, sentence in found.values():
        assert re.search(f'<(section|div) id="{anchor}">', page)
        assert sentence.endswith(".")


def test_the_answers_are_those_of_the_model(measured):
    model, run, page = measured
    found = cards(page)
    share = 1 - np.mean(model.loo_residuals_**2) / Y[:300].var()
    assert found["How good is it?"][1] == f"{share:.1%} explained"
    assert f"held-out rows the error is {run.held_out['rms'][0]:.4g}" in found["How good is it?"][2]
    assert found["What matters?"][1] == "column 0"
    widths = np.diff(model.predict_interval(X[300:]), axis=1)
    assert found["How sure is a prediction?"][1] == f"about ± {np.median(widths) / 2:.3g}"
    shown = float(found["How close to exact?"][1].removeprefix("within "))
    assert model.certificate_.bound <= shown < 1.01 * model.certificate_.bound


def test_what_is_not_known_has_no_card():
    gradient = NystromRidge(bandwidth=1.5, solver="gradient", ridge=1e-2, n_landmarks=30, random_state=0).fit(X, Y)
    found = cards(fit_page(gradient, RunRecord(), "1.0"))
    assert list(found) == ["What matters?", "What to mistrust?"]
    assert "unknown errors" in found["What to mistrust?"][2]


def test_many_rows_of_a_class_are_counted_in_full():
    labels = (X[:90, 0] > 0) + 0.0
    model = NystromClassifier("gaussian", bandwidth=1.0, random_state=0)
    run = fit_and_measure(model, open_rows(X[:90], labels, weight=np.full(90, 1234.0)))
    assert f">{1234 * int(labels.sum()):,}</td>" in fit_page(model, run, "1.0")


def test_how_sure_labels_are_is_a_share_of_rows():
    model = NystromClassifier("gaussian", bandwidth=1.0, random_state=0)
    run = fit_and_measure(model, open_rows(X[:90], (X[:90, 0] > 0) + 0.0))
    found = cards(fit_page(model, run, "1.0"))
    assert found["How good is it?"][1] == f"{run.sample['accuracy']:.1%} of labels right"
    assert found["How sure is a prediction?"][1] == f"one label for {run.sample['sets'][2]:.0%} of rows"


def test_coverage_is_shown_in_groups_of_the_prediction(measured):
    _, run, page = measured
    rows = run.held_out
    order = np.argsort(rows["predicted"][0], kind="stable")
    inside = (np.array(rows["lower"][0]) <= rows["observed"][0]) & (rows["observed"][0] <= np.array(rows["upper"][0]))
    groups, predicted = np.array_split(order, 5), np.array(rows["predicted"][0])
    points = [f"{inside[group].mean():.3g} at {np.median(predicted[group]):.3g}" for group in groups]
    assert f"against predicted; share inside: {', '.join(points)}; asked: 90%: 0.9." in page
