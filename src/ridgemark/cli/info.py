"""`ridgemark info`: what a model file holds."""

from pathlib import Path
from typing import Any

import click
import numpy as np

from ridgemark.cli import options as shared
from ridgemark.cli.data import load_model
from ridgemark.cli.measures import kind_of, summary
from ridgemark.cli.output import print_result
from ridgemark.fitted import RunRecord
from ridgemark.report.fit_words import kernel_words, n_columns, used_names
from ridgemark.report.promises import interval_shortage
from ridgemark.rows.places import listed, shown


@shared.command("info", "model.ridgemark")
@click.argument("model", type=shared.PATH)
@shared.json_option
def command(model: Path, as_json: bool) -> None:
    """Say what the model in the file MODEL is: how good, what was tuned, its columns and its size.

    The leave-one-out error is known for every model that was solved directly, but after `partial_fit`.
    """
    fitted, run = load_model(model, "predict")
    kind, size, names = kind_of(fitted), model.stat().st_size, used_names(fitted)
    columns = f"{n_columns(fitted)}, without names" if names is None else f"{len(names)}: {listed(names)}"
    has_intervals = kind.has_intervals(fitted)
    lines = [
        ("model", _what(fitted, run)),
        *((label, value) for label, value in kind.lines(fitted, run) if label not in ("cost", kind.INTERVALS)),
        (kind.INTERVALS, interval_shortage(fitted) or ("yes" if has_intervals else "no")),
        ("columns", columns),
        ("size", f"{size / 2**20:.1f} MiB" if size >= 2**20 else f"{size / 2**10:.0f} KiB"),
    ]
    if hasattr(fitted, "certificate_"):
        record = summary(fitted, run)
    else:
        ridges = np.atleast_1d(fitted.ridge_).tolist()
        record = {"n_features": n_columns(fitted), "kernel": kernel_words(fitted), "ridge": ridges}
    about = {"estimator": type(fitted).__name__, "feature_names": names, "intervals": has_intervals, "bytes": size}
    print_result(as_json, record | about, lines)


def _what(fitted: Any, run: RunRecord) -> str:
    """Return the kind of model, and what it was fitted to as far as that is known."""
    certificate = getattr(fitted, "certificate_", None)
    n_rows = run.n_rows or (None if certificate is None else certificate.inputs["n_rows"])
    parts = [type(fitted).__name__]
    parts += [] if n_rows is None else [f"fitted to {n_rows:,} rows" + (f" of {shown(run.data)}" if run.data else "")]
    # Classes have a name for each of their functions, such as y=red.
    names = run.target_names if run.target is None else [key for key in run.target if isinstance(key, str)]
    parts += [f"target {listed(names)}"] if names else []
    return ", ".join(parts)
