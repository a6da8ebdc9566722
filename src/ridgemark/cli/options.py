"""Options shared by several commands: columns, kernels, numbers or words."""

import csv
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import Any

import click

from ridgemark.errors import ParameterError
from ridgemark.kernels import NAMED as KERNELS
from ridgemark.tuning import LEVELS

Command = Callable[..., Any]
Key = str | int


def key(text: str) -> Key:
    """Return a column key: digits are a position (-1 is the last) unless a column has that name."""
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def columns(text: str) -> list[Key]:
    """Return column names or positions, separated by commas; a name that has a comma stands in double quotes."""
    try:
        names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True))]
    except csv.Error:  # a line end outside quotes
        names = []
    if not names or not all(names):
        raise click.BadParameter(f"{text!r} has an empty name; give names or positions separated by commas")
    return [key(name) for name in names]


def character(text: str) -> str:
    """Return one character; the word tab and a backslash with t are a tab."""
    return "\t" if text in ("tab", r"\t") else text


def numbers_or(*words: str) -> Callable[[str], Any]:
    """Return a parser of one of the words, a number, or numbers separated by commas."""

    def number(text: str) -> Any:
        if text in words:
            return text
        try:
            numbers = [float(part) for part in text.split(",")]
        except ValueError:
            raise click.BadParameter(f"{text!r} is neither a number nor {' nor '.join(words)}") from None
        return numbers[0] if len(numbers) == 1 else numbers

    return number


def count_or_auto(text: str) -> Any:
    """Return a positive count, or the word auto."""
    if text == "auto":
        return text
    if not re.fullmatch(r"[1-9]\d*", text):
        raise click.BadParameter(f"{text!r} is neither a positive count nor auto")
    return int(text)


class _DataPath(click.Path):
    """A data file; `-` is the standard input, copied to a temporary file, since fits read the rows several times."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value != "-" or ctx is None:
            return super().convert(value, param, ctx)
        if sys.stdin is None:  # as under a service that closes it
            raise ParameterError("the standard input is closed; give DATA as a file, or pipe rows into the command")
        folder = Path(ctx.with_resource(tempfile.TemporaryDirectory(prefix="ridgemark-")))
        copy = folder / "standard-input"
        with copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        with copy.open("rb") as file:
            start = file.read(6)
        ending = next((ending for magic, ending in _FORMATS.items() if start.startswith(magic)), ".csv")
        return copy.rename(copy.with_suffix(ending))


class _OutputPath(click.Path):
    """A file to write; `-` is the standard output."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert("/dev/stdout" if value == "-" else value, param, ctx)


_FORMATS = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"\x93NUMPY": ".npy", b"PK": ".npz", b"\x1f\x8b": ".csv.gz"}
PATH, DATA, OUTPUT = click.Path(path_type=Path), _DataPath(path_type=Path), _OutputPath(path_type=Path)


def command(name: str, example: str) -> Command:
    """Return the decorator of a command; its help ends with an example."""
    return click.command(name, epilog=f"Example: ridgemark {name} {example}")


def option(names: str, kind: Any, help: str, metavar: str | None = None, default: Any = None) -> Command:
    """Return an option with a value and one or two names, "--long -l"; its default, if there is one, is shown."""
    return click.option(*names.split(), default=default, show_default=True, type=kind, metavar=metavar, help=help)


def choice_option(name: str, words: list[str], help: str) -> Command:
    """Return an option whose value is one of some words, by default the first."""
    return option(name, click.Choice(words), help, default=words[0])


def flag(name: str, help: str) -> Command:
    """Return an option without a value."""
    return click.option(name, is_flag=True, help=help)


def column_option(names: str, help: str) -> Command:
    """Return an option that names columns; given several times, it names all of them."""
    return click.option(
        *names.split(),
        multiple=True,
        type=columns,
        metavar="COLUMNS",
        help=help,
        callback=lambda _context, _option, lists: list(chain.from_iterable(lists)) or None,
    )


