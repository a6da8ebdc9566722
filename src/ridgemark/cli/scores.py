"""`ridgemark scores`: lower and upper bounds of the ridge leverage scores of all rows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

from ridgemark.cli import options as shared
from ridgemark.cli.data import Columns, load_model, open_like, open_to_fit
from ridgemark.cli.output import check_outputs, print_result, progress, table_form, write_table
from ridgemark.errors import ParameterError
from ridgemark.estimators import NystromRidge
from ridgemark.estimators.table_reader import encoded_source
from ridgemark.functions import leverage_scores
from ridgemark.rows import RowSource, shown

_OF_MODELS = ("kernel", "bandwidth", "drop", "categorical", "numeric", "missing", "unknown")


@shared.command("scores", "rows.csv --target y --output scores.csv")
@click.argument("data", type=shared.DATA)
@shared.option("--ridge", float, "Lambda; by default that of --model, or by leave-one-out.", "NUMBER")
@shared.option("--model", shared.PATH, "Model whose lambda, kernel and columns to take.")
@shared.kernel_options
@shared.count_option("--landmarks", "Number of rows in the pilot sample; by default 500.")
@shared.count_option("--refine", "Number of times to redraw the pilot with the scores found.", 0, 0)
@shared.flag("--exact", "Use the whole kernel matrix; for at most a few thousand rows.")
@shared.column_option("--target -t", "Target column, not a feature; used to choose lambda.")
@shared.fit_options
@shared.option("--output -o", shared.OUTPUT, "Table to write (.csv, .npy or .parquet) with columns row, lower, upper.")
@shared.count_option("--top", "Number of rows with the highest scores to print.", 10, 0)
@shared.device_option("cpu")
@shared.seed_option
@shared.write_options
def command(data: Path, output: Path | None, top: int, seed: int, force: bool, as_json: bool, **options: Any) -> None:
    """Bound the ridge leverage score of every row of DATA: the weight of its target in its own fitted value.

    If neither --ridge nor --model is given, lambda is chosen by leave-one-out in a fit to --target.
    """
    if output is not None:
        table_form(output)
    check_outputs([("--output", output)], [data, options["model"]], force, as_json)
    with progress() as tell:
        told = {"random_state": seed, "progress": tell, "device": options["device"]}
        source, ridge, kernel, origin = _problem(data, options, told)
        how = {"method": "exact" if options["exact"] else "approximate", "refine": options["refine"]}
        scores = leverage_scores(source, ridge=ridge, n_landmarks=options["landmarks"], **kernel, **how, **told)
    kept = getattr(source, "kept", None)
    rows = np.arange(len(scores.lower)) if kept is None else kept
    if output is not None:
        write_table(output, force, ["row", "lower", "upper"], len(rows), [[rows, scores.lower, scores.upper]])
    order = np.argsort(-scores.upper, kind="stable")[:top]
    record = {
        "n_rows": len(scores.lower),
        "ridge": ridge,
        "scaled_ridge": scores.scaled_ridge,
        "effective_dimension": list(scores.effective_dimension),
        "coherence": list(scores.coherence),
        "verdict": scores.verdict(),
        "top": [{"row": int(rows[k]), "lower": scores.lower[k], "upper": scores.upper[k]} for k in order],
        "output": None if output is None else str(output),
    }
    lines = [
        ("rows", f"{len(scores.lower):,}"),
        ("lambda", f"{ridge:.3g} ({origin})"),
        ("effective dimension", _between(*scores.effective_dimension, ".4g")),
        ("coherence", _between(*scores.coherence, ".3g")),
        ("verdict", scores.verdict()),
        *((f"row {rows[k]}", _between(scores.lower[k], scores.upper[k], ".4f")) for k in order),
    ]
    print_result(as_json, record, lines, output)


def _problem(
    data: Path, options: Mapping[str, Any], told: Mapping[str, Any]
) -> tuple[RowSource, float, dict[str, Any], str]:
    """Return the rows, lambda, kernel and bandwidth, and where lambda comes from."""
    ridge = options["ridge"]
    if options["model"] is not None:
        _refuse_what_the_model_has(click.get_current_context())
        fitted, run = load_model(options["model"], "predict")
        if ridge is None and not getattr(fitted._model, "is_squared", True):
            raise ParameterError(
                f"the lambda of {shown(options['model'])} is of its {fitted._model.loss.words.loss}, and scores are "
                "those of squared errors; give --ridge too, or see diagnose(X, y) in Python for leverages of this fit"
            )
        source = encoded_source(fitted, open_like(run, Columns.of(fitted), data, options, with_target=False))
        kernel, origin = {"kernel": fitted.kernel_}, f"of {shown(options['model'])}"
    else:
        source = open_to_fit(data, options)
        kernel, origin = {name: options[name] for name in ("kernel", "bandwidth")}, "by leave-one-out"
        if ridge is None:
            if source.n_targets == 0:
                raise ParameterError(
                    "lambda is not known; give --ridge, a --model, or a --target to choose it by leave-one-out"
                )
            model: Any = NystromRidge(**kernel, n_landmarks=options["landmarks"] or "auto", **told)
            fitted = model.fit(source)
            source = encoded_source(fitted, source)
    if ridge is not None:
        return source, ridge, kernel, "given"
    return source, float(np.min(fitted.ridge_)), kernel, origin


def _refuse_what_the_model_has(context: click.Context) -> None:
    """Refuse options beside --model that would be ignored."""
    for name in _OF_MODELS:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} cannot be given with --model, whose own is taken; leave one of them out")


def _between(lower: float, upper: float, digits: str) -> str:
    """Return both bounds, or one number if they print alike."""
    ends = dict.fromkeys((format(lower, digits), format(upper, digits)))
    return " to ".join(ends)
