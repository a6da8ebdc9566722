"""What a model is, in words: what it predicts, kernel, landmarks, lambda and columns, and what chose them."""

import re
from typing import Any, Literal

import numpy as np

from ridgemark.kernels import Mixture
from ridgemark.report.writing import spoken
from ridgemark.rows.places import shown
from ridgemark.selection import Auto, Selection
from ridgemark.tables.schema import CODE, MISSING, Field
from ridgemark.tuning.coordinates import names_of, part_name

LEVELS = {"shared": "one bandwidth for all columns", "per_feature": "one bandwidth per feature", "metric": "a matrix"}
TUNED = {"numbers": "the target", "classes": "the target", "losses": "the target on the scale of the fitted function"}
_SLOW, _LONG = 0.1, 10.0  # share of the passes' time, and seconds of the run; waiting for rows is told from here on
CRITERIA = {"loo": "leave-one-out", "groups": "leave-one-group-out", "gcv": "generalised cross-validation"}


def predicts(model: Any) -> Literal["numbers", "classes", "losses"]:
    """Return what a model predicts; pages and commands look up by it what they measure and say.

    "losses" stands for numbers, fitted by another loss than squared errors.
    """
    return "classes" if hasattr(model, "classes_") else "losses" if hasattr(model, "loss_") else "numbers"


def predictor_name(model: Any) -> str:
    """Return what the function of the landmarks is, which explanations are about."""
    if hasattr(model, "classes_"):
        return "log-odds"
    if transform_of(model) is not None:
        return "predicted mapped target"
    return "log of the prediction" if model._model.loss.positive else "prediction"


def target_names(model: Any, about: Any) -> list[str]:
    """Return the names of the targets of rows or of a run, or else their numbers, or the levels of quantiles."""
    count, loss = np.size(model.intercept_), getattr(model, "loss_", None)
    levels = () if loss is None else loss.levels
    numbers = [f"target at {level:g}" for level in levels] or [f"target {k}" for k in range(count)]
    return list(about.target_names or (["the target"] if count == 1 else numbers))


def transform_of(model: Any) -> Any:
    """Return the map of the target that the model was fitted to; None where the target is as it was."""
    transform = getattr(model, "target_transform_", None)
    return None if transform is None or transform.kind == "none" else transform


def left_out(model: Any) -> str:
    """Return what is left out for errors and intervals: "row", or "group" of rows."""
    facts = getattr(model._model, "rows", None)  # which an exact fit does not keep
    return "row" if facts is None or facts.n_groups is None else "group"


def criterion(model: Any) -> str:
    """Return the criterion that chose lambda, in words."""
    name = model.ridge_path_.criterion
    return CRITERIA["groups" if name == "loo" and left_out(model) == "group" else name]


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


def column_names(model: Any) -> list[str]:
    """Return the names of the columns of a fit, or else their numbers."""
    names = getattr(model, "feature_names_in_", None)
    return [f"column {j}" for j in range(model.n_features_in_)] if names is None else list(map(str, names))


def columns_read(model: Any) -> list[tuple[str, str]]:
    """Return every column with how it was read, or why it was left out."""
    form, names = model._model.schema, column_names(model)
    if form.table is None:
        return [(name, "number") for name in names]
    return [(name, _read_as(field)) for name, field in zip(names, form.table.fields, strict=True)]


def _read_as(field: Field) -> str:
    """Return how a column was read, or why it was left out."""
    count = 0 if field.levels is None else len(field.levels)
    if field.kind == "dropped":
        return "left out: it has no values, or was to be left out"
    if not field.parts:
        return f"left out: {count:,} different texts, nearly one in every row" if count > 1 else "left out: one value"
    if field.kind == "frequency":
        coded = CODE in field.parts
        kind = (
            f"text with {count:,} levels: {'the frequent ones, and a code for each' if coded else 'how often each is'}"
        )
    elif field.kind == "category":
        kind = f"category of {count:,} level{'s' * (count != 1)}"
    else:
        kind = {"boolean": "yes or no"}.get(field.kind, field.kind)
    gaps = "only whether it is missing" if field.parts == (MISSING,) else f"{kind}, with gaps"
    return gaps if MISSING in field.parts else kind


def unused_names(model: Any) -> list[str]:
    """Return the names of the columns that a fit does not use."""
    used = set(model._model.schema.used)
    return [name for j, name in enumerate(column_names(model)) if j not in used]


def used_names(model: Any) -> list[str] | None:
    """Return the names of the columns that are features of a fit; None where columns have no names."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(names[j]) for j in model._model.schema.used]


def important_columns(model: Any, most: int) -> list[tuple[str, float]]:
    """Return the columns of largest importance with their shares; none where they are not known or all are zero."""
    shares = getattr(model, "feature_importances_", np.zeros(1))
    names, largest = column_names(model), np.argsort(-shares, kind="stable")[:most]
    return [(names[k], float(shares[k])) for k in largest if shares[k] > 0.0 and len(shares) > 1]


def transform_words(model: Any) -> str | None:
    """Return which map of the target was fitted, and what it saved where several were compared."""
    transform = getattr(model, "target_transform_", None)
    if transform is None:
        return None
    names = {"none": "the target as it is", "log": "its logarithm", "sqrt": "its root"}
    said = names.get(transform.kind, f"the map of Yeo and Johnson with exponent {transform.exponent:.2f}")
    errors = dict(transform.compared)
    if len(errors) > 1:
        others = ", ".join(f"{kind} {errors[kind] / errors['none']:.3f}" for kind in errors if kind != "none")
        said += f" (leave-one-out error in units of the target, over that of none: {others})"
    return said


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
