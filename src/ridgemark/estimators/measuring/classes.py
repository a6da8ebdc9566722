"""What is measured of a model that predicts classes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ridgemark.estimators.class_labels import conformal_sets
from ridgemark.estimators.landmark_model import keep_certificate
from ridgemark.estimators.measuring.distance import far_errors
from ridgemark.estimators.measuring.ranking import ranking
from ridgemark.estimators.table_reader import encoded_rows, encoded_source
from ridgemark.losses import class_loss
from ridgemark.measured import AUDITED
from ridgemark.report import quality
from ridgemark.rows import RowSource, row_weights, without_features

_EFFECTS = 2048  # rows that effects are averaged over
_GROUPS = 10  # of rows in a calibration plot


def certify(model: Any, source: RowSource, kind: str | None) -> None:
    """Certify a fitted model where that is asked for or takes seconds."""
    if kind or source.n_rows <= AUDITED:
        keep_certificate(model, model.certify(source))


def sample(model: Any, source: RowSource) -> dict[str, Any]:
    """Return the errors on rows of the fit, each left out, the most influential rows, and average effects."""
    diagnosis = model.diagnose(source)
    errors = _errors(model, diagnosis.log_probabilities, *as_they_are(model, diagnosis))
    some = encoded_source(model, source).take(diagnosis.rows[:_EFFECTS])
    rows = encoded_rows(some.features, diagnosis.weights[:_EFFECTS])
    return errors | {"top": diagnosis.to_record()["top"], "effects": model.effects_summary(rows).to_record()}


def kept(model: Any) -> None:
    """Return nothing: the rows that the model keeps have no labels."""


def as_they_are(model: Any, diagnosis: Any) -> tuple[Any, Any]:
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
    rows = encoded_rows(block.features)
    logs = model.predict_log_proba(rows)
    losses = -np.where(shares > 0, shares * logs, 0.0).sum(axis=1)
    return _errors(model, logs, shares, weights) | far_errors(model, rows, losses)


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
    sets = conformal_sets(p, model.calibration_, quality.COVERAGE)
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


def target_names(model: Any, names: Sequence[str]) -> Sequence[str]:
    """Return a name for each function of the model: of two classes one."""
    labels = model.classes_.tolist()
    return names if len(labels) == 2 else [f"{names[0]}={label}" for label in labels]
