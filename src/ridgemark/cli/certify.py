"""`ridgemark certify`: bound the distance of a model from exact kernel ridge regression on its rows."""

from pathlib import Path
from typing import Any

import click

from ridgemark.cli import options as shared
from ridgemark.cli.data import Columns, load_model, open_like
from ridgemark.cli.output import print_json, progress


@shared.command("certify", "model.ridgemark rows.csv --kind audit")
@click.argument("model", type=shared.PATH)
@click.argument("data", type=shared.DATA)
@shared.choice_option(
    "--kind",
    ["audit", "operator", "trace"],
    "audit: for these targets. operator: for every signal, with a risk factor. trace: no extra cost, but loose.",
)
@shared.role_options
@shared.device_option()
@shared.json_option
def command(model: Path, data: Path, kind: str, as_json: bool, **options: Any) -> None:
    """Bound how far the model in the file MODEL is from exact; DATA holds the rows it was fitted on.

    The model must be one of `ridgemark fit --keep-sums`, or saved with sums=True. Target, features and weight are those
    of the fit; for a model saved from Python, name them with the options.
    """
    fitted, run = load_model(model, "certify", device=options["device"])
    source = open_like(run, Columns.of(fitted), data, options, with_target=True)
    with progress() as tell:
        fitted.set_params(progress=tell)
        certificate = fitted.certify(source, kind=kind)
    if as_json:
        print_json(certificate.as_dict())
    else:
        click.echo(str(certificate))
