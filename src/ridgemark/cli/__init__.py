"""The command `ridgemark`: one file per subcommand, which parses options, calls the library and prints."""

import difflib
import os
import sys
import warnings
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from ridgemark import __version__
from ridgemark.errors import RidgemarkError, RidgemarkWarning
from ridgemark.interrupts import INTERRUPTED, ending_at_once

COMMANDS = {
    "certify": "Bound how far a model is from exact.",
    "demo": "Run a small example and write a page about it.",
    "effects": "Say what each column does to the predictions.",
    "explain": "Say what each column contributes to the prediction for some rows.",
    "fit": "Fit a model to the rows of a file.",
    "info": "Say what a model file holds.",
    "predict": "Predict the target for the rows of a file.",
    "report": "Write an HTML page about a model.",
    "reproduce": "Repeat the paper's experiments and write a page.",
    "scores": "Bound the leverage scores of the rows.",
}


class _Commands(click.Group):
    """Commands whose modules are imported when they are called; the list of commands imports none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        with ending_at_once():
            return import_module(f"{__name__}.{cmd_name}").command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        near = [] if args[0] in COMMANDS else difflib.get_close_matches(args[0], COMMANDS, n=1)
        if near:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [CompletionItem(name, help=line) for name, line in COMMANDS.items() if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:  # click would print an empty line
            raise click.Abort from error


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog="Begin with: ridgemark demo"
)
@click.version_option(__version__, prog_name="ridgemark")
def commands() -> None:
    """Kernel ridge regression from a few well-chosen landmarks."""


def main() -> None:
    """Run the command; a user error prints one line on stderr and exits with code 2."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", RidgemarkWarning)
        warnings.showwarning = _show
        try:
            sys.exit(commands(prog_name="ridgemark", standalone_mode=False) or 0)
        except click.Abort as error:
            _fail(_with_notes("interrupted; nothing was left half-written", error), INTERRUPTED)
        except click.UsageError as error:
            _refuse(error)
        except BrokenPipeError:  # the program that reads the output has ended
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.exit(1)
        except (RidgemarkError, OSError) as error:
            _fail(_with_notes(str(error), error))
        except MemoryError as error:
            remedy = "not enough memory; use fewer landmarks, or a file format that is read in blocks"
            _fail(_with_notes(remedy, error))


def _with_notes(message: str, error: BaseException) -> str:
    """Return a message followed by the notes of its error and of that error's cause."""
    notes = [note for source in (error, error.__cause__) for note in getattr(source, "__notes__", ())]
    return "; ".join([message, *notes])


def _refuse(error: click.UsageError) -> None:
    """Report a usage error and point to --help."""
    path = "ridgemark" if error.ctx is None else error.ctx.command_path
    message = error.format_message()
    if message.startswith("Usage:"):  # called without arguments: the message is the help
        click.echo(message, err=True)
        sys.exit(2)
    _fail(f"{message.rstrip('.')}{'' if message.endswith('?') else ';'} see {path} --help")


def _fail(message: str, code: int = 2) -> None:
    """Print the message on one line and exit."""
    click.echo(f"ridgemark: {' '.join(message.split())}", err=True)
    sys.exit(code)


def _show(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning on one line, without its source location."""
    click.echo(f"ridgemark: {message}", err=True)
