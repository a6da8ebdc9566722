"""The command `ridgemark`: one file per command; parse, call, print."""

from __future__ import annotations

import sys

import click

from ridgemark import __version__
from ridgemark.cli.demo import demo
from ridgemark.cli.reproduce import reproduce_command
from ridgemark.errors import RidgemarkError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ridgemark")
def commands() -> None:
    """Kernel ridge regression from a few well-chosen landmarks."""


commands.add_command(demo)
commands.add_command(reproduce_command)


def main() -> None:
    """Run the command; a user's error is one line on stderr and exit code 2."""
    try:
        commands(prog_name="ridgemark")
    except (RidgemarkError, OSError) as error:
        click.echo(f"ridgemark: {error}", err=True)
        sys.exit(2)
