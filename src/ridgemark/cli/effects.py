"""`ridgemark effects`: what each column does to the predictions, on average over rows and at each row."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from ridgemark.cli import options as shared
from ridgemark.cli.data import load_model, open_to_predict
from ridgemark.cli.measures import kind_of
from ridgemark.cli.output import check_outputs, print_result, progress, table_form, write_table
from ridgemark.estimators.table_reader import encoded_rows
from ridgemark.rows import RowSource

_ROWS = 16384  # of a part of the table


@shared.command("effects", "model.ridgemark rows.csv")
@click.argument("model", type=shared.PATH)
@click.argument("data", type=shared.DATA)
@shared.option("--output -o", shared.OUTPUT, "Also write the effects at each row, a table as .csv, .npy or .parquet.")
@shared.columns_option
@shared.form_options
@shared.write_options
def command(model: Path, data: Path, output: Path | None, force: bool, as_json: bool, **options: Any) -> None:
    """Average the effect of each column over the rows of DATA, for the model in the file MODEL.

    The effect of a column is the derivative of the prediction, in units of the target per unit of the column; for a
    column of two values it is the difference between them. Averages are corrected for the bias of the ridge. Quartiles
    are of the effects at the rows. For classes effects are those on the log-odds, with plain averages.
    """
    if output is not None:
        table_form(output)
    check_outputs([("--output", output)], [model, data], force, as_json)
    fitted, run = load_model(model, "effects_summary")
    source = open_to_predict(fitted, run, data, options)
    with progress() as tell:
        fitted.set_params(progress=tell)
        summary = fitted.effects_summary(source)
    fitted.set_params(progress=False)
    targets = kind_of(fitted).outputs(fitted, run.target_names)
    if run.target_names is not None and len(targets) > 1 and not summary.targets:
        summary = replace(summary, targets=tuple(run.target_names))
    names = [" ".join([effect.name, *effect.levels[1:]]) for effect in summary.effects]
    header = names if len(targets) == 1 else [f"{name}_{target}" for target in targets for name in names]
    if output is not None:
        write_table(output, force, header, source.n_rows, _parts(fitted, source))
    if not as_json:
        click.echo(str(summary))
    record = {"n_rows": summary.n_rows, "effects": summary.to_record(), "output": output and str(output)}
    print_result(as_json, record, [], output)


def _parts(fitted: Any, source: RowSource) -> Iterator[list[Any]]:
    """Return the effects at each row in parts, one column for each effect and target."""
    for block in source.blocks(_ROWS):
        values = np.asarray(fitted.effects(encoded_rows(block.features)))
        values = values.reshape(block.n_rows, values.shape[1], -1)
        yield list(np.moveaxis(values, 2, 1).reshape(block.n_rows, -1).T)
