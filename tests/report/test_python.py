"""`model.report` from Python: the page of every estimator, with rows of the fit, with others, and without any."""

import re
from html import unescape

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import ridgemark
from ridgemark import ExactKernelRidge, NystromClassifier, NystromRegressor, NystromRidge, open_rows
from ridgemark.errors import DataError, ParameterError
from ridgemark.estimators.measuring import numbers

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.usefixtures("no_figures")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 2))
Y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.2 * RNG.normal(size=240)
LABELS = np.where(Y > 0.5, "ill", "well")
COUNTS = RNG.poisson(np.exp(Y)).astype(float)
OPTIONS = {"kernel": "gaussian", "bandwidth": 1.0, "n_landmarks": 25, "random_state": 0}
MODELS = {
    "ridge": (NystromRidge(**OPTIONS), Y),
    "exact": (ExactKernelRidge("gaussian", bandwidth=1.0, ridge=1e-2, n_landmarks=25, random_state=0), Y),
    "classes": (NystromClassifier(**OPTIONS), LABELS),
    "counts": (NystromRegressor("poisson", **OPTIONS), COUNTS),
}
TRAIN, TEST = slice(0, 160), slice(160, 240)


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    model, y = MODELS[request.param]
    return request.param, model.fit(X[TRAIN], y[TRAIN]), y


def text_of(path):
    return unescape(re.sub(r"<[^>]+>", " ", path.read_text(encoding="utf-8")))


def test_every_estimator_writes_its_page_and_shows_held_out_rows(fitted, tmp_path):
    _, model, y = fitted
    path = model.report(tmp_path / "page.html", X[TEST], y[TEST])
    assert path == tmp_path / "page.html"
    assert "80 held-out rows" in text_of(path)
    bare = text_of(model.report(tmp_path / "bare.html"))
    assert "held-out" not in bare
    assert "Every column" in bare


def test_rows_of_the_fit_are_left_out_and_the_model_stays_as_it_is(fitted, tmp_path):
    name, model, y = fitted
    before = model._model
    page = text_of(model.report(tmp_path / "page.html", X[TRAIN], y[TRAIN]))
    assert model._model is before
    if name != "exact":  # which keeps no hashes of its rows
        assert "training rows, each row predicted from the others" in page
        assert "held-out" not in page


def test_a_loaded_model_writes_its_page(fitted, tmp_path):
    name, model, y = fitted
    loaded = ridgemark.load(model.save(tmp_path / "model"))
    page = text_of(loaded.report(tmp_path / "page.html", X[TEST], y[TEST]))
    assert "80 held-out rows" in page
    if name == "ridge":
        assert "A model file has them if all sums were kept" in page


@pytest.mark.parametrize("sums", ["predict", True, False])
def test_whatever_sums_a_file_keeps_its_model_has_a_page(sums, tmp_path):
    model = NystromRidge(**OPTIONS).fit(X[TRAIN], Y[TRAIN])
    loaded = ridgemark.load(model.save(tmp_path / "model", sums=sums))
    assert "80 held-out rows" in text_of(loaded.report(tmp_path / "page.html", X[TEST], Y[TEST]))
    assert "Every column" in text_of(loaded.report(tmp_path / "bare.html"))
    page = text_of(loaded.report(tmp_path / "own.html", X[TRAIN], Y[TRAIN]))
    assert "training rows, each row predicted from the others" in page


def test_targets_of_another_number_are_refused(tmp_path):
    model = NystromRidge(**OPTIONS).fit(X[TRAIN], Y[TRAIN])
    with pytest.raises(DataError, match="predicts 1 target, and the rows have 2"):
        model.report(tmp_path / "page.html", X[TEST], np.c_[Y, Y][TEST])


def test_what_the_rows_kept_show_is_what_all_rows_show():
    for y, more in ((Y, {}), (np.exp(Y), {"target_transform": "log"})):
        model = NystromRidge(**OPTIONS, **more).fit(X[TRAIN], y[TRAIN])
        kept, whole = numbers.kept(model), numbers.sample(model, open_rows(X[TRAIN], y[TRAIN]))
        assert kept["rows"] == whole["rows"]
        for name in ("observed", "predicted", "lower", "upper"):
            assert np.allclose(kept[name], whole[name], rtol=1e-6, atol=1e-8)


def test_an_existing_file_is_replaced_only_when_asked(tmp_path):
    model, y = MODELS["exact"]
    model, path = model.fit(X[TRAIN], y[TRAIN]), tmp_path / "page.html"
    path.write_text("mine")
    with pytest.raises(ParameterError, match="exists already; give another name, or overwrite=True"):
        model.report(path)
    assert path.read_text() == "mine"
    assert "<html" in model.report(path, overwrite=True).read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5,), "path must be the name of an HTML file"),
        (("",), "path must be the name of an HTML file"),
        ((".",), "is a directory"),
        (("no/such/folder/page.html",), "there is no folder"),
        (("page.html", X), "need a target"),
        (("page.html", None, Y), "y needs its rows"),
    ],
)
def test_errors_are_one_clear_line(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = MODELS["exact"][0].fit(X[TRAIN], Y[TRAIN])
    with pytest.raises(ParameterError, match=message) as error:
        model.report(*arguments)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_not_fitted_has_no_page(tmp_path):
    with pytest.raises(NotFittedError):
        NystromRidge().report(tmp_path / "page.html")


def test_a_target_with_a_name_is_called_by_it(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=["area", "age"])
    model = NystromRidge(**OPTIONS).fit(table[TRAIN], Y[TRAIN])
    page = text_of(model.report(tmp_path / "page.html", table[TEST], pandas.Series(Y, name="price")[TEST]))
    assert "price, predicted from 2 columns of 160 rows by NystromRidge" in page


def test_quantiles_of_a_target_without_a_name_are_called_by_their_levels(tmp_path):
    model = NystromRegressor("quantile", quantiles=[0.1, 0.9], **OPTIONS).fit(X[TRAIN], Y[TRAIN])
    page = text_of(model.report(tmp_path / "page.html"))
    assert "target at 0.1" in page
    assert "target 0" not in page
