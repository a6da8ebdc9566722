"""`ridgemark info`: what a model file holds, as text and as JSON."""

import json

import numpy as np
import pytest

from ridgemark import ExactKernelRidge, NystromRidge, load


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Models saved from Python."""
    folder = tmp_path_factory.mktemp("models")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    noisy = X[:, 0] + 0.5 * rng.normal(size=90)
    options = {"bandwidth": 1.0, "random_state": 0}
    for name, model, y in (
        ("searched", NystromRidge(n_landmarks=30, **options), noisy),
        ("given", NystromRidge(ridge=1e-2, n_landmarks=30, **options), np.c_[X, X[:, 0]]),
        ("gradient", NystromRidge(ridge=1e-2, n_landmarks=30, solver="gradient", **options), X[:, 0]),
        ("exact", ExactKernelRidge(ridge=1e-2, **options), X[:, 0]),
    ):
        model.fit(X, y).save(folder / name)
    return folder


def lines(out):
    return dict(line.split(maxsplit=1) for line in out.replace("matters most", "matters").splitlines())


def test_info_of_a_fit_has_the_lines_of_the_fit(folder, ridgemark, tmp_path):
    options = ("--target", "y", "--columns", "a,b", "--landmarks", 40, "--test", folder / "new.csv", "--keep-sums")
    _, told, _ = ridgemark("fit", folder / "rows.csv", *options, "-o", tmp_path / "m")
    code, out, errors = ridgemark("info", tmp_path / "m")
    assert (code, errors) == (0, [])
    shown = lines(out)
    for label, value in lines(told.removesuffix(f"{tmp_path / 'm'}\n")).items():
        assert label == "cost" or shown[label] == value
    assert shown["model"] == "NystromRidge, fitted to 700 rows of 'rows.csv', target 'y'"
    assert shown["columns"] == "2: 'a', 'b'"
    assert shown["intervals"] == "yes"
    record = json.loads(ridgemark("info", tmp_path / "m", "--json")[1])
    assert record["feature_names"] == ["a", "b"]
    assert record["bytes"] == (tmp_path / "m").stat().st_size
    model = load(tmp_path / "m")
    y = np.genfromtxt(folder / "rows.csv", delimiter=",", skip_header=1, usecols=4)
    assert record["explained"] == pytest.approx([1 - np.mean(model.loo_residuals_**2) / y.var()])


@pytest.mark.parametrize("name", ["searched", "given", "gradient", "exact"])
def test_info_knows_every_model_saved_from_python(name, saved, ridgemark):
    code, out, errors = ridgemark("info", saved / name)
    assert (code, errors) == (0, [])
    shown = lines(out)
    assert shown["model"].startswith("ExactKernelRidge" if name == "exact" else "NystromRidge")
    assert ("explained" in shown) == (name in ("searched", "given"))
    assert shown["columns"] == "2, without names"
    record = json.loads(ridgemark("info", saved / name, "--json")[1])
    assert (record["n_features"], record["ridge"][0]) == (2, np.atleast_1d(load(saved / name).ridge_)[0])


def test_a_file_that_is_no_model_is_refused(folder, ridgemark):
    code, _, errors = ridgemark("info", folder / "rows.csv")
    assert (code, len(errors)) == (2, 1)
    assert "holds data, not a model" in errors[0]


def test_a_model_saved_without_sums_has_no_intervals(saved, ridgemark, tmp_path):
    path = load(saved / "searched").save(tmp_path / "m", sums=False)
    assert lines(ridgemark("info", saved / "searched")[1])["intervals"] == "yes"
    assert lines(ridgemark("info", path)[1])["intervals"] == "no"
    assert json.loads(ridgemark("info", path, "--json")[1])["intervals"] is False
