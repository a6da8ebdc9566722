"""Which rows drive a fit: leverage and leave-one-out residuals, the classical outlier diagnostics in kernel form."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Floats, Indices
from ridgemark.errors import NumericalError
from ridgemark.intervals import noise_variance
from ridgemark.leverage import Bracket, ScoreBracket
from ridgemark.linalg import largest_eigenvalue
from ridgemark.operators import NystromFactor
from ridgemark.parameters import positive_count
from ridgemark.path import LeaveOneOut
from ridgemark.rows.places import as_written
from ridgemark.solvers import LandmarkFit


@dataclass(frozen=True)
class RowDiagnosis:
    """The influence of one row on the fit."""

    row: int
    leverage: float
    loo_residual: float  # of the target with the largest studentised residual
    studentised: float
    cook_distance: float
    landmark: bool
    why: str


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Regression diagnostics of a fit; `top(k)` returns the most influential rows.

    Attributes
    ----------
    leverage : array of shape (n,)
        `v/(1 + v)` with v the row's potential (see `ridgemark.path.LeaveOneOut`): the share of its own fitted value
        that a row determines. The largest over targets.
    loo_residuals : array of shape (n, n_targets)
        Leave-one-out residuals.
    studentised : array of shape (n, n_targets)
        Leave-one-out residuals over their standard deviation, `s sqrt((1 + v)/w)`, w the row's weight in units of the
        mean.
    cook_distance : array of shape (n,)
        `studentised^2 v/d_eff`, the largest over targets: how far leaving the row out moves the fit, in units of its
        own uncertainty.
    order : array of shape (n,)
        Rows by influence, the most influential first: a row's rank is the better of its ranks by leverage and by
        studentised residual, so that a row extreme in either comes first.
    landmarks : array of shape (n,), bool
        Whether a row is a landmark; equal rows count once.
    noise : array of shape (n_targets,)
        Estimated standard deviation s of the noise, of a row of mean weight.
    effective_dimension : Bracket
        d_eff of exact kernel ridge regression.
    scores : ScoreBracket or None
        The scores by which the landmarks were drawn.
    n_duplicates : int
        Number of rows equal to an earlier row.
    constant_columns : tuple of str
        Columns with the same value in all rows.
    condition : float
        Largest over smallest eigenvalue of the kernel of the landmarks kept.
    n_dropped : int
        Directions of the landmark kernel dropped as rounding error.
    """

    leverage: Floats
    loo_residuals: Floats
    studentised: Floats
    cook_distance: Floats
    order: Indices
    landmarks: NDArray[np.bool_]
    noise: Floats
    effective_dimension: Bracket
    scores: ScoreBracket | None
    n_duplicates: int
    constant_columns: tuple[str, ...]
    condition: float
    n_dropped: int

    @property
    def verdict(self) -> str:
        """Whether landmarks drawn by scores can beat uniform ones on these rows, in one line."""
        return "landmarks were not drawn by scores" if self.scores is None else self.scores.verdict()

    def top(self, count: int = 10) -> list[RowDiagnosis]:
        """Return the most influential rows, the most influential first."""
        return [self._row(int(row)) for row in self.order[: positive_count(count, "count")]]

    def to_record(self, count: int = 10) -> dict[str, Any]:
        """Return the numbers as a dictionary for reports and JSON, with the first `count` rows."""
        return {
            "n_rows": len(self.leverage),
            "noise": self.noise.tolist(),
            "effective_dimension": list(self.effective_dimension),
            "coherence": None if self.scores is None else list(self.scores.coherence),
            "verdict": self.verdict,
            "n_duplicates": self.n_duplicates,
            "constant_columns": list(self.constant_columns),
            "condition": self.condition,
            "n_dropped": self.n_dropped,
            "top": [vars(row).copy() for row in self.top(count)],
        }

    def __str__(self) -> str:
        lower, upper = self.effective_dimension
        noise = ", ".join(map(as_written, self.noise))
        lines = [
            f"rows                 {len(self.leverage):,} ({self.n_duplicates:,} equal to an earlier one)",
            f"noise (sd)           {noise}",
            f"effective dimension  {lower:.4g} to {upper:.4g}",
        ]
        if self.scores is not None:
            lines.append("coherence            {:.3g} to {:.3g}".format(*self.scores.coherence))
        lines += [
            f"landmarks            {self.verdict}",
            f"landmark kernel      condition {self.condition:.2e}, {self.n_dropped} directions dropped",
            f"constant columns     {', '.join(self.constant_columns) or 'none'}",
            "",
            "The rows that drive the fit",
            f"{'row':>10} {'leverage':>9} {'loo residual':>13} {'studentised':>12} {'cook':>9}  why",
        ]
        for entry in self.top():
            mark = " (a landmark)" if entry.landmark else ""
            lines.append(
                f"{entry.row:>10} {entry.leverage:>9.3f} {as_written(entry.loo_residual):>13} "
                f"{entry.studentised:>12.2f} {entry.cook_distance:>9.2e}  {entry.why}{mark}"
            )
        return "\n".join(lines)

    def _row(self, row: int) -> RowDiagnosis:
        target = int(np.abs(self.studentised[row]).argmax())
        leverage_rank = int((self.leverage > self.leverage[row]).sum())
        size = np.abs(self.studentised).max(axis=1)
        residual_rank = int((size > size[row]).sum())
        reasons = [(leverage_rank, "far from other rows"), (residual_rank, "unexpected target")]
        return RowDiagnosis(
            row,
            float(self.leverage[row]),
            float(self.loo_residuals[row, target]),
            float(self.studentised[row, target]),
            float(self.cook_distance[row]),
            bool(self.landmarks[row]),
            min(reasons)[1],
        )


