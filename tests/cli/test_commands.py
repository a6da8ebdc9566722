"""The command line: help, output, exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ridgemark import __version__
from ridgemark.cli import COMMANDS, commands, demo
from ridgemark.cli.options import columns
from ridgemark.tuning import Tuner
from tests.helpers import slowly


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "ridgemark", *arguments], capture_output=True, text=True, check=False)


def test_the_module_runs_as_the_command():
    assert run("--version").stdout.strip() == f"ridgemark, version {__version__}"


def test_every_command_has_help_with_an_example():
    listing = run("--help")
    assert listing.returncode == 0
    for name in COMMANDS:
        assert name in listing.stdout
        shown = CliRunner().invoke(commands, [name, "--help"])
        assert "Example: ridgemark " + name in " ".join(shown.output.split())


@pytest.fixture
def small(monkeypatch):
    """A demo of few rows, landmarks and evaluations."""
    tuner = Tuner(rows=200, judging_rows=100, landmarks=40, evaluations=4, kernels=["matern52"])
    for name, value in {"_FITTED": 400, "_HELD_OUT": 200, "_LANDMARKS": 80, "_TUNER": tuner}.items():
        monkeypatch.setattr(demo, name, value)


@pytest.mark.usefixtures("no_figures")
def test_the_demo_compares_fits_and_prints_the_pages_path_last(ridgemark, tmp_path, monkeypatch, small):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ridgemark-demo.html").write_text("of an earlier run")
    code, out, errors = ridgemark("demo")
    assert (code, errors) == (0, [])
    assert "uniform landmarks" in out
    assert out.splitlines()[-1] == str(tmp_path / "ridgemark-demo.html")
    assert [path.name for path in tmp_path.iterdir()] == ["ridgemark-demo.html"]
    assert "Compared with simpler fits" in (tmp_path / "ridgemark-demo.html").read_text()


def test_the_demo_prints_one_json_object_for_machines_also_without_the_extra(ridgemark, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "_FITTED", 2000)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, errors = ridgemark("demo", "--json")
    assert (code, errors) == (0, [])
    record = json.loads(out)
    assert record["page"] is None
    assert list(tmp_path.iterdir()) == []
    arm = record["robot_arm"]
    assert arm["n_features"] == 32
    assert arm["noise"] <= arm["loo_rms"][0] < 1.6 * arm["noise"]
    assert arm["certificate"]["bound"] < 0.1 * arm["loo_rms"][0]
    assert arm["held_out"]["coverage"][0] == pytest.approx(0.9, abs=0.05)
    plain, uniform, tuned = arm["compared"].values()
    assert tuned["error"] < 0.6 * plain["error"]
    assert tuned["bound"] == arm["certificate"]["bound"] < 0.6 * uniform["bound"]


def test_the_demo_says_which_extra_a_page_needs(ridgemark, tmp_path, monkeypatch, small):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, _ = ridgemark("demo")
    assert code == 0
    assert "ridgemark[report]" in out.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments",
    [("nonsense",), *slowly(("demo", "--seed", "x"), ("demo", "--seed", "-1"), ("demo", "--x"))],
)
def test_a_users_error_is_exit_code_2_without_a_traceback(arguments):
    result = run(*arguments)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("ridgemark: ")
    assert result.stderr.endswith("--help\n")


def test_the_command_without_arguments_shows_its_help(ridgemark):
    code, out, errors = ridgemark()
    assert code in (0, 2)  # depends on the version of click
    assert "Commands:" in out + "\n".join(errors)


def test_an_error_of_the_library_is_one_line_and_exit_code_2(monkeypatch, capsys):
    from ridgemark import cli
    from ridgemark.errors import DataError

    def fail(**_):
        raise DataError("column 'x' holds no number in row 3")

    monkeypatch.setattr(cli, "commands", fail)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert capsys.readouterr().err == "ridgemark: column 'x' holds no number in row 3\n"


def test_a_mistyped_command_is_answered_with_the_nearest(ridgemark):
    code, _, errors = ridgemark("preditc", "m")
    assert (code, errors) == (2, ["ridgemark: No such command 'preditc'. Did you mean 'predict'? see ridgemark --help"])


@pytest.mark.parametrize(
    ("text", "names"),
    [("a,b", ["a", "b"]), ('"area, m2",1', ["area, m2", 1]), ("-1", [-1]), (' a , "b" ', ["a", "b"]), ("a b", ["a b"])],
)
def test_columns_are_separated_by_commas_outside_double_quotes(text, names):
    assert columns(text) == names


@pytest.mark.parametrize("text", ["", "a,", ",", '""', "a\rb"])
def test_an_empty_column_name_is_refused(text):
    with pytest.raises(click.BadParameter, match="has an empty name"):
        columns(text)


def test_the_list_of_commands_has_no_truncated_sentence(ridgemark):
    code, out, _ = ridgemark("--help")
    assert code == 0
    assert "..." not in out.split("Commands:")[1]
    assert out.rstrip().endswith("Begin with: ridgemark demo")


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        (("",), {*COMMANDS}),
        (("re",), {"report", "reproduce"}),
        (("--v",), {"--version"}),
        (("info", "--j"), {"--json"}),
    ],
)
def test_the_shell_completes_commands_and_options(typed, completed, ridgemark, monkeypatch):
    words = {"COMP_WORDS": " ".join(["ridgemark", *typed]), "COMP_CWORD": str(len(typed))}
    for name, value in (words | {"_RIDGEMARK_COMPLETE": "bash_complete"}).items():
        monkeypatch.setenv(name, value)
    code, out, errors = ridgemark()
    assert (code, errors) == (0, [])
    assert {line.split(",")[1] for line in out.splitlines()} == completed


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_of_every_shell_is_documented_and_there(shell):
    environment = os.environ | {"_RIDGEMARK_COMPLETE": f"{shell}_source"}
    result = CliRunner().invoke(commands, prog_name="ridgemark", env=environment)
    assert "_RIDGEMARK_COMPLETE" in result.output
    page = Path(__file__).parents[2] / "docs" / "command-line.md"
    assert f"{shell}_source" in page.read_text(encoding="utf-8")
