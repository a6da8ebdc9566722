"""A fitted model in words and numbers, for a page and for printing."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from ridgemark.certificates.record import rounded_up
from ridgemark.errors import ParameterError
from ridgemark.intervals import Calibration, rows_needed
from ridgemark.intervals.of_loss import loss_intervals
from ridgemark.kernels import Mixture
from ridgemark.losses import Loss
from ridgemark.path import RidgePath
from ridgemark.report.page import Tone
from ridgemark.rows.places import shown
from ridgemark.selection import Auto, Selection
from ridgemark.tuning.coordinates import names_of, part_name

COVERAGE = 0.9
TONES: dict[str, Tone] = {"most of it": "good", "part of it": "open", "hardly anything": "bad"}
_LETTERS = 24  # of a name in a figure or a table
LEVELS = {"shared": "one bandwidth for all columns", "per_feature": "one bandwidth per feature", "metric": "a matrix"}
EXACT = {
    "numbers": "exact kernel ridge regression",
    "classes": "exact kernel logistic regression",
    "losses": "exact kernel regression by this loss",
}
TUNED = {"numbers": "the target", "classes": "the target", "losses": "the target on the scale of the fitted function"}
_SLOW, _LONG = 0.1, 10.0  # share of the passes' time, and seconds of the run; waiting for rows is told from here on
CRITERIA = {"loo": "leave-one-out", "groups": "leave-one-group-out", "gcv": "generalised cross-validation"}
OTHERS = {"row": "each row predicted from the others", "group": "each row predicted from rows of other groups"}


class Nearness(NamedTuple):
    """How close to exact a fit is proved to be."""

    short: str
    subject: str  # of a sentence that goes on with the distance
    close: bool
    negligible: bool  # more landmarks would not change the predictions noticeably
    label: str  # of the bound
    bound: str


def predicts(model: Any) -> Literal["numbers", "classes", "losses"]:
    """Return what a model predicts; pages and commands look up by it what they measure and say.

    "losses" stands for numbers, fitted by another loss than squared errors.
    """
    return "classes" if hasattr(model, "classes_") else "losses" if hasattr(model, "loss_") else "numbers"


def predictor_name(model: Any) -> str:
    """Return what the function of the landmarks is, which explanations are about."""
    if hasattr(model, "classes_"):
        return "log-odds"
    return "log of the prediction" if model._model.loss.positive else "prediction"


def target_names(model: Any, about: Any) -> list[str]:
    """Return the names of the targets of rows or of a run, or else their numbers."""
    return list(about.target_names or [f"target {k}" for k in range(np.size(model.intercept_))])


def left_out(model: Any) -> str:
    """Return what is left out for errors and intervals: "row", or "group" of rows."""
    facts = getattr(model._model, "rows", None)  # which an exact fit does not keep
    return "row" if facts is None or facts.n_groups is None else "group"


def criterion(model: Any) -> str:
    """Return the criterion that chose lambda, in words."""
    name = model.ridge_path_.criterion
    return CRITERIA["groups" if name == "loo" and left_out(model) == "group" else name]


def leave_one_out_error(model: Any) -> list[float] | None:
    """Return the RMS of the leave-one-out residuals of every target; None without residuals."""
    path, calibration = getattr(model, "ridge_path_", None), getattr(model, "calibration_", None)
    if isinstance(path, RidgePath) and path.loo_error is not None:
        return np.sqrt(path.loo_error[path.chosen, np.arange(len(path.chosen))]).tolist()
    if not isinstance(calibration, Calibration):
        return None
    return np.sqrt(np.average(calibration.residuals**2, axis=0, weights=calibration.weights)).tolist()


def target_spread(model: Any) -> list[Any] | None:
    """Return the standard deviation of every target; None for a model without a certificate, which holds it."""
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


def selection_name(model: Any) -> str:
    """Return how landmarks were chosen: a name, or the class of the selection; of "auto", what it took."""
    if not isinstance(model.selection, str | Selection):
        return "points given"
    if model.selection in ("auto", Auto()):
        if model._model.choice.scored:
            return "leverage (auto)"
        uniform = hasattr(model, "tuning_") and model.tuning_.uniform_landmarks
        return "uniform (auto)" if uniform else "rpcholesky (auto)"
    return model.selection if isinstance(model.selection, str) else type(model.selection).__name__


def kernel_words(model: Any) -> str:
    """Return the names of the kernel's parts, and the range of the bandwidths or the shape of the metric they share.

    Of a kernel that has neither, its repr.
    """
    kernel = model.kernel_
    metric, widths = getattr(kernel, "metric", None), getattr(kernel, "bandwidth", 1.0)
    name = names_of([part for _, part in kernel.parts()]) if isinstance(kernel, Mixture) else part_name(kernel)
    if metric is not None:
        return f"{name} with a {' x '.join(map(str, np.shape(metric)))} metric"
    if np.size(widths) > 1:
        return f"{name}, one bandwidth per feature, {np.min(widths):.3g} to {np.max(widths):.3g}"
    if isinstance(kernel, Mixture):
        return name
    return _rounded(repr(kernel))


def loss_spelled(model: Any) -> str | None:
    """Return the loss of a model with its parameters; None where it has no other loss than squared errors."""
    return _rounded(repr(model.loss_)) if predicts(model) == "losses" else None


def _rounded(text: str) -> str:
    return re.sub(r"\d+\.\d{6,}(e[-+]?\d+)?", lambda number: f"{float(number[0]):.6g}", text)


def tuned_words(tuning: Any, joined: str = ", ") -> str:
    """Return the names of the parts of a tuned kernel, and its level where a part has bandwidths."""
    lengths = any(part.kernel != "Linear" for part in tuning.parts)
    return f"{tuning.kernel}{joined}{LEVELS[tuning.level]}" if lengths else tuning.kernel


def landmark_words(model: Any) -> str:
    """Return the number of landmarks, how they were chosen, and which rule set their number."""
    rule = model.landmark_count_.rule
    if rule.startswith("all "):  # nothing was chosen
        return rule
    why = "their number given" if rule == "given" else f"number by the rule: {rule}"
    return f"{model.n_landmarks_:,} by {selection_name(model)}, {why}"


def n_columns(model: Any) -> int:
    """Return the number of columns that are features of a fit, without those it left out."""
    return len(model._model.schema.used)


def used_names(model: Any) -> list[str] | None:
    """Return the names of the columns that are features of a fit; None where columns have no names."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(names[j]) for j in model._model.schema.used]


