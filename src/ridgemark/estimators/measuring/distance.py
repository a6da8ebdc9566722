"""Errors of rows by how far they are from the data."""

from typing import Any

import numpy as np

from ridgemark.backends import Floats
from ridgemark.rows import RowSource

_SHARES = (0.05, 0.2, 0.5, 1.0)  # of the rows of the fit that are as far: ends of groups of rows


def far_errors(model: Any, rows: RowSource, losses: Floats, root: bool = False) -> dict[str, Any]:
    """Return how many rows are far from the data, and the mean losses by how far; nothing for a model without sums.

    With `root` the roots of the means, of squared errors.
    """
    fitted = model._model
    if getattr(fitted, "sums", None) is None or fitted.background is None:
        return {}
    share = model.novelty(rows).share
    group = np.digitize(share, _SHARES, right=True)
    counts = np.bincount(group, minlength=len(_SHARES))
    totals = np.bincount(group, losses, minlength=len(_SHARES))
    means = np.divide(totals, counts, out=np.zeros_like(totals), where=counts > 0)
    errors = np.sqrt(means) if root else means
    groups = [[end, float(e), float(n)] for end, e, n in zip(_SHARES, errors, counts, strict=True) if n]
    return {"far": float((share <= _SHARES[0]).mean()), "far_errors": groups}
