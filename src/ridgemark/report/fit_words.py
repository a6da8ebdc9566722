"""A fitted model in words and numbers, for a page and for printing."""

import re
from typing import Any

import numpy as np

from ridgemark.rows.places import shown
from ridgemark.selection import Auto, Selection
from ridgemark.tuning.search import family_name

COVERAGE = 0.9
LEVELS = {"shared": "one bandwidth for all columns", "per_feature": "one bandwidth per feature", "metric": "a matrix"}
CRITERIA = {"loo": "leave-one-out", "gcv": "generalised cross-validation"}


def leave_one_out_error(model: Any) -> list[float] | None:
    """Return the RMS of the leave-one-out residuals of every target; None without residuals."""
    path = getattr(model, "ridge_path_", None)
    if path is not None and path.loo_error is not None:
        return np.sqrt(path.loo_error[path.chosen, np.arange(len(path.chosen))]).tolist()
    if not hasattr(model, "calibration_"):
        return None
    known = model.calibration_
    return np.sqrt(np.average(known.residuals**2, axis=0, weights=known.weights)).tolist()


def selection_name(model: Any) -> str:
    """Return how landmarks were chosen: a name, or the repr of the selection; of "auto", what it took."""
    if not isinstance(model.selection, str | Selection):
        return "points given"
    if model.selection in ("auto", Auto()):
        if hasattr(model, "leverage_scores_"):
            return "leverage (auto)"
        uniform = hasattr(model, "tuning_") and model.tuning_.uniform_landmarks
        return "uniform (auto)" if uniform else "rpcholesky (auto)"
    return str(model.selection)


def kernel_words(model: Any) -> str:
    """Return the kernel's family and the range of its bandwidths or the shape of its metric; otherwise its repr."""
    kernel = model.kernel_
    metric, widths = getattr(kernel, "metric", None), getattr(kernel, "bandwidth", 1.0)
    if metric is not None:
        return f"{family_name(kernel)} with a {' x '.join(map(str, np.shape(metric)))} metric"
    if np.size(widths) > 1:
        return f"{family_name(kernel)}, one bandwidth per feature, {np.min(widths):.3g} to {np.max(widths):.3g}"
    return re.sub(r"\d+\.\d{6,}(e[-+]?\d+)?", lambda number: f"{float(number[0]):.6g}", repr(kernel))


def landmark_words(model: Any) -> str:
    """Return the number of landmarks, how they were chosen, and which rule set their number."""
    rule = model.landmark_count_.rule
    why = "their number given" if rule == "given" else f"number by the rule: {rule}"
    return f"{model.n_landmarks_:,} by {selection_name(model)} ({why})"


def important_columns(model: Any, most: int) -> list[tuple[str, float]]:
    """Return the columns of largest importance with their shares; none where they are not known or all are zero."""
    shares = getattr(model, "feature_importances_", np.zeros(1))
    names = getattr(model, "feature_names_in_", [f"column {number}" for number in range(len(shares))])
    largest = np.argsort(-shares, kind="stable")[:most]
    return [(str(names[k]), float(shares[k])) for k in largest if shares[k] > 0.0 and len(shares) > 1]


def tuning_lines(model: Any) -> list[tuple[str, str | None]]:
    """Return how the kernel was tuned, and the three most important columns, as labels and values."""
    tuning, words = getattr(model, "tuning_", None), None
    if tuning is not None:
        judged = tuning.judged_error
        error = "" if judged is None else f", judged error {judged:.3g} of the target's deviation"
        words = f"{LEVELS[tuning.level]}, {tuning.kernel}{error}"
    important = [f"{shown(name)} {share:.0%}" for name, share in important_columns(model, 3) if share >= 0.005]
    return [("tuning", words), ("importance", ", ".join(important) or None)]


def spoken(seconds: float) -> str:
    """Return a time in a suitable unit."""
    unit, size = ("s", 1) if seconds < 90 else ("min", 60) if seconds < 5400 else ("h", 3600)
    return f"{seconds / size:.2g} {unit}"


def printable(name: str) -> str:
    """Return text from a file without invisible characters or those that change the text direction."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in name)
