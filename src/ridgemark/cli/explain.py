"""`ridgemark explain`: what each column contributes to the prediction for some rows."""

from pathlib import Path
from typing import Any

import click
import numpy as np

from ridgemark.cli import options as shared
from ridgemark.cli.data import load_model, open_to_predict
from ridgemark.cli.measures import kind_of
from ridgemark.cli.output import print_result, progress
from ridgemark.errors import ParameterError
from ridgemark.estimators.table_reader import encoded_rows
from ridgemark.explaining import values_in_words
from ridgemark.report.fit_words import predictor_name
from ridgemark.rows import shown
from ridgemark.rows.places import as_written

_MOST = 10  # columns of a row


def _rows(text: str) -> list[int]:
    """Return row numbers separated by commas."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"must be a row number, or several such as 0,17; got {text!r}") from None


@shared.command("explain", "model.ridgemark rows.csv --row 17")
@click.argument("model", type=shared.PATH)
@click.argument("data", type=shared.DATA)
@shared.option("--row rows", _rows, "Numbers of the rows, from 0; several as 0,17.", "ROWS", default="0")
@shared.columns_option
@shared.form_options
@shared.json_option
def command(model: Path, data: Path, rows: list[int], as_json: bool, **options: Any) -> None:
    """Say what each column contributes to the prediction for rows of DATA, by the model in the file MODEL.

    The contributions of a row add up to its prediction minus the mean prediction over rows of the fit; the ten largest
    are printed. They are Shapley values or path integrals, as the kernel allows. For classes they are about the
    log-odds.
    """
    fitted, run = load_model(model, "contributions")
    source = open_to_predict(fitted, run, data, options)
    if beyond := [row for row in rows if not 0 <= row < source.n_rows]:
        raise ParameterError(
            f"--row must be from 0 to {source.n_rows - 1}, as {shown(data)} has {source.n_rows:,} rows; got {beyond[0]}"
        )
    features = source.take(np.array(rows)).features
    with progress() as tell:
        fitted.set_params(progress=tell)
        contributions = fitted.contributions(encoded_rows(features))
    targets = [str(target) for target in kind_of(fitted).outputs(fitted, run.target_names)]
    words = values_in_words(fitted._model.schema, features)
    records = [_record(contributions, place, row, words[place], targets) for place, row in enumerate(rows)]
    if not as_json:
        click.echo("\n\n".join(_as_text(record, predictor_name(fitted)) for record in records))
    print_result(as_json, {"kind": contributions.kind, "rows": records}, [], None)


def _record(contributions: Any, place: int, row: int, words: list[str], targets: list[str]) -> dict[str, Any]:
    """Return the contributions to one row in plain numbers, the largest first."""
    values = np.atleast_2d(contributions.values[place].T).T.reshape(len(contributions.column_names), -1)
    base, order = np.atleast_1d(contributions.base), np.argsort(-abs(values).max(axis=1), kind="stable")
    return {
        "row": row,
        "outputs": targets,
        "base": base.tolist(),
        "prediction": (base + values.sum(axis=0)).tolist(),
        "error": np.atleast_1d(contributions.error[place]).tolist(),
        "contributions": [
            {"column": contributions.column_names[j], "value": words[j], "contribution": values[j].tolist()}
            for j in order
        ],
    }


def _as_text(record: dict[str, Any], what: str) -> str:
    """Return the largest contributions to one row as a table."""
    several = len(record["base"]) > 1
    head = ["", "", *record["outputs"]] if several else []
    largest = [entry for entry in record["contributions"] if any(entry["contribution"])]
    cells = [head] if several else []
    cells.append(["mean over rows of the fit", "", *map(as_written, record["base"])])
    for entry in largest[:_MOST]:
        cells.append([entry["column"], entry["value"], *map(_signed, entry["contribution"])])
    if len(largest) > _MOST:
        rest = np.sum([entry["contribution"] for entry in largest[_MOST:]], axis=0)
        cells.append([f"{len(largest) - _MOST} other columns", "", *map(_signed, rest)])
    cells.append([what, "", *map(as_written, record["prediction"])])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [f"Row {record['row']}", ""]
    for name, value, *numbers in cells:
        right = [number.rjust(width) for number, width in zip(numbers, widths[2:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), value.ljust(widths[1]), *right]).rstrip())
    return "\n".join(lines)


def _signed(number: float) -> str:
    return as_written(number, sign="+")
