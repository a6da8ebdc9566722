"""The command `ridgemark`: one file per subcommand, which parses options, calls the library and prints."""

import sys
import warnings

import click

from ridgemark import __version__
from ridgemark.cli import bench, certify, demo, effects, fit, predict, report, reproduce, scores
from ridgemark.errors import RidgemarkError, RidgemarkWarning


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog="Begin with: ridgemark demo")
@click.version_option(__version__, prog_name="ridgemark")
def commands() -> None:
    """Kernel ridge regression from a few well-chosen landmarks."""


for module in (bench, certify, demo, effects, fit, predict, report, reproduce, scores):
    commands.add_command(module.command)


def main() -> None:
    """Run the command; a user error prints one line on stderr and exits with code 2."""
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
            remedy = "not enough memory; use fewer landmarks, or a file format that is read in blocks"
            _fail(_with_notes(remedy, error))


def _with_notes(message: str, error: BaseException) -> str:
    """Return a message followed by the notes of its error and of that error's cause."""
    notes = [note for one in (error, error.__cause__) for note in getattr(one, "__notes__", ())]
    return "; ".join([message, *notes])


def _refuse(error: click.UsageError) -> None:
    """Report a usage error and point to --help."""
    path = "ridgemark" if error.ctx is None else error.ctx.command_path
    message = error.format_message()
    if message.startswith("Usage:"):  # called without arguments: the message is the help
        click.echo(message, err=True)
        sys.exit(2)
    _fail(f"{message.rstrip('.')}{'' if message.endswith('?') else ';'} see {path} --help")


def _fail(message: str) -> None:
    """Print the message on one line and exit with code 2."""
    click.echo(f"ridgemark: {' '.join(message.split())}", err=True)
    sys.exit(2)


def _show(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning on one line, without its source location."""
    click.echo(f"ridgemark: {message}", err=True)
