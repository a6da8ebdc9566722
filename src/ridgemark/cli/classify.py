"""`ridgemark fit --classify`: fit classes to the labels of a file."""

import copy
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from ridgemark.cli.measures import held_out, peak_memory, sample_of_classes
from ridgemark.cli.output import is_stream, print_result, progress
from ridgemark.cli.report import write_page
from ridgemark.errors import DataError, ParameterError
from ridgemark.estimators import NystromClassifier
from ridgemark.estimators.landmark_model import keep_certificate
from ridgemark.estimators.saving import save_model
from ridgemark.fitted import RunRecord
from ridgemark.report.fit_words import distance_words, spoken, tuning_lines
from ridgemark.rows import RowSource
from ridgemark.rows.column import without_features
from ridgemark.rows.labels import text_labels
from ridgemark.rows.places import listed, shown

_READ = 65536  # rows whose labels are read at a time

classify_option = click.option(
    "--classify",
    is_flag=True,
    help="The target holds labels: fit probabilities of the classes. A text target implies it.",
)


def fit_labels(
    source: RowSource,
    test: RowSource | None,
    about: RunRecord,
    output: Path,
    options: dict[str, Any],
    audited: int,
    **flags: Any,
) -> None:
    """Fit a classifier, certify it where there are at most `audited` rows, save it, and write and print what it is."""
    if options["certify"] not in (None, "audit"):
        raise ParameterError(f"--certify must be audit with --classify, got {options['certify']}")
    if test is not None and (unknown := _labels_of(test) - _labels_of(source)):
        raise DataError(
            f"{shown(options['test'])}: no row of the fit has the label {listed(sorted(unknown))}; drop its rows"
        )
    begin = time.perf_counter()
    with progress() as tell:
        chosen = {name: options[name] for name in ("kernel", "bandwidth", "ridge", "selection", "device")}
        model: Any = NystromClassifier(  # type: ignore[no-untyped-call]
            **chosen, n_landmarks=options["landmarks"], random_state=flags["seed"], progress=tell
        ).fit(source, checkpoint=options["checkpoint"])
        labels, name = model.classes_.tolist(), (about.target_names or ["y"])[0]
        names = [name] if len(labels) == 2 else [f"{name}={label}" for label in labels]
        run = replace(about, n_rows=source.n_rows, target_names=names)
        if not is_stream(output):
            save_model(copy.copy(model).set_params(progress=False), output, flags["force"], run=run)
        if options["certify"] or source.n_rows <= audited:
            keep_certificate(model, model.certify(source))  # type: ignore[no-untyped-call]
        run = replace(run, sample=sample_of_classes(model, source))
        run = run if test is None else replace(run, held_out=held_out(model, test, options["test"].name))
    run = replace(run, seconds=time.perf_counter() - begin, peak_bytes=peak_memory())
    save_model(copy.copy(model).set_params(progress=False), output, True, run=run)
    report = options["report"]
    if report is not None:
        write_page(model, run, report, flags["force"])
    about_files = {"model": str(output), "report": None if report is None else str(report)}
    lines = [*class_lines(model, run), ("time", spoken(run.seconds or 0.0))]
    print_result(flags["as_json"], class_summary(model, run) | about_files, lines, output, report)


def _labels_of(source: RowSource) -> set[Any]:
    """Return the labels of a source, as text or numbers."""
    if (texts := text_labels(source)) is not None:
        return set(texts)
    blocks = without_features(source).blocks(_READ)
    return set().union(*(np.unique(block.targets).tolist() for block in blocks if block.targets is not None))


def class_summary(model: Any, run: RunRecord) -> dict[str, Any]:
    """Return what a fit of classes is in plain numbers, for a machine."""
    path, certificate = getattr(model, "ridge_path_", None), model.certificate_
    return {
        "n_rows": run.n_rows,
        "classes": model.classes_.tolist(),
        "n_landmarks": model.n_landmarks_,
        "ridge": model.ridge_,
        "loo_log_loss": None if path is None else float(path.loo_loss[path.chosen]),
        "left_out": _told(run.sample),
        "held_out": _told(run.held_out),
        "certificate": None if certificate is None else certificate.as_dict(),
        "seconds": run.seconds,
    }


def class_lines(model: Any, run: RunRecord) -> list[tuple[str, str | None]]:
    """Return a fit of classes in a few lines of labels and values."""
    rows = "" if run.n_rows is None else f"{run.n_rows:,} rows of {model.n_features_in_} columns, "
    return [
        ("classes", f"{rows}{len(model.classes_)} classes: {listed(model.classes_.tolist())}"),
        ("left out", _error_words(run.sample)),
        ("held out", _error_words(run.held_out)),
        *tuning_lines(model),
        ("exact", distance_words(model)),
    ]


def _told(errors: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if errors is None else {name: errors[name] for name in ("n_rows", "accuracy", "log_loss", "confusion")}


def _error_words(errors: Mapping[str, Any] | None) -> str | None:
    if errors is None:
        return None
    where = f" of {shown(errors['data'])}" if "data" in errors else ", each predicted from the others"
    return f"{errors['accuracy']:.1%} right, log loss {errors['log_loss']:.4g}, on {errors['n_rows']:,} rows{where}"
