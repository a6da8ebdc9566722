"""`ridgemark bench`: the speed of a fit beside its bare arithmetic, or the accuracy of the defaults beside peers."""

import json
from typing import Any

import click

from ridgemark.cli import options as shared
from ridgemark.cli.output import print_result
from ridgemark.errors import ParameterError
from ridgemark.rows.places import listed, shown

_BANDWIDTH, _RIDGE = 6.0, 1e-6
_DEFAULTS = {"rows": 50_000, "features": 20, "landmarks": 500, "repeats": 5}
_SPLITS = 3
_METHODS = (
    "With --accuracy: methods among default, many, exact, median, boosting, nystroem, process, xrfm; by default all "
    "but exact."
)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


@shared.command("bench", "--accuracy --rows 2000")
@shared.flag("--accuracy", "Measure test errors in place of time.")
@shared.count_option(
    "--rows", "Number of rows, by default 50,000; with --accuracy a limit on the training rows.", None, 100
)
@shared.count_option("--features", "Number of features, by default 20.", None, 3)
@shared.count_option("--landmarks", "Number of landmarks, by default 500.")
@shared.count_option("--repeats", "Repeats, 5, or with --accuracy random splits, 3; medians are shown.")
@shared.data_option
@shared.option("--sets", _names, "With --accuracy: data sets, separated by commas; by default all.", "NAMES")
@shared.option("--methods", _names, _METHODS, "NAMES")
@shared.option(
    "--records", shared.PATH, "With --accuracy: file that gets a line for every fit; fits in it are not run again."
)
@shared.option("--device", str, "With --accuracy: where ridgemark computes: cpu (default), cuda (a GPU), ...", "NAME")
@shared.json_option
def command(accuracy: bool, as_json: bool, **options: Any) -> None:
    """Time a fit against its bare arithmetic and scikit-learn, or compare the accuracy of the defaults.

    Times a fit and a prediction on synthetic rows; each repeat runs all contenders in turn, with the same kernel, ridge
    and number of landmarks. The bare arithmetic is the least that a fit in one pass must do: one matrix product for
    the kernel, its exponential, and one symmetric update.

    With --accuracy, fits the defaults and other regressors to the sets in the folder --data whose targets are not
    classes, and prints tables of their test errors; without a folder, to a set of scikit-learn and a simulated robot
    arm. On all sets this takes hours; --rows 2000 is a quick look.
    """
    if accuracy:
        _accuracy(as_json, options)
    elif any(options[name] for name in ("sets", "methods", "records", "device")):
        raise click.UsageError(
            "--sets, --methods, --records and --device are options of --accuracy; add it, or leave them out"
        )
    else:
        _speed(as_json, **{name: options[name] or default for name, default in _DEFAULTS.items()})


def _speed(as_json: bool, rows: int, features: int, landmarks: int, repeats: int) -> None:
    if landmarks > rows:
        raise click.UsageError(f"--landmarks must be at most --rows, got {landmarks} and {rows}")
    # Imported here: scikit-learn's estimators take longer to import than the rest of the command.
    from ridgemark.cli.contenders import compare_fits, compare_predictions, synthetic_rows

    given = (*synthetic_rows(rows, features), landmarks, _BANDWIDTH, _RIDGE, repeats)
    found = {"fit": compare_fits(*given), "predict": compare_predictions(*given)}
    record = {"rows": rows, "features": features, "landmarks": landmarks, "repeats": repeats, **found}
    about = f"{rows:,} x {features}, {landmarks} landmarks, medians of {repeats}"
    print_result(as_json, record, [("rows", about), *((what, _line(times)) for what, times in found.items())])


def _line(found: dict[str, float]) -> str:
    parts = [f"{found['ridgemark_seconds']:.3g} s", f"{found['over_bare']:.2f} times the bare arithmetic"]
    if "times_faster" in found:
        parts.append(f"{found['times_faster']:.2f} times as fast as scikit-learn")
    return ", ".join(parts)


def _accuracy(as_json: bool, options: dict[str, Any]) -> None:
    """Run every fit that is not among the records, and print the tables of all of them."""
    data, sets, methods, records = (options[name] for name in ("data", "sets", "methods", "records"))
    if options["features"] or options["landmarks"]:
        raise click.UsageError("--features and --landmarks are not options of --accuracy; leave them out")
    from ridgemark.cli import scoreboard
    from ridgemark.cli.peers import METHODS

    known = scoreboard.regression_sets(data)
    if not known:
        raise ParameterError(f"{shown(data)} has no NAME.npz with arrays X and y, y of numbers; see docs/data.md")
    _check_known("--sets", sets, known)
    _check_known("--methods", methods, METHODS)
    found = scoreboard.read([records] if records is not None and records.exists() else [])
    wanted = methods or [name for name in METHODS if name != "exact"]
    if absent := scoreboard.missing_packages(wanted):
        click.echo(f"ridgemark: left out, since not installed: {', '.join(absent)}", err=True)
        wanted = [name for name in wanted if METHODS[name].package not in absent]
    done = {(one["set"], one["seed"], one["method"]) for one in found}
    chosen = {name: known[name] for name in sets or known}
    splits, device = range(options["repeats"] or _SPLITS), options["device"] or "cpu"
    for record in scoreboard.run(chosen, splits, wanted, options["rows"], done, device):
        found.append(record)
        click.echo("{set}, split {seed}, {method}: {rmse:.4f} ({seconds:.1f} s)".format(**record), err=True)
        if records is not None:
            with records.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
    if as_json:
        print_result(True, {"fits": found}, [])
    else:
        click.echo(scoreboard.show(found))


def _check_known(option: str, names: Any, known: Any) -> None:
    """Refuse names that are not among those known."""
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise click.UsageError(f"{option}: there is no {listed(unknown)}; there are {listed(known)}")
