"""`ridgemark fit --classify`: fit classes to the labels of a file."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ridgemark.cli.data import csv_form, is_csv
from ridgemark.cli.kept import csv_columns
from ridgemark.cli.measures import AUDITED, peak_memory, sample_of_classes
from ridgemark.errors import DataError, ParameterError
from ridgemark.estimators.landmark_model import keep_certificate
from ridgemark.fitted import RunRecord
from ridgemark.report.fit_words import distance_words, n_columns, spoken, tuning_lines
from ridgemark.rows import RowSource, listed, shown, text_labels, without_features
from ridgemark.rows.cells import CODE, TRUTH, is_number
from ridgemark.rows.csv_scan import MISSING
from ridgemark.tables.values import looks_measured

_READ = 65536  # rows whose labels are read at a time
_FEW_LABELS = 20  # as many may be those of single rows


def need_text(path: Path, options: Mapping[str, Any]) -> bool:
    """Tell whether labels of a CSV file are to be read as text: some are like "01", or only some are numbers."""
    if not is_csv(path) or options["target"] is None:
        return False
    cells = csv_columns(path, options["target"], **csv_form(path, options)).values()
    labels = {text.strip() for column in cells for text in set(column.tolist())} - {""}
    words = {label for label in labels if not is_number(label) and label.lower() not in (*MISSING, *TRUTH)}
    return any(map(CODE.fullmatch, labels)) or bool(words and any(map(is_number, labels)))


def said_of_text(labels: Sequence[str], names: Sequence[str]) -> str:
    """Return the line that says that text labels are fitted as classes, with a remedy where they look like numbers."""
    line = f"{listed(names)} holds text: classes are fitted, as by --classify"
    if len(labels) > _FEW_LABELS and looks_measured(labels):
        line += f"; if these are numbers or dates, such as {shown(labels[0])}, write them as numbers without units"
    return line


def check_labels(source: RowSource, test: RowSource | None, options: Mapping[str, Any]) -> None:
    """Refuse, before a fit of labels, what has no meaning for them, and test rows with labels of no row of the fit."""
    labels = _labels_of(source)
    if len(labels) > max(_FEW_LABELS, source.n_rows / 2):
        what = "numbers" if text_labels(source) is None else "texts"
        raise DataError(
            f"the target holds {len(labels):,} different {what} in {source.n_rows:,} rows, such as "
            f"{shown(min(labels))}; it must hold labels of classes with several rows, or numbers without units, fitted "
            "without --classify"
        )
    if options["certify"] not in (None, "audit"):
        raise ParameterError(f"--certify must be audit with --classify, got {options['certify']}")
    if test is not None and (unknown := _labels_of(test) - labels):
        raise DataError(
            f"{shown(options['test'])}: no row of the fit has the label {listed(sorted(unknown))}; drop its rows"
        )


def with_class_names(about: RunRecord, model: Any) -> RunRecord:
    """Return the record with a name for each function of the model: of two classes one."""
    labels, name = model.classes_.tolist(), (about.target_names or ["y"])[0]
    return replace(about, target_names=[name] if len(labels) == 2 else [f"{name}={label}" for label in labels])


def measure_classes(model: Any, about: RunRecord, source: RowSource, kind: str | None) -> RunRecord:
    """Certify a fitted model where that is asked for or takes seconds; return the record with errors of its rows."""
    if kind or source.n_rows <= AUDITED:
        keep_certificate(model, model.certify(source))  # type: ignore[no-untyped-call]
    sample = sample_of_classes(model, source)
    return replace(about, n_rows=source.n_rows, sample=sample, peak_bytes=peak_memory())


def _labels_of(source: RowSource) -> set[Any]:
    """Return the labels of a source, as text or numbers."""
    if (texts := text_labels(source)) is not None:
        return set(texts)
    blocks = without_features(source).blocks(_READ)
    return set().union(*(np.unique(block.targets).tolist() for block in blocks))


def class_lines(model: Any, run: RunRecord) -> list[tuple[str, str | None]]:
    """Return a fit of classes in a few lines of labels and values."""
    rows = "" if run.n_rows is None else f"{run.n_rows:,} rows of {n_columns(model)} columns, "
    return [
        ("classes", f"{rows}{len(model.classes_)} classes: {listed(model.classes_.tolist())}"),
        ("left out", _error_words(run.sample)),
        ("held out", _error_words(run.held_out)),
        *tuning_lines(model),
        ("exact", distance_words(model)),
        ("time", None if run.seconds is None else spoken(run.seconds)),
    ]


def _error_words(errors: Mapping[str, Any] | None) -> str | None:
    if errors is None:
        return None
    where = f" of {shown(errors['data'])}" if "data" in errors else ", each predicted from the others"
    said = f"{errors['accuracy']:.1%} right, log loss {errors['log_loss']:.4g}, on {errors['n_rows']:,} rows{where}"
    return said + (f"; {errors['repeated']:,} of them are training rows" if errors.get("repeated") else "")
