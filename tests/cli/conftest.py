"""Fixtures that run commands in this process, on small files."""

import sys

import numpy as np
import pytest

from ridgemark.cli import main
from tests.helpers import tuned_quickly

ODD = "<script>alert(1)</script>"


def write_rows(path, n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)
    colours = rng.choice(["red", "blue", "=green"], n)
    rows = zip(X.tolist(), colours, y.tolist(), strict=True)
    lines = [f"{a!r},{b!r},{c!r},{colour},{t!r}" for (a, b, c), colour, t in rows]
    path.write_text(f"a,b,{ODD},colour,y\n" + "\n".join(lines) + "\n")


@pytest.fixture(scope="package", autouse=True)
def quick_tuning():
    """Make default tuning take few rows and one kernel."""
    with tuned_quickly():
        yield


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """rows.csv and new.csv, with a column of categories and a column whose name is HTML."""
    made = tmp_path_factory.mktemp("commands")
    write_rows(made / "rows.csv", 700, 0)
    write_rows(made / "new.csv", 150, 1)
    return made


@pytest.fixture
def ridgemark(monkeypatch, capsys):
    """Run a command; returns exit code, output and error lines."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["ridgemark", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        printed = capsys.readouterr()
        return stop.value.code or 0, printed.out, printed.err.splitlines()

    return run
