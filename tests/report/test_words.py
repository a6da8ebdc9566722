"""A fit in words: how good it is, what chose it, and only bounds that say something."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from ridgemark import NystromRidge
from ridgemark.fitted import RunRecord
from ridgemark.report.fit_page import fit_page
from ridgemark.report.fit_words import tuning_lines
from ridgemark.report.number_page import path_figure
from ridgemark.report.promises import distance_words
from ridgemark.report.quality import explained, how_much, quality_lines

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
SMOOTH = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=600)
ROUGH = np.sin(9 * X[:, 0]) * np.sin(9 * X[:, 1])
NOISE = RNG.normal(size=600)


def fitted(y, **options):
    return NystromRidge(**({"bandwidth": 1.0, "n_landmarks": 60, "random_state": 0} | options)).fit(X, y)


@pytest.mark.parametrize(("share", "word"), [(0.9, "most"), (0.3, "part"), (0.01, "hardly"), (-0.2, "hardly")])
def test_the_share_of_variance_has_a_word(share, word):
    assert how_much(share).startswith(word)


def test_variance_explained_is_that_of_leave_one_out():
    model = fitted(SMOOTH)
    share = 1.0 - np.mean(model.loo_residuals_**2) / SMOOTH.var()
    assert explained(model) == pytest.approx([share])
    lines = dict(quality_lines(model, ["y"]))
    assert lines["explained"].startswith(f"{share:.1%} of the variance of 'y' (most of it)")
    rms = np.sqrt(np.mean(model.loo_residuals_**2))
    assert lines["error"] == f"RMS {rms:.4g} in units of 'y', {rms / SMOOTH.std():.3g} of its standard deviation"


def test_every_target_has_its_own_word():
    line = dict(quality_lines(fitted(np.c_[SMOOTH, NOISE], ridge=[1.0, 1e-2, 1e-6]), ["a", "b"]))["explained"]
    assert re.search(r"'a' \(most of it\), 0\.0% of the variance of 'b' \(hardly anything\)", line)


@pytest.mark.filterwarnings("ignore::ridgemark.errors.ColumnWarning")  # the target is constant
def test_a_constant_target_and_a_gradient_fit_have_no_variance_explained():
    assert explained(fitted(np.ones(600), ridge=[1e-1, 1e-2])) == [None]
    gradient = fitted(SMOOTH, ridge=1e-2, solver="gradient")
    assert quality_lines(gradient, ["y"]) == [("explained", None), ("error", None), ("equal rows", None)]
    assert distance_words(gradient) is None


def test_what_was_given_is_not_called_tuned():
    lines = dict(tuning_lines(fitted(SMOOTH, ridge=1e-2)))
    assert lines["kernel"] == "Gaussian(bandwidth=1.0)"
    assert lines["lambda"] == "0.01 (given)"
    assert dict(tuning_lines(fitted(SMOOTH, bandwidth="median")))["kernel"].endswith("(the median distance)")


def test_landmarks_that_are_all_rows_were_not_chosen():
    few = NystromRidge(bandwidth=1.0, ridge=1e-2, random_state=0).fit(X[:50], SMOOTH[:50])
    assert dict(tuning_lines(few))["landmarks"] == "all 50 distinct rows"


@pytest.mark.usefixtures("no_figures")
def test_a_bound_that_says_nothing_is_not_shown():
    rough = fitted(ROUGH, bandwidth=0.2, ridge=1e-6)
    assert rough.certificate_.vacuous
    assert rough.certificate_.risk_factor > 10
    page = fit_page(rough, RunRecord(), "1.0")
    text = re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL)
    assert "Not known (the trace bound is not informative for this fit)" in text
    unwanted = ("Fitted values are within", "distance to exact, at most", "risk over that", "draws", "in-sample risk")
    assert not [words for words in unwanted if words in text]
    assert (
        distance_words(rough)
        == "not known (the trace bound is not informative for this fit); `ridgemark certify` measures it"
    )
    close = fitted(SMOOTH, bandwidth=3.0, ridge=1e-2)
    assert "distance to exact, at most" in fit_page(close, RunRecord(), "1.0")
    assert distance_words(close).startswith("within RMS ")


@pytest.mark.parametrize(
    ("times", "share"), [(1e-4, "below 0.1%"), (0.0214, "2.2%"), (0.996, "100%"), (2.21, "230%"), (139.5, "14,000%")]
)
def test_the_distance_is_a_share_of_the_error_without_an_exponent(times, share, monkeypatch):
    model = fitted(SMOOTH, certify_with="audit")
    bounds = np.atleast_1d(model.certificate_.bound)
    monkeypatch.setattr("ridgemark.report.promises.fitted_error", lambda _: bounds / times)
    assert f", {share} of the error" in distance_words(model)


def test_the_figure_of_lambdas_says_which_errors_are_of_a_sample(monkeypatch):
    whole = fitted(SMOOTH)
    monkeypatch.setattr("ridgemark.fitting.stages._WHOLE_PATH", 20)
    batches = fitted(SMOOTH).partial_fit(X[:9], SMOOTH[:9])
    for model, words in (
        (whole, "The training error"),
        (fitted(SMOOTH), "Errors at other lambdas are those of a sample of the rows."),
        (batches, "Errors are those of a sample of the rows."),
    ):
        path = model.ridge_path_
        text = str(path_figure(SimpleNamespace(model=model, fitted_spread=[float(SMOOTH.std())]), path))
        assert f"leave-one-out chose {model.ridge_:.3g}. {words}" in text
        error = np.sqrt(path.loo_error[path.chosen[0], 0]) / SMOOTH.std()
        assert f"chosen: {error:.3g} at {model.ridge_:.3g}" in text
