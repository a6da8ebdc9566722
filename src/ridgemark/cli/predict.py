"""`ridgemark predict`: write a table of predictions of a model for the rows of a file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

from ridgemark.cli import options as shared
from ridgemark.cli.data import Columns, csv_form, load_model, open_to_predict
from ridgemark.cli.kept import kept_columns
from ridgemark.cli.output import Tell, check_outputs, print_result, progress, table_form, write_table
from ridgemark.errors import NumericalError, ParameterError
from ridgemark.estimators.table_reader import encoded_rows, warn_of_unseen
from ridgemark.losses import class_loss
from ridgemark.passes import read_ahead
from ridgemark.rows import RowSource, shown

_BLOCK = 2048  # rows of a block in a pass; parts of whole blocks give the same bits as all rows together
_MOST_BLOCKS = 32


def _coverages(text: str) -> list[float]:
    """Return shares between 0 and 1, separated by commas."""
    shares = shared.numbers_or("a list of numbers")(text)
    shares = shares if isinstance(shares, list) else [shares]
    if not all(isinstance(share, float) and 0 < share < 1 for share in shares):
        raise click.BadParameter(
            f"{text!r} must be a number between 0 and 1, both excluded, or several such as 0.5,0.9"
        )
    if len(set(shares)) < len(shares):
        raise click.BadParameter(f"{text!r} must name each number once")
    return shares


@shared.command("predict", "model.ridgemark new.csv --output predictions.csv --coverage 0.9")
@click.argument("model", type=shared.PATH)
@click.argument("data", type=shared.DATA)
@shared.output_option("Table to write, .csv, .npy or .parquet.")
@shared.option(
    "--coverage --interval coverages",
    _coverages,
    "Also write prediction intervals with this target coverage, e.g. 0.9, or several: 0.5,0.9.",
    "SHARES",
)
@shared.flag("--std", "Also write the standard deviation of the fitted function.")
@shared.flag("--proba", "Write the label and the probability of every class, for a model of labels.")
@shared.column_option("--keep", "Columns of DATA to write before the predictions.")
@shared.columns_option
@shared.form_options
@shared.device_option()
@shared.write_options
def command(model: Path, data: Path, output: Path, force: bool, as_json: bool, **options: Any) -> None:
    """Predict the target for the rows of DATA with the model in the file MODEL.

    DATA and the output may be `-`: the standard input, CSV unless its first bytes say otherwise, and the standard
    output, as CSV. DATA is read in blocks and predictions are written block by block, so memory does not grow with its
    size; columns to keep are held in memory. Columns that were not features of the fit, or that it left out, are
    ignored, and need not be there.
    """
    coverages, std, proba, keep = (options[name] for name in ("coverages", "std", "proba", "keep"))
    if table_form(output) == ".npy" and keep:
        raise ParameterError(f"{shown(output)} can hold only numbers; to keep columns, write .csv or .parquet")
    check_outputs([("--output", output)], [model, data], force, as_json)
    needed = [name for name, asked in (("predict_interval", coverages or std), ("predict_proba", proba)) if asked]
    fitted, run = load_model(model, "predict", *needed, device=options["device"])
    if coverages and fitted.solver_ == "direct" and not hasattr(fitted, "calibration_"):
        raise ParameterError(
            f"{shown(model)} has no leave-one-out residuals to make intervals from; give a model of `ridgemark fit`, "
            "which keeps them"
        )
    source = open_to_predict(fitted, run, data, options)
    if "progress" in fitted.get_params():
        fitted.set_params(progress=False)  # reported here, over all parts
    n_targets = Columns.of(fitted).n_targets
    names = (run.target_names or range(n_targets))[:n_targets]
    several = [f"_{share:g}" for share in coverages or []] if len(coverages or []) > 1 else [""] * bool(coverages)
    kinds = ["prediction", *["std"] * std, *(end + share for share in several for end in ("lower", "upper"))]
    header = [kind if n_targets == 1 else f"{kind}_{name}" for name in names for kind in kinds]
    if proba:
        header += [f"probability_{label}" for label in fitted.classes_.tolist()]
        if table_form(output) == ".npy" and fitted.classes_.dtype.kind not in "iufb":
            raise ParameterError(
                f"{shown(output)} can hold only numbers, and the labels are text; write .csv or .parquet"
            )
    kept = {} if keep is None else kept_columns(data, keep, source, **csv_form(data, options, run))
    if twice := sorted({*kept} & {*header}):
        raise ParameterError(f"{shown(data)} has a column {shown(twice[0])} as the output has; leave it out of --keep")
    header = [*kept, *header]
    with progress() as tell:
        parts = _parts(fitted, source, coverages, std, proba, tell, list(kept.values()))
        write_table(output, force, header, source.n_rows, parts)
    warn_of_unseen(source)
    print_result(as_json, {"output": str(output), "n_rows": source.n_rows, "columns": header}, [], output)


def _parts(
    fitted: Any, source: RowSource, coverages: list[float] | None, std: bool, proba: bool, tell: Tell, kept: list[Any]
) -> Iterator[list[Any]]:
    """Predict the rows in parts, after the columns kept; the next part is read while the current one is predicted."""
    part_rows = _BLOCK * max(1, min(_MOST_BLOCKS, _BLOCK // source.n_features))
    with read_ahead(source.blocks(part_rows)) as blocks:
        for block in blocks:
            rows = encoded_rows(block.features)
            try:
                if proba:
                    found = _with_probabilities(fitted, rows)
                else:
                    found = fitted.predict(rows, return_std=True) if std else [fitted.predict(rows)]
                columns = [_by_target(values) for values in found]
                if coverages:
                    ends = np.asarray(fitted.predict_interval(rows, coverages))
                    columns += [_by_target(ends[:, end, k]) for k in range(len(coverages)) for end in (0, 1)]
            except NumericalError as error:
                raise NumericalError(f"counted from row {block.start}: {error}") from error
            stop = block.start + block.n_rows
            before = [column[block.start : stop] for column in kept]
            widths = range(max(column.shape[1] for column in columns))
            yield before + [column[:, k] for k in widths for column in columns if k < column.shape[1]]
            tell("predictions", stop, source.n_rows)


def _with_probabilities(fitted: Any, rows: Any) -> list[Any]:
    """Return the labels, and the probabilities of the classes (n, K), of one evaluation of the functions."""
    values = _by_target(fitted.decision_function(rows))
    return [fitted._most_probable(values), np.exp(class_loss(len(fitted.classes_)).log_probabilities(values))]


def _by_target(values: Any) -> Any:
    return np.asarray(values).reshape(len(values), -1)
