"""Ctrl-C at any moment: exit code 130, one line, no traceback, nothing half-written; and a command that starts fast."""

import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from ridgemark.cli import COMMANDS

# Says that it is ready once the command listens; nothing is imported before that the command does not import.
_BEGIN = """
import contextlib, ridgemark.__main__ as command

listening = command.ending_at_once

@contextlib.contextmanager
def ready():
    with listening():
        print("ready", flush=True)
        yield

command.ending_at_once = ready
command.main()
"""
# A shell starts its background jobs with SIGINT ignored, and their children inherit that.
_LISTEN = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "


def start(*arguments):
    """Start the command; returns once the interpreter itself has started."""
    process = subprocess.Popen(
        [sys.executable, "-c", _LISTEN + _BEGIN, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    return process


def interrupt(seconds, *arguments):
    with start(*arguments) as process:
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=120)
    return process.returncode, out, errors.splitlines()


@pytest.mark.parametrize(
    "seconds",
    [0.0, 0.8] + [pytest.param(k / 8, marks=pytest.mark.slow) for k in range(1, 48)],
)
def test_ctrl_c_is_one_line_and_code_130_at_every_moment_of_a_fit(seconds, tmp_path):
    rows = np.random.default_rng(0).normal(size=(40_000, 6))
    np.save(tmp_path / "rows.npy", rows)
    options = ("--target", -1, "--landmarks", 2000, "--bandwidth", 2, "--certify", "audit", "--output", tmp_path / "m")
    code, out, errors = interrupt(seconds, "fit", tmp_path / "rows.npy", *options)
    told = [line for line in errors if "Ctrl-C" not in line]
    assert (code, out, len(told)) == (130, "", 1), errors
    assert told[0].startswith("ridgemark: interrupted")
    assert [path.name for path in tmp_path.iterdir()] == ["rows.npy"]


def test_an_interrupted_fit_says_how_to_go_on(tmp_path, ridgemark, monkeypatch):
    def interrupted(model, source, checkpoint):
        raise KeyboardInterrupt

    monkeypatch.setattr("ridgemark.estimators.NystromRidge.fit", interrupted)
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(40, 3)))
    command = "fit", tmp_path / "rows.npy", "--target", -1, "--output", tmp_path / "m"
    for options, remedy in (
        ((), "a fit with --checkpoint FILE goes on when the same command is run again"),
        (("--checkpoint", "kept"), "run the same command again to go on: 'kept' keeps what was computed"),
    ):
        code, _, (said,) = ridgemark(*command, *options)
        assert code == 130
        assert said == f"ridgemark: interrupted; nothing was left half-written; {remedy}"


def test_a_job_whose_shell_ignores_ctrl_c_goes_on(tmp_path):
    ignoring = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", sys.executable, "-c", _BEGIN, "--version"]
    with subprocess.Popen(ignoring, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert (process.returncode, out.startswith("ridgemark, version")) == (0, True)


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_take_less_than_half_a_second(option):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "ridgemark", option], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5


def test_the_list_of_commands_imports_none_of_them():
    code = (
        "import sys; from ridgemark.cli import commands; commands(['-h'], standalone_mode=False); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    *listed, modules = done.stdout.strip().splitlines()
    assert all(any(line.split()[:1] == [name] for line in listed) for name in COMMANDS)
    assert not {"numpy", "rich", "ridgemark.cli.fit"} & set(modules.split())
