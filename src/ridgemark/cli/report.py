"""`ridgemark report`: write an HTML page about a model."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from ridgemark import __version__
from ridgemark.cli import options as shared
from ridgemark.cli.data import Columns, load_model, open_test
from ridgemark.cli.measures import held_out
from ridgemark.cli.output import check_outputs, print_result, staged
from ridgemark.estimators.table_reader import encoded_source
from ridgemark.fitted import RunRecord
from ridgemark.report.fit_page import fit_page
from ridgemark.report.plots import require_matplotlib


@shared.command("report", "model.ridgemark --output model.html --test other.csv")
@click.argument("model", type=shared.PATH)
@shared.output_option("HTML file to write.")
@shared.test_option
@shared.role_options
@shared.write_options
def command(model: Path, output: Path, test: Path | None, force: bool, as_json: bool, **options: Any) -> None:
    """Write one HTML page about the model in the file MODEL; needs the extra `report`.

    The page fetches nothing and runs nothing. A model saved from Python does not know the name of its target: give
    it beside --test.
    """
    check_outputs([("--output", output)], [model, test], force, as_json)
    require_matplotlib()
    fitted, run = load_model(model, "diagnose")
    if test is not None:
        source = open_test(run, Columns.of(fitted), test, options, partial(encoded_source, fitted))
        run = replace(run, held_out=held_out(fitted, source, test))
    write_page(fitted, run, output, force)
    print_result(as_json, {"page": str(output)}, [], output)


def write_page(model: Any, run: RunRecord, output: Path, force: bool, **more: Any) -> None:
    """Write the page of a model and its run, whole or not at all; `more` is a title and sections of `fit_page`."""
    text = fit_page(model, run, __version__, **more)
    with staged(output, force) as temporary:
        temporary.write_text(text, encoding="utf-8")
