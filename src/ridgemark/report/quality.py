"""How good a fit is, in words and numbers: errors left out, beside the spread, simpler models and the best constant."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.stats import skew, spearmanr

from ridgemark.checks.targets import FANS_OUT, SKEWED
from ridgemark.intervals import Calibration
from ridgemark.path import RidgePath
from ridgemark.report.fit_words import left_out, predicts, transform_of
from ridgemark.report.page import Tone
from ridgemark.rows.places import as_written, shown

COVERAGE = 0.9
_GROUPS, _FEWEST = 5, 20  # groups of rows whose coverage is shown, and rows in each
_FEWEST_FOR_HINT = 50  # rows
TONES: dict[str, Tone] = {"most of it": "good", "part of it": "open", "hardly anything": "bad"}
OTHERS = {"row": "each row predicted from the others", "group": "each row predicted from rows of other groups"}


def leave_one_out_error(model: Any) -> list[float] | None:
    """Return the RMS of the leave-one-out residuals of every target, in its units; None without residuals."""
    transform = transform_of(model)
    return fitted_error(model) if transform is None else [transform.left_out_error]


def target_spread(model: Any) -> list[Any] | None:
    """Return the standard deviation of every target, in its units; None for a model without a certificate."""
    transform = transform_of(model)
    return fitted_spread(model) if transform is None else [transform.spread]


def fitted_error(model: Any) -> list[float] | None:
    """Return the same of the targets that the model was fitted to, which may be mapped."""
    path, calibration = getattr(model, "ridge_path_", None), getattr(model, "calibration_", None)
    if isinstance(path, RidgePath) and path.loo_error is not None:
        return np.sqrt(path.loo_error[path.chosen, np.arange(len(path.chosen))]).tolist()
    if not isinstance(calibration, Calibration):
        return None
    return np.sqrt(np.average(calibration.residuals**2, axis=0, weights=calibration.weights)).tolist()


def fitted_spread(model: Any) -> list[Any] | None:
    """Return the same of the targets that the model was fitted to; None without a certificate, which holds it."""
    certificate = getattr(model, "certificate_", None)
    return None if certificate is None else list(certificate.inputs["target_rms"])


def explained(model: Any) -> list[float | None] | None:
    """Return `1 - (rms/sd)^2` of every target by leave-one-out, None for a constant one; None without residuals."""
    errors, spread = leave_one_out_error(model), target_spread(model)
    if errors is None or spread is None:
        return None
    return [1.0 - (rms / sd) ** 2 if sd > 0 else None for rms, sd in zip(errors, spread, strict=True)]


def how_much(share: float) -> Literal["most of it", "part of it", "hardly anything"]:
    """Return a share of the variance in words."""
    return "most of it" if share > 0.5 else "part of it" if share > 0.05 else "hardly anything"


def tone(share: float) -> Tone:
    """Return the tone of an answer about a share of the variance."""
    return TONES[how_much(share)]


def quality_lines(model: Any, names: Sequence[str]) -> list[tuple[str, str | None]]:
    """Return the variance explained and the error, by leave-one-out, of every target."""
    shares, errors, spread = explained(model) or [], leave_one_out_error(model) or [], target_spread(model) or []
    parts = [
        f"{max(share, 0.0):.1%} of the variance of {shown(name)} ({how_much(share)})"
        for name, share in zip(names, shares, strict=False)
        if share is not None
    ]
    sizes = [f"RMS {as_written(rms)} in units of {shown(name)}" for name, rms in zip(names, errors, strict=False)]
    for k, sd in enumerate(spread[: len(sizes)]):
        sizes[k] += f", {errors[k] / sd:.3g} of its standard deviation" if sd > 0 else ""
    return [
        ("explained", f"{', '.join(parts)}, {OTHERS[left_out(model)]}" if parts else None),
        ("error", "; ".join(sizes) or None),
        ("equal rows", repeats_words(model) if parts else None),
    ]


class Coverage(NamedTuple):
    """The share of some rows inside their intervals, its standard error, and the middle of their predictions."""

    middle: float
    share: float
    error: float


def coverage_by_group(rows: Any) -> list[Coverage]:
    """Return the coverage in groups of the prediction, ascending; none for few rows or without intervals."""
    if rows is None or "lower" not in rows or len(rows["observed"][0]) < _GROUPS * _FEWEST:
        return []
    observed, predicted, lower, upper = (
        np.array(rows[name][0]) for name in ("observed", "predicted", "lower", "upper")
    )
    inside = (lower <= observed) & (observed <= upper)
    groups = np.array_split(np.argsort(predicted, kind="stable"), _GROUPS)
    spread = np.sqrt(COVERAGE * (1.0 - COVERAGE))
    return [Coverage(float(np.median(predicted[g])), inside[g].mean(), spread / np.sqrt(len(g))) for g in groups]


class Compared(NamedTuple):
    """The errors of one model, RMS in standard deviations of the target; `optimistic` is about those left out."""

    name: str
    judged: float
    left_out: float | None
    optimistic: bool = False


def baselines(model: Any) -> list[Compared]:
    """Return the errors of a tuned model and of simpler ones on the rows that judge, and by leave-one-out."""
    errors = getattr(getattr(model, "tuning_", None), "baselines", None)
    if errors is None or predicts(model) == "losses":  # whose errors are those of a working response
        return []
    compared = [Compared("this kernel", errors.model, _relative_error(model), True)]
    if errors.linear is not None:
        compared.append(Compared("linear ridge regression", errors.linear, errors.linear_left_out))
    name = "the mean" if predicts(model) == "numbers" else "the shares of the classes"
    return [*compared, Compared(name, errors.mean, errors.mean_left_out)]


def _relative_error(model: Any) -> float | None:
    """Return the leave-one-out error in standard deviations of the target, with several of their mean square."""
    if predicts(model) == "classes" or (errors := fitted_error(model)) is None:
        return None
    ratios = [rms / sd for rms, sd in zip(errors, fitted_spread(model) or [], strict=False) if sd > 0]
    return float(np.sqrt(np.mean(np.square(ratios)))) if ratios else None


def skewed_words(model: Any, observed: Any, predicted: Any) -> str | None:
    """Return the hint at a transform where the target has a long tail and errors grow towards it; or else None."""
    if getattr(model, "target_transform", "") is not None or len(observed) < _FEWEST_FOR_HINT:
        return None
    y, f = np.asarray(observed), np.asarray(predicted)
    if y.std() == 0 or f.std() == 0:
        return None
    skewness, fan = float(skew(y)), float(spearmanr(f, np.abs(y - f)).statistic)
    if abs(skewness) < SKEWED or fan * np.sign(skewness) < FANS_OUT:
        return None
    return 'errors grow with the prediction, and the target has a long tail: target_transform="auto" may predict better'


def boosting_words(run: Any) -> str | None:
    """Return the errors of boosting, where it was fitted too."""
    errors = run.boosting
    if errors is None:
        return None
    if errors["rms"] is None:
        size = f"log loss {errors['log_loss']:.4g}, {errors['accuracy']:.1%} right"
    else:
        size = f"RMS {as_written(errors['rms'])}, {errors['explained']:.1%} explained"
    return f"{size}, by cross-validation in {errors['n_splits']} parts on {errors['n_rows']:,} rows"


def threshold_words(model: Any, run: Any) -> str | None:
    """Return the threshold that was chosen for a cost or a rate, and its confusion."""
    chosen = run.threshold
    if chosen is None:
        return None
    label, ((_, false), (missed, right)) = shown(model.classes_[1]), chosen["confusion"]
    return (
        f"{chosen['threshold']:.4g} for {chosen['reason']}: {label} where its probability is at least this, in "
        f"{chosen['rate']:.1%} of the rows: {right:,.0f} right, {false:,.0f} false alarms, {missed:,.0f} missed; "
        "give it to predict --threshold"
    )


def unit_words(model: Any) -> str:
    """Return the unit of errors beside those of simpler models."""
    return f"standard deviations of the {'' if transform_of(model) is None else 'mapped '}target"


def baseline_lines(model: Any, run: Any) -> list[tuple[str, str | None]]:
    """Return the errors beside those of simpler models, on the same rows."""
    boosting, compared = ("boosting", boosting_words(run)), baselines(model)
    if not compared:
        return [boosting]
    judged = ", ".join(f"{entry.name} {entry.judged:.3g}" for entry in compared)
    left_out = ", ".join(
        f"{entry.name} {entry.left_out:.3g}{' (optimistic: some of the rows tuned it)' * entry.optimistic}"
        for entry in compared
        if entry.left_out is not None
    )
    n_rows = model.tuning_.n_judging
    return [
        ("compared", f"{judged}: RMS in {unit_words(model)}, on {n_rows:,} rows that none was fitted to"),
        ("left out", f"{left_out}: the same by leave-one-out" if predicts(model) == "numbers" else None),
        boosting,
    ]


def repeats_words(model: Any) -> str | None:
    """Return what leaving out equal rows together means for the error, where most rows equal another; or else None."""
    n_repeats, n_rows = model._model.rows.n_duplicates, model._model.choice.sums.n_rows
    calibration = getattr(model, "calibration_", None)
    one_by_one = calibration is not None and calibration.n_distinct == len(calibration.weights)
    if 2 * n_repeats < n_rows or one_by_one or left_out(model) == "group":
        return None
    return (
        f"{n_rows:,} rows have {n_rows - n_repeats:,} different features; equal rows are left out together, so this is "
        "the error of rows unlike all of these, and equal ones may be predicted better"
    )


def shares_explained(losses: Sequence[float], null_losses: Sequence[float]) -> list[float | None]:
    """Return `1 - loss/null_loss` of every function; None where the best constant loses nothing."""
    return [1.0 - loss / null if null > 0 else None for loss, null in zip(losses, null_losses, strict=True)]


def explained_words(model: Any, errors: Mapping[str, Any]) -> str:
    """Return the share of the loss of the best constant that predictions save, the mean over the functions."""
    shares = [share for share in shares_explained(errors["loss"], errors["null_loss"]) if share is not None]
    mean = float(np.mean(shares)) if shares else 0.0
    return f"{model.loss_.words.score}: {max(mean, 0.0):.1%} ({how_much(mean)})"


def loss_words(model: Any, errors: Mapping[str, Any]) -> str:
    """Return the mean losses of predictions and those of the best constant."""
    losses, nulls = (", ".join(map(as_written, errors[name])) for name in ("loss", "null_loss"))
    return f"{model.loss_.words.loss} {losses} (of the best constant {nulls})"


def below_words(model: Any, below: Sequence[float]) -> str | None:
    """Return the share of the targets below each quantile; None where other things are predicted."""
    levels = model.loss_.levels
    parts = (f"{share:.1%} below the {level:g} quantile" for share, level in zip(below, levels, strict=False))
    return ", ".join(parts) or None


def class_shares(errors: Mapping[str, Any]) -> Any:
    """Return the share of every label among the rows."""
    confusion = np.array(errors["confusion"])
    return confusion.sum(axis=1) / confusion.sum()


def log_loss_of_shares(errors: Mapping[str, Any]) -> float:
    """Return the log loss of predicting the share of every label for all rows."""
    shares = class_shares(errors)
    return -float(shares[shares > 0] @ np.log(shares[shares > 0]))


def class_errors(errors: Mapping[str, Any], labels: Any) -> str:
    """Return the errors of probabilities of classes, each beside what always naming the most frequent label gives."""
    shares = class_shares(errors)
    parts = [
        f"log loss {errors['log_loss']:.4g} (the classes' shares: {log_loss_of_shares(errors):.4g})",
        f"{errors['accuracy']:.1%} right (always the most frequent label: {shares.max():.1%})",
    ]
    if errors.get("auc") is not None:
        precision, rare = errors["average_precision"], int(shares.argmin())
        of_what = f" of {shown(labels[rare])}" if len(shares) == 2 else ""
        chance = shares[rare] if len(shares) == 2 else shares.mean()
        parts.append(f"AUC {errors['auc']:.3f}, average precision{of_what} {precision:.3f} (by chance {chance:.3g})")
    return ", ".join(parts)


def repeated_words(errors: Mapping[str, Any]) -> str:
    """Return how many test rows have the features of training rows, if there are any."""
    repeated = errors.get("repeated")
    return f", {repeated:,} of them have the features of training rows" if repeated else ""
