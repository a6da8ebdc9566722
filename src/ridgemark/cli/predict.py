"""`ridgemark predict`: write a table of predictions of a model for the rows of a file."""

from collections.abc import Iterator, Mapping, Sequence
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
from ridgemark.passes import read_ahead
from ridgemark.rows import RowSource, shown

_BLOCK = 2048  # rows of a block in a pass; parts of whole blocks give the same bits as all rows together
_MOST_BLOCKS = 32
_ENDS = ("lower", "upper")


def _coverages(text: str) -> list[float]:
    """Return numbers separated by commas, each once."""
    return list(dict.fromkeys(np.atleast_1d(shared.numbers_or("several such as 0.5,0.9")(text)).tolist()))


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
@shared.option(
    "--threshold", float, "With two classes: the second one where its probability is at least this.", "PROBABILITY"
)
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
    as_numbers = table_form(output) == ".npy"
    if as_numbers and keep:
        raise ParameterError(f"{shown(output)} can hold only numbers; to keep columns, write .csv or .parquet")
    check_outputs([("--output", output)], [model, data], force, as_json)
    needed = ["predict_interval"] * bool(coverages or std) + ["predict_proba"] * (
        proba or options["threshold"] is not None
    )
    fitted, run = load_model(model, "predict", *needed, device=options["device"])
    if coverages and fitted.solver_ == "direct" and not hasattr(fitted, "calibration_"):
        raise ParameterError(
            f"{shown(model)} has no leave-one-out residuals to make intervals from; give a model of `ridgemark fit`, "
            "which keeps them"
        )
    if options["threshold"] is not None and len(fitted.classes_) != 2:
        raise ParameterError(f"--threshold is for two classes; {shown(model)} has {len(fitted.classes_)}")
    if as_numbers and proba and fitted.classes_.dtype.kind not in "iufb":
        raise ParameterError(f"{shown(output)} can hold only numbers, and the labels are text; write .csv or .parquet")
    source = open_to_predict(fitted, run, data, options)
    if "progress" in fitted.get_params():
        fitted.set_params(progress=False)  # reported here, over all parts
    kept = {} if keep is None else kept_columns(data, keep, source, **csv_form(data, options, run))
    header = _header(fitted, run.target_names, options)
    if twice := sorted({*kept} & {*header}):
        raise ParameterError(f"{shown(data)} has a column {shown(twice[0])} as the output has; leave it out of --keep")
    header = [*kept, *header]
    with progress() as tell:
        parts = _parts(fitted, source, options, tell, list(kept.values()))
        write_table(output, force, header, source.n_rows, parts)
    warn_of_unseen(source)
    print_result(as_json, {"output": str(output), "n_rows": source.n_rows, "columns": header}, [], output)


def _header(fitted: Any, target_names: Sequence[str] | None, options: Mapping[str, Any]) -> list[str]:
    """Return the names of the columns: of each target all kinds, and the probabilities of the classes."""
    coverages, n_targets = options["coverages"] or [], Columns.of(fitted).n_targets
    shares = [f"_{share:g}" if len(coverages) > 1 else "" for share in coverages]
    kinds = ["prediction", *["std"] * options["std"], *(f"{end}{share}" for share in shares for end in _ENDS)]
    names = target_names or range(n_targets)
    header = kinds if n_targets == 1 else [f"{kind}_{name}" for name in names for kind in kinds]
    return header + [f"probability_{label}" for label in fitted.classes_.tolist()] if options["proba"] else header


def _parts(
    fitted: Any, source: RowSource, options: Mapping[str, Any], tell: Tell, kept: list[Any]
) -> Iterator[list[Any]]:
    """Predict the rows in parts, after the columns kept; the next part is read while the current one is predicted."""
    part_rows = _BLOCK * max(1, min(_MOST_BLOCKS, _BLOCK // source.n_features))
    with read_ahead(source.blocks(part_rows)) as blocks:
        for block in blocks:
            try:
                columns = _predicted(fitted, encoded_rows(block.features), options)
            except NumericalError as error:
                raise NumericalError(f"counted from row {block.start}: {error}") from error
            stop = block.start + block.n_rows
            yield [*(column[block.start : stop] for column in kept), *columns]
            tell("predictions", stop, source.n_rows)


def _predicted(fitted: Any, rows: Any, options: Mapping[str, Any]) -> list[Any]:
    """Return the columns of some rows, in the order of the header."""
    if options["proba"] or options["threshold"] is not None:
        p, threshold = fitted.predict_proba(rows), options["threshold"]
        which = p.argmax(axis=1) if threshold is None else (p[:, 1] >= threshold).astype(np.intp)
        return [fitted.classes_[which], *(p.T if options["proba"] else [])]
    kinds = fitted.predict(rows, return_std=True) if options["std"] else [fitted.predict(rows)]
    kinds = [values.reshape(len(values), -1) for values in map(np.asarray, kinds)]
    if options["coverages"]:
        ends = np.asarray(fitted.predict_interval(rows, options["coverages"]))
        kinds += [ends[:, end, k].reshape(len(ends), -1) for k in range(ends.shape[2]) for end in (0, 1)]
    return [values[:, target] for target in range(kinds[0].shape[1]) for values in kinds]
