"""What commands measure of a model of numbers by a loss, and say of it in the loss's words; as `numbers` does."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ridgemark.backends import Floats
from ridgemark.cli import classes
from ridgemark.errors import DataError, ParameterError
from ridgemark.estimators.judged import losses_of
from ridgemark.estimators.table_reader import encoded_rows, encoded_source
from ridgemark.fitted import RunRecord
from ridgemark.intervals.of_loss import loss_intervals
from ridgemark.losses import Loss, make_loss
from ridgemark.report import fit_words as words
from ridgemark.report import promises, quality
from ridgemark.rows import RowSource, row_weights, shown, text_labels, without_features
from ridgemark.rows.dask import mapped_rows
from ridgemark.rows.rates import Rates

INTERVALS = "intervals"

_SHOWN = 300  # rows in the plot of observed against predicted
_GROUPS = 10  # of rows in a calibration plot
_EFFECTS = 2048  # rows that effects are averaged over
_ERRORS = ("data", "n_rows", "loss", "null_loss", "below", "coverage", "repeated")

certify = classes.certify


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


def target_names(model: Any, names: Sequence[str]) -> Sequence[str]:
    """Return a name for each function of the model: of several quantiles with the level."""
    levels = model.loss_.levels
    return [f"{names[0]} at {level:g}" for level in levels] if len(levels) > 1 else names[:1]


def outputs(model: Any, names: Sequence[str] | None) -> Sequence[Any]:
    """Return the levels of several quantiles; otherwise the one target, by its name or number."""
    levels = model.loss_.levels
    return [f"{level:g}" for level in levels] if len(levels) > 1 else (names or range(1))[:1]


def sample(model: Any, source: RowSource) -> dict[str, Any]:
    """Return the errors on rows of the fit, each left out, the most influential rows, and average effects."""
    diagnosis, judged = model.diagnose(source), model.calibration_
    some = encoded_source(model, source).take(diagnosis.rows[:_EFFECTS])
    errors = _errors(
        model.loss_, judged.targets[:, None], judged.weights, judged.predictors, _ends(model, judged, source)
    )
    losses = {name: getattr(judged, name).tolist() for name in ("loss", "null_loss", "below")}  # of more rows
    effects = model.effects_summary(encoded_rows(some.features, some.weights)).to_record()
    named = [effect | {"target": str(effect["target"])} for effect in effects]
    return errors | losses | {"top": diagnosis.to_record()["top"], "effects": named}


def held_out(model: Any, source: RowSource) -> dict[str, Any]:
    """Return the errors on test rows, and the coverage of the intervals."""
    opened, _ = model._open(source, None, None, reset=False)
    block, judged = opened.take(np.arange(source.n_rows)), model.calibration_
    loss, weights = model.loss_, row_weights(block)
    loss.check(block.targets, weights)
    predictor = model._linear(encoded_rows(block.features))
    ends = _ends(model, judged, source, predictor)
    errors = _errors(loss, block.targets, weights, predictor, ends)
    lost, null = losses_of(loss, block.targets, weights, predictor)
    return errors | {"loss": lost.tolist(), "null_loss": null.tolist()}


def _ends(model: Any, judged: Any, source: Any, predictor: Floats | None = None) -> Floats | None:
    """Return intervals (n, 2), by default of the rows judged; None where none are made, or exposures differ."""
    if getattr(source, "has_exposure", False) or promises.interval_shortage(model):
        return None
    rows = judged.targets, judged.weights, judged.predictors
    return loss_intervals(model.loss_, judged.predictors if predictor is None else predictor, *rows, promises.COVERAGE)


def _errors(loss: Loss, targets: Floats, weights: Floats, predictor: Floats, ends: Floats | None) -> dict[str, Any]:
    """Return what predictions are worth on rows with weights; zero leaves a row out.

    `below` is the share of the targets below each prediction, and `below_error` its standard error; `coverage` the
    share inside the intervals. `calibration` has for ten groups of rows, by the (middle) prediction, its mean, what is
    observed, and the standard errors of that: the share below each quantile, or the mean target where the loss predicts
    means. Rows to draw are `observed` and `predicted`.
    """
    kept = weights > 0
    targets, weights, predictor = targets[kept], weights[kept], predictor[kept]
    predicted, total = loss.predicted(predictor), weights.sum()
    below = (targets < predicted).astype(float)
    order = np.argsort(predicted[:, predicted.shape[1] // 2], kind="stable")
    groups = np.array_split(order, min(_GROUPS, len(order)))
    observed = below if loss.levels else targets if loss.linear_in_targets else targets[:, :0]
    part = np.unique(np.linspace(0, len(targets) - 1, _SHOWN).astype(np.intp))
    inside = None if ends is None else (ends[kept, :1] <= targets) & (targets <= ends[kept, 1:])
    shares = np.array(loss.levels or [0.5] * predicted.shape[1])
    record = {
        "n_rows": len(targets),
        "below": (weights @ below / total).tolist(),
        "below_error": (np.sqrt(shares * (1 - shares) * (weights**2).sum()) / total).tolist(),
        "coverage": None if inside is None else float(weights @ inside[:, 0] / total),
        "observed": targets[part].T.tolist(),
        "predicted": predicted[part].T.tolist(),
        "calibration": [_calibration(predicted[g], observed[g], weights[g], loss.levels) for g in groups],
    }
    if ends is not None:
        record |= {"lower": [ends[kept][part, 0].tolist()], "upper": [ends[kept][part, 1].tolist()]}
    return record


def _calibration(predicted: Floats, observed: Floats, weights: Floats, levels: Sequence[float]) -> list[float]:
    """Return the mean (middle) prediction of a group of rows, the means observed, and their standard errors."""
    total = weights.sum()
    means = weights @ observed / total
    shares = np.array(levels)
    spread = shares * (1 - shares) if levels else weights @ (observed - means) ** 2 / total
    middle = weights @ predicted[:, predicted.shape[1] // 2] / total
    return [float(middle), *means.tolist(), *np.sqrt(spread * (weights**2).sum() / total**2).tolist()]


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
        parts.append(f"{errors['coverage']:.1%} inside intervals of {promises.COVERAGE:.0%}")
    where = f", on {errors['n_rows']:,} rows of {shown(errors['data'])}"
    return f"{', '.join(parts)}{where}{quality.repeated_words(errors)}"
