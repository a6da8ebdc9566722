"""Labels on the command line: `fit --classify`, `predict --proba`, `certify`."""

import json

import numpy as np
import pandas as pd
import pytest

from ridgemark import NystromClassifier, load, open_rows
from ridgemark.estimators.measuring.classes import sample
from tests.classes.problems import labelled
from tests.helpers import without_figures

OPTIONS = ["--kernel", "gaussian", "--bandwidth", "1", "--landmarks", "30"]
KEEP = [*OPTIONS, "--keep-sums"]


@pytest.fixture(params=[2, 3])
def files(request, tmp_path):
    X, labels = labelled(400, request.param)
    for name, rows in (("train", slice(0, 300)), ("test", slice(300, 400))):
        table = np.c_[X[rows], labels[rows] + 1]
        np.savetxt(tmp_path / f"{name}.csv", table, delimiter=",", header="a,b,y", comments="", fmt="%.17g")
    return tmp_path


@pytest.fixture
def fit(files, ridgemark):
    def run(*more):
        return ridgemark("fit", files / "train.csv", "--target", "y", "--output", files / "model", *KEEP, *more)

    return run


def test_a_fit_of_labels_prints_how_good_it_is(files, fit):
    code, printed, errors = fit("--classify", "--test", files / "test.csv", "--json")
    assert code == 0, errors
    found = json.loads(printed)
    assert found["classes"] in ([1, 2], [1, 2, 3])
    assert found["held_out"]["accuracy"] > 1 / len(found["classes"])
    assert found["certificate"]["bound"] < 0.1
    _, lines, _ = fit("--classify", "--force")
    assert "log loss" in lines
    assert "of exact kernel logistic regression" in " ".join(lines.split())


def test_labels_tested_on_rows_of_the_fit_are_said_to_be_so(files, fit):
    code, printed, errors = fit("--classify", "--test", files / "train.csv", "--json")
    assert code == 0, errors
    assert "300 of the 300 rows" in errors[-1]
    assert json.loads(printed)["held_out"]["repeated"] == 300
    _, lines, errors = fit("--classify", "--test", files / "test.csv", "--force")
    assert "training rows" not in " ".join([lines, *errors])


def test_test_rows_of_weight_zero_are_left_out(files, fit):
    for name in ("train", "test"):
        table = pd.read_csv(files / f"{name}.csv")
        table["w"] = 3 * (table["a"] > 0)
        table.to_csv(files / f"{name}.csv", index=False)
    table[table["w"] > 0].to_csv(files / "test without.csv", index=False)
    found = []
    for name in ("test.csv", "test without.csv"):
        code, printed, errors = fit("--classify", "--weight", "w", "--test", files / name, "--force", "--json")
        assert code == 0, errors
        found.append(json.loads(printed))
    with_zeros, without = (one["held_out"] for one in found)
    assert with_zeros.keys() == without.keys()
    for key in ("n_rows", "accuracy", "log_loss", "confusion"):
        assert np.allclose(with_zeros[key], without[key], rtol=1e-12)
    assert np.sum(found[0]["held_out"]["confusion"]) == pd.read_csv(files / "test.csv")["w"].sum()
    assert np.sum(found[0]["left_out"]["confusion"]) == pd.read_csv(files / "train.csv")["w"].sum()


def test_probabilities_and_labels_are_written(files, fit, ridgemark):
    fit("--classify")
    model, rows = load(files / "model"), pd.read_csv(files / "test.csv")[["a", "b"]]
    code, _, errors = ridgemark("predict", files / "model", files / "test.csv", "--output", files / "p.csv", "--proba")
    assert code == 0, errors
    written = pd.read_csv(files / "p.csv")
    assert written.columns.tolist() == ["prediction", *(f"probability_{label}" for label in model.classes_)]
    assert written.to_numpy()[:, 1:] == pytest.approx(model.predict_proba(rows))
    assert written["prediction"].tolist() == model.predict(rows).tolist()
    ridgemark("predict", files / "model", files / "test.csv", "--output", files / "p.npy", "--proba")
    assert np.load(files / "p.npy") == pytest.approx(written.to_numpy())
    ridgemark("predict", files / "model", files / "test.csv", "--output", files / "labels.csv")
    assert pd.read_csv(files / "labels.csv")["prediction"].tolist() == model.predict(rows).tolist()


