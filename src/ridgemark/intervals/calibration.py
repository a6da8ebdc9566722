"""Calibration rows with their leave-one-out residuals, from which intervals are made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Floats, Indices, Rows
from ridgemark.intervals.noise import NoiseLevel, noise_of_groups, noise_of_rows, variance_share, widths
from ridgemark.passes import RowPasses
from ridgemark.path import LeaveOneOut, leave_one_out
from ridgemark.rows import ArrayRows, RowGroups
from ridgemark.solvers import LandmarkFit

_OF_ROWS = ("rows", "indices", "residuals", "weights", "shifts", "scores", "reaches", "ratios")
_FEW_REPEATS = 0.1  # with a larger share of repeated rows, the function's variance is reduced by `variance_share`


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
        Number of distinct rows among the calibration rows; in cells of a table, of rows (`RowPasses.left_out`); where
        rows leave in groups, of groups.
    guaranteed : bool
        Whether the rows had no part in choosing landmarks, bandwidth and ridge. Then an interval asked to cover with
        probability 1 - alpha covers a new row with probability at least 1 - 2 alpha, for every distribution, if
        rows are exchangeable; where some rows are equal, the probability that a new row equals none of them and
        lies outside its interval is at most 2 alpha. Of rows in groups it holds for a row of a new group, if groups are
        exchangeable. Otherwise coverage is near 1 - alpha in practice, without a proof.
    reason : str
        Why it is guaranteed, or why not.
    groups : CalibrationGroups or None
        Where rows leave in groups: the groups; then shifts and reaches are not used.
    sets : CalibrationSets or None
        The named sets of rows, for coverage within each.
    ratios : array of shape (m,) or None
        Density of the new rows over that of the calibration rows at each of these, for intervals under a shift.
    noise : NoiseLevel
        The size of the noise as a function of x, for intervals whose width follows it.
    scores : array of shape (m, n_targets)
        `|r_i|/tau(x_i)`, tau as in `adaptive_intervals`; where row i is one of those that made tau, of tau without it.
    reaches : array of shape (m, n_targets)
        `W_g |r_g| sqrt(t(x_i, x_i))`: times `sqrt(t(x, x))` a bound on what leaving out row i changes at x.
    """

    rows: Annotated[Any, Rows, "(m, e)"]
    indices: Annotated[Indices, "(m)"]
    residuals: Annotated[Floats, "(m, t)"]
    weights: Annotated[Floats, "(m)", ">= 0"]
    shifts: Annotated[Floats, "(m, t)"]
    n_distinct: Annotated[int, "> 0"]
    guaranteed: bool
    reason: str
    noise: NoiseLevel
    scores: Annotated[Floats, "(m, t)", ">= 0"]
    reaches: Annotated[Floats, "(m, t)", ">= 0"]
    groups: CalibrationGroups | None = None
    sets: CalibrationSets | None = None
    ratios: Annotated[Floats | None, "(m)", ">= 0"] = None

    @property
    def units(self) -> str:
        """What `n_distinct` counts, in words."""
        return "distinct calibration rows" if self.groups is None else "groups of calibration rows"

    def of_set(self, number: int) -> Calibration:
        """Return the calibration by the rows of one set alone."""
        assert self.sets is not None
        rows = np.flatnonzero(self.sets.of_rows == number)
        groups = self.groups and replace(self.groups, of_rows=self.groups.of_rows[rows])
        units = rows if groups is None else groups.of_rows
        own = {name: getattr(self, name)[rows] for name in _OF_ROWS if getattr(self, name) is not None}
        return replace(self, **own, groups=groups, sets=None, n_distinct=len(np.unique(units)))


@dataclass(frozen=True, eq=False)
class CalibrationGroups:
    """Groups of rows that left together, and what leaves the fit with each.

    The prediction at x without group g is `f(x) - bc(x)' F^-1 pulls_g - constants_g/sum w`, without an intercept the
    first two terms.

    Attributes
    ----------
    of_rows : array of shape (m,)
        The group of every calibration row.
    pulls : array of shape (g, rank, n_targets)
        `Bc'W r` of the rows of each group, r their residuals without the group.
    constants : array of shape (g, n_targets)
        `sum w r`.
    share : float
        These groups as a share of all.
    """

    of_rows: Annotated[Indices, "(m)", "< q"]
    pulls: Annotated[Floats, "(q, _, t)"]
    constants: Annotated[Floats, "(q, t)"]
    share: Annotated[float, "> 0"]

    def reaches(self, fit: LandmarkFit) -> Floats:
        """Return the largest change at x that a row's group makes, over `sqrt(t(x, x))`, shape (m, targets)."""
        constant = 1.0 / fit.centred.total_weight if fit.fit_intercept else 0.0
        squares = constant * self.constants**2
        for t in range(squares.shape[1]):
            inverse = fit.inverse.of_target(t)
            squares[:, t] += ((self.pulls[:, :, t] @ inverse.root) ** 2 @ inverse.factors)[:, 0]
        return np.sqrt(squares)[self.of_rows]


@dataclass(frozen=True, eq=False)
class CalibrationSets:
    """Named sets of calibration rows.

    Attributes
    ----------
    hashes : array of shape (k,)
        Of the labels of the sets, ascending.
    of_rows : array of shape (m,)
        The set of every calibration row.
    """

    hashes: Annotated[NDArray[np.uint64], "(_)", "ascending"]
    of_rows: Annotated[Indices, "(m)"]