def important_columns(model: Any, most: int) -> list[tuple[str, float]]:
    """Return the columns of largest importance with their shares; none where they are not known or all are zero."""
    shares = getattr(model, "feature_importances_", np.zeros(1))
    names = getattr(model, "feature_names_in_", [f"column {number}" for number in range(len(shares))])
    largest = np.argsort(-shares, kind="stable")[:most]
    return [(str(names[k]), float(shares[k])) for k in largest if shares[k] > 0.0 and len(shares) > 1]


def quality_lines(model: Any, names: Sequence[str]) -> list[tuple[str, str | None]]:
    """Return the variance explained and the error, by leave-one-out, of every target."""
    shares, errors, spread = explained(model) or [], leave_one_out_error(model) or [], target_spread(model) or []
    parts = [
        f"{max(share, 0.0):.1%} of the variance of {shown(name)} ({how_much(share)})"
        for name, share in zip(names, shares, strict=False)
        if share is not None
    ]
    sizes = [f"RMS {rms:.4g} in units of {shown(name)}" for name, rms in zip(names, errors, strict=False)]
    for k, sd in enumerate(spread[: len(sizes)]):
        sizes[k] += f", {errors[k] / sd:.3g} of its standard deviation" if sd > 0 else ""
    return [
        ("explained", f"{', '.join(parts)}, {OTHERS[left_out(model)]}" if parts else None),
        ("error", "; ".join(sizes) or None),
        ("equal rows", _repeats(model) if parts else None),
    ]


def _repeats(model: Any) -> str | None:
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


def tuning_lines(model: Any) -> list[tuple[str, str | None]]:
    """Return kernel, lambda and landmarks, each with what chose it, and the three most important columns."""
    tuning = getattr(model, "tuning_", None)
    if tuning is not None:
        kernel = f"{tuned_words(tuning)} (tuned)"
    else:
        has_median = model.bandwidth == "median" and hasattr(model.kernel_, "bandwidth")
        kernel = kernel_words(model) + (" (the median distance)" if has_median else "")
    ridges = ", ".join(f"{ridge:.3g}" for ridge in np.atleast_1d(model.ridge_))
    chosen = f"by {criterion(model)}" if hasattr(model, "ridge_path_") else "given"
    important = [f"{shown(name)} {share:.0%}" for name, share in important_columns(model, 3) if share >= 0.005]
    return [
        ("kernel", kernel),
        ("lambda", f"{ridges} ({chosen})"),
        ("landmarks", landmark_words(model) if hasattr(model, "landmark_count_") else None),
        ("matters most", ", ".join(important) or None),
    ]


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
    losses, nulls = (", ".join(f"{value:.4g}" for value in errors[name]) for name in ("loss", "null_loss"))
    return f"{model.loss_.words.loss} {losses} (of the best constant {nulls})"


