"""Write docs/command-line.md from the commands themselves: `python tools/command_line.py`."""

from __future__ import annotations

import inspect
from pathlib import Path

import click

from ridgemark.cli import COMMANDS, commands

PAGE = Path(__file__).parents[1] / "docs" / "command-line.md"

HEAD = """# Command line

Terms are in the [glossary](glossary.md).

<!-- Written by tools/command_line.py from the commands' own help; edit there. -->

```console
$ ridgemark demo
$ ridgemark fit rows.csv --target y --output model.ridgemark --report model.html
$ ridgemark predict model.ridgemark new.csv --output predictions.csv --coverage 0.9
$ cat new.csv | ridgemark predict model.ridgemark - -o - --keep id > predictions.csv
$ ridgemark fit rows.csv --target y --output whole.ridgemark --keep-sums
$ ridgemark certify whole.ridgemark rows.csv
```

- **Data** is a `.npy` or `.npz` file (arrays `X` and `y`), and with the extra `arrow` a `.csv` or `.tsv` (also `.gz`),
  `.parquet`, `.arrow` or `.feather` file; it is read in blocks.
- **Columns** are named, or counted from 0; -1 is the last. Several are separated by commas (`--drop id,name`), or the
  option is given several times. A name that has a comma stands in double quotes, with single quotes around them for
  the shell: `--drop '"area, m2",id'`. A column that is dropped is not read, and the model does not know it.
- **CSV files** are split at commas, semicolons, tabs or bars, whichever the first line has most of, or at
  `--delimiter`; `--decimal ,` reads decimal commas.
- **Text, dates and gaps** among the features of `fit` and `scores` are encoded as [tables](tables.md) are.
- **Rows without a target** are left out by `fit`, `certify`, `scores` and `--test`, and one line counts them;
  `predict` and `effects` need no target and take all rows.
- **Models** of `fit` store which columns were features, target and weight, and the form of a CSV file, so other
  commands need no such options.
  A model saved from Python knows only its feature names, where it has them: a file's columns are found by them, in any
  order; give `--target` and `--weight`, and without names `--columns`.
- **Pipes**: DATA may be `-`, the standard input, which is copied to a temporary file (CSV, unless its first bytes say
  otherwise), and `--output -` is the standard output.
- **Tables** are written as CSV, as one NPY array, or as Parquet, by the extension of the output. Labels and the columns
  of `--keep` are written as they are, except text in CSV that a spreadsheet would read as a formula: text of two or
  more characters that begins with one of = + - @ or a control character and is not a number. Such a cell gets an
  apostrophe, and one line counts these cells.
- **Pages** need the extra `report`. Each is one HTML file that loads nothing from the network and runs no script.
  The page of a fit shows how the kernel was tuned, errors, distance to exact, the columns and the rows that matter.
- **Outputs** are made in a temporary file and moved into their place when they are complete: after an error or Ctrl-C
  an old file is unchanged. An output must be no input and no other output of the command, whatever its name or link,
  and replaces an existing file only with `--force`. Pipes, devices and `/dev/stdout` get the complete output, a table
  without an ending as CSV; beside `/dev/stdout` other printed text goes to the error stream. A link keeps pointing to
  its target, which is the file that is written. `demo` replaces its own page, and `reproduce` the files of an earlier
  run.
- **A fit** is saved as soon as it is done, to a pipe at the end: a later failure (`--certify`, `--test`, `--report`,
  Ctrl-C) keeps the model in its file. Everything that can be checked is checked before the fit, including every cell of
  `--test`. A model that cannot be saved is kept in a temporary folder, which the error names.
- **Data files** must not change during a command: a change of inode, size or modification time is detected and refused.
  A file overwritten in place with the same number of bytes and its modification time set back may not be detected.
- **Exit codes**: 0; 2 with one line on the error stream that states the problem and the remedy; 130 with one line after
  Ctrl-C.
- **Completion** of commands, options and file names in a shell: put the line of your shell into its start-up file.
  Bash: `eval "$(_RIDGEMARK_COMPLETE=bash_source ridgemark)"`; Zsh: the same with `zsh_source`; Fish:
  `_RIDGEMARK_COMPLETE=fish_source ridgemark | source`.
- **Progress** goes to the error stream: a bar with the time left on a terminal, elsewhere a line every half minute.
  `--json` prints one JSON object.
"""


def page() -> str:
    """Return the page: every command with its arguments, options and example."""
    return HEAD + "".join(_section(name, command) for name, command in all_commands().items())


def all_commands() -> dict[str, click.Command]:
    """Return the commands by name, in alphabetical order."""
    found = {name: commands.get_command(click.Context(commands), name) for name in sorted(COMMANDS)}
    return {name: command for name, command in found.items() if command is not None}


def _section(name: str, command: click.Command) -> str:
    arguments = [str(one.name).upper() for one in command.params if isinstance(one, click.Argument)]
    usage = " ".join(["ridgemark", name, *arguments, "[OPTIONS]"])
    options = [one for one in command.params if isinstance(one, click.Option)]
    lines = [f"- `{_spelling(one)}`: {_words(one)}" for one in options]
    example = (command.epilog or "").removeprefix("Example: ")
    return "\n".join(
        [
            f"\n## {name}\n",
            f"`{usage}`\n",
            inspect.cleandoc(command.help or "") + "\n",
            *lines,
            f"\n```console\n$ {example}\n```\n",
        ]
    )


def _spelling(option: click.Option) -> str:
    names = ", ".join(reversed(option.opts))  # the short one first
    if option.is_flag:
        return names
    if isinstance(option.type, click.Choice):
        return f"{names} {'|'.join(option.type.choices)}"
    return f"{names} {option.metavar or str(option.name).upper()}"


def _words(option: click.Option) -> str:
    shown = option.show_default and option.default is not None and not option.is_flag
    notes = [f"Default: {option.default}."] if shown else []
    return " ".join([option.help or "", *(["Required."] if option.required else []), *notes])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
