"""`ridgemark reproduce`: the paper's experiments, as one page and its records."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import click

from ridgemark import __version__
from ridgemark.cli import options as shared
from ridgemark.cli.output import check_apart, print_result, staged, terminal
from ridgemark.errors import MissingExtraError
from ridgemark.paper.claims import claims
from ridgemark.paper.data import read_sets
from ridgemark.paper.page import reproduction_page
from ridgemark.paper.reproduction import Reproduction, Settings, plain, reproduce
from ridgemark.paper.tables import RECORDS, is_reproduction, write_records
from ridgemark.report.plots import require_matplotlib

_PAGE = "index.html"


@shared.command("reproduce", "--output reproduction --data data")
@shared.output_option("Output folder: new, empty, or from an earlier run, whose files are replaced.", shared.PATH)
@shared.data_option
@shared.seed_option
@shared.count_option("--repeats", "Number of random draws of the columns.", Settings.repeats)
@shared.flag("--quick", "Quick run of about a minute: smaller grids and designs, 2 repeats.")
@shared.flag("--force", "Allow an output folder that holds other files.")
@shared.json_option
def command(output: Path, data: Path | None, seed: int, repeats: int, quick: bool, force: bool, as_json: bool) -> None:
    """Repeat the paper's experiments and write one page and its records.

    Table 1, Figure 1, the introduction's comparison and the theorems' counts are shown next to the printed values.
    Writes index.html, records.json and CSV files; the page needs the extra `report`. Takes some minutes. Rows whose
    data are missing name the missing file.
    """
    _check_folder(output, data, force)
    settings = Settings(seed, min(repeats, 2) if quick else repeats, quick)
    with _staged(Path(os.path.realpath(output))) as folder:
        sets = read_sets(data)
        console = terminal()
        with nullcontext() if console is None else console.status("Reading") as status:
            run = reproduce(sets, settings, __version__, (lambda _: None) if status is None else status.update)
        page = _write(run, folder)
    _print(run, output, page, as_json)


def _check_folder(output: Path, data: Path | None, force: bool) -> None:
    """Refuse a folder that is not writable, holds the data, or holds files of other programs."""
    if not output.exists():
        return
    if not output.is_dir() or not os.access(output, os.W_OK):
        what = "cannot be written; choose another folder" if output.is_dir() else "is a file; give a folder"
        raise click.BadParameter(f"{output} {what}", param_hint="--output")
    held = list(output.iterdir())
    for path in (output, *held):
        check_apart("--output", path, [data])
    if held and not force and not is_reproduction(output):
        raise click.BadParameter(
            f"{output} holds other files; give a new folder, or --force to write into it", param_hint="--output"
        )


@contextmanager
def _staged(output: Path) -> Iterator[Path]:
    """Yield a temporary folder next to the output; on success its files are moved there, beside files that are kept."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{output.name}-", dir=output.parent) as folder:
        yield Path(folder)
        output.mkdir(exist_ok=True)
        for path in Path(folder).iterdir():
            with staged(output / path.name, force=True) as temporary:
                path.replace(temporary)


def _write(run: Reproduction, folder: Path) -> str | None:
    """Write all files; return the page's name, or None if the extra `report` is not installed."""
    write_records(run, folder)
    try:
        require_matplotlib()
    except MissingExtraError as error:
        click.echo(f"No page was written, only the records: {error}", err=True)
        return None
    (folder / _PAGE).write_text(reproduction_page(run), encoding="utf-8")
    return _PAGE


def _print(run: Reproduction, output: Path, page: str | None, as_json: bool) -> None:
    results = claims(run)
    records, written = str(output / RECORDS), output / (page or RECORDS)
    lines = [(claim.same, f"{claim.place}: {claim.paper} | {claim.measured}") for claim in results]
    record = {"claims": plain(results), "records": records, "page": page and str(written)}
    print_result(as_json, record, lines, written)