@dataclass(frozen=True, eq=False)
class CalibrationRows:
    """Rows drawn to calibrate intervals, whose leave-one-out residuals are computed when they are asked for."""

    rows: Any  # array or sparse matrix (m, n_features)
    indices: Indices  # (m,): their numbers among the rows of the fit
    targets: Floats  # (m, targets)
    weights: Floats  # (m,)
    groups: RowGroups  # of all rows of the fit
    guaranteed: bool
    reason: str
    noise: NoiseLevel | None  # where it is made without these rows
    memory_budget: int | None

    def calibrated(self, fit: LandmarkFit) -> Calibration:
        """Return the calibration, by leave-one-out at the ridges of the fit."""
        source = ArrayRows(self.rows, self.targets, self.weights)
        passes = RowPasses(source, self.memory_budget).with_groups(self.groups)
        left_out = leave_one_out(passes, fit)
        return calibration_of(self, passes, fit, left_out, np.arange(len(self.indices)))


def calibration_of(
    drawn: CalibrationRows, passes: RowPasses, fit: LandmarkFit, left_out: LeaveOneOut, sample: Indices
) -> Calibration:
    """Return the calibration by the rows drawn, from leave-one-out residuals of the rows of the passes.

    `sample` has the positions of the rows drawn among those of the passes.
    """
    if passes.leaves_groups:
        return _of_groups(drawn, passes, fit, left_out, sample)
    residuals, groups, weights = left_out.residuals[sample], passes.left_out_groups(), drawn.weights
    together, noise, sigma = groups.weights[sample], drawn.noise, None
    shifts = together[:, None] * (residuals if groups.gaps is None else residuals + groups.gaps[sample])
    if noise is None:
        noise, sigma = noise_of_rows(passes, fit, left_out, sample)
    if sigma is not None and left_out.leverage is not None:
        spread, reach = left_out.potential[sample] / weights[:, None], np.sqrt(left_out.leverage[sample])
        deviation = np.sqrt(noise.variance * spread)
    else:
        along = () if noise.outside else (together,)
        places = RowPasses(ArrayRows(drawn.rows), passes.memory_budget).map(widths(fit, noise), along)
        sigma, deviation, reach = places[:, 1] if sigma is None else sigma, places[:, 2], places[:, 3]
    if drawn.noise is None and (weights / together).mean() < 1.0 - _FEW_REPEATS:
        share = variance_share(residuals, sigma, deviation, weights)
        noise, deviation = replace(noise, variance=share * noise.variance), np.sqrt(share) * deviation
    tau = np.hypot(sigma, deviation)
    tau = np.maximum(tau, np.finfo(np.float64).tiny)  # the noise of tiny residuals may underflow to zero
    return Calibration(
        *(drawn.rows, drawn.indices, residuals, weights, shifts),
        n_distinct=len(np.unique(passes.left_out().kind[sample])),
        guaranteed=drawn.guaranteed,
        reason=drawn.reason,
        noise=noise,
        scores=np.abs(residuals) / tau,
        reaches=np.abs(shifts) * reach,
    )


def _of_groups(
    drawn: CalibrationRows, passes: RowPasses, fit: LandmarkFit, left_out: LeaveOneOut, sample: Indices
) -> Calibration:
    """Return the calibration where rows leave in groups; see `calibration_of`.

    A group counts by the mean weight of its rows drawn, so that groups count equally where rows do.
    """
    pulls = left_out.pulls
    assert pulls is not None
    residuals, numbers = left_out.residuals[sample], np.searchsorted(pulls.groups, passes.left_out().kind[sample])
    weights = drawn.weights / np.bincount(numbers)[numbers]
    groups = CalibrationGroups(numbers, pulls.features, pulls.constants, len(pulls.groups) / len(passes.left_out()))
    noise = drawn.noise
    if noise is None:
        rows = RowPasses(
            ArrayRows(drawn.rows, np.abs(residuals), weights, numbers.astype(np.uint64)), passes.memory_budget
        )
        noise, sigma = noise_of_groups(rows, fit)
        deviation = np.sqrt(noise.variance * left_out.potential[sample] / drawn.weights[:, None])
        share = variance_share(residuals, sigma, deviation, weights)
        noise, deviation = replace(noise, variance=share * noise.variance), np.sqrt(share) * deviation
    else:
        places = RowPasses(ArrayRows(drawn.rows), passes.memory_budget).map(widths(fit, noise))
        sigma, deviation = places[:, 1], places[:, 2]
    tau = np.maximum(np.hypot(sigma, deviation), np.finfo(np.float64).tiny)
    return Calibration(
        *(drawn.rows, drawn.indices, residuals, weights, np.zeros_like(residuals)),
        n_distinct=len(np.unique(numbers)),
        guaranteed=drawn.guaranteed,
        reason=drawn.reason,
        noise=noise,
        scores=np.abs(residuals) / tau,
        reaches=groups.reaches(fit),
        groups=groups,
    )


def weighted_by_ratio(calibration: Calibration) -> Floats:
    """Return the weights of the calibration rows times their density ratios; a new row's is its ratio.

    A row of mean weight counts as one new row; where rows leave in groups, a group of mean weight does.
    """
    assert calibration.ratios is not None
    units = calibration.n_distinct if calibration.groups is not None else np.count_nonzero(calibration.weights)
    weighted: Floats = calibration.weights * (units / calibration.weights.sum()) * calibration.ratios
    return weighted
