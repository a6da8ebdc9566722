"""`ridgemark report`: the page of a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ridgemark.cli import options as shared
from ridgemark.cli.data import load_model, open_for
from ridgemark.cli.files import check_output, staged
from ridgemark.cli.fit_record import fit_record
from ridgemark.cli.measures import held_out
from ridgemark.cli.output import print_json
from ridgemark.report.fit_page import fit_page
from ridgemark.report.page import Section
from ridgemark.report.plots import require_matplotlib


@click.command(
    "report",
    short_help="Write the page that shows a model.",
    epilog="Example: ridgemark report model.ridgemark --output model.html --test other.csv",
)
@click.argument("model", type=shared.PATH)
@click.option("--output", required=True, type=shared.PATH, help="Page to write, one HTML file.")
@click.option("--test", type=shared.PATH, help="Data file of other rows with the target, to measure the error on.")
@shared.target_option
@shared.columns_option
@shared.weight_option
@shared.json_option
def report_command(model: Path, output: Path, test: Path | None, as_json: bool, **options: Any) -> None:
    """Write one page that shows the fit in the file MODEL at a glance; needs the extra `report`.

    The page fetches nothing and runs nothing. A model saved from Python does not know the names of its columns: give
    them beside --test.
    """
    check_page(output)
    fitted = load_model(model, "diagnose")
    if test is not None:
        fitted.run_ = getattr(fitted, "run_", {}) | {
            "held_out": held_out(fitted, open_for(fitted, test, options, with_target=True), test.name)
        }
    write_page(fitted, output)
    if as_json:
        print_json({"page": str(output)})
    else:
        click.echo(str(output))


def check_page(output: Path) -> None:
    """Refuse a page that could not be made, before anything is computed for it."""
    check_output(output)
    require_matplotlib()


def write_page(model: Any, output: Path, title: str | None = None, further: Sequence[Section] = ()) -> None:
    """Write the page of a model, with further sections at its end, whole or not at all."""
    text = fit_page(fit_record(model, title), further)
    with staged(output) as temporary:
        temporary.write_text(text, encoding="utf-8")
