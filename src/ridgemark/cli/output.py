"""What commands print and write: one JSON object, lines of text, a progress bar, and files.

The rule for files: an output is made in a temporary file and moved into its place when it is complete. It must be no
input and no other output, and replaces an existing file only with --force. Pipes and devices are not replaced; the
complete output is copied into them. A link keeps pointing to its target, which is the file that is written.
"""

import contextlib
import itertools
import json
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from ridgemark.errors import ParameterError
from ridgemark.persistence.files import replacing
from ridgemark.report.tables import write_csv
from ridgemark.report.writing import spoken
from ridgemark.rows.arrow import write_parquet
from ridgemark.rows.arrow_column import require_pyarrow
from ridgemark.rows.places import shown

Tell = Callable[[str, int, int], None]

_STDOUT = 1  # the file descriptor, whatever sys.stdout is
PERIOD = 30.0  # seconds between lines of progress where there is no terminal
_WIDE = 100_000  # columns of an output that is not a terminal
_ROWS = 65536  # rows of a table converted to Python numbers at once


def print_json(record: Mapping[str, Any]) -> None:
    """Print a record as JSON; NaN and infinities become null."""
    plain = json.dumps(record, default=lambda array: array.tolist())
    click.echo(json.dumps(json.loads(plain, parse_constant=lambda _: None)))


def print_lines(lines: Sequence[tuple[str, str | None]]) -> None:
    """Print labels and values in two columns, without values that are None."""
    table = Table.grid(padding=(0, 2))
    for what, value in lines:
        if value is not None:
            table.add_row(Text(what, no_wrap=True), Text(value, overflow="fold"))
    if table.rows:
        print_table(table)


def print_table(table: Table) -> None:
    """Print a table, as wide as the terminal; elsewhere each row has one line."""
    console = Console(width=None if sys.stdout.isatty() else _WIDE, highlight=False)
    with console.capture() as captured:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def print_result(
    as_json: bool, record: Mapping[str, Any], lines: Sequence[tuple[str, str | None]], *written: Path | None
) -> None:
    """Print the record as JSON; or else lines of labels and values, and the files written."""
    if as_json:
        print_json(record)
        return
    print_lines(lines)
    for path in written:
        if path is not None and not is_stream(path):
            click.echo(str(path))


def table_form(path: Path) -> str:
    """Return the extension that sets the format: that of the path, or .csv for a stream without one."""
    form = path.suffix.lower()
    if not form and is_stream(path):
        return ".csv"
    if form not in _WRITERS:
        raise ParameterError(f"{shown(path)} must end in {' or '.join(_WRITERS)}, which sets the format")
    if form == ".parquet":
        require_pyarrow("Writing Parquet")
    return form


def write_table(path: Path, force: bool, header: Sequence[str], n_rows: int, parts: Iterable[Sequence[Any]]) -> None:
    """Write columns part by part; the file is written completely or not at all.

    Parameters
    ----------
    path : Path
        The extension sets the format: CSV with a header, one NPY array, or Parquet.
    force : bool
        Whether an existing file is replaced.
    header : sequence of str
        Names of the columns.
    n_rows : int
        Rows of all parts together.
    parts : iterable of sequences of arrays
        Each part holds the columns of some rows.
    """
    with staged(path, force) as temporary:
        _WRITERS[table_form(path)](temporary, header, n_rows, parts)


def _write_csv(path: Path, header: Sequence[str], n_rows: int, parts: Iterable[Sequence[Any]]) -> None:
    pieces = (
        zip(*(column[k : k + _ROWS].tolist() for column in part), strict=True)
        for part in parts
        for k in range(0, len(part[0]), _ROWS)
    )
    if marked := write_csv(path, header, itertools.chain.from_iterable(pieces)):
        click.echo(
            f"ridgemark: {marked:,} cell{'s' * (marked > 1)} that a spreadsheet would read as a formula got an "
            "apostrophe; write .parquet to have text as it is",
            err=True,
        )


def _write_npy(path: Path, header: Sequence[str], n_rows: int, parts: Iterable[Sequence[Any]]) -> None:
    with path.open("wb") as file:
        for part in parts:
            values = part[0] if len(header) == 1 else np.column_stack(part)
            if not file.tell():
                shape = (n_rows, *values.shape[1:])
                about = {"descr": values.dtype.str, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, about)
            file.write(values.tobytes())


_WRITERS: dict[str, Callable[[Path, Sequence[str], int, Iterable[Sequence[Any]]], None]] = {
    ".csv": _write_csv,
    ".npy": _write_npy,
    ".parquet": lambda path, header, _, parts: write_parquet(path, header, parts),
}


