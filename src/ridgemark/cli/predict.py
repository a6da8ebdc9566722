"""`ridgemark predict`: write a table of predictions of a model for the rows of a file."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from ridgemark.backends import Floats
from ridgemark.cli import options as shared
from ridgemark.cli.data import Columns, csv_form, exposures, load_model, open_to_predict
from ridgemark.cli.kept import kept_columns
from ridgemark.cli.measures import kind_of
from ridgemark.cli.output import Tell, check_outputs, print_result, progress, table_form, write_table
from ridgemark.errors import NumericalError, ParameterError
from ridgemark.estimators.table_reader import encoded_rows, warn_of_unseen
from ridgemark.passes import read_ahead
from ridgemark.report import fit_words as words
from ridgemark.rows import RowSource, shown

_BLOCK = 2048  # rows of a block in a pass; parts of whole blocks give the same bits as all rows together
_MOST_BLOCKS = 32
_ENDS = ("lower", "upper")
_NOVELTY = ("share_as_far", "novel", "columns_beyond")


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
@shared.flag("--novelty", "Write how far each row is from the rows of the fit, and columns beyond their range.")
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
    size; columns to keep, and an exposure, are held in memory. Columns that were not features of the fit, or that it
    left out, are ignored, and need not be there. Counts and amounts are multiplied by the exposure, where DATA has it.
    """
    coverages, std, proba, keep = (options[name] for name in ("coverages", "std", "proba", "keep"))
    as_numbers = table_form(output) == ".npy"
    if as_numbers and options["novelty"]:
        raise ParameterError(f"{shown(output)} can hold only numbers; with --novelty, write .csv or .parquet")
    if as_numbers and keep:
        raise ParameterError(f"{shown(output)} can hold only numbers; to keep columns, write .csv or .parquet")
    check_outputs([("--output", output)], [model, data], force, as_json)
    needed = (
        ["predict_interval"] * bool(coverages or std) + ["predict_proba"] * proba + ["novelty"] * options["novelty"]
    )
    fitted, run = load_model(model, "predict", *needed, device=options["device"])
    if coverages and fitted.solver_ == "direct" and not hasattr(fitted, "calibration_"):
        raise ParameterError(
            f"{shown(model)} has no leave-one-out residuals to make intervals from; give a model of `ridgemark fit`, "
            "which keeps them"
        )
    if as_numbers and proba and fitted.classes_.dtype.kind not in "iufb":
        raise ParameterError(f"{shown(output)} can hold only numbers, and the labels are text; write .csv or .parquet")
    if std and words.predicts(fitted) == "losses":
        raise ParameterError(
            f"{shown(model)} was fitted by another loss than squared errors and has no standard deviations; "
            "--coverage gives intervals"
        )
    source = open_to_predict(fitted, run, data, options)
    exposure = exposures(run, Columns.of(fitted), data, options)
    if "progress" in fitted.get_params():
        fitted.set_params(progress=False)  # reported here, over all parts
    kept = {} if keep is None else kept_columns(data, keep, source, **csv_form(data, options, run))
    header = _header(fitted, run.target_names, options)
    if twice := sorted({*kept} & {*header}):
        raise ParameterError(f"{shown(data)} has a column {shown(twice[0])} as the output has; leave it out of --keep")
    header = [*kept, *header]
    with progress() as tell:
        parts = _parts(fitted, source, options, tell, list(kept.values()), exposure)
        write_table(output, force, header, source.n_rows, parts)
    warn_of_unseen(source)
    print_result(as_json, {"output": str(output), "n_rows": source.n_rows, "columns": header}, [], output)


def _header(fitted: Any, target_names: Sequence[str] | None, options: Mapping[str, Any]) -> list[str]:
    """Return the names of the columns: of each target all kinds, and the probabilities of the classes."""
    coverages, n_targets = options["coverages"] or [], Columns.of(fitted).n_targets
    shares = [f"_{share:g}" if len(coverages) > 1 else "" for share in coverages]
    ends = [f"{end}{share}" for share in shares for end in _ENDS]
    if words.predicts(fitted) == "losses":  # one interval, whatever the number of quantiles
        levels = kind_of(fitted).outputs(fitted, target_names)
        return [*(["prediction"] if len(levels) == 1 else [f"prediction_{level}" for level in levels]), *ends]
    kinds = ["prediction", *["std"] * options["std"], *ends]
    names = target_names or range(n_targets)
    header = kinds if n_targets == 1 else [f"{kind}_{name}" for name in names for kind in kinds]
    header += [f"probability_{label}" for label in fitted.classes_.tolist()] if options["proba"] else []
    return header + ([*_NOVELTY] if options["novelty"] else [])


def _parts(
    fitted: Any,
    source: RowSource,
    options: Mapping[str, Any],
    tell: Tell,
    kept: list[Any],
    exposure: Floats | None,
) -> Iterator[list[Any]]:
    """Predict the rows in parts, after the columns kept; the next part is read while the current one is predicted."""
    part_rows = _BLOCK * max(1, min(_MOST_BLOCKS, _BLOCK // source.n_features))
    with read_ahead(source.blocks(part_rows)) as blocks:
        for block in blocks:
            stop, rows = block.start + block.n_rows, encoded_rows(block.features)
            try:
                if words.predicts(fitted) == "losses":
                    part = None if exposure is None else exposure[block.start : stop]
                    columns = _by_loss(fitted, rows, options["coverages"] or [], part)
                else:
                    columns = _predicted(fitted, rows, options)
            except NumericalError as error:
                raise NumericalError(f"counted from row {block.start}: {error}") from error
            yield [*(column[block.start : stop] for column in kept), *columns]
            tell("predictions", stop, source.n_rows)


def _by_loss(fitted: Any, rows: Any, coverages: Sequence[float], exposure: Floats | None) -> list[Any]:
    """Return the columns of some rows of a model fitted by a loss: its predictions, and the ends of each interval."""
    values = np.asarray(fitted.predict(rows, exposure=exposure))
    ends = [fitted.predict_interval(rows, coverage, exposure=exposure) for coverage in coverages]
    return [column for part in (values.reshape(len(values), -1), *map(np.asarray, ends)) for column in part.T]


def _predicted(fitted: Any, rows: Any, options: Mapping[str, Any]) -> list[Any]:
    """Return the columns of some rows, in the order of the header."""
    novelty = _novelty(fitted, rows) if options["novelty"] else []
    if options["proba"]:
        p = fitted.predict_proba(rows)
        return [fitted.classes_[p.argmax(axis=1)], *p.T, *novelty]
    kinds = fitted.predict(rows, return_std=True) if options["std"] else [fitted.predict(rows)]
    kinds = [values.reshape(len(values), -1) for values in map(np.asarray, kinds)]
    if options["coverages"]:
        ends = np.asarray(fitted.predict_interval(rows, options["coverages"]))
        kinds += [ends[:, end, k].reshape(len(ends), -1) for k in range(ends.shape[2]) for end in (0, 1)]
    return [values[:, target] for target in range(kinds[0].shape[1]) for values in kinds] + novelty


def _novelty(fitted: Any, rows: Any) -> list[Any]:
    """Return the share of rows of the fit that are as far as each row, whether it is flagged, and columns beyond."""
    novelty = fitted.novelty(rows)
    beyond = np.array([", ".join(novelty.columns_beyond(row)) for row in range(len(novelty.share))], dtype=object)
    return [novelty.share, novelty.flag.astype(int), beyond]