def test_a_fit_of_labels_is_certified_on_its_rows(files, fit, ridgemark):
    fit("--classify")
    code, printed, errors = ridgemark("certify", files / "model", files / "train.csv")
    assert code == 0, errors
    assert "of exact kernel logistic regression on these rows" in " ".join(printed.split())


def test_labels_that_look_like_numbers_are_said_to(tmp_path, ridgemark):
    cells = [f"{k % 7},${k % 24}" for k in range(120)]
    (tmp_path / "money.csv").write_text("\n".join(["a,y", *cells]))
    _, _, errors = ridgemark("fit", tmp_path / "money.csv", "--target", "y", "--output", tmp_path / "model", *OPTIONS)
    assert "if these are numbers or dates, such as '$0', write them as numbers without units" in " ".join(errors)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_text_labels_go_through_all_commands(form, tmp_path, ridgemark):
    X, codes = labelled(400, 3)
    table = pd.DataFrame(X, columns=["a", "b"]).assign(kind=np.array(["fig", "pear", "sour plum"], object)[codes])
    table.loc[7, "kind"] = None
    files = {name: tmp_path / f"{name}.{form}" for name in ("train", "test")}
    getattr(table[:300], f"to_{form}")(files["train"], index=False)
    getattr(table[300:], f"to_{form}")(files["test"], index=False)
    model = tmp_path / "model"
    code, printed, errors = ridgemark(
        "fit", files["train"], "--target", "kind", "--test", files["test"], "--output", model, "--json", *KEEP
    )
    assert code == 0, errors
    assert json.loads(printed)["classes"] == ["fig", "pear", "sour plum"]
    fitted, test = load(model), table[300:]
    right = fitted.score(test[["a", "b"]], test["kind"])
    assert json.loads(printed)["held_out"]["accuracy"] == pytest.approx(right)
    said = " ".join(errors)
    assert "'kind' holds text: classes are fitted, as by --classify" in said
    assert "1 of the 300 rows" in said
    ridgemark("predict", model, files["test"], "--output", tmp_path / "labels.csv")
    labels = fitted.predict(test[["a", "b"]]).tolist()
    assert pd.read_csv(tmp_path / "labels.csv")["prediction"].tolist() == labels
    for name in ("labels.parquet", "labels.npy"):
        assert ridgemark("predict", model, files["test"], "--output", tmp_path / name)[0] == 0
    assert np.load(tmp_path / "labels.npy").tolist() == labels
    assert pd.read_parquet(tmp_path / "labels.parquet")["prediction"].tolist() == labels
    ridgemark("predict", model, files["test"], "--proba", "--output", tmp_path / "p.csv")
    assert pd.read_csv(tmp_path / "p.csv").columns.tolist() == [
        "prediction",
        "probability_fig",
        "probability_pear",
        "probability_sour plum",
    ]
    assert pd.read_csv(tmp_path / "p.csv")["prediction"].tolist() == labels
    code, _, errors = ridgemark("predict", model, files["test"], "--proba", "--output", tmp_path / "p.npy")
    assert code == 2
    assert "can hold only numbers, and the labels are text; write .csv or .parquet" in errors[-1]
    code, printed, errors = ridgemark("certify", model, files["train"])
    assert code == 0, errors
    assert "of exact kernel logistic regression on these rows" in " ".join(printed.split())


