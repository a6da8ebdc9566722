"""Calibration rows with their leave-one-out residuals, from which intervals are made."""

from dataclasses import dataclass
from typing import Any

from ridgemark.backends import Floats, Indices
from ridgemark.intervals.noise import NoiseLevel


@dataclass(frozen=True, eq=False)
class Calibration:
    """Training rows with their leave-one-out residuals, from which intervals are computed.

    Attributes
    ----------
    rows : array or sparse matrix of shape (m, n_features)
        The calibration rows.
    indices : array of shape (m,)
        Their row numbers.
    residuals : array of shape (m, n_targets)
        Leave-one-out residuals.
    weights : array of shape (m,)
        Relative weights of the residuals.
    shifts : array of shape (m, n_targets)
        `W_g r_g`, with W_g the weight and r_g the weighted mean residual of all rows that equal the row:
        the prediction at x without these rows is `f(x) - t(x, x_g) W_g r_g`.
    n_distinct : int
        Number of distinct rows among the calibration rows; in cells of a table, of rows (`RowPasses.left_out`).
    guaranteed : bool
        Whether the rows had no part in choosing landmarks, bandwidth and ridge. Then an interval asked to cover with
        probability 1 - alpha covers a new row with probability at least 1 - 2 alpha, for every distribution, if
        rows are exchangeable; where some rows are equal, the probability that a new row equals none of them and
        lies outside its interval is at most 2 alpha. Otherwise coverage is near 1 - alpha in practice, without a proof.
    reason : str
        Why it is guaranteed, or why not.
    noise : NoiseLevel
        The size of the noise as a function of x, for intervals whose width follows it.
    scores : array of shape (m, n_targets)
        `|r_i|/tau(x_i)`, tau as in `adaptive_intervals`; where row i is one of those that made tau, of tau without it.
    reaches : array of shape (m, n_targets)
        `W_g |r_g| sqrt(t(x_i, x_i))`: times `sqrt(t(x, x))` a bound on what leaving out row i changes at x.
    """

    rows: Any
    indices: Indices
    residuals: Floats
    weights: Floats
    shifts: Floats
    n_distinct: int
    guaranteed: bool
    reason: str
    noise: NoiseLevel
    scores: Floats
    reaches: Floats
