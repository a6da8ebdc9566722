"""The scripts of accuracy and of contenders: their tables, their records and their errors."""

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from ridgemark import NystromRidge
from ridgemark.kernels import Gaussian

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.delenv("RIDGEMARK_DATA", raising=False)


@pytest.fixture
def accuracy(capsys):
    """Run the script of accuracy; returns its output and error lines."""

    def run(*arguments):
        import_module("accuracy").main([*map(str, arguments)])
        printed = capsys.readouterr()
        return printed.out, printed.err.splitlines()

    return run


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_accuracy_needs_no_data_folder_and_makes_no_fit_twice(accuracy, tmp_path, monkeypatch):
    monkeypatch.setattr(import_module("accuracy"), "find_spec", lambda package: None if package == "xrfm" else package)
    records = tmp_path / "fits.jsonl"
    few = ("--rows", 100, "--seeds", 0, "--sets", "diabetes", "--output", records)
    out, said = accuracy(*few, "--methods", "median", "xrfm")
    assert said[0] == "left out, since not installed: xrfm"
    assert [line.split(":")[0] for line in said[1:]] == ["diabetes, split 0, median"]
    assert "| diabetes | 100 | 10 | " in out
    assert accuracy(*few, "--methods", "median") == (out, [])
    assert accuracy("--output", records, "--show") == (out, [])
    out, said = accuracy(*few, "--methods", "nystroem")
    assert len(said) == 1
    assert [record["method"] for record in read(records)] == ["median", "nystroem"]


def test_the_table_shows_medians_over_the_splits_and_ratios_on_the_same_splits():
    fits = [("median", 0, 0.4), ("median", 1, 0.6), ("default", 0, 0.2), ("default", 1, 0.5), ("default", 2, 0.3)]
    about = {"set": "some", "rows": 90, "features": 3, "seconds": 2.0, "landmarks": 7, "machine": "one"}
    text = import_module("accuracy").show([
        {**about, "method": method, "seed": seed, "rmse": error} for method, seed, error in fits
    ])  # fmt: skip
    assert "| some | 90 | 3 | **0.3000** (2 s) | 0.5000 (2 s) |" in text
    assert "| some | 0.667 |  | 7 |" in text
    assert "below 1 on 1 of 1 sets, at most 0.667" in text


def test_accuracy_takes_the_sets_of_a_folder_that_are_no_classes(accuracy, tmp_path):
    X, y = import_module("contenders").synthetic_rows(300, 3)
    np.savez(tmp_path / "some.npz", X=X, y=y)
    np.savez(tmp_path / "classes.npz", X=X, y=(y > 0).astype(int))
    accuracy("--data", tmp_path, "--seeds", 0, 1, "--methods", "median", "--output", tmp_path / "fits.jsonl")
    fits = read(tmp_path / "fits.jsonl")
    assert [(fit["set"], fit["seed"], fit["rows"]) for fit in fits] == [("some", 0, 270), ("some", 1, 270)]
    X, y, X_test, y_test = import_module("accuracy").split(X, y, 1, None)
    model = NystromRidge(bandwidth="median", random_state=1).fit(X, y)
    error = np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)) / y.std()
    assert fits[1]["rmse"] == pytest.approx(error)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--sets", "unknown"), "--sets: there is no unknown; there are diabetes, robot-arm"),
        (("--methods", "median", "trees"), "invalid choice: 'trees'"),
        (("--data", "empty"), "empty has no NAME.npz with arrays X and y"),
        (("--data", "wrong"), "text.npz is not an archive of arrays"),
        (("--output", "wrong/text.npz"), "text.npz is not a record of a fit; give a new file"),
    ],
)
def test_what_accuracy_cannot_use_is_refused_in_words(options, words, accuracy, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for folder in ("empty", "wrong"):
        (tmp_path / folder).mkdir()
    (tmp_path / "wrong" / "text.npz").write_text("text")
    with pytest.raises(SystemExit) as stop:
        accuracy(*options)
    assert words in capsys.readouterr().err + str(stop.value.code)


def test_the_contenders_print_ratios(capsys):
    import_module("contenders").main(["--rows", "2000", "--landmarks", "50", "--repeats", "1"])
    out = capsys.readouterr().out
    assert "times the bare arithmetic" in out
    assert "times as fast as scikit-learn" in out


def test_the_bare_arithmetic_is_that_of_a_fit():
    contenders = import_module("contenders")
    X, y = contenders.synthetic_rows(9000, 4)
    Z = X[:60]
    C = Gaussian(2.0)(X, Z)
    assert np.triu(contenders.bare_fit(X, Z, 2.0)) == pytest.approx(np.triu(C.T @ C))
    assert contenders.bare_predict(X, Z, 2.0, y[:60]) == pytest.approx(C @ y[:60])


def test_contenders_run_in_turn():
    order = []
    calls = {"a": lambda: order.append("a"), "b": lambda: order.append("b")}
    taken = import_module("contenders").in_turn(calls, 3)
    assert order == ["a", "b"] * 3
    assert {name: len(seconds) for name, seconds in taken.items()} == {"a": 3, "b": 3}


def test_a_model_in_use_is_timed_weighed_and_certified():
    in_use, (X, y) = import_module("in_use"), import_module("contenders").synthetic_rows(300, 3)
    ours, peer = (in_use.measure(method, X[:200], y[:200], X[200:], y[200:]) for method in ("median", "boosting"))
    assert min(ours["predict_ms"], ours["cpu_seconds"], peer["predict_ms"], peer["megabytes"]) > 0
    assert 8e-6 * X[:200].size < ours["megabytes"] < 10
    assert 0 <= ours["proved"] < 2
    assert "proved" not in peer
    about = {"set": "kin40k", "seed": 0, "machine": "one"}
    lines = in_use.show([{**about, "method": "default", **ours}, {**about, "method": "boosting", **peer}]).splitlines()
    assert lines[0].count("|") == lines[3].count("|")
    assert lines[3].startswith(f"| kin40k | {ours['cpu_seconds']:.1f} s, ")
