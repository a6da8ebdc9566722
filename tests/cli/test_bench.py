"""`ridgemark bench`: its output, its contenders and its errors."""

import json

import numpy as np
import pytest

from ridgemark.cli.contenders import bare_fit, bare_predict, in_turn, synthetic_rows
from ridgemark.kernels import Gaussian


def test_bench_prints_ratios(ridgemark):
    code, out, errors = ridgemark("bench", "--rows", 2000, "--landmarks", 50, "--repeats", 1)
    assert (code, errors) == (0, [])
    assert "times the bare arithmetic" in out
    assert "times faster than scikit-learn" in out


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
