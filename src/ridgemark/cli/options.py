"""Options shared by several commands: columns, kernels, numbers or words."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ridgemark.kernels import NAMED as KERNELS

Command = Callable[..., Any]
Key = str | int


def key(text: str) -> Key:
    """Return a column key: digits are a position (-1 is the last) unless a column has that name."""
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def columns(text: str) -> list[Key]:
    """Return column names or positions, separated by commas."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        msg = f"{text!r} has an empty name; give names or positions separated by commas"
        raise click.BadParameter(msg)
    return [key(name) for name in names]


def numbers_or(*words: str) -> Callable[[str], Any]:
    """Return a parser of one of the words, a number, or numbers separated by commas."""

    def number(text: str) -> Any:
        if text in words:
            return text
        try:
            numbers = [float(part) for part in text.split(",")]
        except ValueError:
            msg = f"{text!r} is neither a number nor {' nor '.join(words)}"
            raise click.BadParameter(msg) from None
        return numbers[0] if len(numbers) == 1 else numbers

    return number


def count_or_auto(text: str) -> Any:
    """Return a positive count, or the word auto."""
    if text == "auto":
        return text
    if not re.fullmatch(r"[1-9]\d*", text):
        msg = f"{text!r} is neither a positive count nor auto"
        raise click.BadParameter(msg)
    return int(text)


PATH = click.Path(path_type=Path)

target_option = click.option(
    "--target", type=columns, metavar="COLUMNS", help="Target column, or several separated by commas."
)
columns_option = click.option(
    "--columns",
    type=columns,
    metavar="COLUMNS",
    help="Feature columns separated by commas; by default all columns without another role.",
)
weight_option = click.option(
    "--weight", type=key, metavar="COLUMN", help="Column of sample weights; a weight of 2 counts the row twice."
)
encode_option = click.option(
    "--encode",
    type=columns,
    metavar="COLUMNS",
    help="CSV columns of categories; each becomes one column of 0 and 1 per category.",
)
seed_option = click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(min=0), metavar="NUMBER", help="Random seed."
)
force_option = click.option("--force", is_flag=True, help="Replace existing output files.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")


def kernel_options(command: Command) -> Command:
    """Add the options --kernel and --bandwidth."""
    names = sorted(set(KERNELS) - {"precomputed"})
    command = click.option(
        "--bandwidth",
        default="median",
        show_default=True,
        type=numbers_or("median"),
        metavar="NUMBER",
        help="Kernel bandwidth: median (distance between rows), a number, or one per feature separated by commas.",
    )(command)
    return click.option(
        "--kernel", default="gaussian", show_default=True, type=click.Choice(names), help="Kernel function."
    )(command)
