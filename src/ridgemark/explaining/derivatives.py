"""How much of the mean squared derivative of the function each column has."""

from typing import Any

import numpy as np

from ridgemark.backends import Floats, backend_of
from ridgemark.errors import ParameterError
from ridgemark.kernels.base import count_rows
from ridgemark.rows import dense
from ridgemark.tables.schema import CODE, Schema

_MOST_ENTRIES = 20_000_000  # of the gradients that are averaged


@np.errstate(over="ignore", invalid="ignore")
def derivative_shares(rows: Any, table: Schema | None, kernel: Any, landmarks: Any, dual_coef: Floats) -> Floats | None:
    """Return each column's share of `mean_i (df/dx_j)^2 var(x_j)`, over some rows.

    Features of one column of a table are added up. Codes of levels are not quantities: a column with codes has
    `mean_i (f(x_i) - f(x_i'))^2/2`, where x_i' has the level of another row; for a linear f this is the same.

    With several targets each is counted in units of the total over its columns. None for a kernel whose gradient is
    not known, and for very many columns; zero for every column if the fit is constant.
    """
    if kernel.stays_on_host or (count_rows(landmarks) + count_rows(rows)) * rows.shape[1] > _MOST_ENTRIES:
        return None  # a function or values given by the user have no gradient
    rows, points = (backend_of(values).double(dense(values)) for values in (rows, landmarks))
    try:
        gradients = kernel.gradient(rows, points).of_functions(dual_coef)
    except ParameterError:  # a class of the user's without a gradient
        return None
    # The product first: a gradient is small where the column's unit is large.
    by_target = ((gradients * rows.std(axis=0)[:, None]) ** 2).mean(axis=0)
    if table is not None:
        by_target = np.stack([table.by_column(of_target) for of_target in by_target.T], axis=1)
        for j in (j for j, field in enumerate(table.fields) if CODE in field.parts):
            other = rows.copy()
            other[:, table.owners == j] = np.roll(rows, len(rows) // 2, axis=0)[:, table.owners == j]
            changes = kernel.bind(points)(other) - kernel.bind(points)(rows)
            by_target[j] = ((changes @ dual_coef) ** 2).mean(axis=0) / 2.0
    totals = by_target.sum(axis=0)
    shares = (by_target / np.where(totals > 0.0, totals, 1.0)).sum(axis=1)
    total = float(shares.sum())
    return shares / total if 0.0 < total < np.inf else np.zeros(len(shares))
