"""How well probabilities order the rows by their class."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Floats


def ranking(probabilities: Any, indicators: Any, sample_weight: Any = None) -> dict[str, float | None]:
    """Return how well probabilities order the rows by their class: the area under the ROC curve, and average precision.

    With two classes those of the second; with more the means over the classes, each against all others.

    Parameters
    ----------
    probabilities : array of shape (n, K)
        Probabilities of the classes.
    indicators : array of shape (n, K)
        1 for the class of a row; or the shares of the classes among several equal rows.
    sample_weight : array of shape (n,), optional
        Relative weights.

    Returns
    -------
    measures : dict
        "auc" and "average_precision", equal to those of scikit-learn; None where a class has no row.
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    p, shares = np.asarray(probabilities, dtype=float), np.asarray(indicators, dtype=float)
    weights = np.ones(len(p)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    measured = []
    for k in [1] if p.shape[1] == 2 else range(p.shape[1]):
        labels, weight, values = _apart(p[:, k], shares[:, k], weights)
        if len(np.unique(labels)) < 2:
            return {"auc": None, "average_precision": None}
        measured.append(
            [score(labels, values, sample_weight=weight) for score in (roc_auc_score, average_precision_score)]
        )
    auc, precision = np.mean(measured, axis=0).tolist()
    return {"auc": auc, "average_precision": precision}


def _apart(values: Floats, share: Floats, weights: Floats) -> tuple[NDArray[np.intp], Floats, Floats]:
    """Return labels, weights and values of rows, a row of both classes as two."""
    labels = np.repeat([1, 0], len(values))
    weight, both = np.concatenate([weights * share, weights * (1.0 - share)]), np.concatenate([values, values])
    counts = weight > 0
    return labels[counts], weight[counts], both[counts]
