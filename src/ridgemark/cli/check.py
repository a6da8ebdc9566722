"""`ridgemark check`: say what in a table may spoil a fit, before any fit."""

from pathlib import Path
from typing import Any

import click

from ridgemark.checks import check
from ridgemark.cli import options as shared
from ridgemark.cli.data import csv_form, open_data
from ridgemark.cli.output import print_result
from ridgemark.errors import ParameterError
from ridgemark.rows.header import AllBut


@shared.command("check", "rows.csv --target y --new later.csv")
@click.argument("data", type=shared.DATA)
@shared.target_option
@shared.option("--new", shared.DATA, "Second table, such as the rows to predict: what it has that DATA lacks.")
@shared.option(
    "--group", str, "Column of groups, such as patients: how much larger the error is for new ones.", "COLUMN"
)
@shared.columns_option
@shared.column_option("--drop", "Columns to leave out, as for `ridgemark fit`.")
@shared.form_options
@shared.json_option
def command(data: Path, new: Path | None, group: str | None, as_json: bool, **options: Any) -> None:
    """Look at the table DATA and say what may spoil a fit, and which option answers it.

    Looked for are identifiers and row numbers, constant columns, repeated rows, codes, text that is money or per cent,
    values far beyond the others, columns that know the target too well, groups of rows that are alike, skewed targets
    and rare labels; with --new unseen levels and values that have moved. Nothing is changed. Of a large table some rows
    are read, spread evenly over it.
    """
    target, drop = options["target"], options["drop"]
    if target is not None and len(target) > 1:
        raise ParameterError("check takes one target; give --target once, and the others to --drop")
    columns = options["columns"] if drop is None else AllBut(drop, options["columns"])
    source = open_data(data, target, columns, None, **csv_form(data, options))
    other = None if new is None else open_data(new, None, None, None, **csv_form(new, options))
    checked = check(source, new=other, groups=group)
    lines = [("table", checked.size), *((finding.fault, str(finding)) for finding in checked.findings)]
    print_result(as_json, checked.to_record(), lines if checked.findings else [*lines, ("", "nothing was found")])
