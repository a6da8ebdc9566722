"""A fitted model in words and numbers, for a page and for printing."""

import re
from typing import Any

import numpy as np

from ridgemark.selection import Auto, Selection

COVERAGE = 0.9
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
    """Return the repr of the kernel with numbers to six digits."""
    return re.sub(r"\d+\.\d{6,}(e[-+]?\d+)?", lambda number: f"{float(number[0]):.6g}", repr(model.kernel_))


def landmark_words(model: Any) -> str:
    """Return the number of landmarks, how they were chosen, and which rule set their number."""
    rule = model.landmark_count_.rule
    why = "their number given" if rule == "given" else f"number by the rule: {rule}"
    return f"{model.n_landmarks_:,} by {selection_name(model)} ({why})"


def spoken(seconds: float) -> str:
    """Return a time in a suitable unit."""
    unit, size = ("s", 1) if seconds < 90 else ("min", 60) if seconds < 5400 else ("h", 3600)
    return f"{seconds / size:.2g} {unit}"


def printable(name: str) -> str:
    """Return text from a file without invisible characters or those that change the text direction."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in name)
