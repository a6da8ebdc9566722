"""A fit by a loss on its own rows: the slopes of the loss are its dual point."""

from typing import Any

import numpy as np

from ridgemark.backends import Floats
from ridgemark.certificates.audit import sampled_defect, whole_defect
from ridgemark.certificates.dual import FittedRows
from ridgemark.linalg import EPS
from ridgemark.losses import Loss
from ridgemark.passes import RowPasses
from ridgemark.solvers import LandmarkFit


class SlopeRows(FittedRows):
    """The rows of a fit by a loss, of which the residual is minus the slope `l'`.

    Attributes
    ----------
    targets, predictor : arrays of shape (n, t)
        The targets, and eta with the constants for which the slopes sum to zero.
    """

    targets: Floats
    predictor: Floats

    def __init__(self, passes: RowPasses, fit: LandmarkFit, loss: Loss) -> None:
        self.loss = loss
        super().__init__(passes, fit)

    @property
    def objective(self) -> float:
        """`sum_i w_i l_i + (s/2) |f|^2`."""
        loss = float(self.weights @ self.loss.values(self.targets, self.predictor))
        return loss + float(self.fit.scaled_ridge[0]) / 2 * float((self.fit.solution.coefficients**2).sum())

    @property
    def longest(self) -> float:
        """The largest `sqrt(k(x_i, x_i))`."""
        present = self.weights > 0
        return float(np.sqrt((self.diagonal[present] / self.weights[present]).max()))

    @property
    def row_lengths(self) -> Floats:
        """`sqrt(k(x_i, x_i))`, shape (n, 1); zero for a row of weight zero."""
        roots = np.sqrt(self.weights)[:, None]
        return np.divide(self.lengths[:, None], roots, out=np.zeros_like(roots), where=roots > 0)

    def value_errors(self) -> Floats:
        """Return the rounding errors of eta at the rows, shape (n, t)."""
        of_sums = self.row_lengths * self.share[:, None] * self.function_size
        return of_sums + 4 * EPS * (np.abs(self.values) + np.abs(self.predictor))


def squared_distance(
    rows: SlopeRows, kernel_entries: int, failure_probability: float, rng: np.random.Generator
) -> tuple[Floats, dict[str, Any]]:
    """Bound `|f - f_a|^2` per target: by one product with K, or from a sample of rows where K is too large."""
    n = rows.passes.source.n_rows
    if n * (n + 1) // 2 <= kernel_entries and not rows.passes.remote:
        *_, inner, inner_rounding = whole_defect(rows)
        return np.maximum(inner, 0.0) + inner_rounding, {}
    size = max(1, min(n, int(kernel_entries) // n))
    defect, _, trace, unsolved = sampled_defect(rows, size, failure_probability, rng)
    squares = rows.rms_residual * defect * rows.total_weight / rows.fit.scaled_ridge + (unsolved**2).sum(axis=0)
    squares += rows.function_size * rows.unsolved_rounding
    return squares, {"sampled_rows": size, "trace_residual": trace, "failure_probability": failure_probability}
