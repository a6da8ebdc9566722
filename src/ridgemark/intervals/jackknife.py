"""Jackknife+ intervals of one width everywhere, but for what leaving out a row changes."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ridgemark.backends import Floats, Indices
from ridgemark.intervals.calibration import Calibration, weighted_by_ratio
from ridgemark.intervals.quantiles import quantiles, quantiles_beyond
from ridgemark.passes import RowPasses, Workspace
from ridgemark.rows import Block
from ridgemark.solvers import LandmarkFit, RidgeTask, ridge_form


def jackknife_intervals(
    passes: RowPasses, fit: LandmarkFit, calibration: Calibration, levels: Sequence[float], own: Floats | None = None
) -> Floats:
    """Return jackknife+ intervals (Barber et al., 2021) for every row, shape (n, 2, levels, targets).

    The prediction at x without the rows that equal calibration row i is `f(x) - t_i(x) W_g r_g`, with W_g their weight,
    r_g their mean leave-one-out residual and `t_i(x) = 1/sum w + bc(x)' (Bc'WBc + n lambda)^-1 bc_i`. The interval
    runs from a low quantile of these predictions minus |r_i| to a high quantile of these plus |r_i|, at
    each of the `levels` of `quantile_levels`. There is no refit, only one product with the calibration rows' features.
    Of rows that leave in groups, i has the prediction without its group; see `CalibrationGroups`. With density ratios,
    `own` has those of the rows, and the levels are coverages.
    """
    weights, along = (calibration.weights, ()) if own is None else (weighted_by_ratio(calibration), (own,))
    common: dict[str, Any] = {"residuals": calibration.residuals, "weights": weights, "levels": levels}
    if calibration.groups is not None:
        groups, form = calibration.groups, ridge_form(fit)
        moves = np.einsum("br,gbt->tgr", fit.inverse.root, groups.pulls)
        constants = form["share_of_constant"] * groups.constants
        more: dict[str, Any] = {"moves": moves, "constants": constants, "of_rows": groups.of_rows}
        return passes.map(JackknifeOfGroups(**form, **common, **more), along)
    features = fit.factor.features(calibration.rows).astype(np.float64) - fit.centred.feature_mean
    of_calibration = fit.inverse.root.T @ features.T
    task = Jackknife(**ridge_form(fit), **common, of_calibration=of_calibration, shifts=calibration.shifts)
    return passes.map(task, along)


class _Ends(RidgeTask):
    """The ends of `jackknife_intervals`, shape (rows, 2, levels, targets)."""

    what: ClassVar[str] = "intervals"
    residuals: Floats  # (m, targets): of the calibration rows
    weights: Floats  # (m,)
    levels: Sequence[float]  # of the quantiles

    @property
    def width(self) -> int:
        return self.kernel_entries + 4 * len(self.weights)

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        coordinates, _, _ = self.coordinates(block, workspace)
        factors = self.inverse.factors
        ends = workspace.backend.empty((block.n_rows, 2, len(self.levels), len(self.target_mean)))
        for t, mean in enumerate(self.target_mean):
            shrunk = coordinates * factors[:, min(t, factors.shape[1] - 1)]
            fitted = (coordinates @ self.fits[:, t] + mean)[:, None]
            without = fitted - self.changes(shrunk, t)
            size = abs(self.residuals[:, t])
            for k, (values, sign) in enumerate(((size - without, -1.0), (size + without, 1.0))):
                if block.along:
                    quantile = quantiles_beyond(values, self.weights, self.levels, block.along[0])
                else:
                    quantile = quantiles(values, self.weights, self.levels)
                ends[:, k, :, t] = sign * quantile
        return ends

    @abstractmethod
    def changes(self, shrunk: Floats, t: int) -> Floats:
        """Return what every calibration row adds to the predictions of rows, given `c(x) diag(d)`, (rows, m)."""


class Jackknife(_Ends):
    """Every row is left out with the rows equal to it."""

    of_calibration: Floats  # (rank, m): c(x) of the calibration rows
    shifts: Floats  # (m, targets): `W_g r_g`, weight and mean residual of the rows equal to each

    def changes(self, shrunk: Floats, t: int) -> Floats:
        """Return `t_i(x) W_g r_g`."""
        return (shrunk @ self.of_calibration + self.share_of_constant) * self.shifts[:, t]


class JackknifeOfGroups(_Ends):
    """Every row is left out with its group."""

    moves: Floats  # (targets, groups, rank): `C'W r` of the groups
    constants: Floats  # (groups, targets): `sum w r` of the groups over that of all weights
    of_rows: Indices  # (m,): the group of every calibration row

    def changes(self, shrunk: Floats, t: int) -> Floats:
        """Return `c(x)'diag(d) C_g'W r_g + sum_g w r/sum w`."""
        return (shrunk @ self.moves[t].T + self.constants[:, t])[:, self.of_rows]
