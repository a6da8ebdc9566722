"""All that a fit knows, in one record: what it chose and solved, from landmarks, exact, or of features alone."""

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Floats, Indices, Rows, one_blas_thread
from ridgemark.certificates import Certificate, trace_certificate
from ridgemark.errors import NumericalError
from ridgemark.explaining import Background, Importance, derivative_shares, total_indices
from ridgemark.fitted.form import Form
from ridgemark.fitted.frozen import Frozen, not_saved, read_only
from ridgemark.fitted.left_out import Classes, LeftOutRows, LeftOutTargets
from ridgemark.intervals import Calibration, CalibrationRows, NoiseLevel
from ridgemark.kernels import CrossKernel, Kernel
from ridgemark.leverage import Bracket, ScoreBracket
from ridgemark.losses import SQUARED, Loss, Moments, SquaredLoss
from ridgemark.operators import Cross
from ridgemark.passes import Cost, RowPasses
from ridgemark.path import KeptRows, LossPath, RidgePath
from ridgemark.rows import ArrayRows
from ridgemark.selection import LandmarkCount
from ridgemark.solvers import CompactFit, LandmarkFit, RefinementStep
from ridgemark.transforms import TargetTransform
from ridgemark.tuning import TuningResult


class Function(Frozen):
    """`f(x) = k(x) dual_coef + intercept`: all that a prediction needs, of every estimator."""

    kernel: Kernel
    points: Annotated[Any, Annotated[Rows, "(p, e)"] | None]  # None where the kernel is known between rows by number
    numbers: Annotated[Indices | None, "(p)", "< s", "< n"]  # of the points; None if they are not training rows
    dual_coef: Annotated[Floats, "(p, t)"]
    intercept: Annotated[Floats, "(t)"]

    @property
    def n_points(self) -> int:
        """Number of points, p."""
        return len(self.dual_coef)

    @cached_property
    def cross_kernel(self) -> CrossKernel:
        """The kernel bound to the points."""
        return self.kernel.bind(self.points, self.numbers)

    def values(self, passes: RowPasses) -> Floats:
        """Return f at the rows of some passes, shape (n, t)."""
        return Cross(passes, self.cross_kernel) @ self.dual_coef + self.intercept

    def at(self, rows: Any) -> Floats:
        """Return f at rows of features in memory, shape (n, t)."""
        return self.values(RowPasses(ArrayRows(rows)))


class Choice(Frozen):
    """How the landmarks were chosen."""

    count: LandmarkCount
    scores: ScoreBracket | None  # that drew them
    sums: Moments  # of the rows that chose them, without the Gram matrix
    scored: bool  # whether they were drawn by leverage scores
    blind: bool  # whether they were drawn uniformly, and neither their number nor the bandwidth looked at the rows

    def check_record(self) -> None:
        """Refuse what a fit does not make: a file may hold it."""
        if self.sums.gram.size:
            raise ValueError("the sums of the rows that chose the landmarks must be without the Gram matrix")


@dataclass(frozen=True, eq=False)
class Tolerance:
    """Whether a fit was certified as close to exact as `risk_tolerance` asks, and the rounds it took.

    Attributes
    ----------
    met : bool
        Whether the certificate proves it.
    reason : str
        Why the fit ended here.
    n_landmarks : tuple of int
        Landmarks of every round.
    bounds : tuple of float
        The certificate's bound after every round, the largest over targets.
    """

    met: bool
    reason: str
    n_landmarks: tuple[int, ...]
    bounds: Annotated[tuple[float, ...], "any"]


class Solution(Frozen):
    """The ridge at which the coefficients were solved, and what chose it."""

    ridge: Annotated[Floats, "(t)", "> 0"]  # lambda
    scaled_ridge: Annotated[Floats, "(t)", "> 0"]  # lambda times the sum of weights
    effective_dimension: Bracket
    path: RidgePath | LossPath | None  # the ridges searched; None where one was given
    ridge_per_target: bool = False
    solver: Annotated[str, Literal["direct", "gradient"]] = "direct"
    # Of a gradient, the RMS distance from the direct solution at most.
    solver_bound: Annotated[Floats | None, "(t)", ">= 0"] = None
    certificate: Certificate | None = None  # as measured; see `FittedModel.certificate`
    tolerance: Tolerance | None = None


class RowFacts(Frozen):
    """What is kept of the rows of all batches."""

    n_duplicates: int
    constant_columns: Annotated[tuple[int, ...], "< e"]
    two_valued: tuple[tuple[int, float, float], ...]  # column, low and high of each column of two values
    hashes: Annotated[NDArray[np.uint64], "(_)", "ascending"]  # the smallest: they count distinct rows
    sample: KeptRows | None  # for leave-one-out when the rows are gone
    n_groups: Annotated[int | None, "> 0"] = None  # that left together; None where rows had no labels of groups