def test_labels_are_tested_on_rows_with_text_columns(tmp_path, ridgemark):
    X, codes = labelled(200, 2)
    table = pd.DataFrame({"a": X[:, 0], "town": np.where(X[:, 1] > 0, "Oslo", "Rome"), "y": codes})
    table.to_csv(tmp_path / "rows.csv", index=False)
    code, printed, errors = ridgemark(
        *("fit", tmp_path / "rows.csv", "--target", "y", "--classify", "--test", tmp_path / "rows.csv"),
        *("--output", tmp_path / "model", "--json", *OPTIONS),
    )
    assert code == 0, errors
    right = load(tmp_path / "model").score(open_rows(tmp_path / "rows.csv", target="y"))
    assert json.loads(printed)["held_out"]["accuracy"] == pytest.approx(right)


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--certify", "trace"], "--certify must be audit"), (["--ridge", "gcv"], "is for squared errors")],
)
def test_what_has_no_meaning_for_labels_is_refused(fit, options, words):
    code, _, errors = fit("--classify", *options)
    assert code == 2
    assert words in " ".join(errors)


def test_labels_unknown_to_the_fit_are_refused_before_it(files, fit):
    table = pd.read_csv(files / "test.csv")
    table.loc[3, "y"] = 9
    table.to_csv(files / "other.csv", index=False)
    code, _, errors = fit("--classify", "--test", files / "other.csv")
    assert code == 2
    assert "no row of the fit has the label '9.0'" in " ".join(errors)
    assert not (files / "model").exists()


def test_a_text_of_nearly_every_row_is_not_a_class(tmp_path, ridgemark):
    (tmp_path / "rows.csv").write_text("a,y\n" + "".join(f"{k},{k * 7}%\n" for k in range(50)))
    code, _, errors = ridgemark("fit", tmp_path / "rows.csv", "--target", "y", "--output", tmp_path / "model", *OPTIONS)
    assert code == 2
    assert "the target holds 50 different texts in 50 rows, such as '0%'; it must hold labels" in " ".join(errors)


def test_a_target_with_nearly_as_many_numbers_as_rows_is_refused_before_the_fit(tmp_path, ridgemark, monkeypatch):
    monkeypatch.setattr("ridgemark.estimators.NystromClassifier.fit", None)
    (tmp_path / "rows.csv").write_text("a,y\n" + "".join(f"{k},{k * (k < 35)}\n" for k in range(50)))
    options = ("--target", "y", "--classify", "--output", tmp_path / "model", *OPTIONS)
    code, _, errors = ridgemark("fit", tmp_path / "rows.csv", *options)
    assert code == 2
    assert "the target holds 35 different numbers in 50 rows, such as '0.0'; it must hold labels" in " ".join(errors)


