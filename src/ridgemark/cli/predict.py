"""`ridgemark predict`: a model and rows to a table of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from ridgemark.cli import options as shared
from ridgemark.cli.data import load_model, open_for
from ridgemark.cli.files import check_output
from ridgemark.cli.output import TABLES, print_json, write_table
from ridgemark.cli.progress import progress


@click.command(
    "predict",
    short_help="Predict at the rows of a file with a model.",
    epilog="Example: ridgemark predict model.ridgemark new.csv --output predictions.csv --interval 0.9",
)
@click.argument("model", type=shared.PATH)
@click.argument("data", type=shared.PATH)
@click.option("--output", required=True, type=shared.PATH, help="Table to write, .csv or .npy.")
@click.option(
    "--interval",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    help="Also the ends of intervals that are to hold this share of new observations.",
)
@shared.columns_option
@shared.json_option
def predict_command(
    model: Path, data: Path, output: Path, interval: float | None, columns: list[shared.Key] | None, as_json: bool
) -> None:
    """Predict the target at the rows of DATA with the model in the file MODEL.

    DATA is read in blocks, whatever its size; columns that were no features of the fit are not looked at.
    """
    check_output(output, TABLES)
    fitted = load_model(model, "predict", *(["predict_interval"] if interval else []))
    source = open_for(fitted, data, {"columns": columns}, with_target=False)
    with progress() as tell:
        if "progress" in fitted.get_params():
            fitted.set_params(progress=tell or False)
        values = {"prediction": _by_target(fitted.predict(source))}
        if interval is not None:
            ends = np.asarray(fitted.predict_interval(source, coverage=interval))
            values |= {"lower": _by_target(ends[:, 0]), "upper": _by_target(ends[:, 1])}
    n_targets = values["prediction"].shape[1]
    names = getattr(fitted, "run_", {}).get("target_names", range(n_targets))
    header = [what if n_targets == 1 else f"{what}_{name}" for name in names for what in values]
    write_table(output, header, [values[what][:, k] for k in range(n_targets) for what in values])
    if as_json:
        print_json({"output": str(output), "n_rows": source.n_rows, "columns": header})
    else:
        click.echo(str(output))


def _by_target(values: Any) -> Any:
    return np.asarray(values).reshape(len(values), -1)
