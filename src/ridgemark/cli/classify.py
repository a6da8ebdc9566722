"""`ridgemark fit --classify`: fit classes to the labels of a file."""

import copy
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from ridgemark.cli.output import print_result, progress
from ridgemark.errors import ParameterError
from ridgemark.estimators import NystromClassifier
from ridgemark.estimators.landmark_model import keep_certificate
from ridgemark.estimators.saving import save_model
from ridgemark.fitted import RunRecord
from ridgemark.losses import class_loss
from ridgemark.report.fit_words import spoken, tuning_lines
from ridgemark.rows import RowSource, row_weights

classify_option = click.option(
    "--classify",
    is_flag=True,
    help="The target holds labels: fit probabilities of the classes. A text target implies it.",
)


def fit_labels(
    source: RowSource,
    other: RowSource | None,
    about: RunRecord,
    output: Path,
    options: dict[str, Any],
    audited: int,
    **flags: Any,
) -> None:
    """Fit a classifier, certify it where there are at most `audited` rows, save it and print what it is."""
    if options["certify"] not in (None, "audit"):
        raise ParameterError(f"--certify must be audit with --classify, got {options['certify']}")
    begin = time.perf_counter()
    with progress() as tell:
        chosen = {name: options[name] for name in ("kernel", "bandwidth", "ridge", "selection", "device")}
        model: Any = NystromClassifier(  # type: ignore[no-untyped-call]
            **chosen, n_landmarks=options["landmarks"], random_state=flags["seed"], progress=tell
        ).fit(source, checkpoint=options["checkpoint"])
        if options["certify"] or source.n_rows <= audited:
            keep_certificate(model, model.certify(source))  # type: ignore[no-untyped-call]
        found = None if other is None else _held_out(model, other)
    labels, name = model.classes_.tolist(), (about.target_names or ["y"])[0]
    names = [name] if len(labels) == 2 else [f"{name}={label}" for label in labels]
    run = replace(about, n_rows=source.n_rows, target_names=names, seconds=time.perf_counter() - begin)
    save_model(copy.copy(model).set_params(progress=False), output, flags["force"], run=run)
    path, certificate = getattr(model, "ridge_path_", None), model.certificate_
    record = {
        "model": str(output),
        "n_rows": source.n_rows,
        "classes": labels,
        "n_landmarks": model.n_landmarks_,
        "ridge": model.ridge_,
        "loo_log_loss": None if path is None else float(path.loo_loss[path.chosen]),
        "held_out": found,
        "certificate": None if certificate is None else certificate.as_dict(),
        "seconds": run.seconds,
    }
    lines = [
        ("rows", f"{source.n_rows:,} of {model.n_features_in_} features, {len(labels)} classes of {name}"),
        *tuning_lines(model),
        ("lambda", f"{model.ridge_:.3g}, with {model.n_landmarks_:,} landmarks"),
        ("leave-one-out", None if path is None else f"log loss {record['loo_log_loss']:.4g}"),
        ("held out", None if found is None else f"accuracy {found['accuracy']:.4g}, log loss {found['log_loss']:.4g}"),
        ("distance", None if certificate is None else certificate.claim),
        ("time", spoken(run.seconds or 0.0)),
    ]
    print_result(flags["as_json"], record, lines, output)


def _held_out(model: Any, other: RowSource) -> dict[str, float]:
    """Return accuracy and log loss on test rows, whose labels must be those of the fit."""
    labelled, _ = model._open(other, None, None, reset=False)
    block, weights = labelled.take(np.arange(other.n_rows)), row_weights(other.take(np.arange(other.n_rows)))
    which = class_loss(len(model.classes_)).indicators(block.targets).argmax(axis=1)
    logs = model.predict_log_proba(other)
    own = logs[np.arange(len(which)), which]
    right = (logs.argmax(axis=1) == which).astype(float)
    return {"accuracy": float(np.average(right, weights=weights)), "log_loss": float(-np.average(own, weights=weights))}
