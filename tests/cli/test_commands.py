"""The command as a user meets it: help, output, exit codes."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from ridgemark import __version__
from ridgemark.cli import commands


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "ridgemark", *arguments], capture_output=True, text=True, check=False)


def test_the_module_runs_as_the_command():
    assert run("--version").stdout.strip() == f"ridgemark, version {__version__}"


def test_every_command_has_help_with_an_example():
    listing = run("--help")
    assert listing.returncode == 0
    for name in commands.commands:
        assert name in listing.stdout
        shown = CliRunner().invoke(commands, [name, "--help"])
        assert "Example: ridgemark " + name in " ".join(shown.output.split())


def test_the_demo_prints_the_scores_as_a_table():
    result = run("demo")
    assert result.returncode == 0
    assert "effective dimension 24.6" in result.stdout
    assert "largest score" in result.stdout


def test_the_demo_prints_one_json_object_for_machines():
    record = json.loads(run("demo", "--json").stdout)
    assert record["effective_dimension"] == pytest.approx(24.58, abs=0.01)
    assert sum(region["rows"] for region in record["regions"]) == record["n_rows"] == 500
    assert sum(region["share_of_effective_dimension"] for region in record["regions"]) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "arguments", [("demo", "--seed", "x"), ("demo", "--seed", "-1"), ("nonsense",), ("demo", "--x")]
)
def test_a_users_error_is_exit_code_2_without_a_traceback(arguments):
    result = run(*arguments)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert "Error:" in result.stderr


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