def output_option(help: str, kind: click.Path = OUTPUT) -> Command:
    """Return the option that names what to write, which is required."""
    return click.option("--output", "-o", required=True, type=kind, help=help)


def count_option(name: str, help: str, default: int | None = None, lowest: int = 1) -> Command:
    """Return an option whose value is an integer of at least `lowest`."""
    return option(name, click.IntRange(min=lowest), help, "COUNT", default)


def device_option(default: str | None = None) -> Command:
    """Return the option that says where to compute; without a default that is where the model was fitted."""
    said = "" if default else "; by default that of the fit"
    return option("--device", str, f"Where to compute: cpu, cuda (a GPU), cuda:1, ... or auto{said}.", "NAME", default)


def together(*options: Command) -> Command:
    """Return several options as one decorator."""
    return lambda command: reduce(lambda inner, option: option(inner), reversed(options), command)


target_option = column_option(
    "--target -t", "Target column, or several separated by commas; a name with a comma stands in double quotes."
)
columns_option = column_option(
    "--columns", "Feature columns separated by commas; by default all columns without another role."
)
weight_option = option("--weight", key, "Column of sample weights; a weight of 2 counts the row twice.", "COLUMN")
exposure_option = option(
    "--exposure", key, "Column of the exposure of each row, for a loss of counts or amounts.", "COLUMN"
)
group_option = option(
    "--group",
    key,
    "Column with the label of each row's group, such as a patient or a shop: rows of a group are left out together, so "
    "errors and intervals are those of new groups. It is a feature only if --columns names it.",
    "COLUMN",
)
form_options = together(
    option(
        "--delimiter",
        character,
        "Character between the cells of a CSV file, or the word tab; by default comma, semicolon, tab or bar, "
        "whichever the first line has most of.",
        "CHARACTER",
    ),
    option("--decimal", click.Choice([".", ","]), "Decimal mark of a CSV file; by default a point."),
)
table_options = together(
    column_option("--categorical", "Columns that are categories, besides those of text."),
    column_option("--numeric", "Columns to read as numbers, whatever they hold."),
    column_option(
        "--drop", "Columns to leave out, separated by commas; a name with a comma in double quotes: '\"area, m2\",id'."
    ),
    choice_option(
        "--missing", ["fill", "error"], "Missing values are filled in, with a column that says where, or refused."
    ),
    choice_option(
        "--unknown", ["ignore", "error"], "Levels that the fit has not seen are zeros in a prediction, or refused."
    ),
)
data_option = click.option(
    "--data",
    envvar="RIDGEMARK_DATA",
    show_envvar=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with the real data sets as NAME.npz with arrays X and y (docs/data.md).",
)
role_options = together(target_option, columns_option, weight_option, exposure_option, form_options)
test_option = option("--test", DATA, "Data file with test rows and their target, to measure the error.")
seed_option = option("--seed", click.IntRange(0, 2**32 - 1), "Random seed.", "NUMBER", 0)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
write_options = together(flag("--force", "Replace existing output files."), json_option)
fit_options = together(columns_option, form_options, weight_option, group_option, table_options)
_KERNELS = sorted({*KERNELS} - {"precomputed", "auto"})


def _kernel_options(kernels: list[str], about: str, default: str, tuned: str, *words: str) -> Command:
    """Return the options of a kernel; the first of the words is the default bandwidth."""
    widths = "median (distance between rows in units of the columns), a number, or one per feature separated by commas."
    return together(
        option("--kernel", click.Choice(kernels), f"Kernel function{about}.", default=default),
        option("--bandwidth", numbers_or(*words), f"Kernel bandwidth: {tuned}{widths}", "NUMBER", words[0]),
    )


_TUNED = "auto (tuned; shared, per_feature and metric ask for one level), "
kernel_options = _kernel_options(_KERNELS, "", "gaussian", "", "median")
tuned_kernel_options = _kernel_options(
    ["auto", *_KERNELS], "; auto: by tuning", "auto", _TUNED, "auto", *LEVELS, "median"
)
