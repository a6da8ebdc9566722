"""What commands measure of a model of numbers by a loss, and say of it in the loss's words; as `numbers` does."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ridgemark.errors import DataError, ParameterError
from ridgemark.fitted import RunRecord
from ridgemark.losses import make_loss
from ridgemark.report import fit_words as words
from ridgemark.report import promises, quality
from ridgemark.rows import RowSource, row_weights, shown, text_labels, without_features
from ridgemark.rows.dask import mapped_rows
from ridgemark.rows.rates import Rates

INTERVALS = "intervals"

_ERRORS = ("data", "n_rows", "loss", "null_loss", "below", "coverage", "repeated")


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that do not go together, before rows are read."""
    loss = options["loss"]
    if loss is None:
        for name in ("quantiles", "exposure"):
            if options[name] is not None:
                raise ParameterError(f"--{name} needs --loss, which says what is fitted")
        return
    if options["classify"]:
        raise ParameterError(f"--classify fits labels and --loss {loss} numbers; leave one of them out")
    if options["certify"] not in (None, "audit"):
        raise ParameterError(f"--certify must be audit with --loss, got {options['certify']}")
    made, unit = make_loss(loss, options["quantiles"]), np.ones(1)
    if options["exposure"] is not None:
        made.with_exposure(unit[:, None], unit, unit)


def check_targets(source: RowSource, test: RowSource | None, options: Mapping[str, Any]) -> None:
    """Refuse targets that are text, several, or outside the domain of the loss, before a long fit."""
    name = options["loss"]
    if (labels := text_labels(source)) is not None:
        raise DataError(
            f"the target holds text, such as {shown(labels[0])}, and --loss {name} needs numbers; write them as "
            "numbers without units, or leave --loss out to fit classes"
        )
    exposed = options["exposure"] is not None
    if source.n_targets != 1 + exposed:
        raise DataError(f"--loss {name} fits one target, got {source.n_targets}; fit one model for each")
    loss = make_loss(name, options["quantiles"])
    for path, rows in ((None, source), (options["test"], test)):
        if rows is not None:
            bare = without_features(rows)
            block = (mapped_rows(bare, Rates(loss)) if exposed else bare).take(np.arange(rows.n_rows))
            try:
                loss.check(block.targets, row_weights(block))
            except DataError as error:
                raise DataError(f"{shown(path)}: {error}" if path else str(error)) from error


def outputs(model: Any, names: Sequence[str] | None) -> Sequence[Any]:
    """Return the levels of several quantiles; otherwise the one target, by its name or number."""
    levels = model.loss_.levels
    return [f"{level:g}" for level in levels] if len(levels) > 1 else (names or range(1))[:1]


def has_intervals(model: Any) -> bool:
    """Return whether the model can make intervals."""
    return hasattr(model, "calibration_") and not promises.interval_shortage(model)


def summary(model: Any, run: RunRecord) -> dict[str, Any]:
    """Return the errors of a fit in plain numbers, for a machine."""
    path, judged = getattr(model, "ridge_path_", None), getattr(model, "calibration_", None)
    measured: dict[str, Any] = {
        "left_out": None if judged is None else {name: getattr(judged, name).tolist() for name in _ERRORS[2:5]},
        "held_out": run.held_out and {name: run.held_out[name] for name in _ERRORS if name in run.held_out},
    }
    for errors in filter(None, measured.values()):
        errors["explained"] = quality.shares_explained(errors["loss"], errors["null_loss"])
    return measured | {
        "loss": model.loss_.name,
        "levels": list(model.loss_.levels) or None,
        "exposure": run.exposure,
        "ridge": model.ridge_,
        "loo_loss": None if path is None else float(path.loo_loss[path.chosen]),
    }


def lines(model: Any, run: RunRecord) -> list[tuple[str, str | None]]:
    """Return a fit by a loss in a few lines of labels and values."""
    said, judged = model.loss_.words, getattr(model, "calibration_", None)
    alone = "each row predicted without it"
    errors = None if judged is None else {"loss": judged.loss, "null_loss": judged.null_loss, "below": judged.below}
    exposure = "" if run.exposure is None else f", for an exposure of 1 (column {shown(str(run.exposure))})"
    return [
        ("predicts", f"{said.predicts}{exposure}, by {said.regression}"),
        ("explained", None if errors is None else f"{quality.explained_words(model, errors)}, {alone}"),
        ("error", None if errors is None else quality.loss_words(model, errors)),
        ("below", None if errors is None else quality.below_words(model, errors["below"])),
        ("held out", None if run.held_out is None else _held_out_words(model, run.held_out)),
        *words.tuning_lines(model),
        (INTERVALS, promises.interval_shortage(model)),
        ("exact", promises.distance_words(model)),
        ("cost", words.cost_words(model, run)),
    ]


def _held_out_words(model: Any, errors: Mapping[str, Any]) -> str:
    parts = [quality.loss_words(model, errors), quality.explained_words(model, errors)]
    parts += [below] if (below := quality.below_words(model, errors["below"])) else []
    if errors["coverage"] is not None:
        parts.append(f"{errors['coverage']:.1%} inside intervals of {quality.COVERAGE:.0%}")
    where = f", on {errors['n_rows']:,} rows of {shown(errors['data'])}"
    return f"{', '.join(parts)}{where}{quality.repeated_words(errors)}"
