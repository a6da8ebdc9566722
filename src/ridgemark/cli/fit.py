"""`ridgemark fit`: fit a model to the rows of a file and save it."""

import copy
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from ridgemark.cli import classify
from ridgemark.cli import options as shared
from ridgemark.cli.data import Columns, csv_form, encoding_of, is_csv, open_test, open_to_fit
from ridgemark.cli.measures import AUDITED, held_out, peak_memory, repeated_rows, repeated_share, sample_of, summary
from ridgemark.cli.output import check_outputs, is_stream, print_result, progress, staged, warn_of_repeats
from ridgemark.cli.report import write_page
from ridgemark.errors import ModelFileError, ParameterError, RidgemarkError
from ridgemark.estimators import NystromClassifier, NystromRidge
from ridgemark.estimators.landmark_model import keep_certificate
from ridgemark.estimators.saving import save_model
from ridgemark.estimators.table_reader import encoded_source
from ridgemark.fitted import RunRecord
from ridgemark.report.fit_words import distance_words, interval_shortage, n_columns, quality_lines, spoken, tuning_lines
from ridgemark.report.plots import require_matplotlib
from ridgemark.rows import RowSource, shown, text_labels
from ridgemark.selection import NAMED as SELECTIONS

_FEW_ROWS = 20  # in fewer rows, a target of two values need not be labels
_SLOW, _LONG = 0.1, 10.0  # share of the passes' time, and seconds of the run; waiting for rows is told from here on


@shared.command("fit", "rows.csv --target y --output model.ridgemark")
@click.argument("data", type=shared.DATA)
@shared.target_option
@shared.output_option("Model file to write.")
@shared.option(
    "--ridge",
    shared.numbers_or("loo", "gcv"),
    "Regularisation lambda, the ridge: a number, candidates separated by commas, or loo or gcv to search 14 decades; "
    "with --classify loo searches ten.",
    "NUMBER",
    "loo",
)
@shared.tuned_kernel_options
@shared.option(
    "--landmarks", shared.count_or_auto, "Number of landmarks; auto: from the effective dimension.", "COUNT", "auto"
)
@shared.option("--selection", click.Choice(sorted(SELECTIONS)), "How landmarks are chosen.", default="auto")
@shared.fit_options
@shared.option(
    "--certify",
    click.Choice(["audit", "operator", "trace"]),
    f"Certificate of the distance to exact; by default audit up to {AUDITED:,} rows and trace beyond; "
    "with --classify audit up to the same number, and none beyond.",
)
@shared.test_option
@shared.flag(
    "--keep-sums", "Keep all sums in the model file, 24 p^2 bytes: for `ridgemark certify`, and partial_fit in Python."
)
@shared.flag("--classify", "The target holds labels: fit probabilities of the classes. A text target implies it.")
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
    check_outputs([("--output", output), ("--report", report)], [("DATA", data), ("--test", test)], force, as_json)
    if report is not None:
        require_matplotlib()
    begin = time.perf_counter()
    source = _open_rows(data, options)
    about = _about(data, source, options)
    labels = text_labels(source)
    columns = Columns(source.n_features, source.n_targets, source.feature_names, labels is not None)
    other = None
    if test is not None:
        other = open_test(about, columns, test, {}, encoding_of(source))
    if labels is not None and not options["classify"]:
        click.echo(f"ridgemark: {classify.said_of_text(labels, about.target_names or ())}", err=True)
        options["classify"] = True
    if options["classify"]:
        classify.check_labels(source, other, options)
    with progress() as tell:
        chosen = {name: options[name] for name in ("kernel", "bandwidth", "ridge", "selection", "device")}
        estimator: Any = NystromClassifier if options["classify"] else NystromRidge
        model: Any = estimator(**chosen, n_landmarks=options["landmarks"], random_state=seed, progress=tell)
        with _resumable(options["checkpoint"]):
            model.fit(source, checkpoint=options["checkpoint"])
        about = classify.with_class_names(about, model) if options["classify"] else about
        with _kept(model, about, output, force, True if options["keep_sums"] else "predict") as save:
            run = measure(model, about, source, options["certify"])
            if test is not None and other is not None:
                run = replace(run, held_out=_errors_of(model, source, other, test))
            run = replace(run, seconds=time.perf_counter() - begin)
            save(run)
            if report is not None:
                write_page(model, run, report, force)
    record = summary(model, run) | {"model": str(output), "report": None if report is None else str(report)}
    print_result(as_json, record, fit_lines(model, run), output, report)


def _errors_of(model: Any, source: RowSource, test: RowSource, path: Path) -> dict[str, Any]:
    """Return the errors on test rows, with the number of those that are training rows; for labels by the features."""
    found, rows = held_out(model, test, path.name), encoded_source(model, test)
    if hasattr(model, "classes_"):
        repeated = round(repeated_share(model, rows) * test.n_rows)
    else:
        repeated = repeated_rows(encoded_source(model, source), rows)
    warn_of_repeats(repeated, test.n_rows, path)
    return found | {"repeated": repeated}


def _open_rows(data: Path, options: dict[str, Any]) -> RowSource:
    """Open the rows to fit; refuse rows without a target. Labels that are read as text are so in later files too."""
    if options["classify"] and classify.need_text(data, options):
        options["labels"] = "text"
    source = open_to_fit(data, options)
    if source.n_targets == 0:
        stored = ", or store it in the file as the array y" if data.suffix.lower() == ".npz" else ""
        raise ParameterError(f"{shown(data)}: no target to fit; name its column with --target{stored}")
    return source


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
    """Save a fitted model now, and give what saves it again; whatever fails meanwhile, the model is there.

    A pipe can be written only once: there the model is saved when that function is called, or on failure.
    """
    saved = False

    def save(run: RunRecord) -> None:
        nonlocal saved
        first, saved = not saved, True
        _save(model, run, output, force or not first, sums, keep=first)

    if not is_stream(output):
        save(about)
    try:
        yield save
    except BaseException as error:
        if not saved:
            save(about)
        if not hasattr(error, "__notes__"):  # which say where else it is kept
            error.add_note(f"the model is kept in {shown(output)}")
        raise


