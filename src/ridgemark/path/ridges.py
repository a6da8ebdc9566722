"""The path of ridges: errors and dimensions at each of them, and the choice of the best."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ridgemark.backends import Floats, Indices
from ridgemark.operators import NystromFactor
from ridgemark.passes import RowPasses
from ridgemark.path.left_out import (
    LeaveOneOut,
    at_chosen,
    left_out_at,
    left_out_results,
    path_errors,
)
from ridgemark.rows.distinct import RowGroups
from ridgemark.solvers import SpectralSolver, ridges_form
from ridgemark.solvers.landmark_fit import ROBUST

_AS_GOOD = 1e-4  # relative difference of squared errors that does not count
_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Ridges:
    """Ridges to search, descending: lambda, and n lambda."""

    values: Floats
    scaled: Floats


@dataclass(frozen=True)
class RidgePath:
    """Errors and effective dimension for every ridge of a path, for fixed landmarks.

    Attributes
    ----------
    ridges : array of shape (g,)
        The lambdas, descending.
    loo_error : array of shape (g, n_targets) or None
        Weighted mean squared leave-one-out residual; None when the path was chosen by GCV.
    gcv : array of shape (g, n_targets)
        Generalised cross-validation, as in `SpectralSolver.generalised_cross_validation`.
    training_error : array of shape (g, n_targets)
        Weighted mean squared residual.
    effective_dimension : array of shape (g,)
        `tr L (L + n lambda)^-1`.
    criterion : {"loo", "gcv"}
        The criterion that chose the ridges.
    chosen : array of shape (n_targets,)
        Position of each target's ridge in `ridges`.
    """

    ridges: Floats
    loo_error: Floats | None
    gcv: Floats
    training_error: Floats
    effective_dimension: Floats
    criterion: str
    chosen: Indices

    @property
    def on_edge(self) -> bool:
        """Whether a chosen ridge is the largest or smallest of the path, so that the best may lie beyond."""
        return bool(len(self.ridges) > 1 and np.isin(self.chosen, (0, len(self.ridges) - 1)).any())

    def raised(self, share: float) -> RidgePath:
        """Return the path with the largest ridge chosen whose error exceeds that of the chosen one by at most a share.

        One ridge for all targets, which holds for the error of each.
        """
        errors = self.gcv if self.loo_error is None else self.loo_error
        best = errors[self.chosen, np.arange(errors.shape[1])]
        largest = np.argmax((errors <= (1.0 + share) * best).all(axis=1))
        return replace(self, chosen=np.full_like(self.chosen, min(largest, self.chosen.min())))


def loo_path(
    passes: RowPasses,
    factor: NystromFactor,
    solver: SpectralSolver,
    ridges: Ridges,
    target_origin: Floats,
    per_target: bool = False,
    n_left_out: int | None = None,
    groups: RowGroups | None = None,
) -> tuple[RidgePath, LeaveOneOut | None]:
    """Return the path over the ridges with the best chosen by leave-one-out, and its leave-one-out results.

    One pass for any number of ridges, and a second where the residuals of all of them exceed a quarter of the memory
    budget; before it one over the targets where some rows are equal. The rows may be a sample of the solver's rows;
    `n_left_out` then counts all groups that can be left out, and `groups` says what is left out with each row of the
    sample. Where residuals of all rows exceed the memory of rows on workers, only the path is returned.
    """
    inverse = solver.at_ridges(ridges.scaled)
    errors, found = path_errors(passes, ridges_form(factor, solver, inverse, ridges.scaled, target_origin), groups)
    path = ridge_path(solver, ridges, n_left_out or passes.n_left_out, per_target, loo_error=errors)
    if passes.beyond_memory:
        return path, None
    if found is None:
        scaled = ridges.scaled[path.chosen]
        inverse = solver.at_ridges(scaled)
        return path, left_out_at(passes, factor, solver, inverse, scaled, target_origin, groups)
    results, sums = found
    of_targets = sums[:, path.chosen, np.arange(len(path.chosen))]
    return path, left_out_results(passes, solver, inverse, *at_chosen(results, path.chosen), of_targets)


def ridge_path(
    solver: SpectralSolver,
    ridges: Ridges,
    n_left_out: int,
    per_target: bool = False,
    factor: float = ROBUST,
    loo_error: Floats | None = None,
) -> RidgePath:
    """Return the path over the ridges, without a pass.

    The best ridge is chosen by the leave-one-out errors where they are given, and otherwise by generalised
    cross-validation. Without `per_target` the targets' errors are added up, each in units of its variance.
    """
    solver.check_targets()
    gcv = np.array([solver.generalised_cross_validation(r, n_left_out, factor) for r in ridges.scaled])
    errors = gcv if loo_error is None else loo_error
    scale = np.where(solver.target_variance > 0, solver.target_variance, 1.0)
    totals = errors / scale if per_target else np.repeat((errors / scale).sum(axis=1)[:, None], gcv.shape[1], axis=1)
    # Rounding may change the error of a small ridge by this share: residuals are divided by 1 - h, which is then tiny.
    rounding = _ROUNDING * float(solver.spectrum.max(initial=0.0)) / ridges.scaled
    lowest = (totals * (1.0 + rounding[:, None])).min(axis=0)
    # Of ridges that do equally well the largest: the errors of noise hardly depend on it, but for rounding.
    chosen = np.argmax(totals <= (1.0 + _AS_GOOD) * lowest, axis=0)
    training = np.array([solver.training_error(r) for r in ridges.scaled])
    dimensions = np.array([solver.effective_dimension(r) for r in ridges.scaled])
    criterion = "gcv" if loo_error is None else "loo"
    return RidgePath(ridges.values, loo_error, gcv, training, dimensions, criterion, chosen)
