"""`ridgemark fit`: fit a model to the rows of a file and save it."""

import copy
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from ridgemark.checks import check
from ridgemark.cli import classes, losses
from ridgemark.cli import options as shared
from ridgemark.cli.data import Columns, csv_form, encoding_of, is_csv, open_test, open_to_fit
from ridgemark.cli.measures import held_out, kind_of, measure, summary
from ridgemark.cli.output import check_outputs, is_stream, print_result, progress, staged
from ridgemark.cli.report import write_page
from ridgemark.errors import ModelFileError, ParameterError, RidgemarkError
from ridgemark.estimators import NystromClassifier, NystromRegressor, NystromRidge, measuring
from ridgemark.estimators.saving import save_model
from ridgemark.evaluate import boosting
from ridgemark.fitted import RunRecord
from ridgemark.losses import OF_NUMBERS
from ridgemark.measured import AUDITED
from ridgemark.report.plots import require_matplotlib
from ridgemark.rows import RowSource, shown, text_labels
from ridgemark.selection import NAMED as SELECTIONS

_OF_CLASSES = {"class_weight": "none", "cost": None, "rate": None}  # options of classes, and their defaults


def _cost(text: str) -> list[float]:
    """Return two numbers separated by a comma."""
    costs = np.atleast_1d(shared.numbers_or("two, such as 1,5")(text)).tolist()
    if len(costs) != 2 or min(costs) <= 0:
        raise click.BadParameter(f"{text!r} must be two positive numbers, of a false alarm and of a miss, such as 1,5")
    return costs


