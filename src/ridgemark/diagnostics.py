"""Which rows drive a fit: leverage and leave-one-out residuals, the classical outlier diagnostics in kernel form."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

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

Entry = TypeVar("Entry")  # what is said of one row


class Influences(Generic[Entry]):
    """Rows in the order of their influence on a fit: the first ones as records, in a dictionary, and in a table."""

    leverage: Floats
    order: Indices

    def top(self, count: int = 10) -> list[Entry]:
        """Return the most influential rows, the most influential first."""
        return [self._row(int(place)) for place in self.order[: positive_count(count, "count")]]

    def to_record(self, count: int = 10) -> dict[str, Any]:
        """Return the numbers as a dictionary for reports and JSON, with the first `count` rows."""
        return {"n_rows": len(self.leverage), **self._facts(), "top": [vars(row).copy() for row in self.top(count)]}

    def __str__(self) -> str:
        columns = self._columns()
        heads = "".join(f" {head:>{width}}" for head, _, width, _ in columns)
        lines = [*self._lines(), "", "The rows that drive the fit"]
        lines.append(f"{'row':>10} {'leverage':>9}{heads} {'cook':>9}  {self._reasons}")
        entry: Any
        for entry in self.top():
            numbers = "".join(
                f" {format(value, form) if form else as_written(value):>{width}}"
                for value, width, form in ((getattr(entry, name), width, form) for _, name, width, form in columns)
            )
            mark = " (a landmark)" if entry.landmark else ""
            start = f"{entry.row:>10} {entry.leverage:>9.3f}{numbers} {entry.cook_distance:>9.2e}"
            lines.append(f"{start}  {self._reason(entry)}{mark}")
        return "\n".join(lines)

    _reasons = "why"  # heading of the last column

    def _reason(self, entry: Any) -> str:
        return str(entry.why)

    def _row(self, place: int) -> Entry:
        """Return what is said of the row at one place."""
        raise NotImplementedError

    def _facts(self) -> dict[str, Any]:
        """Return what `to_record` tells besides the rows."""
        return {}

    def _lines(self) -> list[str]:
        """Return the lines above the table."""
        raise NotImplementedError

    def _columns(self) -> Sequence[tuple[str, str, int, str]]:
        """Return heading, name, width and format of each number between the leverage and Cook's distance.

        Without a format, a number is written as people write it.
        """
        raise NotImplementedError

    def _why(self, place: int, surprise: Floats, unexpected: str = "unexpected target") -> str:
        """Return whether the row's rank is higher by leverage or by surprise."""
        far, surprising = (int((values > values[place]).sum()) for values in (self.leverage, surprise))
        return "far from other rows" if far <= surprising else unexpected


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
class Diagnosis(Influences[RowDiagnosis]):
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

    def _facts(self) -> dict[str, Any]:
        return {
            "noise": self.noise.tolist(),
            "effective_dimension": list(self.effective_dimension),
            "coherence": None if self.scores is None else list(self.scores.coherence),
            "verdict": self.verdict,
            "n_duplicates": self.n_duplicates,
            "constant_columns": list(self.constant_columns),
            "condition": self.condition,
            "n_dropped": self.n_dropped,
        }

    def _lines(self) -> list[str]:
        lower, upper = self.effective_dimension
        noise = ", ".join(map(as_written, self.noise))
        lines = [
            f"rows                 {len(self.leverage):,} ({self.n_duplicates:,} equal to an earlier one)",
            f"noise (sd)           {noise}",
            f"effective dimension  {lower:.4g} to {upper:.4g}",
        ]
        if self.scores is not None:
            lines.append("coherence            {:.3g} to {:.3g}".format(*self.scores.coherence))
        return [
            *lines,
            f"landmarks            {self.verdict}",
            f"landmark kernel      condition {self.condition:.2e}, {self.n_dropped} directions dropped",
            f"constant columns     {', '.join(self.constant_columns) or 'none'}",
        ]

    def _columns(self) -> Sequence[tuple[str, str, int, str]]:
        return ("loo residual", "loo_residual", 13, ""), ("studentised", "studentised", 12, ".2f")

    def _row(self, place: int) -> RowDiagnosis:
        size = np.abs(self.studentised)
        target = int(size[place].argmax())
        return RowDiagnosis(
            place,
            float(self.leverage[place]),
            float(self.loo_residuals[place, target]),
            float(self.studentised[place, target]),
            float(self.cook_distance[place]),
            bool(self.landmarks[place]),
            self._why(place, size.max(axis=1)),
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
