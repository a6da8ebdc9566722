"""What commands measure of a model that predicts classes, and say of it; and labels, looked at before a fit."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ridgemark.cli.data import csv_form, is_csv
from ridgemark.cli.kept import csv_columns
from ridgemark.cli.options import AUDITED
from ridgemark.errors import DataError, ParameterError
from ridgemark.estimators.class_labels import conformal_sets
from ridgemark.estimators.landmark_model import keep_certificate
from ridgemark.estimators.table_reader import encoded_rows, encoded_source
from ridgemark.evaluate import Threshold, choose_threshold, ranking
from ridgemark.fitted import RunRecord
from ridgemark.losses import class_loss
from ridgemark.report import fit_words as words
from ridgemark.report import promises, quality
from ridgemark.rows import RowSource, listed, row_weights, shown, text_labels, without_features
from ridgemark.rows.cells import CODE, TRUTH, is_number
from ridgemark.rows.csv_scan import MISSING
from ridgemark.tables.values import looks_measured

INTERVALS = "sets of labels"

_READ = 65536  # rows whose labels are read at a time
_FEW_LABELS = 20  # as many may be those of single rows
_EFFECTS = 2048  # rows that effects are averaged over
_GROUPS = 10  # of rows in a calibration plot
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


def target_names(model: Any, names: Sequence[str]) -> Sequence[str]:
    """Return a name for each function of the model: of two classes one."""
    labels = model.classes_.tolist()
    return names if len(labels) == 2 else [f"{names[0]}={label}" for label in labels]


def outputs(model: Any, names: Sequence[str] | None) -> Sequence[Any]:
    """Return the label of each function: of two classes the second."""
    return model.classes_.tolist()[-np.size(model.intercept_) :]


def certify(model: Any, source: RowSource, kind: str | None) -> None:
    """Certify a fitted model where that is asked for or takes seconds."""
    if kind or source.n_rows <= AUDITED:
        keep_certificate(model, model.certify(source))  # type: ignore[no-untyped-call]


def sample(model: Any, source: RowSource) -> dict[str, Any]:
    """Return the errors on rows of the fit, each left out, the most influential rows, and average effects."""
    diagnosis = model.diagnose(source)
    errors = _errors(model, diagnosis.log_probabilities, *_as_they_are(model, diagnosis))
    some = encoded_source(model, source).take(diagnosis.rows[:_EFFECTS])
    rows = encoded_rows(some.features, diagnosis.weights[:_EFFECTS])
    return errors | {"top": diagnosis.to_record()["top"], "effects": model.effects_summary(rows).to_record()}


def threshold(model: Any, source: RowSource, cost: Sequence[float] | None, rate: float | None) -> Threshold:
    """Return the threshold for a cost or a rate, from the probabilities of rows of the fit, each left out."""
    diagnosis = model.diagnose(source)
    shares, weights = _as_they_are(model, diagnosis)
    p, counted = np.exp(diagnosis.log_probabilities[:, 1]), weights > 0
    return choose_threshold(p[counted], shares[counted, 1], cost=cost, rate=rate, sample_weight=weights[counted])


def _as_they_are(model: Any, diagnosis: Any) -> tuple[Any, Any]:
    """Return the shares of the classes among equal rows, and the rows' weights, without the weights of the classes."""
    factors = model._model.classes.weights
    if factors is None:
        return diagnosis.shares, diagnosis.weights
    counted = diagnosis.weights[:, None] * diagnosis.shares / np.where(factors > 0, factors, np.inf)
    weights = counted.sum(axis=1)
    return counted / np.where(weights > 0, weights, 1.0)[:, None], weights


def held_out(model: Any, source: RowSource) -> dict[str, Any]:
    """Return the errors on test rows, whose labels must be those of the fit, and the coverage of sets of labels."""
    labelled, _ = model._open(source, None, None, reset=False)
    everything = np.arange(source.n_rows)
    block = labelled.take(everything)
    shares = class_loss(len(model.classes_)).indicators(block.targets)
    weights = row_weights(without_features(source).take(everything))
    return _errors(model, model.predict_log_proba(encoded_rows(block.features)), shares, weights)


def _errors(model: Any, logs: Any, shares: Any, weights: Any) -> dict[str, Any]:
    """Return the errors of log-probabilities (n, K) on rows with shares of labels, and weights; zero leaves a row out.

    `rms` is that of the probabilities, as the certificate bounds it. `sets` has the share of rows whose label is in its
    set of labels, the mean number of labels, and the share of sets of one.

    `confusion` counts rows by label and by the most probable one. `calibration` has for ten groups of rows, by the
    probability of the second of two classes or of the most probable one, its mean and how often it was right.
    """
    logs, shares, weights = (values[weights > 0] for values in (logs, shares, weights))
    labels, counted, likeliest = model.classes_, weights[:, None] * shares, logs.argmax(axis=1)
    p, losses = np.exp(logs), -(counted * np.where(counted > 0, logs, 0.0)).sum(axis=0)
    totals, squares = counted.sum(axis=0), (p**2).sum(axis=1, keepdims=True)
    total = totals.sum()
    sets = conformal_sets(p, model.calibration_, promises.COVERAGE)
    held, sizes = (shares * sets).sum(axis=1), sets.sum(axis=1)
    confusion = counted.T @ np.eye(len(labels))[likeliest]
    judged = np.full(len(likeliest), 1) if len(labels) == 2 else likeliest
    said, right = (values[np.arange(len(judged)), judged] for values in (p, shares))
    rare = np.argsort(-totals, kind="stable")  # of two classes average precision is about the second, the rarer one
    groups = np.array_split(np.argsort(said, kind="stable"), min(_GROUPS, len(said)))
    return {
        "n_rows": len(logs),
        "accuracy": float(np.trace(confusion) / total),
        "majority": float(totals.max() / total),
        "log_loss": float(losses.sum() / total),
        "by_class": np.divide(losses, totals, out=np.zeros_like(losses), where=totals > 0).tolist(),
        "rms": float(np.sqrt((counted * (squares - 2.0 * p + 1.0)).sum() / total / (1 + (len(labels) == 2)))),
        "sets": [float(np.average(values, weights=weights)) for values in (held, sizes, sizes == 1)],
        "confusion": confusion.tolist(),
        "calibration": [
            [float(np.average(v[g], weights=weights[g])) for v in (said, right)] + [len(g)] for g in groups
        ],
    } | ranking(p[:, rare], shares[:, rare], weights)


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
