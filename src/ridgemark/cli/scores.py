"""`ridgemark scores`: lower and upper bounds of the ridge leverage scores of all rows."""

from pathlib import Path
from typing import Any

import click
import numpy as np

from ridgemark.cli import options as shared
from ridgemark.cli.data import find_levels, open_data
from ridgemark.cli.output import check_outputs, print_result, progress, table_form, write_table
from ridgemark.functions import leverage_scores


@shared.command("scores", "rows.csv --target y --ridge 1e-4 --output scores.csv")
@click.argument("data", type=shared.DATA)
@click.option("--ridge", required=True, type=float, metavar="NUMBER", help="The paper's lambda.")
@shared.kernel_options
@shared.count_option("--landmarks", "Number of rows in the pilot sample; by default 500.")
@shared.count_option("--refine", "Number of times to redraw the pilot by the scores found.", 0, 0)
@click.option("--exact", is_flag=True, help="Use the whole kernel matrix; for at most a few thousand rows.")
@shared.option("--target -t", shared.columns, "Target column, to exclude from the features.", "COLUMNS")
@shared.columns_option
@shared.weight_option
@shared.encode_option
@shared.option("--output -o", shared.OUTPUT, "Table to write (.csv, .npy or .parquet) with columns row, lower, upper.")
@shared.count_option("--top", "Number of rows with the highest scores to print.", 10, 0)
@shared.seed_option
@shared.force_option
@shared.json_option
def command(data: Path, output: Path | None, top: int, seed: int, force: bool, as_json: bool, **options: Any) -> None:
    """Bound the ridge leverage score of every row of DATA: the weight of its target in its own fitted value."""
    if output is not None:
        table_form(output)
    check_outputs([("--output", output)], [("DATA", data)], force, as_json)
    levels = find_levels(data, options["encode"])
    source = open_data(data, options["target"], options["columns"], options["weight"], levels)
    chosen = {name: options[name] for name in ("ridge", "kernel", "bandwidth", "refine")}
    with progress() as tell:
        found = leverage_scores(
            source,
            **chosen,
            method="exact" if options["exact"] else "approximate",
            n_landmarks=options["landmarks"],
            random_state=seed,
            progress=tell or False,
        )
    if output is not None:
        rows = np.arange(len(found.lower))
        write_table(output, force, ["row", "lower", "upper"], len(rows), [[rows, found.lower, found.upper]])
    order = np.argsort(-found.upper, kind="stable")[:top]
    record = {
        "n_rows": len(found.lower),
        "scaled_ridge": found.scaled_ridge,
        "effective_dimension": list(found.effective_dimension),
        "coherence": list(found.coherence),
        "verdict": found.verdict(),
        "top": [{"row": int(k), "lower": found.lower[k], "upper": found.upper[k]} for k in order],
        "output": None if output is None else str(output),
    }
    lines = [
        ("rows", f"{len(found.lower):,}"),
        ("effective dimension", _between(*found.effective_dimension, ".4g")),
        ("coherence", _between(*found.coherence, ".3g")),
        ("verdict", found.verdict()),
        *((f"row {k}", _between(found.lower[k], found.upper[k], ".4f")) for k in order),
    ]
    print_result(as_json, record, lines, output)


def _between(lower: float, upper: float, digits: str) -> str:
    """Return both bounds, or one number if they print alike."""
    one, other = format(lower, digits), format(upper, digits)
    return one if one == other else f"{one} to {other}"
