"""What rows predicted without them tell of a fit by a loss: its mean loss, and residuals for intervals."""

from typing import Any

import numpy as np

from ridgemark.backends import Floats
from ridgemark.errors import ParameterError
from ridgemark.fitted import LeftOutTargets
from ridgemark.losses import Loss
from ridgemark.rows import RowSource, open_rows
from ridgemark.rows.groups import evenly
from ridgemark.sampling import make_generator

_MOST_KEPT = 4096  # rows from which intervals are made


def losses_of(loss: Loss, targets: Any, weights: Any, predictor: Any) -> tuple[Any, Any]:
    """Return the mean loss of every function, and that of the best constant for these rows.

    Targets outside the domain of the loss are refused.
    """
    loss.check(targets, weights)
    lost, null, total = [], [], weights.sum()
    ordered = loss.in_order(predictor)
    for k, part in enumerate(loss.parts()):
        lost.append(weights @ part.judged(targets, ordered[:, k : k + 1]) / total)
        constant = np.full_like(targets, part.constant(targets, weights))
        null.append(weights @ part.judged(targets, constant) / total)
    return np.array(lost), np.array(null)


def judged_rows(loss, predictor, passes, rows, outside, random_state):
    """Return some of the rows with their predictors, and what is known of all of them."""
    targets, weights = passes.targets()[rows], passes.row_counts()[rows]
    lost, null = losses_of(loss, targets, weights, predictor)
    below = weights @ (targets < loss.predicted(predictor)) / weights.sum()
    drawn = make_generator(random_state).permutation(np.flatnonzero(weights > 0))
    groups = passes.left_out().kind[rows] if passes.leaves_groups else None
    kept = np.sort((drawn if groups is None else evenly(drawn, groups))[:_MOST_KEPT])
    weights, n_groups = weights[kept], None
    if groups is not None:
        _, which, sizes = np.unique(groups[kept], return_inverse=True, return_counts=True)
        weights, n_groups = weights / sizes[which], len(sizes)
    about = targets[kept, 0], weights, predictor[kept], lost, null, below
    rates = getattr(passes.source, "of_rates", False)
    return LeftOutTargets(*about, *promise_of(weights, outside, "this loss"), rates, n_groups)


def promise_of(weights: Floats, outside: bool, loss: str) -> tuple[bool, str]:
    """Return whether coverage of new rows is proved for calibration rows of these weights, and why.

    `outside` says whether the rows had no part in the fit.
    """
    if not outside:
        return False, f"rows had part in the fit, and leaving them out is not exact for {loss}"
    if np.ptp(weights) > 1e-9 * weights.max():
        return False, "rows of unequal weights are not exchangeable"
    return True, "the rows had no part in the fit"


def exposed(X: Any, y: Any, sample_weight: Any, exposure: Any, groups: Any = None) -> tuple[Any, Any, Any]:
    """Return the rows as a source that knows its exposure, where one is given."""
    if exposure is None:
        return X, y, sample_weight
    if isinstance(X, RowSource):
        raise ParameterError("a RowSource brings its own exposure; give it to open_rows(..., exposure=...)")
    return open_rows(X, target=y, weight=sample_weight, exposure=exposure, group=groups), None, None
