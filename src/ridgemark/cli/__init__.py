"""The command `ridgemark`: one file per command; parse, call, print."""

from __future__ import annotations

import sys
import warnings

import click

from ridgemark import __version__
from ridgemark.cli.bench import bench_command
from ridgemark.cli.certify import certify_command
from ridgemark.cli.demo import demo
from ridgemark.cli.fit import fit_command
from ridgemark.cli.predict import predict_command
from ridgemark.cli.report import report_command
from ridgemark.cli.reproduce import reproduce_command
from ridgemark.cli.scores import scores_command
from ridgemark.errors import RidgemarkError, RidgemarkWarning

# Remedies in Python, as the library words them, and what they are on the command line.
_REMEDIES = {
    "convert it, or leave the column out with columns=[...]": (
        "convert it, leave the column out with --columns, or make columns of its categories with --encode"
    ),
    "with open_rows(..., columns=[...])": "with --columns",
    "with columns=[...]": "with --columns",
    "give a file that save wrote": "give a model of `ridgemark fit`",
    "load it with kernel=... as the model was made, got none": "use it from Python: ridgemark.load(path, kernel=...)",
    "call calibrate(X, y) with training rows": "give a model of `ridgemark fit`, which keeps them",
}


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog="Begin with: ridgemark demo")
@click.version_option(__version__, prog_name="ridgemark")
def commands() -> None:
    """Kernel ridge regression from a few well-chosen landmarks."""


for command in (
    bench_command,
    certify_command,
    demo,
    fit_command,
    predict_command,
    report_command,
    reproduce_command,
    scores_command,
):
    commands.add_command(command)


def main() -> None:
    """Run the command; a user's error is one line on stderr and exit code 2."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", RidgemarkWarning)
        warnings.showwarning = _show
        try:
            sys.exit(commands(prog_name="ridgemark", standalone_mode=False) or 0)
        except click.Abort as error:
            click.echo(f"ridgemark: {_with_notes('interrupted; nothing was left half-written', error)}", err=True)
            sys.exit(1)
        except click.UsageError as error:
            _refuse(error)
        except (RidgemarkError, OSError) as error:
            _fail(_with_notes(str(error), error))
        except MemoryError as error:
            remedy = "there is not enough memory for this; take fewer landmarks, or a file that is read in blocks"
            _fail(_with_notes(remedy, error))


def _with_notes(message: str, error: BaseException) -> str:
    """Return a message with the notes added to its error, or to the error behind it, on the way."""
    notes = [note for one in (error, error.__cause__) for note in getattr(one, "__notes__", ())]
    return "; ".join([message, *notes])


def _refuse(error: click.UsageError) -> None:
    """Say what is wrong with the command itself, and where its options are listed."""
    path = "ridgemark" if error.ctx is None else error.ctx.command_path
    message = error.format_message()
    if message.startswith("Usage:"):  # called without a word: its message is the help
        click.echo(message, err=True)
        sys.exit(2)
    _fail(f"{message.rstrip('.')}{'' if message.endswith('?') else ';'} see {path} --help")


def _fail(message: str) -> None:
    """Print one line, with a remedy for Python turned into one for the command."""
    said = " ".join(message.split())
    for in_python, here in _REMEDIES.items():
        said = said.replace(in_python, here)
    click.echo(f"ridgemark: {said}", err=True)
    sys.exit(2)


def _show(message: Warning | str, *_: object, **__: object) -> None:
    """Say a warning in one line, without the place in the code that gave it."""
    click.echo(f"ridgemark: {message}", err=True)