@shared.command("fit", "rows.csv --target y --output model.ridgemark")
@click.argument("data", type=shared.DATA)
@shared.target_option
@shared.output_option("Model file to write.")
@shared.option(
    "--ridge",
    shared.numbers_or("loo", "gcv"),
    "Regularisation lambda, the ridge: a number, candidates separated by commas, or loo or gcv to search 14 decades; "
    "with --classify or --loss loo searches ten, and gcv is refused.",
    "NUMBER",
    "loo",
)
@shared.tuned_kernel_options
@shared.option(
    "--landmarks", shared.count_or_auto, "Number of landmarks; auto: from the effective dimension.", "COUNT", "auto"
)
@shared.option("--selection", click.Choice(sorted(SELECTIONS)), "How landmarks are chosen.", default="auto")
@shared.choice_option(
    "--effort",
    ["default", "fast", "high"],
    "fast: a shorter search for the kernel and fewer landmarks; high: a longer one, and up to three times as many.",
)
@shared.fit_options
@shared.option(
    "--certify",
    click.Choice(["audit", "operator", "trace"]),
    f"Certificate of the distance to exact; by default audit up to {AUDITED:,} rows and trace beyond; "
    "with --classify or --loss audit up to the same number, and none beyond.",
)
@shared.test_option
@shared.flag(
    "--keep-sums", "Keep all sums in the model file, 24 p^2 bytes: for `ridgemark certify`, and partial_fit in Python."
)
@shared.option(
    "--loss",
    click.Choice(list(OF_NUMBERS)),
    "Loss in place of squared errors: robust (huber), of counts (poisson), positive amounts (gamma) or quantiles.",
)
@shared.option(
    "--quantiles",
    shared.numbers_or("several such as 0.1,0.5,0.9"),
    "Levels of --loss quantile, ascending, separated by commas: 0.1,0.5,0.9; by default the median.",
    "LEVELS",
)
@shared.exposure_option
@shared.flag("--classify", "The target holds labels: fit probabilities of the classes. A text target implies it.")
@shared.choice_option(
    "--target-transform",
    ["none", "log", "sqrt", "yeo-johnson", "auto"],
    "Map of a target with a long tail; auto: none, sqrt or yeo-johnson by leave-one-out in units of the target.",
)
@shared.choice_option("--class-weight", ["none", "balanced"], "balanced: every class has the same total weight.")
@shared.option(
    "--cost",
    _cost,
    "With two classes: choose a threshold for this cost of a false alarm and of a miss, e.g. 1,5.",
    "COSTS",
)
@shared.option(
    "--rate",
    click.FloatRange(0, 1, True, True),
    "With two classes: choose a threshold that so many rows reach, e.g. 0.1.",
    "SHARE",
)
@shared.option(
    "--baseline", click.Choice(["boosting"]), "Also fit scikit-learn's gradient boosting, by cross-validation."
)
@shared.option("--checkpoint", shared.PATH, "File from which a killed fit resumes; removed when the fit has ended.")
@shared.option("--report", shared.PATH, "HTML page to write about the fit; needs the extra `report`.")
@shared.device_option("cpu")
@shared.seed_option
@shared.write_options
def command(
    data: Path, output: Path, report: Path | None, seed: int, force: bool, as_json: bool, **options: Any
) -> None:
    """Fit kernel ridge regression from landmarks to the rows of DATA.

    DATA is a .csv, .tsv (also .gz), .npy, .npz (arrays X and y), .parquet, .arrow or .feather file, or `-`, the
    standard input. Text, dates and missing values among the features are encoded. The model is saved as soon as it is
    fitted, and saved again with its certificate, intervals and the error on the rows of --test.
    """
    test: Path | None = options["test"]
    check_outputs([("--output", output), ("--report", report)], [data, test], force, as_json)
    losses.check_options(options)
    if report is not None:
        require_matplotlib()
    begin = time.perf_counter()
    source = _open_rows(data, options)
    about = _about(data, source, options)
    labels = text_labels(source)
    n_targets = source.n_targets - (about.exposure is not None)
    columns = Columns(source.n_features, n_targets, source.feature_names, labels is not None)
    other = None if test is None else open_test(about, columns, test, {}, encoding_of(source))
    if options["loss"]:
        losses.check_targets(source, other, options)
    elif labels is not None and not options["classify"]:
        click.echo(f"ridgemark: {classes.said_of_text(labels, about.target_names or ())}", err=True)
        options["classify"] = True
    if options["classify"]:
        classes.check_labels(source, other, options)
        if options["target_transform"] != "none":
            raise ParameterError("--target-transform is for numbers; leave it out for labels of classes")
    elif asked := [name for name, default in _OF_CLASSES.items() if options[name] != default]:
        raise ParameterError(f"--{asked[0].replace('_', '-')} is for labels of classes; give --classify for labels")
    with progress() as tell:
        model = _estimator(options, random_state=seed, progress=tell)
        with _resumable(options["checkpoint"]):
            model.fit(source, checkpoint=options["checkpoint"])
        about = replace(about, target_names=measuring.kind_of(model).target_names(model, about.target_names))
        with _kept(model, about, output, force, True if options["keep_sums"] else "predict") as save:
            run = measure(model, about, source, options["certify"])
            run = replace(run, **_asked(model, source, options), findings=_findings(source, options))
            if test is not None and other is not None:
                run = replace(run, held_out=held_out(model, other, test))
            run = replace(run, seconds=time.perf_counter() - begin)
            save(run)
            if report is not None:
                write_page(model, run, report, force)
    record = summary(model, run) | {"model": str(output), "report": None if report is None else str(report)}
    print_result(as_json, record, kind_of(model).lines(model, run), output, report)


def _estimator(options: Mapping[str, Any], **more: Any) -> Any:
    """Return the estimator that the options ask for."""
    chosen = {name: options[name] for name in ("kernel", "bandwidth", "ridge", "selection", "effort", "device")}
    chosen |= {"n_landmarks": options["landmarks"], **more}
    if options["loss"]:
        levels = options["quantiles"]
        quantiles = None if levels is None else np.atleast_1d(levels).tolist()
        return NystromRegressor(options["loss"], quantiles=quantiles, **chosen)
    if options["classify"]:
        weight = None if options["class_weight"] == "none" else options["class_weight"]
        return NystromClassifier(**chosen, class_weight=weight)
    transform = None if options["target_transform"] == "none" else options["target_transform"]
    return NystromRidge(**chosen, target_transform=transform)