def test_the_page_of_classes_shows_errors_rows_and_effects(files, fit, ridgemark):
    pytest.importorskip("matplotlib")
    code, _, errors = fit("--classify", "--test", files / "test.csv", "--report", files / "page.html")
    assert code == 0, errors
    page = (files / "page.html").read_text(encoding="utf-8")
    model, table = load(files / "model"), pd.read_csv(files / "test.csv")
    right = model.score(table[["a", "b"]], table["y"])
    for words in (
        f"{right:.1%} of labels right",
        "of exact kernel logistic regression on these rows",
        "On the diagonal, probabilities are what they say",
        "Labels (rows) and most probable labels (columns) of held-out rows",
        "right when predicted (precision)",
        "The most influential rows, numbered from 0",
        "Average effects on the log-odds",
    ):
        assert words in page, words
    with without_figures():
        assert ridgemark("report", files / "model", "--output", files / "again.html")[0] == 0
    assert f"{right:.1%} of labels right" in (files / "again.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("repeats", [1, np.arange(1, 5)])
def test_effects_on_the_page_count_rows_as_often_as_they_are_there(repeats):
    X, labels = (np.repeat(values, np.resize(repeats, 80), axis=0) for values in labelled(80, 2))
    rows = open_rows(X, target=labels.astype(float))
    model = NystromClassifier("gaussian", bandwidth=1.0, ridge=1e-3, random_state=0).fit(rows)
    found = [one["average"] for one in sample(model, rows)["effects"]]
    assert found == pytest.approx(model.effects_summary(X).average[:, 0])


def test_info_and_effects_of_classes_are_told(files, fit, ridgemark):
    fit("--classify")
    code, printed, errors = ridgemark("info", files / "model")
    assert code == 0, errors
    assert "each row predicted from the others" in " ".join(printed.split())
    assert "target 'y'\n" in printed
    assert (
        json.loads(ridgemark("info", files / "model", "--json")[1])["classes"]
        == load(files / "model").classes_.tolist()
    )
    options = ("--columns", "a,b", "--output", files / "effects.csv")
    code, printed, errors = ridgemark("effects", files / "model", files / "test.csv", *options)
    assert code == 0, errors
    n_classes = len(load(files / "model").classes_)
    assert printed.count("Average effects on the log-odds of") == (1 if n_classes == 2 else n_classes)
    assert pd.read_csv(files / "effects.csv").shape == (100, 2 if n_classes == 2 else 2 * n_classes)


def test_numbers_have_no_probabilities(files, fit, ridgemark):
    fit()
    code, _, errors = ridgemark("predict", files / "model", files / "test.csv", "--output", files / "p.csv", "--proba")
    assert code == 2
    assert "has no predict_proba" in " ".join(errors)


@pytest.mark.parametrize("labels", [("01", "02"), ("01", "1"), ("0", "1+")])
def test_labels_that_are_not_all_plain_numbers_are_text(labels, ridgemark, tmp_path):
    x = np.random.default_rng(0).normal(size=60).tolist()
    rows, some, model = tmp_path / "rows.csv", tmp_path / "some.csv", tmp_path / "m"
    lines = [f"{value!r},{labels[value > 0]}" for value in x]
    rows.write_text("\n".join(["x,y", *lines]))
    some.write_text("\n".join(["x,y", *(line for line in lines if line.endswith(labels[1]))]))
    fit = ("fit", rows, "-t", "y", *KEEP, "-o")
    code, printed, errors = ridgemark(*fit, model, "--classify", "--test", some, "--json")
    assert code == 0, errors
    assert json.loads(printed)["classes"] == list(labels)
    assert ridgemark("certify", model, rows)[0] == 0
    assert ridgemark("predict", model, rows, "-o", tmp_path / "p.csv")[0] == 0
    assert {*(tmp_path / "p.csv").read_text().splitlines()} == {"prediction", *labels}
    code, _, errors = ridgemark(*fit, tmp_path / "numbers")
    if "1+" in labels:
        assert code == 2 and "--classify" in " ".join(errors)
    else:
        assert not hasattr(load(tmp_path / "numbers"), "classes_")


@pytest.mark.parametrize("labels", [("01", "1"), ("False", "True"), ("1", "2")])
def test_text_labels_of_a_typed_file_are_text_in_a_csv_file(labels, ridgemark, tmp_path):
    x = np.random.default_rng(0).normal(size=60)
    table = pd.DataFrame({"x": x, "y": np.array(labels)[(x > 0).astype(int)]})
    table.to_parquet(tmp_path / "rows.parquet")
    table.to_csv(tmp_path / "rows.csv", index=False)
    fit = ("fit", tmp_path / "rows.parquet", "-t", "y", *KEEP, "--classify", "-o", tmp_path / "m")
    code, printed, errors = ridgemark(*fit, "--test", tmp_path / "rows.csv", "--json")
    assert code == 0, errors
    assert json.loads(printed)["held_out"]["repeated"] == 60
    assert ridgemark("certify", tmp_path / "m", tmp_path / "rows.csv")[0] == 0


@pytest.mark.parametrize("option", [(), ("--delimiter", ",")])
def test_what_is_said_of_a_csv_file_is_not_asked_of_typed_test_rows(option, ridgemark, tmp_path):
    x = np.random.default_rng(0).normal(size=60)
    table = pd.DataFrame({"x": x, "y": np.where(x > 0, "01", "1")})
    table.to_parquet(tmp_path / "rows.parquet")
    table.to_csv(tmp_path / "rows.csv", index=False)
    fit = ("fit", tmp_path / "rows.csv", "-t", "y", *OPTIONS, "--classify", "-o", tmp_path / "m", *option)
    code, _, errors = ridgemark(*fit, "--test", tmp_path / "rows.parquet")
    assert code == 0, errors
