"""Labels of any type, weights of classes, and conformal sets of labels."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.errors import DataError, ParameterError
from ridgemark.fitted import Classes, ClassScores
from ridgemark.fitting import FittedClasses
from ridgemark.losses import ClassLoss
from ridgemark.parameters import real_number
from ridgemark.rows.places import listed

Floats = NDArray[np.float64]


def as_classes(labels: NDArray[Any], totals: Floats) -> Classes:
    """Return the classes of positive weight, two at least."""
    labels = labels[totals > 0]
    if len(labels) < 2:
        raise DataError(
            f"at least two classes are needed to tell apart, got one class: {labels[0]!r}; labels of zero weight are "
            "left out"
        )
    return Classes(tuple(labels.tolist()), "str" if labels.dtype.kind == "U" else str(labels.dtype), None)


def class_weights(given: Any, labels: NDArray[Any], totals: Floats) -> Floats | None:
    """Return the factor of every class: those given by label, or `sum w/(K W_k)` for "balanced"; None for none."""
    if given is None:
        return None
    if isinstance(given, str) and given == "balanced":
        return totals.sum() / (len(totals) * totals)
    if not isinstance(given, dict):
        raise ParameterError(f'class_weight must be None, "balanced" or a dict of labels and weights, got {given!r}')
    unknown = sorted(map(repr, set(given) - set(labels.tolist())))
    factors = np.array([real_number(given.get(label, 1)) for label in labels.tolist()])
    if unknown or not ((factors > 0) & (factors < np.inf)).all():
        raise ParameterError(
            f"class_weight must give labels of the fit positive numbers, got {given!r}"
            + (f"; no row has the label {listed(unknown)}" if unknown else "")
        )
    return factors


def scores_of(loss: ClassLoss, predictor: Floats, targets: Floats, weights: Floats, outside: bool) -> ClassScores:
    """Return the scores `1 - p` of rows, from their predictor and the shares of their labels.

    `outside` says whether the rows had no part in the fit.
    """
    shares = weights[:, None] * loss.indicators(targets)
    row, label = np.nonzero(shares > 0)
    scores = -np.expm1(loss.log_probabilities(predictor)[row, label])
    order = np.argsort(scores, kind="stable")
    equal = np.ptp(weights[weights > 0]) == 0
    if not outside:
        reason = "the rows had part in the fit, and leaving them out is not exact for the log loss"
    else:
        reason = "the rows had no part in the fit" if equal else "rows of unequal weights are not exchangeable"
    return ClassScores(scores[order], shares[row, label][order], outside and equal, reason)


def left_out_scores(loss: ClassLoss, fitted: FittedClasses) -> ClassScores:
    """Return the scores of rows of the fit, each predicted from all rows with other features."""
    sample = fitted.sample
    return scores_of(loss, fitted.left_out, sample.targets(), sample.row_counts(), False)


def conformal_sets(probabilities: Floats, calibration: ClassScores, coverage: Any) -> NDArray[np.bool_]:
    """Return the labels whose score is at most the `ceil(coverage (m + 1))`-th of m calibration scores, by weight.

    All labels where there are too few rows for this coverage.
    """
    if not 0 < real_number(coverage) < 1:
        raise ParameterError(f"coverage must be a number between 0 and 1, both excluded, got {coverage!r}")
    m = len(calibration.scores)
    wanted = math.ceil(coverage * (m + 1) - 1e-9)
    if wanted > m:
        return np.ones(probabilities.shape, dtype=bool)
    reached = np.cumsum(calibration.weights) >= (wanted / m - 1e-9) * calibration.weights.sum()
    return 1.0 - probabilities <= calibration.scores[int(reached.argmax())] + 1e-12