class _Fitted(Frozen):
    """What every fit that predicts knows."""

    schema: Form
    function: Function

    def check_record(self) -> None:
        """Refuse what a fit does not make: a file may hold it."""
        kernel, numbers = self.function.kernel, self.function.numbers
        by_number = isinstance(kernel, Kernel) and kernel.pairwise
        if by_number and (numbers is None or not (numbers < self.schema.n_encoded).all()):
            raise ValueError("the points of a precomputed kernel must be rows of its matrix")


class FittedModel(_Fitted):
    """All that a fit from landmarks knows.

    `sums` answers later questions (further rows, certificates, intervals, standard deviations) from some 3 p^2
    numbers. A fit by gradients has none; a model from a file may have them in the compact form, which answers fewer
    questions, or go without.
    """

    choice: Choice
    solution: Solution
    rows: RowFacts
    left_out: LeftOutRows | None = None
    calibration: Calibration | None = None
    cost: Cost = Cost()
    sums: LandmarkFit | CompactFit | None = None
    tuning: TuningResult | None = None  # how the kernel was tuned
    background: Background | None = None  # rows that explanations compare with; None for a precomputed kernel
    noise: NoiseLevel | None = None  # of the rows that chose the landmarks, where others were added
    classes: Classes | None = None  # of a fit of labels
    loss: Loss = SQUARED
    judged: LeftOutTargets | None = None  # of a fit of numbers by another loss
    transform: TargetTransform | None = None  # of the target
    drawn: CalibrationRows | None = not_saved()  # for `calibrated`, where the ridge was given

    @property
    def is_squared(self) -> bool:
        """Whether the fit is by squared errors."""
        return isinstance(self.loss, SquaredLoss)

    @cached_property
    def expanded(self) -> LandmarkFit | None:
        """The sums, where they are compact for all questions but those that need every digit."""
        if not isinstance(self.sums, CompactFit):
            return self.sums
        function = self.function
        return self.sums.expanded(function.kernel, function.points, function.numbers, function.dual_coef)

    @cached_property
    def certificate(self) -> Certificate | None:
        """How far the fit is from exact: as it was measured, or else by the trace of K - L, computed when asked for."""
        measured = self.solution.certificate
        if measured is not None or not self.is_squared or not isinstance(self.sums, LandmarkFit):
            return measured
        # Distances of targets that are very large exceed the floating-point range.
        with np.errstate(over="ignore", invalid="ignore"), suppress(NumericalError):
            return trace_certificate(self.sums)
        return None

    @cached_property
    def calibrated(self) -> Calibration | None:
        """The calibration; where the ridge was given it is computed when asked for, as it takes as long as a fit."""
        if self.drawn is None or self.expanded is None:
            return self.calibration
        with np.errstate(over="ignore", invalid="ignore"):
            return read_only(self.drawn.calibrated(self.expanded))

    @cached_property
    def importance(self) -> Importance | None:
        """What each column matters, computed when asked for; None where that would take too long."""
        if self.background is None:
            return None
        form, function = self.schema, self.function
        with np.errstate(over="ignore", invalid="ignore"), one_blas_thread():
            return total_indices(function.at, function.n_points, self.background.rows, form.owners, form.columns)

    @cached_property
    def derivative_shares(self) -> Floats | None:
        """Each column's share of the mean squared derivative, computed when asked for; None where it is not known."""
        if self.background is None:
            return None
        function = self.function
        with np.errstate(over="ignore", invalid="ignore"), one_blas_thread():
            return derivative_shares(
                self.background.rows, self.schema.table, function.kernel, function.points, function.dual_coef
            )

    def check_record(self) -> None:
        """Refuse what a fit does not make: a file may hold it."""
        super().check_record()
        count = self.schema.targets.count
        if self.transform is not None and (count > 1 or self.classes is not None):
            raise ValueError("a transformed target must be one number for each row")
        if self.classes is not None and len(self.classes.values) != (count if count > 1 else 2):
            raise ValueError(f"{len(self.classes.values)} classes do not have {count} functions")
        if self.classes is None and not self.is_squared and len(self.loss.parts()) != count:
            raise ValueError(f"a loss of {len(self.loss.parts())} functions does not have {count} targets")


class FittedExact(_Fitted):
    """All that a fit of exact kernel ridge regression knows."""

    ridge: Annotated[float, "> 0"]
    scaled_ridge: Annotated[float, "> 0"]
    path: RidgePath | None
    landmark_indices: Annotated[Indices | None, "(_)"]
    n_landmarks: Annotated[int, "> 0"]
    history: tuple[RefinementStep, ...]
    n_iter: int
    cost: Cost
    tuning: TuningResult | None = None

    @property
    def points(self) -> Any:
        """The rows that have coefficients; of a precomputed kernel their numbers."""
        return self.function.numbers if self.function.points is None else self.function.points


class FittedFeatures(Frozen):
    """All that a fit of features knows."""

    schema: Form
    cross_kernel: CrossKernel
    components: Any
    component_indices: NDArray[np.intp] | None
    normalization: Floats
    cost: Cost
