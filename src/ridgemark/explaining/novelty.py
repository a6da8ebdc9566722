"""How far a row is from the data: its posterior variance, as a rank among rows of the fit, each left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ridgemark.backends import Flags, Floats, Indices
from ridgemark.explaining.background import Background
from ridgemark.intervals.deviations import Spread
from ridgemark.passes import RowPasses, Task, Workspace
from ridgemark.rows import Block, dense
from ridgemark.solvers import LandmarkFit, ridge_form

_LEAST_KEPT = 1e-6  # share of its leverage that leaving out a row leaves, at least; less is rounding


@dataclass(frozen=True, eq=False)
class Novelty:
    """How far rows are from the rows of the fit.

    Rows are ranked by the posterior variance of the function, which grows where rows of the fit are few, in the
    distance of the kernel. Rows beyond the range of a column that matters come before all others. A column that the
    kernel ignores cannot make a row novel.

    Attributes
    ----------
    share : array of shape (n,)
        Share of the rows of the fit, each left out, that are at least as far from the others as this row from all;
        an estimate from a sample of them. It is small for a row far from the data.
    flag : array of shape (n,)
        Whether the share is at most `level`: true of about a share `level` of rows that are like those of the fit.
    beyond : array of shape (n, n_features)
        Whether the row's value lies outside the range of the column in the fit.
    column_names : tuple of str
        The names of the columns.
    level : float
        The level of the flag.
    """

    share: Floats
    flag: Flags
    beyond: Flags
    column_names: tuple[str, ...]
    level: float

    def columns_beyond(self, row: int) -> list[str]:
        """Return the names of the columns in which a row lies outside the range of the fit."""
        return [self.column_names[j] for j in np.flatnonzero(self.beyond[row])]

    def __str__(self) -> str:
        n_far, n_beyond = int(np.count_nonzero(self.flag)), int(np.count_nonzero(self.beyond.any(axis=1)))
        lines = [
            f"{n_far:,} of {len(self.share):,} rows are farther from the data than all but {self.level:.3g} of the "
            f"rows of the fit; {n_beyond:,} have a value beyond the range of its column"
        ]
        counts = self.beyond.sum(axis=0)
        lines += [
            f"  {self.column_names[j]}: {counts[j]:,} rows" for j in np.argsort(-counts, kind="stable") if counts[j]
        ]
        return "\n".join(lines)


class Beyond(Task):
    """Whether the features of each column lie outside their range in the fit, shape (rows, columns)."""

    what: ClassVar[str] = "ranges of columns"
    on_device: ClassVar[bool] = False
    low: Floats
    high: Floats
    owners: Indices  # (features,): the column of each
    n_columns: int

    @property
    def width(self) -> int:
        """Numbers of scratch memory for each row."""
        return 2 * len(self.low)

    def __call__(self, block: Block, workspace: Workspace) -> Flags:
        """Return the block's flags."""
        rows = dense(block.features)
        flags = np.zeros((len(rows), self.n_columns), dtype=bool)
        row, feature = np.nonzero((rows < self.low) | (rows > self.high))
        flags[row, self.owners[feature]] = True
        return flags


def novelty_of(
    passes: RowPasses,
    fit: LandmarkFit,
    background: Background,
    columns: tuple[str, ...],
    owners: Indices,
    matters: Flags,
    level: float,
) -> Novelty:
    """Return how far the rows of some passes are from those of the fit.

    `matters` says of which columns a value beyond the range makes a row far.
    """
    variance = passes.map(Spread(**ridge_form(fit), variance=fit.scaled_ridge)) ** 2
    beyond = passes.map(Beyond(background.low, background.high, owners, len(columns)))
    left_out = left_out_variances(fit, background).mean(axis=1)
    size = float(left_out.max()) + float(variance.max(initial=0.0))
    distance = variance.mean(axis=1) + size * beyond[:, matters].any(axis=1)
    left_out += size * _extreme(background)[:, matters[owners]].any(axis=1)
    farther = len(left_out) - np.searchsorted(np.sort(left_out), distance, side="left")
    share = (farther + 1.0) / (len(left_out) + 1.0)
    return Novelty(share, share <= level, beyond, columns, level)


def _extreme(background: Background) -> Flags:
    """Return which features of each row lie beyond those of all other rows, so that they would if it were left out."""
    rows = dense(background.rows)
    lowest, highest = rows == background.low, rows == background.high
    return (lowest & (lowest.sum(axis=0) == 1)) | (highest & (highest.sum(axis=0) == 1))


def left_out_variances(fit: LandmarkFit, background: Background) -> Floats:
    """Return `n lambda` times the variance at each row of the background without this row, shape (b, targets).

    With N the whitener, `F = Bc'WBc + n lambda`, `M = N F^-1 N'` and `q = N F^-1 bc(x)`, the variance inside the span
    of the landmarks is `t = 1/sum w + bc'F^-1 bc`, and `t/(1 - w t)` without the row. A row that is landmark i takes
    its function k(., z_i) with it: `q_i^2/M_ii` less, where the row is left out of q and M too, and outside the span
    `1/[W^-1]_ii` in place of `k(x, x) - |b(x)|^2 = 0`. Where all rows are landmarks this is the exact variance of a fit
    by squares; by another loss, every row has the mean curvature.
    """
    form, factor = ridge_form(fit), fit.factor
    inverse, scaled = form["inverse"], fit.scaled_ridge
    features = np.asarray(factor.features(background.rows), dtype=np.float64)
    own = np.asarray(factor.cross_kernel.kernel.diagonal(background.rows), dtype=np.float64)
    coordinates = (features - form["mean"]) @ inverse.root
    curvature = fit.moments.total_weight / background.total_weight
    weights = (background.weights * curvature)[:, None]
    spread = form["share_of_constant"] + coordinates**2 @ inverse.factors
    kept = np.maximum(1.0 - weights * spread, _LEAST_KEPT)
    inside = spread / kept
    outside = np.broadcast_to(np.maximum(own - (features**2).sum(axis=1), 0.0)[:, None], inside.shape).copy()
    whitener = factor.whitener[np.maximum(background.landmarks, 0)]
    lengths = (whitener**2).sum(axis=1)
    drawn = np.flatnonzero((background.landmarks >= 0) & (lengths > 0.0))
    along = whitener[drawn] @ inverse.root
    pull = (along * coordinates[drawn]) @ inverse.factors / kept[drawn]
    size = along**2 @ inverse.factors + weights[drawn] * kept[drawn] * pull**2
    inside[drawn] = np.maximum(inside[drawn] - pull**2 / size, 0.0)
    outside[drawn] = (1.0 / lengths[drawn])[:, None]
    return outside + scaled * inside
