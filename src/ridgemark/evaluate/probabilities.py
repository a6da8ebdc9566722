"""Measures of probabilities of classes, and a threshold for two classes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgemark.backends import Floats
from ridgemark.errors import DataError, ParameterError


@dataclass(frozen=True)
class Threshold:
    """A threshold for the probability of the second of two classes, and what follows from it on some rows.

    Attributes
    ----------
    threshold : float
        A row is of the second class if its probability is at least this. `predict --threshold` takes it, and
        `FixedThresholdClassifier(model, threshold=...)` of scikit-learn.
    reason : str
        What it was chosen for.
    rate : float
        Share of the rows that it assigns to the second class.
    precision, recall : float
        Share of these rows that are of the second class, and share of the rows of the second class among these.
    confusion : list of lists
        Weights of the rows by their class (rows) and by the class assigned (columns).
    """

    threshold: float
    reason: str
    rate: float
    precision: float
    recall: float
    confusion: list[list[float]]

    def __str__(self) -> str:
        return (
            f"{self.threshold:.4g} ({self.reason}): {self.rate:.1%} of the rows are assigned to the second class, "
            f"{self.precision:.1%} of them rightly, and {self.recall:.1%} of its rows are among them"
        )


def choose_threshold(
    probabilities: Any,
    is_second: Any,
    *,
    cost: Sequence[float] | None = None,
    rate: float | None = None,
    threshold: float | None = None,
    sample_weight: Any = None,
) -> Threshold:
    """Choose the threshold of least cost, or that assigns a given share of the rows to the second class.

    Give probabilities of rows left out of the fit, such as those of `diagnose`.

    Parameters
    ----------
    probabilities : array of shape (n,)
        Probabilities of the second class.
    is_second : array of shape (n,)
        Whether the row is of the second class; or the share of such rows among several equal ones.
    cost : (float, float), optional
        What a false alarm and a miss cost: a row of the first class assigned to the second, and the reverse.
    rate : float, optional
        Share of the rows to assign to the second class.
    threshold : float, optional
        The threshold itself, to see what follows from it.
    sample_weight : array of shape (n,), optional
        Relative weights.

    Returns
    -------
    Threshold
    """
    p, second = np.asarray(probabilities, dtype=float), np.asarray(is_second, dtype=float)
    weights = np.ones(len(p)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if p.ndim != 1 or not p.shape == second.shape == weights.shape or not len(p):
        raise DataError(f"probabilities and labels must be arrays of one length, got {p.shape} and {second.shape}")
    if sum(value is not None for value in (cost, rate, threshold)) != 1:
        raise ParameterError("give one of cost, rate and threshold")
    if threshold is not None:
        return _at(float(threshold), "given", p, second, weights)
    order = np.argsort(-p, kind="stable")
    last = np.append(np.diff(p[order]) < 0, True)  # rows of equal probability are assigned together
    levels = np.append(np.inf, p[order][last])  # the first assigns no row
    if rate is not None:
        if not 0 < rate < 1:
            raise ParameterError(f"rate must be a share between 0 and 1, got {rate!r}")
        assigned = np.append(0.0, np.cumsum(weights[order])[last] / weights.sum())
        return _at(float(levels[np.abs(assigned - rate).argmin()]), f"a rate of {rate:.3g}", p, second, weights)
    assert cost is not None
    if len(cost) != 2 or min(cost) <= 0:
        raise ParameterError(f"cost must be two positive numbers, of a false alarm and of a miss, got {cost!r}")
    alarm, miss = (float(value) for value in cost)
    false = np.append(0.0, np.cumsum((weights * (1 - second))[order])[last])
    right = np.append(0.0, np.cumsum((weights * second)[order])[last])
    best = int(np.argmin(alarm * false - miss * right))
    # Between the last row assigned and the next one, so that rounding of a probability does not matter.
    below = levels[best + 1] if best + 1 < len(levels) else 0.0
    chosen = float((levels[best] + below) / 2) if np.isfinite(levels[best]) else 1.0
    return _at(chosen, f"least cost, {alarm:g} for a false alarm and {miss:g} for a miss", p, second, weights)


def _at(threshold: float, reason: str, p: Floats, second: Floats, weights: Floats) -> Threshold:
    assigned = p >= threshold
    both = np.stack([weights * (1 - second), weights * second])
    confusion = np.stack([both[:, ~assigned].sum(axis=1), both[:, assigned].sum(axis=1)], axis=1)
    (_, false), (missed, right) = confusion.tolist()
    return Threshold(
        threshold,
        reason,
        (false + right) / max(float(confusion.sum()), 1e-300),
        right / max(false + right, 1e-300),
        right / max(right + missed, 1e-300),
        confusion.tolist(),
    )