def diagnose(
    fit: LandmarkFit,
    left_out: LeaveOneOut,
    landmark_indices: Indices | None,
    scores: ScoreBracket | None,
    n_duplicates: int,
    constant_columns: tuple[str, ...],
) -> Diagnosis:
    """Return the diagnosis of a fit from its leave-one-out residuals."""
    potential, residuals = left_out.potential, left_out.residuals
    variance = noise_variance(fit)
    spread = np.sqrt(np.where(variance > 0, variance, 1.0) * (1.0 + potential))
    studentised = residuals * np.sqrt(left_out.weights)[:, None] / spread  # zero for a row of weight zero
    leverage = (potential / (1.0 + potential)).max(axis=1)
    cook_distance = (studentised**2 * potential / np.maximum(fit.dimensions, 1.0)).max(axis=1)
    if not all(np.isfinite(values).all() for values in (leverage, studentised, cook_distance)):
        raise NumericalError(
            "the influence of a row exceeds the floating-point range; rescale the targets or choose a larger ridge"
        )
    landmarks = np.isin(np.arange(len(residuals)), [] if landmark_indices is None else landmark_indices)
    return Diagnosis(
        leverage,
        residuals,
        studentised,
        cook_distance,
        by_either(leverage, np.abs(studentised).max(axis=1)),
        landmarks,
        np.sqrt(variance),
        fit.effective_dimension,
        scores,
        n_duplicates,
        constant_columns,
        _condition(fit.factor),
        fit.factor.cross_kernel.n_landmarks - fit.factor.rank,
    )


def _condition(factor: NystromFactor) -> float:
    """Return the largest over the smallest eigenvalue of the kernel of the landmarks kept."""
    scale = float(np.abs(factor.landmark_kernel).max(initial=0.0))
    if not 0 < scale < np.inf:
        return 1.0
    largest = math.sqrt(largest_eigenvalue(factor.landmark_kernel / scale))
    return max(1.0, largest * largest_eigenvalue(factor.whitener * math.sqrt(scale)))


def by_either(first: Floats, second: Floats) -> Indices:
    """Return the rows ordered by the better of their ranks in two lists; ties by the sum of both."""
    places = np.stack([np.argsort(np.argsort(-values, kind="stable")) for values in (first, second)])
    return np.lexsort((places.sum(axis=0), places.min(axis=0)))