def check_outputs(
    outputs: Iterable[tuple[str, Path | None]], inputs: Iterable[Path | None], force: bool, as_json: bool = False
) -> None:
    """Refuse outputs, given with their options, that cannot or must not be written, before any computation.

    With `as_json` the standard output holds one JSON object and no other output. If an output file is the standard
    output, printed text goes to the error stream.
    """
    written: list[tuple[str, Path]] = []
    for name, path in outputs:
        if path is None:
            continue
        _check_place(path)
        check_apart(name, path, inputs)
        if other := next((earlier for earlier in written if _same(path, earlier[1])), None):
            raise ParameterError(
                f"{name} {shown(path)} and {other[0]} {shown(other[1])} are the same file; give them different names"
            )
        if not force and path.exists() and not is_stream(path):
            raise ParameterError(f"{shown(path)} exists already; give another name, or --force to replace it")
        if _is_stdout(path):
            if as_json:
                raise ParameterError(
                    f"{name} and --json would both write to the standard output; give {name} another name"
                )
            click.get_current_context().with_resource(contextlib.redirect_stdout(sys.stderr))
        written.append((name, path))


def check_apart(name: str, path: Path, inputs: Iterable[Path | None]) -> None:
    """Refuse an output that is an input, or a data file of an input folder."""
    for source in filter(None, inputs):
        if any(_same(path, part) for part in (source, *source.glob("*.parquet"), *source.glob("*.npz"))):
            raise ParameterError(
                f"{name} {shown(path)} is the input {shown(source)}, which would be lost; give another name"
            )


def _same(path: Path, other: Path) -> bool:
    """Return whether two paths are one file, whatever their names and links."""
    if path.exists() and other.exists():
        return path.samefile(other)
    return os.path.realpath(path) == os.path.realpath(other)


def _check_place(path: Path) -> None:
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise ParameterError(f"{shown(path)} is a directory; give the name of a file")
    if not target.parent.is_dir():
        raise ParameterError(
            f"there is no folder {shown(target.parent)} to write {shown(target.name)} in; create it first"
        )
    if not os.access(path if path.exists() else target.parent, os.W_OK):
        raise ParameterError(f"{shown(path)} cannot be written; choose a place where you may write")


def is_stream(path: Path) -> bool:
    """Return whether a path is a pipe, a device or the standard output, which are written to and never replaced."""
    return path.exists() and (not path.is_file() or _is_stdout(path))


def _is_stdout(path: Path) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(_STDOUT))
    except OSError:
        return False


@contextmanager
def staged(path: Path, force: bool) -> Iterator[Path]:
    """Yield a temporary file that is moved to `path` once complete; without `force`, `path` must not exist."""
    if is_stream(path):
        with tempfile.TemporaryDirectory(prefix="ridgemark-") as folder:
            temporary = Path(folder) / "output"
            yield temporary
            # The standard output may be a file: reopened by name, it would be overwritten from its start.
            stream = os.fdopen(os.dup(_STDOUT), "wb") if _is_stdout(path) else path.open("wb")
            with temporary.open("rb") as file, stream:
                shutil.copyfileobj(file, stream)
        return
    target = Path(os.path.realpath(path))
    try:
        with replacing(target, force) as temporary:
            yield temporary
            if target.exists():
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
    except FileExistsError:
        raise ParameterError(
            f"{shown(path)} appeared while this command ran; give another name, or --force to replace it"
        ) from None


def terminal() -> Console | None:
    """Return the error stream if it is a terminal."""
    console = Console(stderr=True)
    return console if sys.stderr.isatty() and console.is_terminal else None


@contextmanager
def progress() -> Iterator[Tell]:
    """Yield the progress callback `(what, done, total)`: a bar on a terminal, elsewhere a line every half minute."""
    console, last = terminal(), ("", 0)
    begin = told = time.monotonic()
    columns = BarColumn(), TimeRemainingColumn(), TextColumn("{task.description}", markup=False)
    with nullcontext() if console is None else Progress(*columns, console=console, transient=True) as bar:
        task = None if bar is None else bar.add_task("reading", total=None)

        def tell(what: str, done: int, total: int) -> None:
            nonlocal last, told
            # Tuning counts evaluations; descents may end early.
            count = f"{done:,} of at most {total:,}" if what == "tuning" else f"{done:,} of {total:,} rows"
            if bar is None or task is None:
                now = time.monotonic()
                if now >= told + PERIOD:
                    told = now
                    click.echo(f"{spoken(now - begin)}: {what}, {count}", err=True)
                return
            if what != last[0] or done < last[1]:  # a new pass, with its own rate
                bar.reset(task, total=total)
            last = (what, done)
            bar.update(task, description=f"{what}, {count}", completed=done)

        yield tell
