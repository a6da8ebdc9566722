"""`ridgemark bench`: its output, its contenders and its errors."""

import json

import numpy as np
import pytest

from ridgemark import NystromRidge
from ridgemark.cli.contenders import bare_fit, bare_predict, in_turn, synthetic_rows
from ridgemark.cli.scoreboard import split
from ridgemark.kernels import Gaussian


def test_bench_prints_ratios(ridgemark):
    code, out, errors = ridgemark("bench", "--rows", 2000, "--landmarks", 50, "--repeats", 1)
    assert (code, errors) == (0, [])
    assert "times the bare arithmetic" in out
    assert "times as fast as scikit-learn" in out


def test_bench_prints_json(ridgemark):
    code, out, _ = ridgemark("bench", "--rows", 2000, "--landmarks", 50, "--repeats", 2, "--json")
    found = json.loads(out)
    assert code == 0
    for kind in ("fit", "predict"):
        assert 0 < found[kind]["ridgemark_seconds"] < 60
        assert 0 < found[kind]["over_bare"] < 1000


def test_more_landmarks_than_rows_are_refused_in_one_line(ridgemark):
    code, _, errors = ridgemark("bench", "--rows", 1000, "--landmarks", 2000)
    assert code == 2
    assert errors == ["ridgemark: --landmarks must be at most --rows, got 2000 and 1000; see ridgemark bench --help"]


def test_accuracy_needs_no_data_folder_and_makes_no_fit_twice(ridgemark, tmp_path, monkeypatch):
    monkeypatch.delenv("RIDGEMARK_DATA", raising=False)
    monkeypatch.setattr("ridgemark.cli.scoreboard.find_spec", lambda package: None if package == "xrfm" else package)
    records = tmp_path / "fits.jsonl"
    few = ("bench", "--accuracy", "--rows", 100, "--repeats", 1, "--sets", "diabetes", "--records", records)
    code, out, said = ridgemark(*few, "--methods", "median,xrfm")
    assert code == 0
    assert said[0] == "ridgemark: left out, since not installed: xrfm"
    assert [line.split(":")[0] for line in said[1:]] == ["diabetes, split 0, median"]
    assert "| diabetes | 100 | 10 | " in out
    code, again, said = ridgemark(*few, "--methods", "median")
    assert (code, again, said) == (0, out, [])
    code, out, said = ridgemark(*few, "--methods", "nystroem", "--json")
    assert (code, len(said)) == (0, 1)
    assert [one["method"] for one in json.loads(out)["fits"]] == ["median", "nystroem"]


def test_accuracy_takes_the_sets_of_a_folder_that_are_no_classes(ridgemark, tmp_path):
    X, y = synthetic_rows(300, 3)
    np.savez(tmp_path / "some.npz", X=X, y=y)
    np.savez(tmp_path / "classes.npz", X=X, y=(y > 0).astype(int))
    accuracy = ("bench", "--accuracy", "--data", tmp_path, "--repeats", 2, "--methods", "median", "--json")
    code, out, _ = ridgemark(*accuracy)
    assert code == 0
    fits = json.loads(out)["fits"]
    assert [(one["set"], one["seed"], one["rows"]) for one in fits] == [("some", 0, 270), ("some", 1, 270)]
    X, y, X_test, y_test = split(X, y, 1, None)
    model = NystromRidge(bandwidth="median", random_state=1).fit(X, y)
    error = np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)) / y.std()
    assert fits[1]["rmse"] == pytest.approx(error)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--sets", "diabetes"), "are options of --accuracy; add it"),
        (("--accuracy", "--sets", "diabetes", "--methods", "median", "--device", "magic"), "device must be"),
        (("--accuracy", "--landmarks", 9), "are not options of --accuracy"),
        (("--accuracy", "--sets", "unknown"), "--sets: there is no 'unknown'; there are 'diabetes', 'robot-arm'"),
        (("--accuracy", "--methods", "median,trees"), "--methods: there is no 'trees'; there are 'default'"),
        (("--accuracy", "--data", "empty"), "'empty' has no NAME.npz with arrays X and y"),
        (("--accuracy", "--data", "wrong"), "'wrong/text.npz' is not an archive of arrays"),
        (("--accuracy", "--records", "wrong/text.npz"), "line 1 of 'wrong/text.npz' is not a record of this command"),
    ],
)
def test_what_accuracy_cannot_use_is_refused_in_one_line(options, words, ridgemark, tmp_path, monkeypatch):
    monkeypatch.delenv("RIDGEMARK_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    for folder in ("empty", "wrong"):
        (tmp_path / folder).mkdir()
    (tmp_path / "wrong" / "text.npz").write_text("text")
    code, _, errors = ridgemark("bench", *options)
    assert (code, len(errors)) == (2, 1)
    assert words in errors[0]


def test_the_bare_arithmetic_is_that_of_a_fit():
    X, y = synthetic_rows(9000, 4)
    Z = X[:60]
    C = Gaussian(2.0)(X, Z)
    assert np.triu(bare_fit(X, Z, 2.0)) == pytest.approx(np.triu(C.T @ C))
    assert bare_predict(X, Z, 2.0, y[:60]) == pytest.approx(C @ y[:60])


def test_contenders_run_in_turn():
    order = []
    taken = in_turn({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 3)
    assert order == ["a", "b"] * 3
    assert {name: len(seconds) for name, seconds in taken.items()} == {"a": 3, "b": 3}
