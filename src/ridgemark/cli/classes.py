"""What commands measure of a model that predicts classes, and say of it; and labels, looked at before a fit."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ridgemark.cli.data import csv_form, is_csv
from ridgemark.cli.kept import csv_columns
from ridgemark.errors import DataError, ParameterError
from ridgemark.estimators.measuring.classes import as_they_are
from ridgemark.evaluate import Threshold, choose_threshold
from ridgemark.fitted import RunRecord
from ridgemark.report import fit_words as words
from ridgemark.report import promises, quality
from ridgemark.rows import RowSource, listed, shown, text_labels, without_features
from ridgemark.rows.cells import CODE, TRUTH, is_number
from ridgemark.rows.csv_scan import MISSING
from ridgemark.tables.values import looks_measured

INTERVALS = "sets of labels"

_READ = 65536  # rows whose labels are read at a time
_FEW_LABELS = 20  # as many may be those of single rows
_ERRORS = ("n_rows", "accuracy", "majority", "log_loss", "auc", "average_precision", "confusion", "repeated")


def need_text(path: Path, options: Mapping[str, Any]) -> bool:
    """Tell whether labels of a CSV file are to be read as text: some are like "01", or only some are numbers."""
    if not is_csv(path) or options["target"] is None:
        return False
    cells = csv_columns(path, options["target"], **csv_form(path, options)).values()
    labels = {text.strip() for column in cells for text in set(column.tolist())} - {""}
    texts = {label for label in labels if not is_number(label) and label.lower() not in (*MISSING, *TRUTH)}
    return any(map(CODE.fullmatch, labels)) or bool(texts and any(map(is_number, labels)))


def said_of_text(labels: Sequence[str], names: Sequence[str]) -> str:
    """Return the line that says that text labels are fitted as classes, with a remedy where they look like numbers."""
    line = f"{listed(names)} holds text: classes are fitted, as by --classify"
    if len(labels) > _FEW_LABELS and looks_measured(labels):
        line += f"; if these are numbers or dates, such as {shown(labels[0])}, write them as numbers without units"
    return line


def check_labels(source: RowSource, test: RowSource | None, options: Mapping[str, Any]) -> None:
    """Refuse nearly unique labels, options without use for labels, and test rows with labels of no training row."""
    labels = _labels_of(source)
    if len(labels) > max(_FEW_LABELS, source.n_rows / 2):
        what = "numbers" if text_labels(source) is None else "texts"
        raise DataError(
            f"the target holds {len(labels):,} different {what} in {source.n_rows:,} rows, such as "
            f"{shown(min(labels))}; it must hold labels of classes with several rows, or numbers without units, fitted "
            "without --classify"
        )
    if len(labels) != 2 and (options["cost"] is not None or options["rate"] is not None):
        raise ParameterError(f"--cost and --rate choose a threshold between two classes; the target has {len(labels)}")
    if options["certify"] not in (None, "audit"):
        raise ParameterError(f"--certify must be audit with --classify, got {options['certify']}")
    if test is not None and (unknown := _labels_of(test) - labels):
        raise DataError(
            f"{shown(options['test'])}: no row of the fit has the label {listed(sorted(unknown))}; drop its rows"
        )


def _labels_of(source: RowSource) -> set[Any]:
    """Return the labels of a source, as text or numbers."""
    if (texts := text_labels(source)) is not None:
        return set(texts)
    blocks = without_features(source).blocks(_READ)
    return set().union(*(np.unique(block.targets).tolist() for block in blocks))


def outputs(model: Any, names: Sequence[str] | None) -> Sequence[Any]:
    """Return the label of each function: of two classes the second."""
    return model.classes_.tolist()[-np.size(model.intercept_) :]


def threshold(model: Any, source: RowSource, cost: Sequence[float] | None, rate: float | None) -> Threshold:
    """Return the threshold for a cost or a rate, from the probabilities of rows of the fit, each left out."""
    diagnosis = model.diagnose(source)
    shares, weights = as_they_are(model, diagnosis)
    p, counted = np.exp(diagnosis.log_probabilities[:, 1]), weights > 0
    return choose_threshold(p[counted], shares[counted, 1], cost=cost, rate=rate, sample_weight=weights[counted])


def has_intervals(model: Any) -> bool:
    """Return whether the model can make sets of labels."""
    return hasattr(model, "calibration_")


def summary(model: Any, run: RunRecord) -> dict[str, Any]:
    """Return the errors of a fit in plain numbers, for a machine."""
    path = getattr(model, "ridge_path_", None)
    errors = {
        name: None if values is None else {error: values[error] for error in _ERRORS if error in values}
        for name, values in {"left_out": run.sample, "held_out": run.held_out}.items()
    }
    return errors | {
        "classes": model.classes_.tolist(),
        "threshold": run.threshold,
        "ridge": model.ridge_,
        "loo_log_loss": None if path is None else float(path.loo_loss[path.chosen]),
    }


def lines(model: Any, run: RunRecord) -> list[tuple[str, str | None]]:
    """Return a fit of classes in a few lines of labels and values."""
    return [
        ("classes", f"{len(model.classes_)}: {listed(model.classes_.tolist())}"),
        ("left out", _error_words(model, run.sample, quality.OTHERS[words.left_out(model)])),
        ("held out", _error_words(model, run.held_out)),
        ("threshold", quality.threshold_words(model, run)),
        *quality.baseline_lines(model, run),
        *words.tuning_lines(model),
        ("exact", promises.distance_words(model)),
        ("cost", words.cost_words(model, run)),
    ]


def _error_words(model: Any, errors: Mapping[str, Any] | None, others: str = "") -> str | None:
    if errors is None:
        return None
    where = f" of {shown(errors['data'])}" if "data" in errors else f", {others}"
    said = f"{quality.class_errors(errors, model.classes_)}, on {errors['n_rows']:,} rows{where}"
    return said + quality.repeated_words(errors)
