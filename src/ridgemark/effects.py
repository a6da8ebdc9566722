"""What the columns do to the predictions: gradients of a fit, and the importance of its features."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ridgemark.kernels import RadialKernel
from ridgemark.kernels.base import count_rows
from ridgemark.passes import RowPasses

Floats = NDArray[np.float64]

_ROWS = 1000  # whose gradients are averaged
_MOST_ENTRIES = 20_000_000  # of their gradients


def feature_importances(passes: RowPasses, kernel: Any, landmarks: Any, dual_coef: Floats) -> Floats | None:
    """Return each column's share of `mean_i (df/dx_j)^2 var(x_j)`, over a thousand distinct rows.

    With several targets each is counted in units of the total over its columns. None for a kernel whose gradient is
    not known, and for very many columns; zero for every column if the fit is constant.
    """
    n_features = passes.source.n_features
    if not isinstance(kernel, RadialKernel) or (count_rows(landmarks) + _ROWS) * n_features > _MOST_ENTRIES:
        return None
    rows = _dense(passes.take(passes.distinct_rows().indices[:_ROWS]).features)
    gradients = kernel.gradients(rows, _dense(landmarks), dual_coef)
    # The product first: a gradient is small where the column's unit is large.
    squares = (gradients * rows.std(axis=0)[:, None]) ** 2
    by_target = squares.mean(axis=0)
    totals = by_target.sum(axis=0)
    shares = by_target / np.where(totals > 0.0, totals, 1.0)
    total = float(shares.sum())
    return shares.sum(axis=1) / total if 0.0 < total < np.inf else np.zeros(n_features)


def _dense(rows: Any) -> Floats:
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)