def _findings(source: RowSource, options: Mapping[str, Any]) -> dict[str, str]:
    """Return what `check` sees in the rows of one target, without what an option of this fit answers."""
    if source.n_targets != 1:
        return {}
    answered = options["loss"] or options["target_transform"] != "none"
    findings = [finding for finding in check(source).findings if not (finding.fault == "skewed target" and answered)]
    return {" ".join([finding.fault, *map(shown, finding.columns)]): str(finding) for finding in findings}


def _asked(model: Any, source: RowSource, options: dict[str, Any]) -> dict[str, Any]:
    """Return the threshold and the errors of boosting, where they are asked for."""
    more: dict[str, Any] = {}
    if options["cost"] is not None or options["rate"] is not None:
        more["threshold"] = asdict(classes.threshold(model, source, options["cost"], options["rate"]))
    if options["baseline"] == "boosting":
        more["boosting"] = asdict(boosting(source, classes=bool(options["classify"])))
    return more


def _open_rows(data: Path, options: dict[str, Any]) -> RowSource:
    """Open the rows to fit; refuse rows without a target. Labels that are read as text are so in later files too."""
    if options["classify"] and classes.need_text(data, options):
        options["labels"] = "text"
    source = open_to_fit(data, options)
    if source.n_targets == 0:
        stored = ", or store it in the file as the array y" if data.suffix.lower() == ".npz" else ""
        raise ParameterError(f"{shown(data)}: no target to fit; name its column with --target{stored}")
    return source


def _about(data: Path, source: Any, options: dict[str, Any]) -> RunRecord:
    """Return what other commands need to read the columns of the fit; dropped columns are left out."""
    columns, names = options["columns"], source.feature_names
    if columns is None or options["drop"] is not None:
        columns = None if names is None else [shared.key(name) for name in names]
    if columns is None and options["drop"] is not None:
        columns = list(source.roles.features)
    names = source.target_names and source.target_names[: source.n_targets - (options["exposure"] is not None)]
    called = [key if isinstance(key, str) else f"column {key}" for key in options["target"] or ["y"]]
    if len(called) < source.n_targets:  # one array of an archive holds them all
        called = [f"{called[0]} {k}" for k in range(source.n_targets)]
    return RunRecord(
        data=data.name,
        target=options["target"],
        target_names=list(names or called),
        weight=options["weight"],
        exposure=options["exposure"],
        group=options["group"],
        columns=columns,
        csv_form=csv_form(data, options) if is_csv(data) else None,
    )


@contextmanager
def _resumable(checkpoint: Path | None) -> Iterator[None]:
    """Say how an interrupted fit goes on."""
    try:
        yield
    except KeyboardInterrupt as error:
        kept = "a fit with --checkpoint FILE goes on when the same command is run again"
        if checkpoint is not None:
            kept = f"run the same command again to go on: {shown(checkpoint)} keeps what was computed"
        error.add_note(kept)
        raise


@contextmanager
def _kept(
    model: Any, about: RunRecord, output: Path, force: bool, sums: bool | str
) -> Iterator[Callable[[RunRecord], None]]:
    """Save a fitted model now, and yield what saves it again; whatever fails meanwhile, the file has the model.

    A pipe can be written only once, by that function.
    """
    early = not is_stream(output)
    if early:
        _save(model, about, output, force, sums)
    try:
        yield lambda run: _save(model, run, output, force or early, sums)
    except BaseException as error:
        if early and not hasattr(error, "__notes__"):  # which say where else it is kept
            error.add_note(f"the model is kept in {shown(output)}")
        raise


def _save(model: Any, run: RunRecord, output: Path, force: bool, sums: bool | str) -> None:
    """Save a model; where that fails, in a new folder for temporary files instead."""
    quiet = copy.copy(model).set_params(progress=False)  # a program that loads the model decides anew
    try:
        with staged(output, force) as temporary:
            save_model(quiet, temporary, True, sums=sums, run=run)
    except (OSError, RidgemarkError) as error:
        reason = getattr(error.__cause__, "strerror", None) or error
        failure = ModelFileError(f"{shown(output)} could not be written: {reason}")
        spare = Path(tempfile.mkdtemp(prefix="ridgemark-")) / "model.ridgemark"
        save_model(quiet, spare, True, sums=sums, run=run)
        failure.add_note(f"the model is kept in '{spare}'")
        raise failure from error
