"""The covariance of the fit's coefficients where the noise differs from row to row."""

import numpy as np

from ridgemark.backends import Floats
from ridgemark.intervals.calibration import Calibration, CalibrationGroups
from ridgemark.intervals.deviations import unit_variance
from ridgemark.solvers import LandmarkFit
from ridgemark.solvers.groups import kept_share


def noise_terms(fit: LandmarkFit, calibration: Calibration | None) -> tuple[Floats, Floats]:
    """Return Z, shape (m, rank), and u, shape (m, targets), with `Z'diag(u)^2 Z` the covariance of `Bc'W y`.

    Z has the centred features of the m calibration rows, and `u_i = a w_i e_i/(1 - w_i t_i)`: e_i/(1 - w_i t_i) is the
    residual of row i when it alone is left out, so that the noise may differ from row to row. `e_i = r_i - t_i W_g r_g`
    is its residual in the fit, r_i that without the group g of rows equal to it. `a^2` raises the weight of the
    calibration rows to that of all rows. For fixed landmarks and n lambda this is the jackknife's covariance. Without
    calibration rows the noise has the variance s2/w_i in every row. Rows that left in groups give the jackknife over
    groups, so that the noise of a group may be correlated.
    """
    if calibration is None:
        features = np.sqrt(np.maximum(fit.solver.spectrum, 0.0))[:, None] * fit.solver.rotation.T
        return features, np.broadcast_to(
            np.sqrt(unit_variance(fit, fit.moments.n_rows)), (len(features), len(fit.scaled_ridge))
        )
    if calibration.groups is not None:
        return _group_terms(calibration.groups)
    centred, inverse = fit.centred, fit.inverse
    features = fit.factor.features(calibration.rows).astype(np.float64) - centred.feature_mean
    constant = 1.0 / centred.total_weight if fit.fit_intercept else 0.0
    weights = calibration.weights[:, None]
    leverage = (features @ inverse.root) ** 2 @ inverse.factors + constant
    kept = kept_share(leverage, (features**2).sum(axis=1)[:, None], weights, constant, fit.scaled_ridge)
    alone = (calibration.residuals - leverage * calibration.shifts) / kept
    return features, np.sqrt(centred.total_weight / weights.sum()) * weights * alone


def _group_terms(groups: CalibrationGroups) -> tuple[Floats, Floats]:
    """Return for each target the groups' `Bc'W r`, one below the other, and a, with 0 for the other targets."""
    n_groups, rank, n_targets = groups.pulls.shape
    sizes = np.kron(np.eye(n_targets), np.full((n_groups, 1), 1.0 / np.sqrt(groups.share)))
    return groups.pulls.transpose(2, 0, 1).reshape(n_targets * n_groups, rank), sizes