def _save(model: Any, run: RunRecord, output: Path, force: bool, sums: bool | str, keep: bool) -> None:
    """Save a model; with `keep`, where that fails, in a new folder for temporary files instead."""
    quiet = copy.copy(model).set_params(progress=False)  # a program that loads the model decides anew
    try:
        with staged(output, force) as temporary:
            save_model(quiet, temporary, True, sums=sums, run=run)
    except (OSError, RidgemarkError) as error:
        reason = getattr(error.__cause__, "strerror", None) or error
        failure = ModelFileError(f"{shown(output)} could not be written: {reason}")
        if keep:
            spare = Path(tempfile.mkdtemp(prefix="ridgemark-")) / "model.ridgemark"
            save_model(quiet, spare, True, sums=sums, run=run)
            failure.add_note(f"the model is kept in '{spare}'")
        raise failure from error


def fit_and_measure(model: Any, source: RowSource) -> RunRecord:
    """Fit, and return what a report shows beside the model."""
    model.fit(source)
    names = list(source.target_names or _numbered(source.n_targets))
    return measure(model, RunRecord(target_names=names), source)


def measure(model: Any, about: RunRecord, source: RowSource, kind: str | None = None) -> RunRecord:
    """Calibrate and certify a fitted model; return the record with memory and values of some rows."""
    if hasattr(model, "classes_"):
        return classify.measure_classes(model, about, source, kind)
    if model.solver_ == "direct":  # a gradient leaves no sums to look back with
        if not hasattr(model, "loo_residuals_"):
            model.calibrate(source)
        kind = kind or ("audit" if source.n_rows <= AUDITED else "trace")
        keep_certificate(model, model.certify(source, kind=kind))  # type: ignore[no-untyped-call]
    about = replace(about, n_rows=source.n_rows, sample=sample_of(model, source))
    return replace(about, peak_bytes=peak_memory(), waiting_share=model.waiting_share_)


def _about(data: Path, source: Any, options: dict[str, Any]) -> RunRecord:
    """Return what other commands must know of a fit's columns; those that were dropped are none of them."""
    columns, names = options["columns"], source.feature_names
    if columns is None or options["drop"] is not None:
        columns = None if names is None else [shared.key(name) for name in names]
    if columns is None and options["drop"] is not None:
        columns = list(source.choice.features)
    called = [one if isinstance(one, str) else f"column {one}" for one in options["target"] or ["y"]]
    if len(called) < source.n_targets:  # one array of an archive holds them all
        called = [f"{called[0]} {k}" for k in range(source.n_targets)]
    return RunRecord(
        data=data.name,
        target=options["target"],
        target_names=list(source.target_names or called),
        weight=options["weight"],
        columns=columns,
        csv_form=csv_form(data, options) if is_csv(data) else None,
    )


def fit_lines(model: Any, run: RunRecord) -> list[tuple[str, str | None]]:
    """Return a fit in a few lines of labels and values: how good it is, what was tuned, distance to exact, cost."""
    if hasattr(model, "classes_"):
        return classify.class_lines(model, run)
    return [
        *quality_lines(model, run.target_names or _numbered(np.size(model.intercept_))),
        ("held out", None if run.held_out is None else _held_out_words(run.held_out)),
        *tuning_lines(model),
        ("intervals", interval_shortage(model)),
        ("target", _two_values(run)),
        ("exact", distance_words(model)),
        ("cost", _cost_words(model, run)),
    ]


def _numbered(n_targets: int) -> list[str]:
    return [f"target {k}" for k in range(n_targets)]


def _two_values(run: RunRecord) -> str | None:
    """Return what to do where the only target has two values, as labels of classes have; None for others."""
    observed = np.asarray((run.sample or {}).get("observed", ()))
    values = np.unique(observed)
    if len(values) != 2 or observed.size < _FEW_ROWS or len(run.target_names or ()) > 1 or (values % 1).any():
        return None
    low, high = (f"{value:.15g}" for value in values)
    return f"{low} or {high} in all rows looked at, fitted as a number; --classify fits probabilities of classes"


def _held_out_words(found: Mapping[str, Any]) -> str:
    errors = ", ".join(f"{rms:.4g}" for rms in found["rms"])
    shares = ", ".join(f"{share:.1%}" for share in found["r2"] if share is not None)
    said = f"RMS {errors} on {found['n_rows']:,} rows of {shown(found['data'])}" + (shares and f", {shares} explained")
    return said + (f"; {found['repeated']:,} of them are training rows" if found.get("repeated") else "")


def _cost_words(model: Any, run: RunRecord) -> str:
    parts = [spoken(run.seconds or 0.0)]
    if run.peak_bytes:
        parts.append(f"{run.peak_bytes / 2**30:.1f} GiB of memory")
    count = n_columns(model)
    columns = "1 column" if count == 1 else f"{count} columns"
    rows = "" if run.n_rows is None else f"{run.n_rows:,} rows of {columns}"
    parts.append(f"{model.n_passes_} passes over {rows or 'the rows'}")
    if run.waiting_share and run.waiting_share >= _SLOW and (run.seconds or 0.0) >= _LONG:
        parts.append(f"{run.waiting_share:.0%} of their time waiting for rows")
    return ", ".join(parts)