def below_words(model: Any, below: Sequence[float]) -> str | None:
    """Return the share of the targets below each quantile; None where other things are predicted."""
    levels = model.loss_.levels
    parts = (f"{share:.1%} below the {level:g} quantile" for share, level in zip(below, levels, strict=False))
    return ", ".join(parts) or None


def distance_words(model: Any) -> str | None:
    """Return the distance to exact, as a share of the leave-one-out error too, or how to measure it."""
    certificate, errors = getattr(model, "certificate_", None), leave_one_out_error(model)
    if certificate is None and not hasattr(model, "history_"):
        return None
    if certificate is not None and certificate.vacuous:
        remedy = "`ridgemark certify` measures it" if certificate.kind == "trace" else "more landmarks would help"
        return f"not known (the {certificate.kind} bound is not informative for this fit); {remedy}"
    bounds = model.history_[-1].returned if certificate is None else np.atleast_1d(certificate.bound)
    risk = None if certificate is None else certificate.inputs.get("failure_probability")
    probably = "" if risk is None else f" (with probability {1 - risk:g})"
    if (kind := predicts(model)) == "losses":
        percents = ", ".join(f"{rounded_up(100 * bound)}%" for bound in bounds)
        return f"loses at most {percents} of the gain over the best constant that {EXACT[kind]} achieves{probably}"
    beside = ""
    if errors is not None and min(errors) > 0:
        percent = 100 * float((bounds / errors).max())
        share = rounded_up(percent, 2)
        share = f"{float(share):,.0f}" if 99 < percent < 1e9 else share  # 230, not 2.3e+02
        beside = f", {share}% of the error" if percent >= 0.1 else ", below 0.1% of the error"
    return f"within RMS {', '.join(map(rounded_up, bounds))} of {EXACT[kind]}{beside}{probably}"


def interval_shortage(model: Any) -> str | None:
    """Return why there are no intervals of the coverage shown, such as too few distinct rows; or else None."""
    calibration = getattr(model, "calibration_", None)
    if predicts(model) == "losses":
        return None if calibration is None else _loss_shortage(model.loss_, calibration)
    if not isinstance(calibration, Calibration) or calibration.n_distinct >= rows_needed(COVERAGE):
        return None
    units = "distinct rows of features" if calibration.groups is None else "groups"
    return (
        f"left out, as coverage {COVERAGE:g} needs at least {rows_needed(COVERAGE)} {units}, and there are "
        f"{calibration.n_distinct}"
    )


def _loss_shortage(loss: Loss, judged: Any) -> str | None:
    try:
        loss_intervals(loss, judged.predictors[:1], judged.targets, judged.weights, judged.predictors, COVERAGE)
    except ParameterError as error:
        return f"not made: {error}"
    return None


def cost_words(model: Any, run: Any) -> str:
    """Return the time and memory of a fit, its passes, and the time that these waited for rows where it is long."""
    parts = [spoken(run.seconds or 0.0)]
    if run.peak_bytes:
        parts.append(f"{run.peak_bytes / 2**30:.1f} GiB of memory")
    count = n_columns(model)
    rows = "the rows" if run.n_rows is None else f"{run.n_rows:,} rows of {count} column{'s' * (count != 1)}"
    parts.append(f"{model.n_passes_} passes over {rows}")
    if run.waiting_share and run.waiting_share >= _SLOW and (run.seconds or 0.0) >= _LONG:
        parts.append(f"{run.waiting_share:.0%} of their time waiting for rows")
    return ", ".join(parts)


def repeated_words(errors: Mapping[str, Any]) -> str:
    """Return how many test rows have the features of training rows, if there are any."""
    repeated = errors.get("repeated")
    return f", {repeated:,} of them have the features of training rows" if repeated else ""


def spoken(seconds: float) -> str:
    """Return a time in a suitable unit."""
    unit, size = ("s", 1) if seconds < 90 else ("min", 60) if seconds < 5400 else ("h", 3600)
    return f"{seconds / size:.2g} {unit}"


def printable(name: str) -> str:
    """Return text from a file without invisible characters or those that change the text direction."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name)


def shortened(name: str) -> str:
    """Return a name of at most 24 letters."""
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - 11]}...{name[-8:]}"
